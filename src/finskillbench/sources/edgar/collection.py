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
from finskillbench.sources.edgar.companyfacts import CompanyFacts, Filer, parse_companyfacts, parse_filer
from finskillbench.sources.edgar.instance import Instance, filer_of, instance_files, parse_instance
from finskillbench.sources.edgar.numerals import CANONICAL_TAGS
from finskillbench.sources.edgar.submissions import Submissions, is_page, parse_submissions
from finskillbench.sources.files import ticker_of

__all__ = ["CompanyFiles", "FilingsData", "InstanceFiles", "load_filings"]

Filed = TypeVar("Filed", Filer, Submissions)

_SUFFIXES = (".json", ".json.gz")
_CIK = re.compile(r"CIK(\d{10})", re.I)
_NAMED = 10
"""Files that a sentence names before the rest are only counted."""


class CompanyFiles(Mapping[str, CompanyFacts]):
    """Symbol -> its company facts, read when asked for and not kept: those of 3,000 filers take gigabytes.

    Raises
    ------
    SourceError : on access, a file whose facts cannot be trusted.
    """

    def __init__(self, filers: Mapping[str, Filer]) -> None:
        self.filers = filers

    def __getitem__(self, symbol: str) -> CompanyFacts:
        return parse_companyfacts(self.filers[symbol].file)

    def __contains__(self, symbol: object) -> bool:
        return symbol in self.filers

    def __iter__(self) -> Iterator[str]:
        return iter(self.filers)

    def __len__(self) -> int:
        return len(self.filers)


class InstanceFiles(Mapping[str, tuple[Instance, ...]]):
    """Symbol -> its parsed instances, in path order, read when asked for and not kept.

    A filer of ten years has forty instances, and 3,000 filers' facts with dimensions need not lie in memory at once.

    Raises
    ------
    SourceError : on access, a file that cannot be read, or one whose cover names another filer than its contexts.
    """

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
    """What the fundamental panels are built from; every mapping is by symbol, sorted.

    filers : symbol -> who it is and where its facts are.
    companies : symbol -> its raw facts under the tags of the primary statements, read on access.
    submissions : symbol -> its list of filings, where there is one.
    instances : symbol -> its parsed XBRL instances, read on access; a company without any is absent.
    notes : what is absent, left out or chosen between, one sentence each.
    unusable : which files of company facts cannot be used, with the reason and the remedy, one sentence each.
    listed : symbol -> its CIKs by the collection's lists of tickers, where it is in any.
    """

    filers: Mapping[str, Filer]
    companies: CompanyFiles
    submissions: Mapping[str, Submissions]
    instances: InstanceFiles
    notes: tuple[str, ...]
    unusable: tuple[str, ...] = ()
    listed: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])

    def of(self, symbols: Collection[str]) -> FilingsData:
        """What there is of some companies, without the notes on the whole."""
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
    """Read company facts, submissions and XBRL instances of a raw collection, as far as they are there.

    Parameters
    ----------
    raw_dir : the raw collection; files lie in those folders or any number of sub-folders deep, plain or gzipped. They
        are named after the ticker or after the CIK (`CIK0000320193.json`); whose CIK it is say universe.json, the
        submissions, constituents.csv and a collector's `ticker` in the file, in this order. Instances may lie anywhere
        in the collection and have any name: they say themselves who filed them.
    symbols : companies to read (`BF-B` style); None reads every one whose ticker is known.

    Of several files of one company the company facts with the most figures and the submissions that reach furthest are
    taken, and a note says so.

    Raises
    ------
    SourceError : no such folder, a file that is not what it should be, or files of two filers under one ticker. Figures
        that cannot be trusted raise it when those of their company are asked for.
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
    """CIK -> tickers, from the lists of the collection; share classes of one filer are several."""
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
    """CIK or ticker in a file's name."""
    found = _CIK.match(path.name)
    return (int(found.group(1)), None) if found else (None, ticker_of(path))


def _choose(candidates: Iterable[str], wanted: frozenset[str] | None) -> str | None:
    """The ticker a filer goes by: the first that was asked for, else the first there is."""
    listed = list(dict.fromkeys(candidates))
    asked = [ticker for ticker in listed if wanted is None or ticker in wanted]
    return asked[0] if asked else listed[0] if listed else None


def _submissions(
    folder: Path, wanted: frozenset[str] | None, tickers: dict[int, list[str]], notes: list[str]
) -> dict[str, Submissions]:
    """Submissions by symbol; the tickers they name are added to `tickers`."""
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
) -> dict[str, Filer]:
    """Whose facts there are by symbol, without files that hold another company than they are named after."""
    found: dict[str, list[Filer]] = {}
    nameless: list[str] = []
    known = {cik: list(names) for cik, names in tickers.items()}
    # Files named after a ticker first: they say whose CIK it is that another file is named after.
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
    one: Filer, symbol: str, tickers: Mapping[int, list[str]], listed: Mapping[str, tuple[int, ...]]
) -> str:
    """Why facts are not those of the company they are named after; empty where nothing speaks against it.

    The lists say which CIK a ticker is and which ticker a CIK. The name is no proof of either: filers change theirs,
    and the facts of a parent may bear that of a subsidiary which registers with it.
    """
    ciks, others = listed.get(symbol, ()), [name for name in tickers.get(one.cik, ()) if name != symbol]
    if one.cik in ciks or not (ciks or others):
        return ""
    said = f"it holds the facts of {one.entity or 'a company without a name'} (CIK {one.cik}"
    said += f", {others[0]})" if others else ")"
    known = f"CIK {' or '.join(map(str, ciks))}" if ciks else "unknown to them"
    return f"{said}, but by the lists of the collection {symbol} is {known}"


def _best(
    found: Mapping[str, Sequence[Filed]], rank: Callable[[Filed], int | str], words: str, notes: list[str]
) -> dict[str, Filed]:
    """The file of highest rank of each company, by symbol; SourceError where files of two filers are under one."""
    chosen: dict[str, Filed] = {}
    for symbol, several in sorted(found.items()):
        first = several[0]
        for other in several[1:]:
            if other.cik != first.cik:
                problem = f"{symbol} is CIK {other.cik} here and CIK {first.cik} in {first.file}"
                raise SourceError(other.file, problem, remedy="rename or remove one")
        chosen[symbol] = max(several, key=rank) if len(several) > 1 else first
        if len(several) > 1:
            notes.append(f"{symbol}: of {len(several)} {words.format(chosen[symbol].file)} and is used.")
    return chosen


def _instances(
    folder: Path, wanted: frozenset[str] | None, ciks: Mapping[str, int], notes: list[str]
) -> dict[str, tuple[Path, ...]]:
    """Instance files by symbol: each document names its filer, where it lies says nothing."""
    symbols = {cik: symbol for symbol, cik in ciks.items()}
    found: dict[str, list[Path]] = {}
    others = nameless = 0
    for path in instance_files(folder):
        filer = filer_of(path)
        nameless += filer is None
        if filer in symbols:
            found.setdefault(symbols[filer], []).append(path)
        elif filer is not None:
            others += 1
    if not found:
        notes.append("There are no XBRL instances: revenue by segment is not covered.")
    if others and wanted is None:
        notes.append(f"{others} XBRL documents are of companies without company facts: left out.")
    if nameless:
        notes.append(f"{nameless} documents name no filer, so that they hold no XBRL facts: left out.")
    return {symbol: tuple(paths) for symbol, paths in sorted(found.items())}
