"""Answers to a remediation from right to wrong: what a portfolio manager and a compliance officer would sign."""

from __future__ import annotations

from finskillbench.domains.examples import GradedExample, Label
from finskillbench.domains.risk.audits.ladders.decimals import to_decimals
from finskillbench.domains.risk.inputs import RemediationInput


def ladder(label: Label[RemediationInput]) -> list[GradedExample]:
    """From the truth to no trades."""
    truth = label.truth.expected_output
    curable = truth["post_trade_compliant"]
    return [
        GradedExample("truth", truth, 1.0, 1.0),
        GradedExample("six decimals", to_decimals(truth, 6), 0.99, 1.0),
        GradedExample("four decimals", to_decimals(truth, 4), 0.85, 1.0),
        GradedExample("turnover not stated", {**truth, "total_turnover": None}, 0.6, 0.7),
        GradedExample("a false statement on compliance", {**truth, "post_trade_compliant": not curable}, 0.2, 0.2),
        GradedExample("no trades", {**truth, "trades": [], "total_turnover": 0.0}, 0.0, 0.0),
    ]
