"""committee_case: the true book of a fund, what it breaches by guidelines with amendments, and the cheapest cure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from finskillbench.domains.base import Baselines, Naive, Subtask, Verification
from finskillbench.domains.examples import Examples
from finskillbench.domains.interactive import Budget, InteractiveCase
from finskillbench.episode import JsonObject, Profile
from finskillbench_desk.committee_case import procedures
from finskillbench_desk.committee_case.answer import CommitteeCase, CommitteeInput
from finskillbench_desk.committee_case.build import NAME, PREFIX, build
from finskillbench_desk.committee_case.judging.score import score
from finskillbench_desk.committee_case.ladder import ladder
from finskillbench_desk.committee_case.proof import examine
from finskillbench_desk.committee_case.words import CONVENTIONS
from finskillbench_desk.market import Listed as Member

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
    examples=Examples(graded=ladder),
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
