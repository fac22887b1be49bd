"""Normalisation: ten canonical metrics of one filing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from finskillbench.episode import JsonObject, Profile, Score, Truth
from finskillbench.scoring.measures import relative_error, share
from finskillbench.scoring.values import mapping, number, parameter
from finskillbench.subtasks.base import Answer, Subtask

_METADATA = frozenset({"source", "confidence", "tier", "xbrl_fmp_agreement"})
_FLOOR = 1e-8


class Metrics(Answer):
    """Canonical metrics of the period; null where a metric cannot be determined."""

    revenue: float | None = Field(description="Total revenue of the period, USD (unscaled).")
    operating_income: float | None = Field(description="Operating income of the period, USD; a loss is negative.")
    net_income: float | None = Field(description="Net income of the period, USD; a loss is negative.")
    eps_diluted: float | None = Field(description="Diluted earnings per share of the period, USD per share, signed.")
    total_assets: float | None = Field(description="Total assets at period end, USD.")
    total_liabilities: float | None = Field(description="Total liabilities at period end, USD.")
    stockholders_equity: float | None = Field(description="Stockholders' equity at period end, USD, signed.")
    operating_cash_flow: float | None = Field(
        description="Net cash from operating activities of the period, USD; an outflow is negative."
    )
    operating_margin: float | None = Field(description="Operating income / revenue, decimal (0.25 is 25 %), signed.")
    ebitda: float | None = Field(
        description="Operating income plus depreciation and amortisation of the period, USD, signed."
    )


class Normalization(Answer):
    """Answer: the metrics of one filing."""

    metrics: Metrics = Field(description="Metric name to number, as filed for the period asked for.")


def paper(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """metric_absolute_error: share of the expected metrics with |p-e|/max(|e|, 1e-8) <= tol.

    tol = `metric_tolerances[key]`, else `tolerance_pct`/100 (default 5 %). Metadata keys do not count; null or
    absent is no match. A single wrapper object that both sides use is stepped into.
    """
    del task_input
    predicted, expected = _unwrap(answer, truth.expected_output)
    default = parameter(truth.verification, "tolerance_pct", 5.0, positive=False) / 100.0
    tolerances = mapping(truth.verification.get("metric_tolerances"))
    keys = sorted(key for key in expected if key not in _METADATA)
    matched = {
        key: _matches(predicted.get(key), expected[key], parameter(tolerances, key, default, positive=False))
        for key in keys
    }
    return Score(share(sum(matched.values()), len(keys)), {"matched": matched})


def _unwrap(answer: JsonObject, expected: JsonObject) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Step into the one key of `expected` if it holds an object there and in the answer."""
    if len(expected) == 1:
        key, inside = next(iter(expected.items()))
        if isinstance(inside, Mapping) and isinstance(answer.get(key), Mapping):
            return answer[key], inside
    return answer, expected


def _matches(predicted: object, expected: object, tolerance: float) -> bool:
    p, e = number(predicted), number(expected)
    return p is not None and e is not None and relative_error(p, e, _FLOOR) <= tolerance


SUBTASK = Subtask(
    name="normalization",
    skill="fundamental_analysis",
    prefix="fa_norm",
    method="metric_absolute_error",
    answer=Normalization,
    scorers={Profile.PAPER: paper, Profile.STRICT: paper},
)
