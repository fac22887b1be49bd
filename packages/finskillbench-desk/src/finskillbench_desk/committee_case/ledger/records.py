"""Record types of a fund's ledger, and the tables that an agent reads: dates as text, units as the prompt states."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from typing import Any, Self

import polars as pl

from finskillbench.arrays import Floats
from finskillbench_desk.engines.guidelines.book import Kind


@dataclass(frozen=True, slots=True)
class CaseSecurity:
    """One line that can be held.

    Attributes
    ----------
    security, issuer : ids; a fund or a future is its own issuer.
    kind : instrument kind of the rule language.
    currency : of its price; GBX is a hundredth of GBP.
    multiplier : one unit at price p is worth p x multiplier x dollars per unit of `currency`; 0.01 for bonds, dollars
        per point for futures.
    cost : trading cost in basis points of value.
    adv : average daily traded value, dollars; None where it has none.
    rating, maturity, beta : notch (1 is AAA), years, against the benchmark; None where it has none.
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
    beta: float | None = None


@dataclass(frozen=True, slots=True)
class Lot:
    """Units of a security acquired on one day, with the cost of one unit in the currency of its price."""

    custodian: str
    lot: str
    security: str
    acquired: date
    quantity: float
    unit_cost: float


@dataclass(frozen=True, slots=True)
class BlotterOrder:
    """Blotter line with signed units; one that `replaces` an earlier line voids it."""

    trade: str
    trade_date: date
    settle_date: date
    security: str
    quantity: float
    price: float
    replaces: str = ""


class ActionType(StrEnum):
    SPLIT = "split"
    DIVIDEND = "dividend"
    SPIN_OFF = "spin-off"
    MERGER = "merger"


@dataclass(frozen=True, slots=True)
class CorporateAction:
    """Corporate action.

    `ratio` is new units per old one (0 for a dividend), `cash` an amount per old unit in the currency of the price.
    `into` is the security that a spin-off or a merger delivers.
    """

    event: str
    action: ActionType
    security: str
    ex_date: date
    pay_date: date
    ratio: float = 0.0
    cash: float = 0.0
    into: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Quotes:
    """Closes (sessions,) and units traded of one security, with the secondary source's last close and its currency."""

    closes: Floats
    volumes: Floats
    secondary_close: float
    secondary_currency: str


@dataclass(frozen=True, slots=True)
class VendorRecord:
    """Vendor data of an issuer, with the values before the last change."""

    sector: str
    sector_before: str
    sector_since: date
    shares: float
    shares_before: float


