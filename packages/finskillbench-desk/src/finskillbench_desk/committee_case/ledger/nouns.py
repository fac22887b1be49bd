"""The nouns of a custodian's ledger: securities, lots, orders, corporate actions, and the extract they stand in.

The tables of a case, as an agent reads them: dates as text, columns in the units that the prompt states.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from typing import Any, Self

import polars as pl

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


def tables(ledger: Ledger) -> dict[str, pl.DataFrame]:
    """Table by the name of the input field that names it."""
    return {
        "custodian": _custodian(ledger),
        "trades": _trades(ledger),
        "corporate_actions": _actions(ledger),
        "prices": _prices(ledger),
        "second_source": _second(ledger),
        "reference": _reference(ledger),
        "benchmark": _benchmark(ledger),
        "constituents": _constituents(ledger),
        "filings": _filings(ledger),
        "risk_model": _risk(ledger),
    }


def _custodian(ledger: Ledger) -> pl.DataFrame:
    return _frame(
        [
            {
                "custodian": lot.custodian,
                "security": lot.security,
                "lot": lot.lot,
                "acquired": lot.acquired.isoformat(),
                "quantity": lot.quantity,
                "unit_cost": lot.unit_cost,
            }
            for lot in ledger.lots
        ]
    )


def _trades(ledger: Ledger) -> pl.DataFrame:
    return _frame(
        [
            {
                "trade": order.trade,
                "trade_date": order.trade_date.isoformat(),
                "settle_date": order.settle_date.isoformat(),
                "security": order.security,
                "side": "sell" if order.quantity < 0 else "buy",
                "quantity": abs(order.quantity),
                "price": order.price,
                "replaces": order.replaces or None,
            }
            for order in ledger.orders
        ],
        replaces=pl.String,
    )


def _actions(ledger: Ledger) -> pl.DataFrame:
    return _frame(
        [
            {
                "event": event.event,
                "type": event.action.value,
                "security": event.security,
                "ex_date": event.ex_date.isoformat(),
                "pay_date": event.pay_date.isoformat(),
                "ratio": event.ratio or None,
                "cash": event.cash or None,
                "into": event.into or None,
            }
            for event in ledger.events
        ],
        ratio=pl.Float64,
        cash=pl.Float64,
        into=pl.String,
    )


def _prices(ledger: Ledger) -> pl.DataFrame:
    days = [day.isoformat() for day in ledger.sessions]
    return pl.concat(
        pl.DataFrame(
            {
                "date": days,
                "security": [security] * len(days),
                "close": quotes.closes,
                "volume": quotes.volumes.astype("int64"),
            }
        )
        for security, quotes in sorted(ledger.quotes.items())
    )


def _second(ledger: Ledger) -> pl.DataFrame:
    rows = [
        {"security": name, "close": quotes.second, "currency": quotes.second_currency}
        for name, quotes in sorted(ledger.quotes.items())
    ]
    return _frame(rows)


def _reference(ledger: Ledger) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    for name, line in sorted(ledger.securities.items()):
        listed = ledger.listed.get(line.issuer)
        rows.append(
            {
                "security": name,
                "kind": line.kind,
                "issuer": line.issuer or None,
                "country": line.country,
                "currency": line.currency,
                "multiplier": line.multiplier,
                "cost_bp": line.cost,
                "lists": "; ".join(line.lists) or None,
                "adv_usd": line.adv,
                "rating": line.rating,
                "maturity_years": line.maturity,
                "beta": line.beta,
                "sub_sector": line.sub_sector or None,
                "sector": listed and listed.sector,
                "sector_before": listed and listed.sector_before,
                "changed_on": listed and listed.sector_since.isoformat(),
                "shares_outstanding": listed and listed.shares,
                "shares_before": listed and listed.shares_before,
            }
        )
    return _frame(rows)


def _benchmark(ledger: Ledger) -> pl.DataFrame:
    return _frame(
        [{"issuer": name, "weight": weight, "sector": sector} for name, (weight, sector) in ledger.benchmark.items()]
    )


def _constituents(ledger: Ledger) -> pl.DataFrame:
    return _frame(
        [
            {"security": fund, "issuer": issuer, "weight": weight}
            for fund, weights in sorted(ledger.constituents.items())
            for issuer, weight in weights.items()
        ]
    )


def _filings(ledger: Ledger) -> pl.DataFrame:
    return _frame(
        [
            {
                "issuer": filing.issuer,
                "form": filing.form,
                "period_end": filing.period_end.isoformat(),
                "filed": filing.filed.isoformat(),
                "shares_outstanding": filing.shares,
                "total_liabilities": filing.liabilities,
                "stockholders_equity": filing.equity,
            }
            for filing in ledger.filings
        ],
        total_liabilities=pl.Float64,
        stockholders_equity=pl.Float64,
    )


def _risk(ledger: Ledger) -> pl.DataFrame:
    return _frame(
        [
            {
                "issuer": name,
                "specific_variance": ledger.risk.specific[name],
                **{f"factor_{place}": value for place, value in enumerate(loadings, 1)},
            }
            for name, loadings in ledger.risk.loadings.items()
        ]
    )


def _frame(rows: list[dict[str, Any]], **types: type[pl.DataType]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema_overrides=types, infer_schema_length=None)
