"""Diagnose a raw collection, reading every file as far as possible, and write the template of one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from finskillbench.errors import InputError, SourceError
from finskillbench.findings import CheckState, Finding
from finskillbench.sources.companies.constituents import constituents_file, parse_constituents
from finskillbench.sources.companies.statements import parse_statements
from finskillbench.sources.companies.universe import load_universe
from finskillbench.sources.edgar.companyfacts import parse_companyfacts
from finskillbench.sources.edgar.instance import filer_of, instance_files, parse_instance
from finskillbench.sources.edgar.numerals import CANONICAL_TAGS
from finskillbench.sources.edgar.submissions import is_page, parse_submissions
from finskillbench.sources.files import Problems, files_below
from finskillbench.sources.market.collection import parse_french, read_market
from finskillbench.sources.market.fred import SERIES, parse_fred
from finskillbench.sources.market.prices import SUFFIXES, parse_prices
from finskillbench.sources.raw import formats
from finskillbench.sources.raw.formats import TEMPLATE, RawFormat, documentation

Progress = Callable[[str], None]
_JSON = (".json", ".json.gz")
_CSV = (".csv", ".csv.gz")


@dataclass(slots=True)
class FormatReport:
    """Number of files of one format, and their findings."""

    format: RawFormat
    files: int = 0
    found: list[Finding] = field(default_factory=list[Finding])


@dataclass(slots=True)
class Diagnosis:
    """Formats and findings of a collection.

    examined : by format, in the order of the documentation.
    """

    raw_dir: Path
    examined: list[FormatReport] = field(default_factory=list[FormatReport])

    @property
    def findings(self) -> list[Finding]:
        """Return all findings, file by file."""
        return [finding for one in self.examined for finding in one.found]

    def of(self, which: RawFormat) -> FormatReport:
        return next(one for one in self.examined if one.format is which)

    def add(self, error: SourceError, whole: RawFormat) -> Finding:
        """Add an error of several files once; `whole` is the format if the error names none."""
        finding = _finding(self.raw_dir, error)
        if finding not in self.findings:
            self.of(_kind(self.raw_dir, finding.where, whole)).found.append(finding)
        return finding


def diagnose_raw_files(raw_dir: Path, progress: Progress = lambda step: None) -> Diagnosis:
    """Read a collection file by file, then the market as a whole; SourceError if there is no such folder."""
    if not raw_dir.is_dir():
        raise SourceError(raw_dir, "no such folder", remedy="name a raw collection")
    diagnosis = Diagnosis(raw_dir, [FormatReport(one) for one in formats.FORMATS])
    for one in diagnosis.examined:
        progress(f"reading {one.format.path}")
        for path, read in _readers(raw_dir, one.format):
            one.files += 1
            one.found += _problems(raw_dir, path, read)
    _halves(diagnosis, progress)
    return diagnosis


Reader = Callable[[Path, Problems], object]


def _readers(raw_dir: Path, which: RawFormat) -> Iterator[tuple[Path, Reader]]:
    if which is formats.UNIVERSE:
        if (raw_dir / "universe.json").is_file():
            yield raw_dir / "universe.json", lambda _, problems: load_universe(raw_dir, problems)
    elif which is formats.CONSTITUENTS:
        if (path := constituents_file(raw_dir)) is not None:
            yield path, parse_constituents
    elif which is formats.INSTANCES:
        for path in instance_files(raw_dir):
            yield path, _instance
    else:
        wanted, read = _PLAIN[which.path]
        for path in wanted(_folder(raw_dir, which)):
            yield path, read


def _folder(raw_dir: Path, which: RawFormat) -> Path:
    names = [name for name in (which.folder, which.other) if name and (raw_dir / name).is_dir()]
    return raw_dir / (names[0] if names else which.folder)


def _below(suffixes: tuple[str, ...], part: str = "") -> Callable[[Path], Iterable[Path]]:
    def files(folder: Path) -> Iterable[Path]:
        named = (path for path in files_below(folder, suffixes) if part in path.name.lower())
        return (path for path in named if not part or "daily" in path.name.lower())

    return files


def _anywhere(folder: Path) -> Iterable[Path]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name.lower().endswith(_JSON))
    return (path for path in files if not is_page(path))


def _series(folder: Path) -> Iterable[Path]:
    return (path for path in files_below(folder, _CSV) if path.name.split(".")[0].upper() in SERIES)


def _instance(path: Path, problems: Problems) -> object:
    del problems  # a document is read whole or not at all
    return parse_instance(path, tags=CANONICAL_TAGS) if filer_of(path) is not None else None


_PLAIN: dict[str, tuple[Callable[[Path], Iterable[Path]], Reader]] = {
    formats.PRICES.path: (_below(SUFFIXES), lambda path, problems: parse_prices(path, problems=problems)),
    formats.FIVE_FACTORS.path: (
        _below(_CSV, "5_factors"),
        lambda path, problems: parse_french(path, problems=problems),
    ),
    formats.MOMENTUM.path: (_below(_CSV, "momentum"), lambda path, problems: parse_french(path, problems=problems)),
    formats.FRED.path: (_series, lambda path, problems: parse_fred(path, problems=problems)),
    formats.STATEMENTS.path: (_below((".json",)), parse_statements),
    formats.COMPANY_FACTS.path: (_anywhere, lambda path, _: parse_companyfacts(path)),
    formats.SUBMISSIONS.path: (_anywhere, lambda path, _: parse_submissions(path)),
}


def _problems(raw_dir: Path, path: Path, read: Reader) -> list[Finding]:
    problems: list[SourceError] = []
    try:
        read(path, problems)
    except SourceError as error:
        problems.append(error)
    rows = set[int]()
    found: list[Finding] = []
    for problem in problems:
        # Line 1 is that of a whole JSON document.
        if problem.line is None or problem.line == 1 or problem.line not in rows:
            found.append(_finding(raw_dir, problem))
            rows.update([problem.line or 1])
    return found


def _finding(raw_dir: Path, error: SourceError) -> Finding:
    """Convert a reader's error to a finding with a path relative to the collection."""
    path = Path(str(error.file))
    where = str(path.relative_to(raw_dir)) if path.is_relative_to(raw_dir) and path != raw_dir else str(error.file)
    line = f", line {error.line}" if error.line is not None and where.endswith((".csv", ".csv.gz")) else ""
    return Finding(CheckState.FAIL, where + line, error.problem)


