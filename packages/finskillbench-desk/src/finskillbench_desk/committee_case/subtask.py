"""committee_case: the true book of a fund, what it breaches by guidelines with amendments, and the cheapest cure.

Answers from right to wrong whose order an audit checks, among them another cure that costs as little.

The cheapest cure need not be the only one, and the score does not need it to be: a cure is judged by what it costs
and whether it keeps the limits, and figures by the trades that they follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from finskillbench.domains.base import Baselines, Naive, Subtask, Verification
from finskillbench.domains.examples import Examples, GradedExample, Label
from finskillbench.domains.interactive import Budget, InteractiveCase
from finskillbench.episode import JsonObject, Profile
from finskillbench_desk.committee_case import procedures
from finskillbench_desk.committee_case.build import CONVENTIONS, NAME, PREFIX, CommitteeCase, CommitteeInput, build
from finskillbench_desk.committee_case.judging.agent_documents import Facts
from finskillbench_desk.committee_case.judging.later import score
from finskillbench_desk.committee_case.proof import examine
from finskillbench_desk.engines.books.figures import figures
from finskillbench_desk.engines.guidelines.cure import Terms, after, cheapest_cure
from finskillbench_desk.market import Listed as Member

_TILT = 1e-5
"""Relative change of a rate that breaks ties between cures of one cost otherwise than the build did."""


def graded_examples(label: Label[Any]) -> list[GradedExample]:
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


BUDGET = Budget(turns=24, output_tokens=60_000, data_calls=40)

APPOINTED = {
    "trades": {"trade_date": 7, "settle_date": 14},
    "corporate_actions": {"ex_date": 21, "pay_date": 42},
}
"""Orders are entered for one of the next sessions and settle within days; events are announced ahead of their days."""


def _nothing(data: Mapping[str, Any]) -> JsonObject:
    """A book without positions that breaks nothing."""
    del data
    book: dict[str, Any] = {
        "positions": [],
        "cash": 0.0,
        "pending_purchases": 0.0,
        "pending_sales": 0.0,
        "replaced": [],
    }
    return {"rules": [], "book": book, "breaches": [], "excluded": [], "trades": [], "figures": {}}


SUBTASK: Subtask[CommitteeInput, tuple[Member, ...]] = Subtask(
    name=NAME,
    prefix=PREFIX,
    input=CommitteeInput,
    answer=CommitteeCase,
    definitions=CONVENTIONS,
    build=build,
    proof=examine,
    scorers={Profile.CERTIFIED: score, Profile.STRICT: score},
    verification=Verification(
        method="staged_case",
        proved=(
            "instruments",
            "prices",
            "planted",
            "trading",
            "rates",
            "vendor",
            "shown",
            "least_cost",
            "leverage",
            "risk_model",
            "coding",
        ),
    ),
    baselines=Baselines(no_skill=Naive((), _nothing), trivial=Naive((), _nothing)),
    examples=Examples(graded=graded_examples),
    interactive=InteractiveCase(
        budget=BUDGET,
        procedures={
            "reference": procedures.reference,
            "textbook": procedures.textbook,
            "trapped": procedures.trapped,
        },
        appointed=APPOINTED,
    ),
    headline=False,
)
