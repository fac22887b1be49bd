"""The tables of a case, as an agent reads them: dates as text, columns in the units that the prompt states."""

from __future__ import annotations

from typing import Any

import polars as pl

from finskillbench_desk.committee_case.ledger.nouns import Ledger


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
