"""Book for coded rules: instruments, positions, and many books at once as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np

from finskillbench.arrays import Booleans, Floats, Integers
from finskillbench.errors import InputError
from finskillbench.sums import exact_sum

_Security: TypeAlias = Literal["share", "preferred", "receipt", "convertible", "corporate_bond", "government_bond"]
Kind: TypeAlias = Literal[_Security, "fund", "equity_future", "bond_future", "cash"]
"""Kinds of instrument; a `receipt` is a depositary receipt of the issuer of the underlying shares."""
KINDS: tuple[Kind, ...] = get_args(Kind)
FUTURES: frozenset[Kind] = frozenset(("equity_future", "bond_future"))
"""Kinds margined daily: no market value, but a notional."""
LABELS = ("kind", "sector", "sub_sector", "country", "currency", "issuer", "instrument")
"""Text fields of an instrument; an empty text belongs to no group."""
ATTRIBUTES = ("market_cap", "adv", "rating", "maturity", "beta", "yield")
"""Optional numbers: market_cap and adv (daily traded value) in the book's currency, rating as a notch (1 AAA, 22 D)."""


@dataclass(frozen=True, slots=True)
class Instrument:
    """One instrument.

    `issuer` is empty for futures, `benchmark` a weight in percent, `attributes` are numbers by `ATTRIBUTES`. `holdings`
    of a looked-through fund are fractions by instrument; the remainder stays with the fund.
    """

    name: str
    kind: Kind
    issuer: str = ""
    sector: str = ""
    sub_sector: str = ""
    country: str = ""
    currency: str = ""
    lists: frozenset[str] = frozenset()
    benchmark: float = 0.0
    attributes: Mapping[str, float] = field(default_factory=dict[str, float])
    holdings: Mapping[str, float] = field(default_factory=dict[str, float])

    def label(self, name: str) -> str:
        return self.name if name == "instrument" else getattr(self, name)


@dataclass(frozen=True, slots=True)
class Position:
    """Market value and a future's notional (negative if sold), in the book's currency; `bought` marks a tested
    purchase.
    """

    instrument: Instrument
    value: float
    notional: float = 0.0
    bought: bool = False

    @classmethod
    def of(cls, instrument: Instrument, amount: float) -> Self:
        """Return the position of an amount, which is the notional of a future."""
        return cls(instrument, 0.0, amount) if instrument.kind in FUTURES else cls(instrument, amount)


@dataclass(frozen=True, slots=True)
class QuarterTrades:
    """Purchases and sales of the quarter in the currency of the book: done so far, and pending."""

    used_purchases: float = 0.0
    used_sales: float = 0.0
    pending_purchases: float = 0.0
    pending_sales: float = 0.0

    @property
    def row(self) -> tuple[float, float, float, float]:
        return (self.used_purchases, self.used_sales, self.pending_purchases, self.pending_sales)


@dataclass(frozen=True, eq=False)
class InstrumentUniverse:
    """Instruments held, in the benchmark or inside a looked-through fund; `memo` caches filters and groups."""

    instruments: tuple[Instrument, ...]
    memo: dict[object, Any] = field(default_factory=dict[object, Any], repr=False)

    def __post_init__(self) -> None:
        """Reject duplicate names and funds with unknown holdings."""
        if len(self.index) != len(self.instruments):
            names = [each.name for each in self.instruments]
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"instrument {twice} is in the book twice; state it once")
        for fund in self.instruments:
            for held in fund.holdings:
                if held not in self.index:
                    raise InputError(f"fund {fund.name} holds {held}, which is no instrument of the book; add it")

    @cached_property
    def index(self) -> Mapping[str, int]:
        return {each.name: i for i, each in enumerate(self.instruments)}

    @cached_property
    def through(self) -> Floats:
        """(n, n) composition of one unit of each instrument, looked through; rows sum to 1."""
        matrix = np.eye(len(self.instruments))
        for i, fund in enumerate(self.instruments):
            for held, fraction in fund.holdings.items():
                matrix[i, self.index[held]] += fraction
                matrix[i, i] -= fraction
        return matrix

    @cached_property
    def funds(self) -> Integers:
        return np.array([i for i, each in enumerate(self.instruments) if each.holdings], dtype=np.intp)

    @cached_property
    def benchmark(self) -> Floats:
        """(n,) benchmark weights, percent."""
        return np.array([each.benchmark for each in self.instruments], dtype=np.float64)

    @cached_property
    def is_future(self) -> Booleans:
        """(n,) True for futures, which count by notional."""
        return np.array([each.kind in FUTURES for each in self.instruments], dtype=np.bool_)

    @cached_property
    def is_cash(self) -> Booleans:
        return np.array([each.kind == "cash" for each in self.instruments], dtype=np.bool_)

    def attribute(self, name: str) -> Floats:
        """Return (n,) values of one of `ATTRIBUTES`, NaN where absent."""
        key = ("attribute", name)
        if key not in self.memo:
            found = [each.attributes.get(name, np.nan) for each in self.instruments]
            self.memo[key] = np.array(found, dtype=np.float64)
        return self.memo[key]


@dataclass(frozen=True)
class Books:
    """P books over n instruments: `values`, `notionals` and `bought` (P, n), and `trading` (P, 4) as
    `QuarterTrades.row`.
    """

    universe: InstrumentUniverse
    values: Floats
    notionals: Floats
    bought: Booleans
    trading: Floats

    @property
    def nav(self) -> Floats:
        """(P,) net asset values; cash owed is negative."""
        return self.values.sum(axis=1)


@dataclass(frozen=True)
class Book:
    """One portfolio: positions, further relevant instruments, and the quarter's trading.

    Net asset value is the sum of the positions' values, so accruals and payables must be positions.
    """

    positions: tuple[Position, ...]
    further: tuple[Instrument, ...] = ()
    trading: QuarterTrades = field(default_factory=QuarterTrades)

    @cached_property
    def universe(self) -> InstrumentUniverse:
        held = tuple(position.instrument for position in self.positions)
        names = {each.name for each in held}
        return InstrumentUniverse((*held, *(each for each in self.further if each.name not in names)))

    @property
    def nav(self) -> float:
        return exact_sum(position.value for position in self.positions)

    @cached_property
    def books(self) -> Books:
        n = len(self.universe.instruments)
        values, notionals, bought = np.zeros((1, n)), np.zeros((1, n)), np.zeros((1, n), dtype=np.bool_)
        for i, position in enumerate(self.positions):
            values[0, i], notionals[0, i], bought[0, i] = position.value, position.notional, position.bought
        return Books(self.universe, values, notionals, bought, np.array([self.trading.row], dtype=np.float64))


def stack_books(universe: InstrumentUniverse, books: Sequence[Books]) -> Books:
    """Concatenate books over one universe."""
    return Books(
        universe,
        np.concatenate([each.values for each in books]),
        np.concatenate([each.notionals for each in books]),
        np.concatenate([each.bought for each in books]),
        np.concatenate([each.trading for each in books]),
    )
