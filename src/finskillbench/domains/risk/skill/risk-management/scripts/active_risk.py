"""Measure a book that you state, after trades if you give any: active risk, beta, weights by issuer, cash, turnover.

Payload: as run_rules.py without rules; covariance_matrix. `orders` (dollars by security) are traded first.
Result: active_risk_pct (a year, by the covariance, funds and equity futures looked through), benchmark_beta,
issuer_weights_pct (the ten largest, all securities of an issuer together), cash_pct, turnover_pct (half of the
quarter's purchases and sales, the orders included), equity_dollars (by issuer: shares, preferred shares and receipts).
"""

from typing import Any

import numpy as np

from finskillbench.engines.books.figures import EQUITIES, Risk, figures, issuer_values
from finskillbench.engines.fields import number, table_of, tickers_of
from finskillbench.engines.guidelines.book import Book
from finskillbench.engines.guidelines.cure import after
from finskillbench.engines.guidelines.stated import book_from
from finskillbench.engines.risk.task import covariance_from
from finskillbench.sandbox.script import cli, rounded

LARGEST = 1e15


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Measure the book after the orders."""
    book = book_from(payload)
    orders = table_of(payload.get("orders")) or {}
    cured = after(book, {name: number(orders, name, "orders", largest=LARGEST) for name in orders})
    found = figures(cured, _risk(payload, book))
    issuers = sorted(issuer_values(cured).items(), key=lambda entry: -entry[1])
    equity: dict[str, float] = {}
    for position in cured.positions:
        if position.instrument.kind in EQUITIES:
            issuer = position.instrument.issuer
            equity[issuer] = equity.get(issuer, 0.0) + position.value
    return rounded(
        {
            "active_risk_pct": found["tracking_error"],
            "benchmark_beta": found["beta"],
            "issuer_weights_pct": {name: 100 * value / cured.nav for name, value in issuers[:10]},
            "cash_pct": found["cash"],
            "turnover_pct": found["turnover"],
            "equity_dollars": equity,
        }
    )


def _risk(payload: dict[str, Any], book: Book) -> Risk:
    weights = {line.name: line.benchmark / 100 for line in book.universe.instruments if line.benchmark > 0}
    tickers, model = tickers_of(payload, "covariance_matrix"), covariance_from(payload)
    chosen = [tickers.index(name) for name in weights]
    benchmark = np.array(list(weights.values()), dtype=np.float64)
    return Risk(tuple(weights), model.matrix[np.ix_(chosen, chosen)], benchmark, {})


if __name__ == "__main__":
    cli(main)
