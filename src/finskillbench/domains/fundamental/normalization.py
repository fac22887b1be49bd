"""Normalisation: ten canonical metrics of one filing, and the `credit` of a numeric answer."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any, Literal

from pydantic import Field

from finskillbench.domains.base import Answer, Baselines, Naive, Subtask, Verification, by_input
from finskillbench.domains.building import BuildContext, BuiltTask, merge_conventions
from finskillbench.domains.examples import Examples, Label, Shortcuts
from finskillbench.domains.fundamental import explain
from finskillbench.domains.fundamental.examples import exploits, graded, shortcuts
from finskillbench.domains.fundamental.inputs import CONVENTIONS, PRECISION, FilingInput, filing_facts, read_statement
from finskillbench.domains.fundamental.objects.pools import Candidate, assemble_task, build_tasks
from finskillbench.domains.fundamental.objects.reports import FundamentalObjects, ReportCase
from finskillbench.domains.fundamental.objects.work import count_decisions, meaningful, oversized_figures
from finskillbench.domains.fundamental.rederive.answers import normalised
from finskillbench.domains.fundamental.rederive.definitions import VisibleFacts, period_of
from finskillbench.engines.accounting.periods import duration_of
from finskillbench.engines.accounting.statements import NORMALISED, normalise
from finskillbench.episode import JsonObject, Profile, Prompt, Score, Truth
from finskillbench.findings import Findings
from finskillbench.scoring.values import as_number, as_object, clip, closeness, mean, parameter, relative_error, share

Unit = Literal["usd", "usd_per_share", "ratio", "score", "percent"]

FULL, ZERO = 0.001, 0.05
"""Relative errors up to which a number earns full credit, and from which it earns none."""

_FLOORS: Mapping[Unit, tuple[float, float]] = {
    "usd": (0.5, 5.0),
    "usd_per_share": (0.005, 0.02),
    "ratio": (5e-5, 5e-4),
    "score": (5e-4, 5e-3),
    "percent": (0.005, 0.05),
}
"""Absolute errors per unit for small numbers: half a dollar, half a cent, decimals of ratios, scores and percentages.
"""


def credit(value: float | None, expected: float, *, unit: Unit) -> float:
    """Return 1 up to a relative error of 0.1 %, falling linearly to 0 at 5 %; 0 if absent.

    Errors are floored per unit, as filings round; an error as large as the figure is right only within that rounding.
    """
    full_floor, zero_floor = _FLOORS[unit]
    if expected:
        zero_floor = min(zero_floor, max(abs(expected), 2 * full_floor))
    return closeness(value, expected, full=FULL, full_floor=full_floor, zero=ZERO, zero_floor=zero_floor)


def left_null(values: Mapping[str, Any], name: str) -> bool:
    """Return True if a key is present with the value null."""
    return name in values and values[name] is None


NAME = "normalization"
METHOD = "metric_absolute_error"
NORMALISATION = {
    "period": "for a 10-Q, the quarter that ends on period_end alone, not the year to date; for a 10-K, 20-F or 40-F, "
    "the fiscal year; total_assets, total_liabilities and stockholders_equity on period_end",
    "operating_margin": "operating_income / revenue, a decimal",
    "ebitda": "operating_income + depreciation_amortization of the same period",
}

_METADATA = frozenset({"source", "confidence", "tier", "xbrl_fmp_agreement"})
_FLOOR = 1e-8
_ADDED = "depreciation_amortization"
_MARGIN_OF = ("operating_income", "revenue")
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

    metrics: Metrics = Field(
        description="Metric name to number of the requested period, as filed or as conventions derive it."
    )


def _paper(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """metric_absolute_error: share of the expected metrics with |p-e|/max(|e|, 1e-8) <= tol.

    tol = `metric_tolerances[key]`, else `tolerance_pct`/100 (default 5 %). Metadata keys do not count; null or
    absent is no match. A single wrapper object that both sides use is unwrapped.
    """
    del task_input
    predicted, expected = _unwrap(answer, truth.expected_output)
    default = parameter(truth.verification, "tolerance_pct", 5.0, positive=False) / 100.0
    tolerances = as_object(truth.verification.get("metric_tolerances"))
    keys = sorted(key for key in expected if key not in _METADATA)
    matched = {
        key: _matches(predicted.get(key), expected[key], parameter(tolerances, key, default, positive=False))
        for key in keys
    }
    return Score(share(sum(matched.values()), len(keys)), {"matched": matched})


def _certified(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """Mean `credit` over the metrics that the filing supports, less a wrong value per invented or missing null.

    The margin earns at most the lesser credit of its two parts.
    """
    del task_input
    predicted, expected = as_object(answer.get("metrics")), as_object(truth.expected_output.get("metrics"))
    parts = {
        name: credit(as_number(predicted.get(name)), wanted, unit=_UNITS.get(name, "usd"))
        for name, value in expected.items()
        if (wanted := as_number(value)) is not None
    }
    if "operating_margin" in parts:
        parts["operating_margin"] = min(parts.get(name, 1.0) for name in ("operating_margin", *_MARGIN_OF))
    invented = sum(value is None and not left_null(predicted, name) for name, value in expected.items())
    value = mean(list(parts.values())) - share(invented, len(parts))
    return Score(clip(value), {**parts, "invented": invented}, value)


def _unwrap(answer: JsonObject, expected: JsonObject) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Unwrap the only key of `expected` if it holds an object there and in the answer."""
    if len(expected) == 1:
        key = next(iter(expected))
        if isinstance(expected[key], Mapping) and isinstance(answer.get(key), Mapping):
            return as_object(answer[key]), as_object(expected[key])
    return answer, expected


