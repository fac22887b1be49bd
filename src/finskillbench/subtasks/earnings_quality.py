"""Earnings quality: Piotroski's F-score, Beneish's M-score, accruals, and what they flag."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from finskillbench.episode import JsonObject, Profile, Score, Truth
from finskillbench.scoring.measures import mean, ramp, set_f1, share
from finskillbench.scoring.values import array, boolean, json_equal, mapping, number, parameter
from finskillbench.subtasks.base import Answer, Subtask

_RATIO_TOLERANCES = {"beneish_m_score": 0.05, "accruals_ratio": 0.25, "income_quality_ratio": 0.05}
_FLAG_WEIGHT = 0.3
_BENEISH_WEIGHT = 0.3
_STRICT_RATIO_WEIGHT = 0.3

_Signal = Literal[0, 1] | None


class PiotroskiComponents(Answer):
    """The nine binary signals, against the same quarter of the prior year; 1 is the favourable outcome.

    null where a signal cannot be computed.
    """

    roa_positive: _Signal = Field(description="1 if net income / total assets > 0, else 0.")
    cfo_positive: _Signal = Field(description="1 if operating cash flow > 0, else 0.")
    delta_roa_positive: _Signal = Field(description="1 if return on assets rose, else 0.")
    accruals_negative: _Signal = Field(description="1 if operating cash flow exceeds net income, else 0.")
    delta_leverage_negative: _Signal = Field(description="1 if long-term debt / total assets fell, else 0.")
    delta_current_ratio_positive: _Signal = Field(description="1 if current assets / current liabilities rose, else 0.")
    no_dilution: _Signal = Field(description="1 if the share count did not rise, else 0.")
    delta_gross_margin_positive: _Signal = Field(description="1 if gross profit / revenue rose, else 0.")
    delta_asset_turnover_positive: _Signal = Field(description="1 if revenue / total assets rose, else 0.")


class EarningsQuality(Answer):
    """Answer: scores, ratios and flags of one filing; null where a value cannot be determined."""

    piotroski_score: int | None = Field(description="Sum of the nine components, 0 to 9.")
    piotroski_components: PiotroskiComponents = Field(description="Signal name to 0 or 1.")
    beneish_m_score: float | None = Field(description="Beneish eight-variable M-score, a signed number.")
    beneish_flag: bool | None = Field(description="true if the M-score is above -1.78.")
    accruals_ratio: float | None = Field(
        description="(Net income - operating cash flow) / total assets, decimal (0.05 is 5 %), signed."
    )
    income_quality_ratio: float | None = Field(description="Operating cash flow / net income, a signed ratio.")
    flags: list[Literal["low_piotroski", "beneish_manipulation_flag", "high_accruals", "negative_income_quality"]] = (
        Field(description="The concerns raised by the thresholds of the task; an empty array if there are none.")
    )


def paper(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """earnings_quality_composite: weighted mean over the active terms, rounded to 4 decimals.

    Share of the expected components equal (weight `piotroski_weight`, else `component_weight`, 0.4); `beneish_flag`
    equal (0.3), only if both sides give one; F1 of the sets of flags (0.3), 1 if both are empty; mean ratio ramp,
    only if `numeric_ratio_weight` > 0. What the label leaves null could not be computed and is not scored. Terms
    that an answer omits drop out too, so an empty answer can earn 0.43: as published.
    """
    del task_input
    return _score(answer, truth, parameter(truth.verification, "numeric_ratio_weight", 0.0, positive=False))


def strict(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """As `paper`, with a weight of 0.3 for the ratios."""
    del task_input
    return _score(answer, truth, _STRICT_RATIO_WEIGHT)


def _score(answer: JsonObject, truth: Truth, ratio_weight: float) -> Score:
    expected = truth.expected_output
    terms: dict[str, tuple[float, float]] = {}
    labels = mapping(expected.get("piotroski_components"))
    components = {key: value for key, value in labels.items() if value is not None}
    if components:
        weight = parameter(truth.verification, "component_weight", 0.4, positive=False)
        weight = parameter(truth.verification, "piotroski_weight", weight, positive=False)
        given = mapping(answer.get("piotroski_components"))
        right = sum(key in given and _same_signal(given[key], value) for key, value in components.items())
        terms["components"] = (weight, share(right, len(components)))
    flag, wanted = boolean(answer.get("beneish_flag")), boolean(expected.get("beneish_flag"))
    if flag is not None and wanted is not None:
        terms["beneish_flag"] = (_BENEISH_WEIGHT, float(flag == wanted))
    terms["flags"] = (_FLAG_WEIGHT, set_f1(_flags(answer), _flags(expected)))
    ramps = [
        ramp(number(answer.get(key)), value, tolerance=tolerance)
        for key, tolerance in _RATIO_TOLERANCES.items()
        if (value := number(expected.get(key))) is not None
    ]
    if ratio_weight > 0 and ramps:
        terms["ratios"] = (ratio_weight, mean(ramps))
    total = sum(weight for weight, _ in terms.values())
    value = sum(weight / total * term for weight, term in terms.values())
    return Score(round(value, 4), {name: term for name, (_, term) in terms.items()})


def _same_signal(given: object, wanted: object) -> bool:
    """Equality of JSON values where the truth's 0/1 or false/true is a binary signal in either spelling."""
    signal = _binary(wanted)
    return json_equal(given, wanted) if signal is None else _binary(given) == signal


def _binary(value: object) -> int | None:
    if isinstance(value, bool):
        return int(value)
    amount = number(value)
    return int(amount) if amount in (0.0, 1.0) else None


def _flags(source: JsonObject) -> set[str]:
    return {flag for flag in array(source.get("flags")) if isinstance(flag, str)}


SUBTASK = Subtask(
    name="earnings_quality",
    skill="fundamental_analysis",
    prefix="fa_eq",
    method="earnings_quality_composite",
    answer=EarningsQuality,
    scorers={Profile.PAPER: paper, Profile.STRICT: strict},
)
