"""The book that coded rules are run on: instruments, positions, and many books at once as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from finskillbench.arrays import Booleans, Floats, Integers
from finskillbench.errors import InputError
from finskillbench.sums import exact_sum

Kind: TypeAlias = Literal[
    "share",
    "preferred",
    "receipt",
    "convertible",
    "corporate_bond",
    "government_bond",
    "fund",
    "equity_future",
    "bond_future",
    "cash",
]
"""What an instrument is; a `receipt` is a depositary receipt, of the issuer of the shares behind it."""
KINDS: tuple[Kind, ...] = get_args(Kind)
FUTURES: frozenset[Kind] = frozenset(("equity_future", "bond_future"))
"""Margined daily: no market value but what the custodian shows as cash, and a notional."""
LABELS = ("kind", "sector", "sub_sector", "country", "currency", "issuer", "instrument")
"""Fields of an instrument that hold one word each; an empty word belongs to no group."""
ATTRIBUTES = ("market_cap", "adv", "rating", "maturity", "beta", "yield")
"""Numbers that an instrument may have: market_cap and adv (a day's traded value) in the currency of the book, rating as
a notch (1 is AAA, 10 is BBB-, 22 is D), maturity in years, yield in percent."""


@dataclass(frozen=True, slots=True)
class Instrument:
    """One instrument.

    Attributes
    ----------
    name : its identifier, unique in a book.
    issuer : who issued it; share classes and bonds of one issuer name the same one. Empty for futures.
    lists : names of the lists on which it stands ("Restricted List").
    benchmark : its weight in the benchmark in percent, 0 where it is not in there.
    attributes : numbers by the names in `ATTRIBUTES`; one that is absent satisfies no condition.
    holdings : for a fund that is looked through, fractions of its value by the name of what it holds; the rest stays
        with the fund.
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
        """The word in one of `LABELS`."""
        return self.name if name == "instrument" else getattr(self, name)


@dataclass(frozen=True, slots=True)
class Position:
    """Market value and, for a future, notional (negative if sold); `bought` says that a purchase of it is being tested.

    Both in the currency of the book. Cash owed is a position of kind `cash` with a negative value.
    """

    instrument: Instrument
    value: float
    notional: float = 0.0
    bought: bool = False


@dataclass(frozen=True, slots=True)
class Trading:
    """Purchases and sales of the quarter in the currency of the book: done so far, and pending."""

    used_purchases: float = 0.0
    used_sales: float = 0.0
    pending_purchases: float = 0.0
    pending_sales: float = 0.0

    @property
    def row(self) -> tuple[float, float, float, float]:
        """The four amounts in the order of `Books.trading`."""
        return (self.used_purchases, self.used_sales, self.pending_purchases, self.pending_sales)


@dataclass(frozen=True, eq=False)
class Universe:
    """Instruments in a fixed order: everything held, in the benchmark, or inside a fund that is looked through.

    `memo` keeps what filters and groups come to here, which a thousand evaluations ask for again.
    """

    instruments: tuple[Instrument, ...]
    memo: dict[object, Any] = field(default_factory=dict[object, Any], repr=False)

    def __post_init__(self) -> None:
        """Refuse two instruments of one name, and funds whose holdings are not in here."""
        if len(self.index) != len(self.instruments):
            names = [each.name for each in self.instruments]
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"instrument {twice} stands twice in the book; state it once")
        for fund in self.instruments:
            for held in fund.holdings:
                if held not in self.index:
                    raise InputError(f"fund {fund.name} holds {held}, which is no instrument of the book; add it")

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Where each instrument stands."""
        return {each.name: i for i, each in enumerate(self.instruments)}

    @cached_property
    def through(self) -> Floats:
        """(n, n) what one unit of each instrument is, looked through: rows sum to 1."""
        matrix = np.eye(len(self.instruments))
        for i, fund in enumerate(self.instruments):
            for held, fraction in fund.holdings.items():
                matrix[i, self.index[held]] += fraction
                matrix[i, i] -= fraction
        return matrix

    @cached_property
    def funds(self) -> Integers:
        """Where the instruments stand that are looked through."""
        return np.array([i for i, each in enumerate(self.instruments) if each.holdings], dtype=np.intp)

    @cached_property
    def benchmark(self) -> Floats:
        """(n,) weights in the benchmark, percent."""
        return np.array([each.benchmark for each in self.instruments], dtype=np.float64)

    @cached_property
    def is_future(self) -> Booleans:
        """(n,) whether it counts by notional."""
        return np.array([each.kind in FUTURES for each in self.instruments], dtype=np.bool_)

    @cached_property
    def is_cash(self) -> Booleans:
        """(n,) whether it is cash."""
        return np.array([each.kind == "cash" for each in self.instruments], dtype=np.bool_)

    def attribute(self, name: str) -> Floats:
        """(n,) one of `ATTRIBUTES`, NaN where absent."""
        key = ("attribute", name)
        if key not in self.memo:
            self.memo[key] = np.array(
                [each.attributes.get(name, np.nan) for each in self.instruments], dtype=np.float64
            )
        return self.memo[key]


@dataclass(frozen=True)
class Books:
    """P books over one universe of n instruments.

    Attributes
    ----------
    values, notionals : (P, n) in the currency of the book.
    bought : (P, n) whether a purchase of it is being tested.
    trading : (P, 4) of the quarter: purchases and sales so far, purchases and sales pending.
    """

    universe: Universe
    values: Floats
    notionals: Floats
    bought: Booleans
    trading: Floats

    @property
    def nav(self) -> Floats:
        """(P,) net asset value: all market values, cash owed being negative."""
        return self.values.sum(axis=1)


@dataclass(frozen=True)
class Book:
    """One portfolio: its positions, further instruments that matter (benchmark, holdings of funds), and trading.

    Net asset value is the sum of the positions' values, so every accrual and payable must be among them.
    """

    positions: tuple[Position, ...]
    others: tuple[Instrument, ...] = ()
    trading: Trading = field(default_factory=Trading)

    @cached_property
    def universe(self) -> Universe:
        """Everything that a rule can see."""
        held = tuple(position.instrument for position in self.positions)
        names = {each.name for each in held}
        return Universe((*held, *(each for each in self.others if each.name not in names)))

    @property
    def nav(self) -> float:
        """Net asset value."""
        return exact_sum(position.value for position in self.positions)

    @cached_property
    def books(self) -> Books:
        """This one as arrays."""
        n = len(self.universe.instruments)
        values, notionals, bought = np.zeros((1, n)), np.zeros((1, n)), np.zeros((1, n), dtype=np.bool_)
        for i, position in enumerate(self.positions):
            values[0, i], notionals[0, i], bought[0, i] = position.value, position.notional, position.bought
        return Books(self.universe, values, notionals, bought, np.array([self.trading.row], dtype=np.float64))


def stacked(universe: Universe, books: Sequence[Books]) -> Books:
    """Books over one universe, one after the other."""
    return Books(
        universe,
        np.concatenate([each.values for each in books]),
        np.concatenate([each.notionals for each in books]),
        np.concatenate([each.bought for each in books]),
        np.concatenate([each.trading for each in books]),
    )
