"""Subtask committee_case: true book, breaches of amended guidelines, and the cheapest cure.

The cheapest cure need not be unique: a cure is scored by its cost and by whether it keeps the limits, figures by the
trades that precede them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from finskillbench.domains.base import Baselines, Naive, Subtask, Verification
from finskillbench.domains.examples import Examples, GradedExample, Label
from finskillbench.domains.interactive import EpisodeBudget, InteractiveCase
from finskillbench.episode import JsonObject, Profile
from finskillbench_desk.committee_case import procedures
from finskillbench_desk.committee_case.build import CONVENTIONS, NAME, PREFIX, CommitteeCase, CommitteeInput, build
from finskillbench_desk.committee_case.judging.agent_documents import Facts
from finskillbench_desk.committee_case.judging.scorer import score_committee_case
from finskillbench_desk.committee_case.proof import examine_committee_case
from finskillbench_desk.engines.books.figures import figures
from finskillbench_desk.engines.guidelines.cure import CureRules, after, cheapest_cure
from finskillbench_desk.market import ListedName as Member

_TILT = 1e-5
"""Relative change of rates that breaks ties between equally cheap cures differently than the build did."""


def graded_examples(label: Label[Any]) -> list[GradedExample]:
    """Return answers from the true one down to an empty one, with their expected score ranges."""
    truth: dict[str, Any] = dict(label.truth.expected_output)
    uncured: dict[str, Any] = {**truth, "trades": [], "figures": {}}
    rules_and_book: dict[str, Any] = {**uncured, "breaches": [], "excluded": []}
    return [
        GradedExample("the true answer", truth, 1.0, 1.0),
        GradedExample("another cure as cheap", truth | equally_cheap(Facts.of(label.truth)), 1.0, 1.0),
        GradedExample("no cure", uncured, 0.55, 0.65),
        GradedExample("rules and book alone", rules_and_book, 0.35, 0.45),
        GradedExample("the book alone", {**rules_and_book, "rules": []}, 0.15, 0.25),
        GradedExample("nothing", {}, 0.0, 0.0),
    ]


def equally_cheap(facts: Facts) -> dict[str, Any]:
    """Return trades as cheap as the cheapest, with ties broken differently, and the figures after them."""
    ordered = enumerate(facts.trading_costs.rates.items())
    rates = {name: rate * (1 + _TILT * (place % 2)) for place, (name, rate) in ordered}
    trades = cheapest_cure(facts.rules, facts.book, CureRules(rates)).trades
    return {
        "trades": [{"security": name, "value": value} for name, value in sorted(trades.items())],
        "figures": figures(after(facts.book, trades), facts.risk),
    }


BUDGET = EpisodeBudget(turns=24, output_tokens=60_000, data_calls=40)

APPOINTED = {"trades": {"trade_date": 7, "settle_date": 14}, "corporate_actions": {"ex_date": 21, "pay_date": 42}}
"""Days after the case date up to which trades and corporate actions may be dated."""


def _nothing(data: Mapping[str, Any]) -> JsonObject:
    del data
    amounts = dict.fromkeys(("cash", "pending_purchases", "pending_sales"), 0.0)
    book: dict[str, Any] = {"positions": [], **amounts, "replaced": []}
    return {"rules": [], "book": book, "breaches": [], "excluded": [], "trades": [], "figures": {}}


_OF_RECORDS = ("instruments", "prices", "planted", "trading", "rates", "vendor", "shown")
"""Verification data on the lines and records of the fund."""

SUBTASK: Subtask[CommitteeInput, tuple[Member, ...]] = Subtask(
    name=NAME,
    prefix=PREFIX,
    input=CommitteeInput,
    answer=CommitteeCase,
    definitions=CONVENTIONS,
    build=build,
    proof=examine_committee_case,
    scorers={Profile.CERTIFIED: score_committee_case, Profile.STRICT: score_committee_case},
    verification=Verification(
        method="staged_case", proved=(*_OF_RECORDS, "least_cost", "leverage", "risk_model", "coding")
    ),
    baselines=Baselines(no_skill=Naive((), _nothing), trivial=Naive((), _nothing)),
    examples=Examples(graded=graded_examples),
    interactive=InteractiveCase(
        budget=BUDGET,
        procedures={"reference": procedures.reference, "textbook": procedures.textbook, "trapped": procedures.trapped},
        appointed=APPOINTED,
    ),
    headline=False,
)
