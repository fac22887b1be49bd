"""What shortcuts and usual mistakes earn on cases small enough to be worked by hand."""

from __future__ import annotations

from dataclasses import replace

from tests.domains.risk.judging.cases import judged, monitoring, remediation

from finskillbench.domains.risk.examples import constraint_monitoring, risk_remediation

CM, RR = "constraint_monitoring", "risk_remediation"


def test_a_wrong_line_leaves_little_of_a_mandate_check() -> None:
    truth, task_input = monitoring()
    found = constraint_monitoring.shortcuts(task_input)  # pyright: ignore[reportArgumentType]
    scores = {name: judged(CM, answer, truth, task_input).value for name, answer in found.items()}
    assert {"cash ignored", "trades of the month ignored", "absolute risk for tracking error"} <= scores.keys()
    assert "shorts ignored" not in scores  # nothing is short
    assert max(scores.values()) <= 0.3


def test_cures_that_leave_something_out_earn_nothing() -> None:
    truth, task_input = remediation(headroom=0.01)
    truth = replace(truth, verification={"least_cost": 0.032})
    task_input["trading_terms"]["cost_bps"] |= {"CCC": 9.0}
    found = risk_remediation.shortcuts(task_input)  # pyright: ignore[reportArgumentType]
    scores = {name: judged(RR, answer, truth, task_input).value for name, answer in found.items()}
    assert scores["headroom ignored"] == scores["no trades"] == scores["the benchmark"] == 0.0
    assert scores["turnover budget ignored"] == 1.0  # it does not bind here
