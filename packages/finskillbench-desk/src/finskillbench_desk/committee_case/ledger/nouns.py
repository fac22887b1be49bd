"""The nouns of a custodian's ledger: securities, lots, orders, corporate actions, and the extract they stand in."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from typing import Self

from finskillbench.arrays import Floats
from finskillbench_desk.engines.guidelines.book import Kind


@dataclass(frozen=True, slots=True)
class Security:
    """One line that can be held.

    Attributes
    ----------
    security, issuer : ids; a fund or a future is its own issuer.
    kind : what it is, in the words of the rules.
    currency : of its price; GBX is a hundredth of GBP.
    multiplier : one unit at price p is worth p x multiplier x the dollars of one unit of `currency`: 0.01 for a bond,
        whose price is per cent of par, dollars per point for a future.
    cost : what trading costs, in basis points of value.
    adv : a day's traded value, dollars; None where it has none.
    rating, maturity, beta : as a notch (1 is AAA), in years, against the benchmark; None where it has none.
    """

    security: str
    kind: Kind
    issuer: str
    currency: str
    multiplier: float = 1.0
    cost: float = 5.0
    country: str = "US"
    sub_sector: str = ""
    lists: tuple[str, ...] = ()
    adv: float | None = None
    rating: int | None = None
    maturity: float | None = None
    coupon: float | None = None
    beta: float | None = None


@dataclass(frozen=True, slots=True)
class Lot:
    """What was acquired of a security on one day: units, and the cost of one in the currency of its price.

    `custodian` is who keeps it, the first or the second.
    """

    custodian: str
    lot: str
    security: str
    acquired: date
    quantity: float
    unit_cost: float


@dataclass(frozen=True, slots=True)
class Order:
    """A line of the blotter; signed units. One that `replaces` an earlier line takes its place."""

    trade: str
    trade_date: date
    settle_date: date
    security: str
    quantity: float
    price: float
    replaces: str = ""


class Action(StrEnum):
    """Kinds of corporate actions."""

    SPLIT = "split"
    DIVIDEND = "dividend"
    SPIN_OFF = "spin-off"
    MERGER = "merger"


@dataclass(frozen=True, slots=True)
class Event:
    """A corporate action.

    `ratio` is new units per old one (0 for a dividend), `cash` an amount per old unit in the currency of the price,
    `into` the security that a spin-off or a merger delivers.
    """

    event: str
    action: Action
    security: str
    ex_date: date
    pay_date: date
    ratio: float = 0.0
    cash: float = 0.0
    into: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Quotes:
    """Closes (sessions,) of one security in its currency, and units traded; a second source's last close and unit."""

    closes: Floats
    volumes: Floats
    second: float
    second_currency: str


@dataclass(frozen=True, slots=True)
class Listed:
    """What the vendor says of a security's issuer, and what it said before the day on which that was last changed."""

    sector: str
    sector_before: str
    sector_since: date
    shares: float
    shares_before: float


@dataclass(frozen=True, slots=True)
class Filing:
    """What an issuer filed: the count of shares on the cover, and of the balance sheet liabilities and equity.

    Of the balance sheet there is nothing where a collection has no statements of the issuer.
    """

    issuer: str
    form: str
    period_end: date
    filed: date
    shares: float
    liabilities: float | None = None
    equity: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class RiskModel:
    """Exposures of each issuer to common factors of unit variance a year, and its specific variance."""

    loadings: dict[str, tuple[float, ...]]
    specific: dict[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class Ledger:
    """Everything that a desk is given about one fund on `as_of`, and nothing that it is not.

    `fx` is dollars per unit of a currency; `balances` are the custodian's settled balances; `constituents` are
    weights of issuers in each fund and in the index of each future; `benchmark` is weight and sector of each member.
    """

    as_of: date
    sessions: tuple[date, ...]
    fx: dict[str, float]
    securities: dict[str, Security]
    quotes: dict[str, Quotes]
    listed: dict[str, Listed]
    benchmark: dict[str, tuple[float, str]]
    constituents: dict[str, dict[str, float]]
    filings: tuple[Filing, ...]
    risk: RiskModel
    lots: tuple[Lot, ...] = ()
    orders: tuple[Order, ...] = ()
    events: tuple[Event, ...] = ()
    balances: dict[str, float] = field(default_factory=dict[str, float])

    def with_quotes(self, security: str, quotes: Quotes) -> Self:
        """The ledger with other quotes of one security."""
        return replace(self, quotes={**self.quotes, security: quotes})

    def units(self, security: str) -> float:
        """Dollars of one unit of a security at a price of 1."""
        line = self.securities[security]
        return line.multiplier * self.fx[line.currency]


@dataclass(frozen=True, slots=True)
class Holdings:
    """A book on trade date.

    Attributes
    ----------
    quantities : security to units, none that are 0.
    prices : security to dollars of one unit (of a future: of its notional).
    cash : dollars, with what pending trades and unpaid entitlements will bring or take.
    sectors, shares : issuer to sector, and to shares outstanding.
    """

    quantities: dict[str, float]
    prices: dict[str, float]
    cash: float
    sectors: dict[str, str]
    shares: dict[str, float]


@dataclass(frozen=True, slots=True)
class Planted:
    """A trap, or a place that looks like one where all is in order (`trap` false).

    `field` of the security or issuer at `where` is `right`; somebody who is misled takes it for `fallen`.
    """

    kind: str
    where: str
    trap: bool
    field: str
    right: float | str
    fallen: float | str
