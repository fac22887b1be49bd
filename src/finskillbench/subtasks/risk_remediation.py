"""Risk remediation: the cheapest trades that bring a portfolio back within its mandate."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from finskillbench.episode import JsonObject, Profile, Score, Truth
from finskillbench.scoring.measures import multiset_f1, set_f1
from finskillbench.scoring.values import boolean, mapping, number, objects, parameter, text
from finskillbench.subtasks.base import Answer, Subtask


class Trade(Answer):
    """One trade."""

    symbol: str = Field(description="Ticker.")
    action: Literal["buy", "sell"] = Field(description="buy raises the weight, sell lowers it.")
    current_weight: float = Field(description="Weight before, as a fraction of NAV (0.05 is 5 %).")
    target_weight: float = Field(description="Weight after, as a fraction of NAV.")
    trade_pct: float = Field(description="Target minus current weight, a fraction of NAV; negative for a sale.")


class RiskRemediation(Answer):
    """Answer: the trades, their turnover and whether they cure the portfolio."""

    trades: list[Trade] = Field(description="One entry per ticker whose weight changes.")
    total_turnover: float = Field(description="One-way turnover: half the sum of absolute trades; >= 0.")
    post_trade_compliant: bool = Field(description="true if the portfolio meets its mandate after the trades.")


def paper(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """constraint_satisfaction_plus_cost: 0.3 compliance + 0.3 turnover + 0.4 F1 on the multiset of trades.

    Compliance: `post_trade_compliant` equal. Turnover: |T̂-T| <= x max(T, 0.01), x = `turnover_excess_pct`/100 of
    the verification's `tolerance`, default 0.5, an absent turnover being 0. Trades are (SYMBOL, action) pairs.
    """
    del task_input
    return _score(answer, truth, multiset_f1(_pairs(answer), _pairs(truth.expected_output)))


def strict(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """As `paper`, with F1 on the sets of (SYMBOL, action) pairs."""
    del task_input
    return _score(answer, truth, set_f1(set(_pairs(answer)), set(_pairs(truth.expected_output))))


def _score(answer: JsonObject, truth: Truth, f1: float) -> Score:
    expected = truth.expected_output
    compliant = boolean(answer.get("post_trade_compliant"))
    agrees = compliant is not None and compliant == boolean(expected.get("post_trade_compliant"))
    given = number(answer.get("total_turnover")) or 0.0
    wanted = number(expected.get("total_turnover")) or 0.0
    tolerance = mapping(truth.verification.get("tolerance"))
    excess = parameter(tolerance, "turnover_excess_pct", 50.0, positive=False) / 100.0
    cheap = abs(given - wanted) <= excess * max(wanted, 0.01)
    details = {"compliant": agrees, "turnover": cheap, "trades_f1": f1}
    return Score(0.3 * agrees + 0.3 * cheap + 0.4 * f1, details)


def _pairs(source: JsonObject) -> list[tuple[str, str]]:
    """(SYMBOL, action) of each trade object; a missing part is empty, so that it counts and matches nothing."""
    return [
        ((text(trade.get("symbol")) or "").upper(), (text(trade.get("action")) or "").lower())
        for trade in objects(source.get("trades"))
    ]


SUBTASK = Subtask(
    name="risk_remediation",
    skill="risk_management",
    prefix="rm_rr",
    method="constraint_satisfaction_plus_cost",
    answer=RiskRemediation,
    scorers={Profile.PAPER: paper, Profile.STRICT: strict},
)
