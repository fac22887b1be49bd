"""Answers from right to wrong whose order an audit checks, among them another cure that costs as little.

The cheapest cure need not be the only one, and the score does not need it to be: a cure is judged by what it costs
and whether it keeps the limits, and figures by the trades that they follow.
"""

from __future__ import annotations

from typing import Any

from finskillbench.domains.examples import GradedExample, Label
from finskillbench_desk.committee_case.judging.facts import Facts
from finskillbench_desk.engines.books.figures import figures
from finskillbench_desk.engines.guidelines.cure import Terms, after, cheapest_cure

_TILT = 1e-5
"""Relative change of a rate that breaks ties between cures of one cost otherwise than the build did."""


def ladder(label: Label[Any]) -> list[GradedExample]:
    """From the true answer over another cure as cheap to parts that are left out, and to nothing."""
    truth: dict[str, Any] = dict(label.truth.expected_output)
    uncured: dict[str, Any] = {**truth, "trades": [], "figures": {}}
    unsaid: dict[str, Any] = {**uncured, "breaches": [], "excluded": []}
    return [
        GradedExample("the true answer", truth, 1.0, 1.0),
        GradedExample("another cure as cheap", truth | as_cheap(Facts.of(label.truth)), 1.0, 1.0),
        GradedExample("no cure", uncured, 0.55, 0.65),
        GradedExample("rules and book alone", unsaid, 0.35, 0.45),
        GradedExample("the book alone", {**unsaid, "rules": []}, 0.15, 0.25),
        GradedExample("nothing", {}, 0.0, 0.0),
    ]


def as_cheap(facts: Facts) -> dict[str, Any]:
    """Trades that cost as little as the cheapest ones, found with ties broken otherwise, and the figures after them."""
    rates = {name: rate * (1 + _TILT * (place % 2)) for place, (name, rate) in enumerate(facts.terms.rates.items())}
    trades = cheapest_cure(facts.rules, facts.book, Terms(rates)).trades
    return {
        "trades": [{"security": name, "value": value} for name, value in sorted(trades.items())],
        "figures": figures(after(facts.book, trades), facts.risk),
    }
