"""Panel of sources read from task tables into arrays by period, name and source.

Groups are the industries of the table of names; residuals are returns less loadings times factor returns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.engines.fields import (
    describe_value,
    list_of,
    listed,
    mapping,
    number,
    refuse_unknown,
    require,
    table_of,
)
from finskillbench.errors import InputError

_KEYS = ("quarter", "ticker", "industry", "return_bp")
"""Panel columns other than sources."""


@dataclass(frozen=True)
class Panel:
    """Panel of sources: `scores` (T, n, C) in standard units, `residuals` (T, n), `specific` volatilities (n,), and
    labels.

    `start` (C,) is the first valid period of each source.
    """

    scores: Floats = field(repr=False)
    residuals: Floats = field(repr=False)
    specific: Floats
    industries: tuple[str, ...]
    sources: tuple[str, ...]
    start: Integers

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.industries))

    def members(self, group: str) -> Integers:
        return np.flatnonzero(np.array(self.industries) == group)


def panel_from(payload: Mapping[str, Any]) -> Panel:
    """Read the panel with optional repairs and starts; InputError names the faulty table, column or source."""
    require(payload, "panel", "names", "factor_returns", "sources")
    names, factors = mapping(payload, "names"), mapping(payload, "factor_returns")
    tickers = texts(names, "ticker", "names")
    values, sources = values_of(payload, "panel", tickers)
    returns = _cube(mapping(payload, "panel"), ("return_bp",), tickers, "panel")[:, :, 0] / 1e4
    used = [name for name in factors if name != "quarter"]
    loadings = np.column_stack([column(names, name, "names", len(tickers)) for name in used])
    moves = np.column_stack([column(factors, name, "factor_returns") for name in used])
    if len(moves) != len(values):
        raise InputError(f"factor_returns has {len(moves)} quarters, the panel {len(values)}; inject both whole")
    scale = scale_of(payload, sources)
    start = np.zeros(len(sources), dtype=np.int64)
    for name, first in _starts(payload).items():
        start[place_of(name, sources, "start")] = whole(first, f"start of {name}", 1, len(values)) - 1
    for repair in repairs_of(payload):
        first = whole(repair.get("first", 1), "first of a repair", 1, len(values))
        last = whole(repair.get("last", len(values)), "last of a repair", first, len(values))
        chosen = place_of(str(repair["source"]), sources, "repairs")
        values[first - 1 : last, :, chosen] *= number(repair, "multiply", "repairs")
    specific = column(names, "specific_volatility", "names", len(tickers))
    industries = tuple(texts(names, "industry", "names", len(tickers)))
    return Panel(values / scale, returns - moves @ loadings.T, specific, industries, sources, start)


def values_of(payload: Mapping[str, Any], table: str, tickers: Sequence[str]) -> tuple[Floats, tuple[str, ...]]:
    """Return values (T, n, C) of every source in a table, and the sources."""
    found = mapping(payload, table)
    sources = tuple(name for name in found if name not in _KEYS)
    return _cube(found, sources, tickers, table), sources


def scale_of(payload: Mapping[str, Any], sources: Sequence[str]) -> Floats:
    """Return (C,) scales from the table of sources."""
    table = mapping(payload, "sources")
    listed_sources = texts(table, "source", "sources")
    scale = column(table, "scale", "sources", len(listed_sources))
    scales = dict(zip(listed_sources, scale.tolist(), strict=True))
    if absent := [name for name in sources if name not in scales]:
        raise InputError(f"sources has no scale of {listed(absent[:5])}")
    return np.array([scales[name] for name in sources])


_REPAIR = ("source", "first", "last", "multiply")


def repairs_of(payload: Mapping[str, Any], known: Sequence[str] = _REPAIR) -> list[Mapping[str, Any]]:
    """Read the repairs: objects with source and multiply; first and last limit the quarters."""
    found: list[Mapping[str, Any]] = []
    for entry in entries(payload, "repairs"):
        if (repair := table_of(entry)) is None or not {"source", "multiply"} <= repair.keys():
            raise InputError(
                f"repairs: every entry must be an object with {', '.join(known)}, source and multiply always"
            )
        refuse_unknown(repair, known, "an entry of repairs")
        found.append(repair)
    return found


def entries(payload: Mapping[str, Any], key: str) -> Sequence[Any]:
    """Return a list of the payload, empty if absent; raise InputError for anything else."""
    if (value := payload.get(key)) is None:
        return ()
    if (found := list_of(value)) is None:
        raise InputError(f"{key} must be a list, not {describe_value(value)}")
    return found


def whole(value: object, where: str, least: int, most: int) -> int:
    """Return a whole number within bounds; raise InputError otherwise."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or value != value // 1
        or not least <= value <= most
    ):
        raise InputError(f"{where} must be a whole number from {least} to {most}, not {describe_value(value)}")
    return int(value)


def _starts(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    if (value := payload.get("start")) is None:
        return {}
    if (found := table_of(value)) is None:
        raise InputError(
            f'start must map sources to their first quarter, as {{"S001": 38}}, not {describe_value(value)}'
        )
    return found


def place_of(name: str, sources: Sequence[str], field_name: str) -> int:
    if name not in sources:
        raise InputError(f"{field_name} names {listed([name])}, which is no source of the panel")
    return sources.index(name)


def column(table: Mapping[str, Any], name: str, where: str, rows: int | None = None) -> Floats:
    """Return a column of finite numbers, with `rows` entries if given."""
    values = list_of(table.get(name))
    if values is None or not values:
        raise InputError(f"{where} has no column {name}; inject the table as the task has it")
    try:
        found = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{where}: column {name} must hold numbers only") from None
    if found.shape != (rows or len(values),):
        raise InputError(f"{where}: column {name} must hold one number for each of {rows or len(values)} rows")
    if not np.isfinite(found).all():
        raise InputError(f"{where}: column {name} holds a value that is not a finite number")
    return found


def texts(table: Mapping[str, Any], name: str, where: str, rows: int | None = None) -> list[str]:
    """Return a column of texts, with `rows` entries if given."""
    values = list_of(table.get(name))
    if not values or not all(isinstance(value, str) for value in values):
        raise InputError(f"{where} has no column {name} of texts; inject the table as the task has it")
    if rows not in (None, len(values)):
        raise InputError(f"{where}: column {name} has {len(values)} entries, the table {rows} rows")
    return [str(value) for value in values]


def _cube(table: Mapping[str, Any], wanted: Sequence[str], tickers: Sequence[str], where: str) -> Floats:
    """Return (T, n, columns) from a table with a row per quarter and name, or per name of one quarter."""
    place = {ticker: number for number, ticker in enumerate(tickers)}
    rows = texts(table, "ticker", where)
    if unknown := [ticker for ticker in rows if ticker not in place]:
        raise InputError(f"{where} names {listed(unknown[:3])}, which the table names does not have")
    quarters = column(table, "quarter", where, len(rows)) if "quarter" in table else np.zeros(len(rows))
    order = np.lexsort((np.array([place[ticker] for ticker in rows]), quarters))
    if len(rows) % len(tickers) or len(np.unique(quarters)) * len(tickers) != len(rows):
        raise InputError(f"{where} must have one row for each quarter and name; inject the table whole")
    stacked = np.stack([column(table, name, where, len(rows)) for name in wanted], axis=1)[order]
    return stacked.reshape(-1, len(tickers), len(wanted))
