"""The EDGAR part of a raw collection: company facts, submissions and XBRL instances by ticker."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from finskillbench.errors import SourceError
from finskillbench.sources.companies.constituents import constituents_file, parse_constituents
from finskillbench.sources.companies.universe import load_universe
from finskillbench.sources.edgar.companyfacts import EdgarFacts, EdgarFiler, parse_companyfacts, parse_filer
from finskillbench.sources.edgar.instance import Instance, filer_of, instance_files, parse_instance
from finskillbench.sources.edgar.numerals import CANONICAL_TAGS
from finskillbench.sources.edgar.submissions import Submissions, is_page, parse_submissions
from finskillbench.sources.files import ticker_of

__all__ = ["CompanyFiles", "FilingsData", "InstanceFiles", "load_filings"]

Filed = TypeVar("Filed", EdgarFiler, Submissions)

_SUFFIXES = (".json", ".json.gz")
_CIK = re.compile(r"CIK(\d{10})", re.I)
_NAMED = 10
"""Maximum number of files that a note names."""


class CompanyFiles(Mapping[str, EdgarFacts]):
    """Company facts by symbol, read on access (SourceError if invalid) and not cached: 3,000 filers take gigabytes."""

    def __init__(self, filers: Mapping[str, EdgarFiler]) -> None:
        self.filers = filers

    def __getitem__(self, symbol: str) -> EdgarFacts:
        return parse_companyfacts(self.filers[symbol].file)

    def __contains__(self, symbol: object) -> bool:
        return symbol in self.filers

    def __iter__(self) -> Iterator[str]:
        return iter(self.filers)

    def __len__(self) -> int:
        return len(self.filers)


class InstanceFiles(Mapping[str, tuple[Instance, ...]]):
    """Parsed instances by symbol, in path order, read on access and not cached; SourceError if invalid."""

    def __init__(self, files: Mapping[str, tuple[Path, ...]], ciks: Mapping[str, int]) -> None:
        self.files, self.ciks = files, ciks

    def __getitem__(self, symbol: str) -> tuple[Instance, ...]:
        found = tuple(parse_instance(path, tags=CANONICAL_TAGS) for path in self.files[symbol])
        for one in found:
            if one.cik is not None and one.cik != self.ciks.get(symbol, one.cik):
                raise SourceError(
                    one.path,
                    f"the cover is of CIK {one.cik}, but its figures are of CIK {self.ciks[symbol]} ({symbol})",
                    remedy="download it again",
                )
        return found

    def __contains__(self, symbol: object) -> bool:
        return symbol in self.files

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)


@dataclass(frozen=True, slots=True)
class FilingsData:
    """Source of the fundamental panels; every mapping is by symbol, sorted.

    filers : identity, and file of facts. companies : facts under the tags of the primary statements, read on access.
    submissions : lists of filings. instances : parsed XBRL instances, read on access; companies without any are absent.
    notes : absent, omitted or preferred data. unusable : files of company facts that cannot be used, with reason and
        remedy.
    listed : CIKs by the collection's lists of tickers.
    """

    filers: Mapping[str, EdgarFiler]
    companies: CompanyFiles
    submissions: Mapping[str, Submissions]
    instances: InstanceFiles
    notes: tuple[str, ...]
    unusable: tuple[str, ...] = ()
    listed: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])

    def of(self, symbols: Collection[str]) -> FilingsData:
        """Select some companies, without the notes."""
        filers = {symbol: self.filers[symbol] for symbol in symbols}
        files = {symbol: self.instances.files[symbol] for symbol in symbols if symbol in self.instances}
        return FilingsData(
            filers,
            CompanyFiles(filers),
            {symbol: self.submissions[symbol] for symbol in symbols if symbol in self.submissions},
            InstanceFiles(files, self.instances.ciks),
            (),
        )


def load_filings(raw_dir: Path, symbols: Collection[str] | None = None) -> FilingsData:
    """Read company facts, submissions and XBRL instances of a raw collection, as far as they exist.

    Of several files of one company, those with the most facts or the latest filing are used, and noted.

    Parameters
    ----------
    raw_dir : files may be in sub-folders, plain or gzipped, named after ticker or CIK (`CIK0000320193.json`). Tickers
        of CIKs come from universe.json, submissions, constituents.csv and `ticker` in the file, in this order.
        Instances may have any path; their contexts name the filer.
    symbols : companies to read (`BF-B` style); None reads every one with a known ticker.

    Raises
    ------
    SourceError : no such folder, an invalid file, or two filers under one ticker; invalid figures raise it on access.
    """
    raw_dir = Path(raw_dir)
    if not raw_dir.is_dir():
        raise SourceError(raw_dir, "no such folder", remedy="name a raw collection")
    wanted = None if symbols is None else frozenset(symbols)
    notes = [
        f"There is no folder {name}: {lacking}."
        for name, lacking in (
            ("companyfacts", "fundamental analysis is left out"),
            ("submissions", "filings are those that the company facts name"),
        )
        if not (raw_dir / name).is_dir()
    ]
    tickers = _known_tickers(raw_dir)
    submissions = _submissions(raw_dir / "submissions", wanted, tickers, notes)
    listed: dict[str, tuple[int, ...]] = {}
    for cik, names in tickers.items():
        for symbol in dict.fromkeys(names):
            listed[symbol] = (*listed.get(symbol, ()), cik)
    unusable: list[str] = []
    filers = _filers(raw_dir / "companyfacts", wanted, tickers, listed, notes, unusable)
    if wanted is not None and filers and (missing := sorted(wanted - set(filers))):
        notes.append(f"Company facts are not there for {len(missing)} of {len(wanted)} names: {', '.join(missing)}.")
    submissions = {symbol: filed for symbol, filed in submissions.items() if symbol in filers}
    for parsed in submissions.values():
        notes.extend(parsed.notes)
    ciks = {symbol: one.cik for symbol, one in filers.items()}
    return FilingsData(
        filers=filers,
        companies=CompanyFiles(filers),
        submissions=submissions,
        instances=InstanceFiles(_instances(raw_dir, wanted, ciks, notes), ciks),
        notes=tuple(notes),
        unusable=tuple(unusable),
        listed={symbol: listed[symbol] for symbol in filers if symbol in listed},
    )


def _known_tickers(raw_dir: Path) -> dict[int, list[str]]:
    """Return tickers by CIK from the lists of the collection; share classes of one filer are several."""
    known: dict[int, list[str]] = {}
    universe = load_universe(raw_dir)
    for security in universe.securities.values():
        if security.cik:
            known.setdefault(int(security.cik), []).append(security.symbol)
    constituents = constituents_file(raw_dir)
    if constituents is not None:
        for one in parse_constituents(constituents).values():
            if one.cik:
                known.setdefault(int(one.cik), []).append(one.symbol)
    return known


def _json_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return [p for p in sorted(folder.rglob("*")) if p.is_file() and p.name.lower().endswith(_SUFFIXES)]


def _named(path: Path) -> tuple[int | None, str | None]:
    found = _CIK.match(path.name)
    return (int(found.group(1)), None) if found else (None, ticker_of(path))


def _choose(candidates: Iterable[str], wanted: frozenset[str] | None) -> str | None:
    listed = list(dict.fromkeys(candidates))
    requested = [ticker for ticker in listed if wanted is None or ticker in wanted]
    return requested[0] if requested else listed[0] if listed else None


def _submissions(
    folder: Path, wanted: frozenset[str] | None, tickers: dict[int, list[str]], notes: list[str]
) -> dict[str, Submissions]:
    """Read submissions by symbol, and add their tickers to `tickers`."""
    found: dict[str, list[Submissions]] = {}
    for path in _json_files(folder):
        if is_page(path):
            continue
        cik, _ = _named(path)
        if wanted is not None and cik in tickers and not wanted.intersection(tickers[cik]):
            continue
        one = parse_submissions(path)
        tickers.setdefault(one.cik, []).extend(one.tickers)
        symbol = _choose(tickers[one.cik], wanted)
        if symbol is not None and (wanted is None or symbol in wanted):
            found.setdefault(symbol, []).append(one)
    return _best(found, lambda one: str(one.filings["filed"].max() or ""), "submissions {} reaches furthest", notes)


def _filers(
    folder: Path,
    wanted: frozenset[str] | None,
    tickers: Mapping[int, list[str]],
    listed: Mapping[str, tuple[int, ...]],
    notes: list[str],
    unusable: list[str],
) -> dict[str, EdgarFiler]:
    """Read filers by symbol; skip files whose content is of another company."""
    found: dict[str, list[EdgarFiler]] = {}
    nameless: list[str] = []
    known = {cik: list(names) for cik, names in tickers.items()}
    # Files named after a ticker come first, because they identify the CIKs that other files are named after.
    for path in sorted(_json_files(folder), key=lambda path: _named(path)[0] is not None):
        cik, symbol = _named(path)
        if cik is not None:
            symbol = _choose(known.get(cik, ()), wanted)
        if symbol is not None and wanted is not None and symbol not in wanted:
            continue
        one = parse_filer(path)
        symbol = symbol or one.ticker
        if symbol is not None and (mixed_up := _of_another(one, symbol, tickers, listed)):
            if wanted is not None:
                raise SourceError(path, mixed_up, remedy=f"put the facts of {symbol} in its place")
            unusable.append(f"{path.name} cannot be used: {mixed_up}; put the facts of {symbol} in its place.")
            continue
        known.setdefault(one.cik, []).extend([symbol] if symbol is not None else [])
        if symbol is None:
            nameless.append(path.name)
        elif wanted is None or symbol in wanted:
            found.setdefault(symbol, []).append(one)
    if nameless:
        more = f" and {len(nameless) - _NAMED} more" if len(nameless) > _NAMED else ""
        unusable.append(
            f"{', '.join(nameless[:_NAMED])}{more} in {folder.name} cannot be used: nothing names the ticker; list it "
            "with its CIK in universe.json or constituents.csv, add the submissions, or name the file after its ticker."
        )
    return _best(found, lambda one: parse_companyfacts(one.file).facts.height, "company facts {} has most", notes)


def _of_another(
    one: EdgarFiler, symbol: str, tickers: Mapping[int, list[str]], listed: Mapping[str, tuple[int, ...]]
) -> str:
    """Return the reason why facts belong to another company than `symbol`; empty if nothing contradicts it.

    Lists decide by CIK and ticker. Names prove nothing: they change, and a parent's facts may have a subsidiary's.
    """
    ciks, other_tickers = listed.get(symbol, ()), [name for name in tickers.get(one.cik, ()) if name != symbol]
    if one.cik in ciks or not (ciks or other_tickers):
        return ""
    problem = f"it holds the facts of {one.entity or 'a company without a name'} (CIK {one.cik}"
    problem += f", {other_tickers[0]})" if other_tickers else ")"
    known = f"CIK {' or '.join(map(str, ciks))}" if ciks else "unknown to them"
    return f"{problem}, but by the lists of the collection {symbol} is {known}"


def _best(
    found: Mapping[str, Sequence[Filed]], rank: Callable[[Filed], int | str], template: str, notes: list[str]
) -> dict[str, Filed]:
    """Choose the file of highest rank by symbol; SourceError if two filers share one."""
    chosen: dict[str, Filed] = {}
    for symbol, several in sorted(found.items()):
        first = several[0]
        for other in several[1:]:
            if other.cik != first.cik:
                problem = f"{symbol} is CIK {other.cik} here and CIK {first.cik} in {first.file}"
                raise SourceError(other.file, problem, remedy="rename or remove one")
        chosen[symbol] = max(several, key=rank) if len(several) > 1 else first
        if len(several) > 1:
            notes.append(f"{symbol}: of {len(several)} {template.format(chosen[symbol].file)} and is used.")
    return chosen


def _instances(
    folder: Path, wanted: frozenset[str] | None, ciks: Mapping[str, int], notes: list[str]
) -> dict[str, tuple[Path, ...]]:
    symbols = {cik: symbol for symbol, cik in ciks.items()}
    found: dict[str, list[Path]] = {}
    unmatched = nameless = 0
    for path in instance_files(folder):
        filer = filer_of(path)
        nameless += filer is None
        if filer in symbols:
            found.setdefault(symbols[filer], []).append(path)
        elif filer is not None:
            unmatched += 1
    if not found:
        notes.append("There are no XBRL instances: revenue by segment is not covered.")
    if unmatched and wanted is None:
        notes.append(f"{unmatched} XBRL documents are of companies without company facts: left out.")
    if nameless:
        notes.append(f"{nameless} documents name no filer, so that they hold no XBRL facts: left out.")
    return {symbol: tuple(paths) for symbol, paths in sorted(found.items())}