def _halves(diagnosis: Diagnosis, progress: Progress) -> None:
    """Add missing formats of each half, and errors across files of the market."""
    raw_dir = diagnosis.raw_dir
    halves = [[diagnosis.of(which) for which in half] for half in (formats.MARKET, formats.FILINGS)]
    empty = [not any(one.files for one in half) for half in halves]
    for half, absent in zip(halves, empty, strict=True):
        # A collection may lack one half completely; an edition of the other is built.
        for one in half if not absent or all(empty) else ():
            if one.format.required and not one.files:
                one.found.append(
                    Finding(CheckState.WARN, one.format.path, f"is missing; needed for {one.format.needed}")
                )
    if diagnosis.of(formats.PRICES).files:
        progress("reading the market as a whole")
        errors: list[SourceError] = []
        read_market(raw_dir, problems=errors)
        for error in errors:
            diagnosis.add(error, formats.PRICES)


def _kind(raw_dir: Path, where: str, whole: RawFormat) -> RawFormat:
    """Return the format of a finding from the folder in its path, else `whole`."""
    path = Path(where)
    folder = path.relative_to(raw_dir).parts[0] if path.is_relative_to(raw_dir) and path != raw_dir else path.parts[0]
    if folder in ("french", "famafrench") and "momentum" in path.name.lower():
        return formats.MOMENTUM
    return next((one for one in formats.FORMATS if one.folder and folder in (one.folder, one.other)), whole)


README = "README.md"
_ABOUT = """# A collection of raw files

Small files of every format, of two fictional companies: too few for an edition. Replace them with your files, check
them with `finskillbench data doctor DIR`, and build with `finskillbench data build --source raw-dir --raw-dir DIR --out
EDITION`. Files that only one half of the benchmark needs may be absent; the other half is built.

"""


def write_template(out: Path) -> list[str]:
    """Copy the template into a new folder and return its file names; InputError if it is not empty or not writable."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: exists and is not an empty folder; name a new one")
    try:
        shutil.copytree(TEMPLATE, out, dirs_exist_ok=True)
        (out / README).write_text(_ABOUT + documentation(), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{out}: cannot be written ({error.strerror}); choose another place") from error
    return sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
