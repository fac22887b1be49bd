"""Normalisation: ten canonical metrics of one filing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from finskillbench.domains.base import Answer, Subtask
from finskillbench.domains.building import BuildContext, Task, load_catalog
from finskillbench.domains.fundamental.reports import Case
from finskillbench.domains.fundamental.second import normalised
from finskillbench.domains.fundamental.shared import (
    CATALOG,
    CONVENTIONS,
    PRECISION,
    Label,
    Proved,
    Unit,
    build_tasks,
    conventions,
    credit,
    finished,
)
from finskillbench.engines.accounting.statements import NORMALISED, normalise
from finskillbench.episode import JsonObject, Profile, Prompt, Score, Truth
from finskillbench.scoring.measures import mean, relative_error, share
from finskillbench.scoring.values import mapping, number, parameter

NAME = "normalization"
METHOD = "metric_absolute_error"
NORMALISATION = {
    "period": "of a 10-Q the quarter that ends on period_end alone, not the year to date; of a 10-K, 20-F or 40-F the "
    "fiscal year; total_assets, total_liabilities and stockholders_equity on period_end",
    "operating_margin": "operating_income / revenue, a decimal",
    "ebitda": "operating_income + depreciation_amortization of the same period",
}
"""What normalisation adds to the conventions."""

_METADATA = frozenset({"source", "confidence", "tier", "xbrl_fmp_agreement"})
_FLOOR = 1e-8
_UNITS: Mapping[str, Unit] = {"eps_diluted": "usd_per_share", "operating_margin": "ratio"}


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


def certified(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """Mean over the metrics that the filing supports of `credit`: full within 0.1 %, nothing from 1 % on.

    A metric that the label leaves null could not be computed and is not scored; one that the answer leaves null is 0.
    """
    del task_input
    given = mapping(answer.get("metrics"))
    parts = {
        name: credit(number(given.get(name)), wanted, unit=_UNITS.get(name, "usd"))
        for name, value in mapping(truth.expected_output.get("metrics")).items()
        if (wanted := number(value)) is not None
    }
    return Score(mean(list(parts.values())), parts)


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


def build(context: BuildContext, objects: object) -> list[Task]:
    """Reports drawn by company, form and year."""
    return build_tasks(context, NAME, _label, _task)


def _label(case: Case) -> Label | None:
    report, metrics = case.report, normalise(case.reported)
    known = sum(value is not None for value in metrics.values())
    if known < load_catalog(CATALOG)["least"]["metrics"] or metrics["net_income"] is None:
        return None
    return Label(
        report,
        {"metrics": metrics},
        {"metrics": normalised(case.raw.reported)},
        (report.symbol, report.form, report.filed.year),
        "easy" if report.annual else "medium",
    )


def _task(proved: Proved) -> Task:
    report = proved.label.report
    prompt = Prompt(
        f"Normalise the {report.form} of {report.symbol} for the period that ended on {report.period_end}, as public "
        f"on {report.filed}: determine {', '.join(NORMALISED)}. conventions says of which period each figure is, and "
        "how those that are not reported are computed.",
        f"Submit a JSON object with metrics: an object that maps each of the ten names to its number. {PRECISION} Give "
        "null for a metric that cannot be determined.",
    )
    fields = {"period_end": report.period_end.isoformat()}
    task_id = f"{SUBTASK.prefix}_{report.symbol}_{report.period_end}"
    verification = {"method": METHOD, "tolerance_pct": 5.0, "metrics": ["mae", "within_threshold_pct"]}
    return finished(proved, NAME, task_id, fields, NORMALISATION, prompt, verification)


SUBTASK = Subtask(
    name=NAME,
    prefix="fa_norm",
    method=METHOD,
    build=build,
    definitions=conventions(CONVENTIONS, NORMALISATION),
    answer=Normalization,
    scorers={Profile.PAPER: paper, Profile.STRICT: paper, Profile.CERTIFIED: certified},
)
