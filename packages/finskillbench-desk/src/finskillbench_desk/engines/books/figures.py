"""Figures of a book: tracking error and beta on looked-through exposures, concentration, cash, turnover, leverage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.sums import exact_sum
from finskillbench_desk.engines.guidelines.book import Book

EQUITIES = frozenset(("share", "preferred", "receipt"))
"""Kinds with the risk of their issuer's shares; apart from funds and index futures, the others carry none."""
FIGURES = {
    "tracking_error": "percent a year, of the exposures to the benchmark's issuers against their benchmark weights, by "
    "the risk model",
    "beta": "of the same exposures: covariance with the benchmark over the benchmark's variance",
    "largest_issuer": "percent of net asset value in all securities of the issuer with the largest value held (every "
    "share class, receipt and bond; governments are issuers; no funds, futures or cash)",
    "cash": "percent of net asset value",
    "turnover": "percent of net asset value: half the sum of the quarter's purchases and sales (settled, pending "
    "and the cure's); trades in futures do not count",
    "leverage": "total liabilities over stockholders' equity from the last filing of each issuer that gives both, "
    "averaged over the shares, preferred shares and receipts held of issuers with such a filing, weighted by value",
}
"""Definition of each figure."""


@dataclass(frozen=True, slots=True, eq=False)
class Risk:
    """Market data for the figures: `loadings` (n, k) on factors of unit yearly variance, `specific` (n,) yearly
    variances.

    `benchmark` (n,) are weights of the `issuers`, fractions; `leverage` is by issuer.
    """

    issuers: tuple[str, ...]
    loadings: Floats
    specific: Floats
    benchmark: Floats
    leverage: Mapping[str, float]

    def covariance_with(self, held: Floats) -> Floats:
        """Return (n,) covariances of each issuer with a portfolio of weights (n,)."""
        return self.loadings @ (self.loadings.T @ held) + self.specific * held


def _exposures(book: Book, risk: Risk) -> Floats:
    """Return (n,) exposures to benchmark issuers as fractions of net asset value, looking through funds and futures."""
    place = {name: at for at, name in enumerate(risk.issuers)}
    found = np.zeros(len(place))
    for position in book.positions:
        line = position.instrument
        if line.kind in EQUITIES and line.issuer in place:
            found[place[line.issuer]] += position.value
        elif line.kind == "fund":
            for name, weight in line.holdings.items():
                if name in place:
                    found[place[name]] += weight * position.value
        elif line.kind == "equity_future":
            found += position.notional * risk.benchmark
    return found / book.nav


def issuer_values(book: Book) -> dict[str, float]:
    """Return values by issuer, without funds, futures and cash."""
    found: dict[str, float] = {}
    for position in book.positions:
        line = position.instrument
        if line.kind not in ("fund", "equity_future", "bond_future", "cash"):
            found[line.issuer] = found.get(line.issuer, 0.0) + position.value
    return found


def figures(book: Book, risk: Risk) -> dict[str, float]:
    """Compute all of `FIGURES`."""
    held = _exposures(book, risk)
    active, nav = held - risk.benchmark, book.nav
    of_benchmark = risk.covariance_with(risk.benchmark)
    issuers = issuer_values(book)
    levered = total = 0.0
    for position in book.positions:
        line = position.instrument
        if line.kind in EQUITIES and line.issuer in risk.leverage:
            levered += position.value * risk.leverage[line.issuer]
            total += position.value
    cash = exact_sum(position.value for position in book.positions if position.instrument.kind == "cash")
    return {
        "tracking_error": 100 * float(np.sqrt(max(float(active @ risk.covariance_with(active)), 0.0))),
        "beta": float(held @ of_benchmark) / float(risk.benchmark @ of_benchmark),
        "largest_issuer": 100 * max(issuers.values(), default=0.0) / nav,
        "cash": 100 * cash / nav,
        "turnover": 50 * exact_sum(book.trading.row) / nav,
        "leverage": levered / total if total else 0.0,
    }
