"""Stress testing: what a scenario would do to a portfolio, and where the loss comes from."""

from __future__ import annotations

from pydantic import Field

from finskillbench.episode import JsonObject, Profile, Score, Truth
from finskillbench.scoring.measures import clip, mean, mean_absolute_error, ramp
from finskillbench.scoring.values import array, keyed_numbers, mapping, number, parameter
from finskillbench.subtasks.base import Answer, Subtask


class SectorContribution(Answer):
    """One sector's part of the P&L."""

    sector: str = Field(description="Sector name, as the task spells it.")
    contribution_pct: float = Field(
        description="The sector's contribution to portfolio P&L, decimal (-0.01 is -1 % of NAV); a loss is negative."
    )


class FactorContribution(Answer):
    """One factor's part of the P&L."""

    factor: str = Field(description="Factor or shock name, as the scenario spells it.")
    contribution_pct: float = Field(
        description="The factor's contribution to portfolio P&L, decimal (-0.01 is -1 % of NAV); a loss is negative."
    )


class Attribution(Answer):
    """The P&L, split twice; each split sums to it."""

    by_sector: list[SectorContribution] = Field(description="One entry per sector held.")
    by_factor: list[FactorContribution] = Field(description="One entry per factor shocked.")


class StressTesting(Answer):
    """Answer: P&L and its attribution."""

    estimated_pnl_pct: float = Field(
        description="Portfolio P&L under the scenario, decimal return (-0.167 is -16.7 %); a loss is negative."
    )
    attribution: Attribution = Field(description="Contributions by sector and by factor.")


def paper(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """absolute_error: s = clip(1 - (|ŷ-y| - 0.1τ)/(3τ)), τ = `tolerance_pct`/100, default 1 %; absent: 0.

    Where expected sector attribution exists: 0.7 s + 0.3 mean over expected sectors of (1 - min(1, relerr/0.05)),
    denominators floored at 1e-8, an absent sector 0, extra ones ignored.
    """
    del task_input
    pnl = _pnl_score(answer, truth)
    given, wanted = _by_sector(answer), _by_sector(truth.expected_output)
    if not wanted:
        return Score(pnl, {"pnl": pnl})
    sectors = mean([ramp(given.get(name), amount, tolerance=0.05) for name, amount in wanted.items()])
    return Score(0.7 * pnl + 0.3 * sectors, {"pnl": pnl, "by_sector": sectors})


def strict(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """As `paper`, but sectors by max(0, 1 - MAE/τ) over the union, if `sector_attribution_mae` is a metric."""
    del task_input
    pnl = _pnl_score(answer, truth)
    wanted = _by_sector(truth.expected_output)
    if not wanted or "sector_attribution_mae" not in array(truth.verification.get("metrics")):
        return Score(pnl, {"pnl": pnl})
    error = mean_absolute_error(_by_sector(answer), wanted)
    sectors = max(0.0, 1.0 - error / _tolerance(truth))
    return Score(0.7 * pnl + 0.3 * sectors, {"pnl": pnl, "by_sector": sectors})


def _tolerance(truth: Truth) -> float:
    return parameter(truth.verification, "tolerance_pct", 1.0) / 100.0


def _pnl_score(answer: JsonObject, truth: Truth) -> float:
    given, wanted = number(answer.get("estimated_pnl_pct")), number(truth.expected_output.get("estimated_pnl_pct"))
    if given is None or wanted is None:
        return 0.0
    tolerance = _tolerance(truth)
    return clip(1.0 - (abs(given - wanted) - 0.1 * tolerance) / (3.0 * tolerance))


def _by_sector(source: JsonObject) -> dict[str, float]:
    return keyed_numbers(mapping(source.get("attribution")).get("by_sector"), "sector", "contribution_pct")


SUBTASK = Subtask(
    name="stress_testing",
    skill="risk_management",
    prefix="rm_st",
    method="absolute_error",
    answer=StressTesting,
    scorers={Profile.PAPER: paper, Profile.STRICT: strict},
)
