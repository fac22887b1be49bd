"""Measure a book that you state, after trades if you give any: active risk, beta, weights by issuer, cash, turnover.

Payload: as run_rules.py without rules; risk_model from the task data. `orders` (dollars by security) are traded first.
An unknown key is refused.
Result: active_risk_pct (a year, by the risk model, funds and equity futures looked through), benchmark_beta,
issuer_weights_pct (the ten largest, all securities of an issuer together), cash_pct, turnover_pct (half of all
purchases and sales of the quarter: those in `quarter`, settled and pending, and the orders; amounts left out of
`quarter` do not count), equity_dollars (by issuer: shares, preferred shares and receipts).
"""

from typing import Any

import numpy as np

from finskillbench.engines.fields import refuse_unknown
from finskillbench.errors import InputError
from finskillbench.sandbox.script import cli, rounded
from finskillbench_desk.engines.books.figures import EQUITIES, Risk, figures, issuer_values
from finskillbench_desk.engines.books.papers import rows
from finskillbench_desk.engines.guidelines.book import Book
from finskillbench_desk.engines.guidelines.cure import after
from finskillbench_desk.engines.guidelines.stated import BOOK, book_from, orders_from


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Measure the book after the orders."""
    refuse_unknown(payload, ("risk_model", "orders", *BOOK), "active_risk")
    book = book_from(payload)
    cured = after(book, orders_from(payload, book))
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
    model = {row["issuer"]: row for row in rows(payload, "risk_model", "issuer", "specific_variance")}
    weights = {line.name: line.benchmark / 100 for line in book.universe.instruments if line.benchmark > 0}
    missing = [name for name in weights if name not in model]
    if missing:
        raise InputError(f"risk_model has no row for {missing[0]}, which is in the benchmark")
    factors = [name for name in next(iter(model.values())) if name not in ("issuer", "specific_variance")]
    loadings = np.array([[model[name][factor] for factor in factors] for name in weights], dtype=np.float64)
    specific = np.array([model[name]["specific_variance"] for name in weights], dtype=np.float64)
    return Risk(tuple(weights), loadings, specific, np.array(list(weights.values()), dtype=np.float64), {})


if __name__ == "__main__":
    cli(main)
