"""The configured universe: which names by sector, who stands in for them, and how many of each sector to take."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import orjson

from finskillbench.arrays import SECTORS
from finskillbench.errors import InputError, SourceError
from finskillbench.sources.files import read_text

DEFAULT_UNIVERSE = Path(__file__).resolve().with_name("universe.json")


@dataclass(frozen=True, slots=True)
class Security:
    """One name of the universe; None where the collection does not say (never guessed)."""

    symbol: str
    name: str
    cik: str | None
    isin: str | None
    cusip: str | None
    sector: str
    sub_sector: str
    exchange: str | None
    country: str | None
    date_added: date | None


@dataclass(frozen=True, slots=True)
class Universe:
    """Names and alternates by sector (project vocabulary), and the securities the file itself describes."""

    path: Path
    names: Mapping[str, tuple[str, ...]]
    alternates: Mapping[str, tuple[str, ...]]
    securities: Mapping[str, Security]

    def symbols(self) -> frozenset[str]:
        """Every symbol the file mentions."""
        return frozenset(s for group in (self.names, self.alternates) for names in group.values() for s in names)


def load_universe(raw_dir: Path) -> Universe:
    """The collection's own `universe.json`, or else the project's default.

    Raises
    ------
    SourceError : malformed JSON, unknown sector, a symbol that appears twice, or an unreadable security record.
    """
    own = raw_dir / "universe.json"
    path = own if own.is_file() else DEFAULT_UNIVERSE
    try:
        record = orjson.loads(read_text(path))
    except orjson.JSONDecodeError as error:
        raise SourceError(path, f"not valid JSON ({error.msg})", line=error.lineno, remedy="repair it") from None
    sectors = record.get("sectors") if isinstance(record, dict) else None
    if not isinstance(sectors, dict) or not sectors:
        raise SourceError(
            path, "no object 'sectors'", line=1, remedy='expected {"sectors": {sector: {"names": [...]}}}'
        )
    names: dict[str, tuple[str, ...]] = {}
    alternates: dict[str, tuple[str, ...]] = {}
    seen: set[str] = set()
    for sector, entry in sectors.items():
        if sector not in SECTORS:
            raise SourceError(path, f"unknown sector {sector!r}", line=1, remedy=f"one of {', '.join(SECTORS)}")
        for field, target in (("names", names), ("alternates", alternates)):
            listed = entry.get(field, []) if isinstance(entry, dict) else None
            if not isinstance(listed, list) or not all(isinstance(s, str) and s for s in listed):
                raise SourceError(
                    path, f"sectors.{sector}.{field} is not a list of symbols", line=1, remedy="repair it"
                )
            for symbol in listed:
                if symbol in seen:
                    raise SourceError(path, f"{symbol} appears twice", line=1, remedy="name it once")
                seen.add(symbol)
            target[sector] = tuple(listed)
    described = record.get("securities", {})
    if not isinstance(described, dict):
        raise SourceError(path, "'securities' is not an object", line=1, remedy="symbol -> record")
    securities = {symbol: _security(path, symbol, entry) for symbol, entry in described.items()}
    for symbol, one in securities.items():
        if symbol not in names.get(one.sector, ()) + alternates.get(one.sector, ()):
            raise SourceError(
                path, f"securities.{symbol} is not listed under {one.sector}", line=1, remedy="agree on one"
            )
    return Universe(path, names, alternates, securities)


def sector_counts(available: Mapping[str, int], names: int) -> dict[str, int]:
    """Split `names` over sectors in proportion to `available`, by largest remainder (ties: the earlier sector).

    >>> sector_counts({"Technology": 5, "Energy": 2}, 4)
    {'Technology': 3, 'Energy': 1}
    """
    total = sum(available.values())
    if names < 1 or total == 0:
        raise InputError(f"names={names}: a universe needs at least one name and one sector")
    # Integer arithmetic: quotas compared exactly, the same on every machine.
    counts = {sector: names * size // total for sector, size in available.items()}
    by_remainder = sorted(available, key=lambda s: -(names * available[s] % total))
    for sector in by_remainder[: names - sum(counts.values())]:
        counts[sector] += 1
    return counts


def _security(path: Path, symbol: str, entry: object) -> Security:
    if not isinstance(entry, dict):
        raise SourceError(path, f"securities.{symbol} is not an object", line=1, remedy="repair it")
    for field in ("name", "sector", "sub_sector"):
        if not isinstance(entry.get(field), str) or not entry[field]:
            raise SourceError(path, f"securities.{symbol}.{field} is missing", line=1, remedy="add it")
    optional: dict[str, str | None] = {}
    for field in ("cik", "isin", "cusip", "exchange", "country", "date_added"):
        value = entry.get(field)
        if value is not None and not isinstance(value, str):
            raise SourceError(path, f"securities.{symbol}.{field} is not text", line=1, remedy="text or null")
        optional[field] = value
    added = optional.pop("date_added")
    try:
        day = date.fromisoformat(added) if added else None
    except ValueError:
        raise SourceError(path, f"securities.{symbol}.date_added is {added!r}", line=1, remedy="YYYY-MM-DD") from None
    return Security(
        symbol=symbol,
        name=entry["name"],
        sector=entry["sector"],
        sub_sector=entry["sub_sector"],
        date_added=day,
        **optional,
    )