@dataclass(frozen=True, slots=True)
class IssuerFiling:
    """Share count on the cover of a filing, with liabilities and equity; None where no statements are collected."""

    issuer: str
    form: str
    period_end: date
    filed: date
    shares: float
    liabilities: float | None = None
    equity: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class IssuerRiskModel:
    """Loadings of each issuer on factors with unit variance a year, and its specific variance."""

    loadings: dict[str, tuple[float, ...]]
    specific: dict[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class FundLedger:
    """All records of one fund on `as_of` that an agent sees.

    `fx` is dollars per unit of a currency, `balances` settled cash by currency. `constituents` are weights of issuers
    by fund, `benchmark` is weight and sector of each member.
    """

    as_of: date
    sessions: tuple[date, ...]
    fx: dict[str, float]
    securities: dict[str, CaseSecurity]
    quotes: dict[str, Quotes]
    listed: dict[str, VendorRecord]
    benchmark: dict[str, tuple[float, str]]
    constituents: dict[str, dict[str, float]]
    filings: tuple[IssuerFiling, ...]
    risk: IssuerRiskModel
    lots: tuple[Lot, ...] = ()
    orders: tuple[BlotterOrder, ...] = ()
    events: tuple[CorporateAction, ...] = ()
    balances: dict[str, float] = field(default_factory=dict[str, float])

    def with_quotes(self, security: str, **changes: Any) -> Self:
        return replace(self, quotes={**self.quotes, security: replace(self.quotes[security], **changes)})

    def with_vendor_record(self, issuer: str, **changes: Any) -> Self:
        return replace(self, listed={**self.listed, issuer: replace(self.listed[issuer], **changes)})

    def units(self, security: str) -> float:
        """Return dollars of one unit of a security at a price of 1."""
        line = self.securities[security]
        return line.multiplier * self.fx[line.currency]


@dataclass(frozen=True, slots=True)
class TrueHoldings:
    """Book on trade date.

    Attributes
    ----------
    quantities : nonzero units by security.
    prices : dollars of one unit by security (of its notional for a future).
    cash : dollars, with pending trades and unpaid entitlements.
    sectors, shares : sector and shares outstanding by issuer.
    """

    quantities: dict[str, float]
    prices: dict[str, float]
    cash: float
    sectors: dict[str, str]
    shares: dict[str, float]


@dataclass(frozen=True, slots=True)
class Planted:
    """Trap, or control if `trap` is False: `field` at `where` is `right`; a misled reader takes it for `fallen`."""

    kind: str
    where: str
    trap: bool
    field: str
    right: float | str
    fallen: float | str


def ledger_tables(ledger: FundLedger) -> dict[str, pl.DataFrame]:
    """Return the tables by name of the task input field."""
    return {
        "custodian": _custodian(ledger),
        "trades": _trades(ledger),
        "corporate_actions": _actions(ledger),
        "prices": _prices(ledger),
        "second_source": _secondary_prices(ledger),
        "reference": _reference(ledger),
        "benchmark": _benchmark(ledger),
        "constituents": _constituents(ledger),
        "filings": _filings(ledger),
        "risk_model": _risk(ledger),
    }


def _iso(column: str) -> pl.Expr:
    return pl.col(column).dt.to_string()


def _custodian(ledger: FundLedger) -> pl.DataFrame:
    return pl.DataFrame(ledger.lots).select("custodian", "security", "lot", _iso("acquired"), "quantity", "unit_cost")


def _trades(ledger: FundLedger) -> pl.DataFrame:
    side = pl.when(pl.col("quantity") < 0).then(pl.lit("sell")).otherwise(pl.lit("buy")).alias("side")
    units, replaces = pl.col("quantity").abs(), pl.col("replaces").replace("", None)
    dates = (_iso("trade_date"), _iso("settle_date"))
    return pl.DataFrame(ledger.orders).select("trade", *dates, "security", side, units, "price", replaces)


def _actions(ledger: FundLedger) -> pl.DataFrame:
    dates = (_iso("ex_date"), _iso("pay_date"))
    terms = (pl.col("ratio", "cash").replace(0.0, None), pl.col("into").replace("", None))
    return pl.DataFrame(ledger.events).select("event", pl.col("action").alias("type"), "security", *dates, *terms)


def _prices(ledger: FundLedger) -> pl.DataFrame:
    days = [day.isoformat() for day in ledger.sessions]
    return pl.concat(
        pl.DataFrame({"date": days, "security": name, "close": quotes.closes, "volume": quotes.volumes.astype("int64")})
        for name, quotes in sorted(ledger.quotes.items())
    )


def _secondary_prices(ledger: FundLedger) -> pl.DataFrame:
    rows = [(name, each.secondary_close, each.secondary_currency) for name, each in sorted(ledger.quotes.items())]
    return pl.DataFrame(rows, schema=["security", "close", "currency"], orient="row")


def _reference(ledger: FundLedger) -> pl.DataFrame:
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
    return pl.DataFrame(rows, infer_schema_length=None)


def _benchmark(ledger: FundLedger) -> pl.DataFrame:
    rows = [(name, *entry) for name, entry in ledger.benchmark.items()]
    return pl.DataFrame(rows, schema=["issuer", "weight", "sector"], orient="row")


def _constituents(ledger: FundLedger) -> pl.DataFrame:
    funds = sorted(ledger.constituents.items())
    rows = [(fund, *entry) for fund, weights in funds for entry in weights.items()]
    return pl.DataFrame(rows, schema=["security", "issuer", "weight"], orient="row")


def _filings(ledger: FundLedger) -> pl.DataFrame:
    names = {"shares": "shares_outstanding", "liabilities": "total_liabilities", "equity": "stockholders_equity"}
    return pl.DataFrame(ledger.filings).with_columns(_iso("period_end"), _iso("filed")).rename(names)


def _risk(ledger: FundLedger) -> pl.DataFrame:
    loadings = ledger.risk.loadings
    columns = ["issuer", "specific_variance", *(f"factor_{i + 1}" for i in range(len(next(iter(loadings.values())))))]
    rows = [(name, ledger.risk.specific[name], *row) for name, row in loadings.items()]
    return pl.DataFrame(rows, schema=columns, orient="row")
