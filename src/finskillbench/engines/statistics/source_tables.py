"""A panel of sources as a task gives it: tables of columns in, arrays by period, name and source out.

Rows of the panel are periods and names in any order; groups are industries of the table of names. Residuals are returns
less loadings times factor returns, all of which are given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.engines.fields import list_of, listed, mapping, number, require, table_of
from finskillbench.errors import InputError

_KEYS = ("quarter", "ticker", "industry", "return_bp")
"""Columns of a panel that are no sources."""


@dataclass(frozen=True)
class Panel:
    """Scores (T, n, C) in standard units, residuals (T, n), specific volatilities (n,), and what rows and columns are.

    `start` (C,) is the first period that counts of each source, 0 for all of it.
    """

    scores: Floats = field(repr=False)
    residuals: Floats = field(repr=False)
    specific: Floats
    industries: tuple[str, ...]
    sources: tuple[str, ...]
    start: Integers

    @property
    def groups(self) -> tuple[str, ...]:
        """The industries in the order of the names."""
        return tuple(dict.fromkeys(self.industries))

    def members(self, group: str) -> Integers:
        """The names of an industry."""
        return np.flatnonzero(np.array(self.industries) == group)


def panel_from(payload: Mapping[str, Any]) -> Panel:
    """The panel of a payload: tables panel, names, factor_returns, sources; repairs and start where it has them.

    Raises
    ------
    InputError : naming the table, column or source that is missing or of the wrong kind.
    """
    require(payload, "panel", "names", "factor_returns", "sources")
    names, factors = mapping(payload, "names"), mapping(payload, "factor_returns")
    tickers = _texts(names, "ticker", "names")
    values, sources = values_of(payload, "panel", tickers)
    returns = _cube(mapping(payload, "panel"), ("return_bp",), tickers, "panel")[:, :, 0] / 1e4
    used = [name for name in factors if name != "quarter"]
    loadings = np.column_stack([column(names, name, "names") for name in used])
    moves = np.column_stack([column(factors, name, "factor_returns") for name in used])
    if len(moves) != len(values):
        raise InputError(f"factor_returns has {len(moves)} quarters, the panel {len(values)}; inject both whole")
    scale = scale_of(payload, sources)
    start = np.zeros(len(sources), dtype=np.int64)
    for name, first in (table_of(payload.get("start")) or {}).items():
        start[place_of(name, sources, "start")] = int(number({"start": first}, "start", f"start of {name}")) - 1
    for repair in repairs_of(payload):
        first, last = int(repair.get("first") or 1), int(repair.get("last") or len(values))
        chosen = place_of(str(repair["source"]), sources, "repairs")
        values[first - 1 : last, :, chosen] *= number(repair, "multiply", "repairs")
    specific = column(names, "specific_volatility", "names")
    industries = tuple(_texts(names, "industry", "names"))
    return Panel(values / scale, returns - moves @ loadings.T, specific, industries, sources, start)


def values_of(payload: Mapping[str, Any], table: str, tickers: Sequence[str]) -> tuple[Floats, tuple[str, ...]]:
    """(T, n, C) values of every source in a table, and the sources."""
    found = mapping(payload, table)
    sources = tuple(name for name in found if name not in _KEYS)
    return _cube(found, sources, tickers, table), sources


def scale_of(payload: Mapping[str, Any], sources: Sequence[str]) -> Floats:
    """(C,) the scale of each source, from the table of sources."""
    table = mapping(payload, "sources")
    scales = dict(zip(_texts(table, "source", "sources"), column(table, "scale", "sources").tolist(), strict=True))
    if absent := [name for name in sources if name not in scales]:
        raise InputError(f"sources has no scale of {listed(absent[:5])}")
    return np.array([scales[name] for name in sources])


_REPAIR = ("source", "first", "last", "multiply")


def repairs_of(payload: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The repairs of a payload: objects with source and multiply, first and last where not all quarters are meant."""
    repairs = [table_of(entry) for entry in list_of(payload.get("repairs")) or ()]
    if any(repair is None or "source" not in repair for repair in repairs):
        raise InputError('repairs must list objects like {"source": "S001", "first": 1, "last": 9, "multiply": -1}')
    found = [repair for repair in repairs if repair is not None]
    for repair in found:
        if unknown := sorted(repair.keys() - _REPAIR):
            raise InputError(f"repairs: an entry has {unknown[0]!r}; it takes {', '.join(_REPAIR)} and nothing else")
    return found


def place_of(name: str, sources: Sequence[str], field_name: str) -> int:
    """Where a source stands among the columns."""
    if name not in sources:
        raise InputError(f"{field_name} names {listed([name])}, which is no source of the panel")
    return sources.index(name)


def column(table: Mapping[str, Any], name: str, where: str) -> Floats:
    """A column of numbers of a table."""
    values = list_of(table.get(name))
    if values is None or not values:
        raise InputError(f"{where} has no column {name}; inject the table as the task has it")
    try:
        found = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{where}: column {name} must hold numbers only") from None
    if not np.isfinite(found).all():
        raise InputError(f"{where}: column {name} holds a value that is not a finite number")
    return found


def _texts(table: Mapping[str, Any], name: str, where: str) -> list[str]:
    values = list_of(table.get(name))
    if not values or not all(isinstance(value, str) for value in values):
        raise InputError(f"{where} has no column {name} of texts; inject the table as the task has it")
    return [str(value) for value in values]


def _cube(table: Mapping[str, Any], wanted: Sequence[str], tickers: Sequence[str], where: str) -> Floats:
    """(T, n, columns) of a table with a row for every quarter and name, or of one quarter for every name."""
    place = {ticker: number for number, ticker in enumerate(tickers)}
    rows = _texts(table, "ticker", where)
    if unknown := [ticker for ticker in rows if ticker not in place]:
        raise InputError(f"{where} names {listed(unknown[:3])}, which the table names does not have")
    quarters = column(table, "quarter", where) if "quarter" in table else np.zeros(len(rows))
    order = np.lexsort((np.array([place[ticker] for ticker in rows]), quarters))
    if len(rows) % len(tickers) or len(np.unique(quarters)) * len(tickers) != len(rows):
        raise InputError(f"{where} must have one row for each quarter and name; inject the table whole")
    stacked = np.stack([column(table, name, where) for name in wanted], axis=1)[order]
    return stacked.reshape(-1, len(tickers), len(wanted))
