"""Panels, names and risk models read from tables of equal-length columns with whole numbers in stated units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.engines.fields import list_of, mapping, number, refuse_unknown, table_of, texts_of
from finskillbench.errors import InputError

_MARKET = "market"


@dataclass(frozen=True, slots=True, eq=False)
class PanelTable:
    """A panel: weeks (T,), tickers, signals (T, n, k) by name, the returns (T, n) that followed."""

    weeks: Integers
    tickers: tuple[str, ...]
    names: tuple[str, ...]
    signals: Floats
    returns: Floats

    def only_from(self, first: Mapping[str, Any]) -> PanelTable:
        """Return the panel with each named signal set to 0 before its first week."""
        refuse_unknown(first, self.names, "from_week")
        signals = self.signals.copy()
        for name in first:
            week = number(first, name, "from_week")
            signals[self.weeks < week, :, self.names.index(name)] = 0.0
        return PanelTable(self.weeks, self.tickers, self.names, signals, self.returns)


@dataclass(frozen=True, slots=True, eq=False)
class Names:
    """Names: tickers, covariance (n, n) of their returns, specific volatility (n,), and the table itself."""

    tickers: tuple[str, ...]
    covariance: Floats
    specific: Floats
    table: Mapping[str, Any]

    def column(self, name: str) -> Floats:
        return column(self.table, name, "names")


def column(table: Mapping[str, Any], name: str, where: str) -> Floats:
    """Return a table column as finite numbers; raise InputError otherwise."""
    if name not in table:
        raise InputError(f"{where} has no column {name}; inject the table as it is")
    try:
        values = np.asarray(table[name], dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{where}: column {name} must hold numbers") from None
    if values.ndim != 1 or not np.isfinite(values).all():
        raise InputError(f"{where}: column {name} must hold finite numbers")
    return values


def optional_table(payload: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """Return a map of the payload; None if absent or null."""
    return None if payload.get(name) is None else mapping(payload, name)


def by_signal(table: Mapping[str, Any], signals: Sequence[str], where: str) -> Floats:
    """Return (k,) numbers from a map with exactly one entry per signal."""
    refuse_unknown(table, signals, where)
    return np.array([number(table, signal, where) for signal in signals])


def unit_of(payload: Mapping[str, Any], name: str) -> float:
    """Return the positive number that is stored for 1."""
    if (found := number(payload, name, "the call")) <= 0:
        raise InputError(f"{name} must be positive: the number that is stored for 1")
    return found


def signals_of(payload: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names in `signals`, a list or a map by name."""
    signals = payload.get("signals")
    names = texts_of(signals) if (table := table_of(signals)) is None else tuple(table)
    if not names:
        raise InputError("signals must name the columns that hold signals; inject the field")
    return names


def panel_of(payload: Mapping[str, Any]) -> PanelTable:
    """Read the panel of `history`, followed by the rows of `news` if given.

    `signal_unit` and `return_unit` are the numbers stored for a signal of 1 and a return of 100 %. InputError unless
    weeks list the same names in one order.
    """
    names = signals_of(payload)
    scale = unit_of(payload, "signal_unit"), unit_of(payload, "return_unit")
    tables = [mapping(payload, "history")]
    if (news := optional_table(payload, "news")) is not None and list_of(news.get("week")):
        tables.append(news)
    tickers: tuple[str, ...] = ()
    parts: list[tuple[Integers, Floats, Floats]] = []
    for table in tables:
        weeks = column(table, "week", "history").astype(int)
        listed = texts_of(table.get("ticker")) or ()
        tickers = tickers or listed[: int((weeks == weeks[0]).sum())]
        periods, n = len(weeks) // max(len(tickers), 1), len(tickers)
        if tickers * periods != listed or (weeks.reshape(periods, n) != weeks[::n][:, None]).any():
            raise InputError(
                "history: every week must list the same names in the same order; inject the table as it is"
            )
        values = np.stack([column(table, name, "history") for name in names], axis=-1)
        returns = column(table, "next_return", "history").reshape(periods, n)
        parts.append((weeks[::n], values.reshape(periods, n, len(names)), returns))
    weeks, signals, returns = (np.concatenate(each) for each in zip(*parts, strict=True))
    return PanelTable(weeks, tickers, names, signals / scale[0], returns / scale[1])


def names_of(payload: Mapping[str, Any]) -> Names:
    """Read `names` and the covariance of their returns from `factors`, standard deviations by factor.

    A loading is the column with the factor's name (or name plus `_beta`), or 1 for the members of the sector with that
    name. Factors are uncorrelated.
    """
    table, factors = mapping(payload, "names"), mapping(payload, "factors")
    tickers = texts_of(table.get("ticker"))
    if not tickers:
        raise InputError("names has no column ticker; inject the table as it is")
    specific = column(table, "specific_volatility", "names")
    sectors: Sequence[str] = texts_of(table.get("sector")) or ()
    covariance = np.diag(specific**2)
    for factor in factors:
        if factor in table or f"{factor}_beta" in table:
            loading = column(table, factor if factor in table else f"{factor}_beta", "names")
        elif factor in sectors:
            loading = np.array([sector == factor for sector in sectors], dtype=float)
        else:
            raise InputError(f"factors: {factor} is neither a column of names nor a sector")
        covariance += number(factors, factor, "factors") ** 2 * np.outer(loading, loading)
    return Names(tickers, covariance, specific, table)
