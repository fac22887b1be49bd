"""Validated reading of task and tool-call fields; errors name the field in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.errors import InputError

LARGEST = 1e6
"""Upper bound of weights, annual returns, betas, counts and variances; more indicates a wrong unit."""


def number(
    data: Mapping[str, Any], key: str, where: str, default: float | None = None, largest: float = LARGEST
) -> float:
    """Return a number of size `largest` at most; the default if absent or null."""
    value = data.get(key)
    if value is None and default is not None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= largest:
        raise InputError(f"{where}: {key} must be a number of size {largest:.0e} at most, not {describe_value(value)}")
    return float(value)


def refuse_unknown(entry: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    """Refuse unknown keys, which would be ignored silently."""
    if unknown := [name for name in entry if name not in known]:
        raise InputError(f"{where}: unknown {listed(unknown)}; known are {', '.join(known)}")


def require(data: Mapping[str, Any], *names: str) -> None:
    """Raise `InputError` for absent or null fields."""
    missing = [name for name in names if data.get(name) is None]
    if missing:
        raise InputError(f"{', '.join(missing)} must be given; inject what the task has of them from the task data")


def table_of(value: object) -> Mapping[str, Any] | None:
    """Return an object, else None."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None


def list_of(value: object) -> Sequence[Any] | None:
    """Return a list (not text), else None."""
    return cast("Sequence[Any]", value) if isinstance(value, Sequence) and not isinstance(value, str) else None


def texts_of(value: object) -> tuple[str, ...] | None:
    """Return a list of texts as a tuple, else None."""
    items = list_of(value)
    return None if items is None or not all(issubclass(kind, str) for kind in set(map(type, items))) else tuple(items)


def mapping(data: object, key: str) -> Mapping[str, Any]:
    """Return the object in a required field."""
    if (table := table_of(data)) is None:
        raise InputError("the task must be an object with the fields of the task data")
    if table.get(key) is None:
        raise InputError(f"{key} is missing; inject it from the task data")
    if (found := table_of(table[key])) is None:
        raise InputError(f"{key} must be an object, not {describe_value(table[key])}")
    return found


def covered(table: Mapping[str, Any], ticker: str, field: str) -> Any:
    """Return the required entry of a ticker."""
    if ticker not in table:
        raise InputError(f"{field} does not cover {listed([ticker])}")
    return table[ticker]


def tickers_of(data: Mapping[str, Any], field: str) -> tuple[str, ...]:
    """Return the list `tickers` of an array field."""
    tickers = texts_of(mapping(data, field).get("tickers"))
    if not tickers:
        raise InputError(f"{field}.tickers must list the names; inject the field instead of retyping it")
    if len(set(tickers)) != len(tickers):
        raise InputError(f"{field}.tickers names a ticker twice")
    return tickers


def exposures_from(table: Mapping[str, Any], tickers: tuple[str, ...], factors: tuple[str, ...]) -> Floats:
    """(n, k) Betas of `factor_exposures`, which must cover all tickers and factors."""
    betas: list[list[float]] = []
    for ticker in tickers:
        if (row := table_of(covered(table, ticker, "factor_exposures"))) is None:
            raise InputError(f"factor_exposures of {ticker} must map factors to betas")
        betas.append([number(row, factor, f"factor_exposures of {ticker}") for factor in factors])
    return np.array(betas)


def values_from(data: object, tickers: tuple[str, ...], field: str, largest: float = LARGEST) -> Floats:
    """(n,) Numbers of a map that must cover all tickers."""
    if (table := table_of(data)) is None:
        raise InputError(f"{field} must map tickers to numbers")
    return np.array([number(table, ticker, field, largest=largest) for ticker in tickers])


def weights_from(data: object, tickers: tuple[str, ...], field: str, universe: str = "the covariance") -> Floats:
    """(n,) Weights of a map; absent names weigh 0, names outside of the universe are errors."""
    if (table := table_of(data)) is None:
        raise InputError(f"{field} must map tickers to weights")
    unknown = sorted(set(table) - set(tickers))
    if unknown:
        raise InputError(f"{field} names {listed(unknown[:5])}, which {universe} does not cover")
    return np.array([number(table, ticker, field, default=0.0) for ticker in tickers])


def describe_value(value: Any) -> str:
    """Format a value for a message: one short line, safe for huge integers."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > LARGEST:
        return "an integer beyond that"
    text = repr(value) if isinstance(value, str | int | float | None) else type(value).__name__
    return text if len(text) <= 60 else text[:57] + "..."


def listed(names: Sequence[str]) -> str:
    """Join names for a message, escaping line breaks."""
    return ", ".join(name if name.isprintable() else repr(name) for name in names)