def _matches(predicted: object, expected: object, tolerance: float) -> bool:
    p, e = as_number(predicted), as_number(expected)
    return p is not None and e is not None and relative_error(p, e, _FLOOR) <= tolerance


def _candidate(case: ReportCase, least: Mapping[str, int]) -> Candidate | None:
    report, metrics = case.report, normalise(case.reported)
    known = sum(value is not None for value in metrics.values())
    if known < least["metrics"] or metrics["net_income"] is None:
        return None
    count = count_decisions(case.filed_values, [case.reported], (*NORMALISED, _ADDED))
    return Candidate(
        report,
        {"metrics": metrics},
        {"metrics": normalised(case.source.figures(report.period_end, period_of(report.form)))},
        (report.symbol, report.form, report.filed.year),
        count,
        known == len(metrics) and count > 0,
        meaningful=meaningful(metrics, case.reported),
    )


def _task(label: Candidate, level: str) -> BuiltTask:
    report = label.report
    prompt = Prompt(
        f"Normalise the {report.form} of {report.symbol} for the period that ended on {report.period_end}, as public "
        f"on {report.filed}: determine {', '.join(NORMALISED)}. conventions defines the period of each figure, and how "
        "to compute those that are not reported.",
        f"Submit a JSON object with metrics: an object that maps each of the ten names to its number. {PRECISION} Give "
        "null for a metric that cannot be determined.",
    )
    fields = {"period_end": report.period_end.isoformat()}
    task_id = f"{SUBTASK.prefix}_{report.symbol}_{report.period_end}"
    return assemble_task(label, level, NAME, task_id, fields, NORMALISATION, prompt)


def _rederive(task_input: FilingInput) -> JsonObject:
    facts = VisibleFacts(filing_facts(task_input)[0])
    figures = facts.figures(date.fromisoformat(task_input["period_end"]), period_of(task_input["form_type"]))
    return {"metrics": normalised(figures)}


def _proof(label: Label[FilingInput], findings: Findings) -> None:
    for found in oversized_figures(label.truth.expected_output):
        findings.fail(label.truth.task_id, found)
    values = as_object(label.truth.expected_output.get("metrics")).values()
    nulls = sum(value is None for value in values)
    findings.add("figures", len(values) - nulls)
    findings.add("nulls", nulls)
    findings.add("needs_a_decision", int(label.certificate.get("decisions", 0) > 0))


def _no_skill_baseline(data: Mapping[str, Any]) -> JsonObject:
    rows, end = data["filing_facts"]["facts"], date.fromisoformat(data["period_end"])
    return {"metrics": normalise(read_statement(rows, "", end, duration_of(data["form_type"])))}


def _build(context: BuildContext, objects: FundamentalObjects) -> list[BuiltTask]:
    return build_tasks(context, objects, NAME, _candidate, _task)


SUBTASK = Subtask(
    name=NAME,
    prefix="fa_norm",
    input=FilingInput,
    answer=Normalization,
    definitions=merge_conventions(CONVENTIONS, NORMALISATION),
    cluster=by_input("symbol"),
    build=_build,
    rederive=_rederive,
    proof=_proof,
    scorers={Profile.PAPER: _paper, Profile.STRICT: _paper, Profile.CERTIFIED: _certified},
    verification=Verification(
        method=METHOD, parameters={"tolerance_pct": 5.0, "metrics": ["mae", "within_threshold_pct"]}
    ),
    baselines=Baselines(
        no_skill=Naive(("period_end", "form_type", "filing_facts"), _no_skill_baseline),
        trivial=Naive((), lambda data: {"metrics": dict.fromkeys(NORMALISED, 0.0)}),
        heuristic="typical ratios, no figures",
    ),
    examples=Examples(
        graded=lambda label: tuple(graded.normalization_examples(label)),
        exploits=exploits.normalization_exploits,
        shortcuts=Shortcuts(shortcuts.normalization_shortcuts),
        misreadings=explain.normalization_misreadings,
    ),
)
