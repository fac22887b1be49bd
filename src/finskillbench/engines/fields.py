"""Reading the fields of a task or of a tool call: whatever is missing or of the wrong kind is named in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.errors import InputError

LARGEST = 1e6
"""No weight, return, beta, count or variance per year is larger; what is, is a unit or a typing error."""


def number(
    data: Mapping[str, Any], key: str, where: str, default: float | None = None, largest: float = LARGEST
) -> float:
    """A number of a map of size `largest` at most, or its default where absent or null."""
    value = data.get(key)
    if value is None and default is not None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= largest:
        raise InputError(f"{where}: {key} must be a number of size {largest:.0e} at most, not {shown(value)}")
    return float(value)


def refuse_unknown(entry: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    """A key that nobody reads would be a choice that is silently not made."""
    if unknown := [name for name in entry if name not in known]:
        raise InputError(f"{where}: unknown {listed(unknown)}; known are {', '.join(known)}")


def require(data: Mapping[str, Any], *names: str) -> None:
    """Fields that decide a result are given: nothing is assumed in their place.

    Raises
    ------
    InputError : naming those that are absent or null.
    """
    missing = [name for name in names if data.get(name) is None]
    if missing:
        raise InputError(f"{', '.join(missing)} must be given; inject what the task has of them from the task data")


def table_of(value: object) -> Mapping[str, Any] | None:
    """A value that is an object, else None."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None


def list_of(value: object) -> Sequence[Any] | None:
    """A value that is a list, which text is not, else None."""
    return cast("Sequence[Any]", value) if isinstance(value, Sequence) and not isinstance(value, str) else None


def texts_of(value: object) -> tuple[str, ...] | None:
    """A value that is a list of texts, else None."""
    items = list_of(value)
    return None if items is None or not all(issubclass(kind, str) for kind in set(map(type, items))) else tuple(items)


def mapping(data: object, key: str) -> Mapping[str, Any]:
    """The object in a field that must be there."""
    if (table := table_of(data)) is None:
        raise InputError("the task must be an object with the fields of the task data")
    if table.get(key) is None:
        raise InputError(f"{key} is missing; inject it from the task data")
    if (found := table_of(table[key])) is None:
        raise InputError(f"{key} must be an object, not {shown(table[key])}")
    return found


def covered(table: Mapping[str, Any], ticker: str, field: str) -> Any:
    """The entry of a ticker in a map that must have one."""
    if ticker not in table:
        raise InputError(f"{field} does not cover {listed([ticker])}")
    return table[ticker]


def tickers_of(data: Mapping[str, Any], field: str) -> tuple[str, ...]:
    """The list `tickers` of a field that holds an array, in the order of that array."""
    tickers = texts_of(mapping(data, field).get("tickers"))
    if not tickers:
        raise InputError(f"{field}.tickers must list the names; inject the field instead of retyping it")
    if len(set(tickers)) != len(tickers):
        raise InputError(f"{field}.tickers names a ticker twice")
    return tickers


def exposures_from(table: Mapping[str, Any], tickers: tuple[str, ...], factors: tuple[str, ...]) -> Floats:
    """(n, k) betas of `factor_exposures`, which must cover every ticker and factor."""
    betas: list[list[float]] = []
    for ticker in tickers:
        if (row := table_of(covered(table, ticker, "factor_exposures"))) is None:
            raise InputError(f"factor_exposures of {ticker} must map factors to betas")
        betas.append([number(row, factor, f"factor_exposures of {ticker}") for factor in factors])
    return np.array(betas)


def values_from(data: object, tickers: tuple[str, ...], field: str, largest: float = LARGEST) -> Floats:
    """(n,) numbers of a map that must cover every ticker."""
    if (table := table_of(data)) is None:
        raise InputError(f"{field} must map tickers to numbers")
    return np.array([number(table, ticker, field, largest=largest) for ticker in tickers])


def weights_from(data: object, tickers: tuple[str, ...], field: str, universe: str = "the covariance") -> Floats:
    """(n,) weights of a map; absent names weigh nothing, a name outside the universe is an error."""
    if (table := table_of(data)) is None:
        raise InputError(f"{field} must map tickers to weights")
    unknown = sorted(set(table) - set(tickers))
    if unknown:
        raise InputError(f"{field} names {listed(unknown[:5])}, which {universe} does not cover")
    return np.array([number(table, ticker, field, default=0.0) for ticker in tickers])


def shown(value: Any) -> str:
    """A value as a message shows it: one line, short, and safe for integers too long to print."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > LARGEST:
        return "an integer beyond that"
    text = repr(value) if isinstance(value, str | int | float | None) else type(value).__name__
    return text if len(text) <= 60 else text[:57] + "..."


def listed(names: Sequence[str]) -> str:
    """Names in a message; one that would break the line is escaped."""
    return ", ".join(name if name.isprintable() else repr(name) for name in names)
