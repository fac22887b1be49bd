"""The scores of a ladder of answers fall along it, and any cure of the least cost earns as much as the stored one."""

from __future__ import annotations

import pytest
from desk_tests.committee_case.conftest import Played

from finskillbench.domains.examples import Label
from finskillbench_desk.committee_case.judging.agent_documents import Facts
from finskillbench_desk.committee_case.subtask import equally_cheap, graded_examples


@pytest.mark.slow
def test_scores_fall_along_the_ladder(cases: list[Played]) -> None:
    for case in cases:
        above = 1.0
        for rung in graded_examples(Label(case.task.episode, case.task_input, case.task.truth, case.task.certificate)):
            score = case.scored(rung.answer).value
            assert rung.least - 1e-9 <= score <= min(above, rung.most) + 1e-9, rung.name
            above = score


def test_the_cheapest_cure_need_not_be_the_only_one(cases: list[Played]) -> None:
    """So the proof claims no uniqueness, and another cure of the same cost loses nothing."""
    different = 0
    for case in cases:
        facts = Facts.of(case.task.truth)
        other = equally_cheap(facts)
        trades = {row["security"]: row["value"] for row in other["trades"]}
        stored = {row["security"]: row["value"] for row in case.truth["trades"]}
        cost = sum(facts.trading_costs.rates[name] * abs(value) for name, value in trades.items()) / facts.book.nav
        assert cost == pytest.approx(facts.known["least_cost"], rel=1e-4)
        assert case.scored({**case.truth, **other}).value == pytest.approx(1.0)
        different += trades.keys() != stored.keys() or any(abs(trades[name] - stored[name]) > 1e3 for name in trades)
    assert different
    proofs = [case.task.truth.proof for case in cases]
    assert {(proof["unique"], proof["uniqueness"]) for proof in proofs} == {
        (False, "not asked: the value alone is the answer")
    }
