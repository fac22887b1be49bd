"""The configured universe: names and alternates by sector, and the number of names per sector."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from finskillbench.arrays import SECTORS
from finskillbench.errors import InputError, SourceError
from finskillbench.sources.files import Problems, json_list, json_object, raise_or_collect, read_json_file, symbol_of

DEFAULT_UNIVERSE = Path(__file__).resolve().with_name("universe.json")


@dataclass(frozen=True, slots=True)
class SecurityRecord:
    """One name of the universe; None, or an empty sub-sector, where the collection has no value."""

    symbol: str
    name: str
    cik: str | None = None
    isin: str | None = None
    cusip: str | None = None
    sector: str = ""
    sub_sector: str = ""
    exchange: str | None = None
    country: str | None = None
    date_added: date | None = None


@dataclass(frozen=True, slots=True)
class CompanyUniverse:
    """Names and alternates by sector, and the securities that the file describes.

    path : `universe.json` of the collection; has_file : it exists. fixed : sectors must supply all listed names.
    """

    path: Path
    names: Mapping[str, tuple[str, ...]]
    alternates: Mapping[str, tuple[str, ...]]
    securities: Mapping[str, SecurityRecord]
    has_file: bool = True
    fixed: bool = True

    def symbols(self) -> frozenset[str]:
        """Return every symbol in the file."""
        return frozenset(s for group in (self.names, self.alternates) for names in group.values() for s in names)


def load_universe(raw_dir: Path, problems: Problems = None) -> CompanyUniverse:
    """Read `universe.json` of the collection, or else the default; SourceError for invalid data."""
    path = raw_dir / "universe.json"
    has_file = path.is_file()
    record = json_object(read_json_file(path if has_file else DEFAULT_UNIVERSE, remedy="repair it")) or {}

    def error(problem: str, remedy: str) -> SourceError:
        return SourceError(path, problem, line=1, remedy=remedy)

    sectors = json_object(record.get("sectors"))
    if not sectors:
        raise error("no object 'sectors'", 'expected {"sectors": {sector: {"names": [...]}}}')
    listed: dict[str, dict[str, tuple[str, ...]]] = {"names": {}, "alternates": {}}
    seen: set[str] = set()
    for sector, entry in sectors.items():
        if sector not in SECTORS:
            raise_or_collect(error(f"unknown sector {sector!r}", f"one of {', '.join(SECTORS)}"), problems)
            continue
        for field, by_sector in listed.items():
            symbols = json_list((json_object(entry) or {field: None}).get(field, []))
            if symbols is None or not all(isinstance(symbol, str) and symbol for symbol in symbols):
                wrong = error(f"sectors.{sector}.{field} is not a list of symbols", 'write ["AAPL", "MSFT"]')
                raise_or_collect(wrong, problems)
                symbols = []
            by_sector[sector] = named = tuple(symbol_of(str(symbol)) for symbol in symbols)
            for symbol in sorted({one for one in named if one in seen or named.count(one) > 1}):
                raise_or_collect(error(f"{symbol} appears twice", "name it once"), problems)
            seen.update(named)
    described = json_object(record.get("securities", {}))
    if described is None:
        raise error("'securities' is not an object", "symbol -> record")
    securities: dict[str, SecurityRecord] = {}
    for ticker, entry in described.items():
        symbol = symbol_of(ticker)
        try:
            one = securities[symbol] = _security(symbol, json_object(entry), error)
        except SourceError as wrong:
            raise_or_collect(wrong, problems)
            continue
        if not any(symbol in by_sector.get(one.sector, ()) for by_sector in listed.values()):
            raise_or_collect(
                error(f"securities.{symbol} is not listed under {one.sector}", "list it under its sector"), problems
            )
    return CompanyUniverse(path, listed["names"], listed["alternates"], securities, has_file)


def universe_of(listed: Iterable[SecurityRecord], symbols: Collection[str], path: Path) -> CompanyUniverse:
    """Make a universe of the listed securities among `symbols`, none of them mandatory."""
    names: dict[str, list[str]] = {}
    for one in listed:
        if one.symbol in symbols:
            names.setdefault(one.sector, []).append(one.symbol)
    chosen = {sector: tuple(sorted(names[sector])) for sector in SECTORS if sector in names}
    return CompanyUniverse(path, chosen, dict.fromkeys(chosen, ()), {}, has_file=False, fixed=False)


def _security(symbol: str, entry: dict[str, object] | None, error: Callable[[str, str], SourceError]) -> SecurityRecord:
    if entry is None:
        raise error(f"securities.{symbol} is not an object", "repair it")

    def required(field: str) -> str:
        value = entry.get(field)
        if not isinstance(value, str) or not value:
            raise error(f"securities.{symbol}.{field} is missing", "add it")
        return value

    def optional(field: str) -> str | None:
        value = entry.get(field)
        if value is not None and not isinstance(value, str):
            raise error(f"securities.{symbol}.{field} is not text", "text or null")
        return value

    cik, added = optional("cik"), optional("date_added")
    if cik and not (cik.isascii() and cik.isdigit() and len(cik) <= 10):
        raise error(f"securities.{symbol}.cik is {cik!r}", "up to ten digits, or null")
    try:
        day = date.fromisoformat(added) if added else None
    except ValueError:
        raise error(f"securities.{symbol}.date_added is {added!r}", "YYYY-MM-DD") from None
    return SecurityRecord(
        symbol=symbol,
        name=required("name"),
        cik=cik.zfill(10) if cik else None,
        isin=optional("isin"),
        cusip=optional("cusip"),
        sector=required("sector"),
        sub_sector=required("sub_sector"),
        exchange=optional("exchange"),
        country=optional("country"),
        date_added=day,
    )


def sector_counts(available: Mapping[str, int], names: int) -> dict[str, int]:
    """Split `names` over sectors in proportion to `available`, by largest remainder (ties: the earlier sector).

    >>> sector_counts({"Technology": 5, "Energy": 2}, 4)
    {'Technology': 3, 'Energy': 1}
    """
    total = sum(available.values())
    if names < 1 or total == 0:
        raise InputError(f"names={names}: a universe needs at least one name and one sector")
    # Integer arithmetic, for identical results on every machine.
    counts = {sector: names * size // total for sector, size in available.items()}
    by_remainder = sorted(available, key=lambda s: -(names * available[s] % total))
    for sector in by_remainder[: names - sum(counts.values())]:
        counts[sector] += 1
    return counts
