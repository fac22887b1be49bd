"""Earnings quality: Piotroski's F-score, Beneish's M-score, accruals and the flags they raise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date
from typing import Any, Literal

from pydantic import Field

from finskillbench.domains.base import Answer, Baselines, Naive, Subtask, Verification, by_input
from finskillbench.domains.building import BuildContext, BuiltTask, merge_conventions
from finskillbench.domains.examples import Examples, Label, Shortcuts
from finskillbench.domains.fundamental import explain
from finskillbench.domains.fundamental.examples import exploits, graded, shortcuts
from finskillbench.domains.fundamental.inputs import (
    CONVENTIONS,
    PRECISION,
    YEAR_BEFORE,
    FilingInput,
    a_year_before,
    filing_facts,
    read_statement,
)
from finskillbench.domains.fundamental.normalization import credit, left_null
from finskillbench.domains.fundamental.objects import work
from finskillbench.domains.fundamental.objects.pools import Candidate, assemble_task, build_tasks
from finskillbench.domains.fundamental.objects.reports import FundamentalObjects, ReportCase
from finskillbench.domains.fundamental.rederive.answers import quality
from finskillbench.domains.fundamental.rederive.definitions import VisibleFacts, a_year_apart
from finskillbench.engines.accounting import quality as engine
from finskillbench.engines.accounting.periods import Duration
from finskillbench.episode import JsonObject, Profile, Prompt, Score, Truth, lowest_raw
from finskillbench.findings import Findings
from finskillbench.scoring.values import (
    as_array,
    as_boolean,
    as_number,
    as_object,
    clip,
    is_array,
    json_equal,
    mean,
    parameter,
    ramp,
    set_f1,
    share,
)
from finskillbench.sums import exact_sum

NAME = "earnings_quality"
METHOD = "earnings_quality_composite"
_MODEL = " ".join(f"{weight:+g} {name}" for name, weight in engine.BENEISH_COEFFICIENTS.items())
QUALITY = {
    "period": "always the quarter that ends on period_end (the fourth quarter of a 10-K), flows of that quarter alone, "
    "against the same quarter a year before",
    "year_before": YEAR_BEFORE,
    "piotroski_components": "1 where true, 0 where not: roa_positive: net_income / total_assets > 0; cfo_positive: "
    "operating_cash_flow > 0; delta_roa_positive: net_income / total_assets rose; accruals_negative: "
    "operating_cash_flow > net_income; delta_leverage_negative: long_term_debt / total_assets fell; "
    "delta_current_ratio_positive: current_assets / current_liabilities rose; no_dilution: diluted_shares are not "
    "above those of the year before, both of the quarter or, if one of these is not filed (fourth quarters), both "
    "of the fiscal year that ends with it (if one count is a whole multiple of the other, from 2 on and within "
    f"{engine.WHOLE:.0%}, and stockholders_equity is above 0 and rose by less than {engine.ISSUE - 1:.0%}, shares were "
    "split or consolidated, and the earlier count is multiplied or divided by that multiple); "
    "delta_gross_margin_positive: gross_profit / revenue rose; "
    "delta_asset_turnover_positive: revenue / total_assets rose",
    "piotroski_score": "the sum of the nine components; null if one of them is null",
    "beneish_m_score": f"M = {engine.BENEISH_CONSTANT:g} {_MODEL}; now over a year before: DSRI receivables / revenue, "
    "AQI 1 - (current_assets + ppe_net) / total_assets, SGI revenue, SGAI sga / revenue, LVGI (long_term_debt + "
    "current_liabilities) / total_assets; a year before over now: GMI gross_profit / revenue, DEPI "
    "depreciation_amortization / (depreciation_amortization + ppe_net); TATA (net_income - operating_cash_flow) / "
    "total_assets; null if one of them cannot be computed",
    "beneish_flag": f"M > {engine.MANIPULATION_ABOVE:g}; null if M is null",
    "accruals_ratio": "(net_income - operating_cash_flow) / total_assets",
    "income_quality_ratio": "operating_cash_flow / net_income; null if net_income is 0",
    "flags": f"low_piotroski: the score is known and <= {engine.LOW_PIOTROSKI}; beneish_manipulation_flag: "
    f"beneish_flag is true; high_accruals: accruals_ratio > {engine.HIGH_ACCRUALS:g}; negative_income_quality: "
    "income_quality_ratio < 0",
}

_RATIO_TOLERANCES = {"beneish_m_score": 0.05, "accruals_ratio": 0.25, "income_quality_ratio": 0.05}
_FLAG_WEIGHT = 0.3
_BENEISH_WEIGHT = 0.3
_STRICT_RATIO_WEIGHT = 0.3

_EVIDENCE = ("accruals_ratio", "income_quality_ratio")
_WEIGHTS = {"signals": 0.64, "beneish": 0.18, "ratios": 0.09, "flags": 0.09}
_WRONG_SIGNAL = 2 / 3
"""Share of the signals' credit lost per wrong signal: the sum and its conclusion are wrong too."""
_WRONG_TOTAL = 0.8
_WRONG_FLAG = 0.5
_FIGURE_OF = {
    "low_piotroski": "piotroski_score",
    "beneish_manipulation_flag": "beneish_m_score",
    "high_accruals": "accruals_ratio",
    "negative_income_quality": "income_quality_ratio",
}
"""Flag -> the figure it depends on."""

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
    no_dilution: _Signal = Field(description="1 if diluted shares did not rise, else 0.")
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


def _paper(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """earnings_quality_composite: weighted mean over the active terms, rounded to 4 decimals.

    Share of the expected components equal, an expected null being matched by null or absence (weight
    `piotroski_weight`, else `component_weight`, 0.4); `beneish_flag` equal (`beneish_flag_weight`, 0.3), only if both
    sides give one; F1 of the sets of flags (`flag_f1_weight`, 0.3), 1 if both are empty; mean ramp of the ratios that
    both sides give, only if `numeric_ratio_weight` > 0. Terms that an answer omits drop out, so an empty answer can
    earn 0.43: as published.
    """
    del task_input
    return _score(answer, truth, parameter(truth.verification, "numeric_ratio_weight", 0.0, positive=False))


def _strict(answer: JsonObject, truth: Truth, _: JsonObject) -> Score:
    """Score as `_paper`, with a weight of 0.3 for the ratios."""
    return _score(answer, truth, _STRICT_RATIO_WEIGHT)


def _certified(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """0.64 signals + 0.18 Beneish + 0.09 ratios + 0.09 flags.

    Signals: see `_signals`. Beneish: the `credit` of the M-score, half of it scaled by that of the accruals ratio, one
    of its terms; halved if beneish_flag is wrong; its weight goes to the others where both are correctly null. Ratios:
    mean credit of accruals_ratio and income_quality_ratio. Flags: F1 of the sets, each flag worth the credit of its
    figure; the worst of these if both sets are empty. A value where the label is null, or a missing key, is wrong.
    """
    del task_input
    expected = truth.expected_output
    figures = _figures(answer, expected)
    ratios = mean([figures[name] for name in _EVIDENCE if name in figures])
    signals = _signals(answer, expected)
    parts = {"signals": clip(signals), "ratios": ratios, "flags": _flags_earned(answer, expected, figures)}
    flag = as_boolean(expected.get("beneish_flag"))
    if "beneish_m_score" in figures:
        parts["beneish"] = figures["beneish_m_score"] * (
            1.0 if as_boolean(answer.get("beneish_flag")) is flag else _WRONG_FLAG
        )
    elif not (left_null(answer, "beneish_m_score") and left_null(answer, "beneish_flag")):
        parts["beneish"] = 0.0
    if not any(name in figures for name in _EVIDENCE):
        del parts["ratios"]
    total = math.fsum(_WEIGHTS[name] for name in parts)
    value = clip(math.fsum(_WEIGHTS[name] * term for name, term in parts.items()) / total)
    return Score(value, parts, value or lowest_raw(_WEIGHTS["signals"] * signals / total))


def _figures(answer: JsonObject, expected: JsonObject) -> dict[str, float]:
    """Return the credit of each figure behind the flags that the label knows."""
    earned: dict[str, float] = {}
    for name in _FIGURE_OF.values():
        stated, wanted = as_number(answer.get(name)), as_number(expected.get(name))
        if wanted is not None:
            unit = "score" if name == "beneish_m_score" else "ratio"
            earned[name] = float(stated == wanted) if name == "piotroski_score" else credit(stated, wanted, unit=unit)
    if {"beneish_m_score", "accruals_ratio"} <= earned.keys():
        earned["beneish_m_score"] *= (1.0 + earned["accruals_ratio"]) / 2.0
    return earned


def _signals(answer: JsonObject, expected: JsonObject) -> float:
    """Return the lesser of 2 b - 1 and 1 - 2 w / 3, times 0.8 if the score is wrong; negative values count as 0.

    b is the mean of the shares right among expected 1s and 0s, so constants earn nothing; w counts wrong and invented
    signals.
    """
    predicted, labels = as_object(answer.get("piotroski_components")), as_object(expected.get("piotroski_components"))
    right: dict[int, list[bool]] = {}
    for name, value in labels.items():
        wanted = _binary(value)
        if wanted is not None:
            right.setdefault(wanted, []).append(_binary(predicted.get(name)) == wanted)
    known = sum(map(len, right.values()))
    invented = sum(value is None and not left_null(predicted, name) for name, value in labels.items())
    wrong = known - sum(map(sum, right.values())) + invented
    balanced = mean([share(sum(hits), len(hits)) for hits in right.values()])
    earned = min(2.0 * balanced - 1.0, 1.0 - _WRONG_SIGNAL * wrong)
    total = as_number(expected.get("piotroski_score"))
    same = left_null(answer, "piotroski_score") if total is None else as_number(answer.get("piotroski_score")) == total
    return earned * (1.0 if same or earned < 0 else _WRONG_TOTAL)


def _flags_earned(answer: JsonObject, expected: JsonObject, figures: Mapping[str, float]) -> float:
    """Return F1 of the flags weighted by the credit of their figures; if no flag is due, the worst of these."""
    if not is_array(answer.get("flags")):
        return 0.0
    predicted, wanted = _flags(answer), _flags(expected)
    if not predicted and not wanted:
        return min(figures.values(), default=1.0)
    earned = math.fsum(figures.get(_FIGURE_OF.get(flag, ""), 1.0) for flag in predicted & wanted)
    return 2.0 * earned / (len(predicted) + len(wanted))


def _score(answer: JsonObject, truth: Truth, ratio_weight: float) -> Score:
    expected = truth.expected_output
    parts: dict[str, tuple[float, float]] = {}
    labels = as_object(expected.get("piotroski_components"))
    if labels:
        weight = parameter(truth.verification, "component_weight", 0.4, positive=False)
        weight = parameter(truth.verification, "piotroski_weight", weight, positive=False)
        signals = as_object(answer.get("piotroski_components"))
        right = sum(_same_signal(signals.get(key), value) for key, value in labels.items())
        parts["components"] = (weight, share(right, len(labels)))
    flag, wanted = as_boolean(answer.get("beneish_flag")), as_boolean(expected.get("beneish_flag"))
    if flag is not None and wanted is not None:
        weight = parameter(truth.verification, "beneish_flag_weight", _BENEISH_WEIGHT, positive=False)
        parts["beneish_flag"] = (weight, float(flag == wanted))
    weight = parameter(truth.verification, "flag_f1_weight", _FLAG_WEIGHT, positive=False)
    parts["flags"] = (weight, set_f1(_flags(answer), _flags(expected)))
    tolerances = as_object(truth.verification.get("numeric_tolerances"))
    ramps = [
        ramp(predicted, value, tolerance=parameter(tolerances, key, tolerance))
        for key, tolerance in _RATIO_TOLERANCES.items()
        if (value := as_number(expected.get(key))) is not None and (predicted := as_number(answer.get(key))) is not None
    ]
    if ratio_weight > 0 and ramps:
        parts["ratios"] = (ratio_weight, mean(ramps))
    total = exact_sum(weight for weight, _ in parts.values())
    value = exact_sum(weight * term for weight, term in parts.values()) / total if total else 0.0
    return Score(round(value, 4), {name: term for name, (_, term) in parts.items()})


def _same_signal(predicted: object, wanted: object) -> bool:
    """Compare a signal with the truth's 0/1 or false/true in either spelling; None matches an absent key."""
    signal = _binary(wanted)
    return json_equal(predicted, wanted) if signal is None else _binary(predicted) == signal


def _binary(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and value in (0, 1) else None


def _flags(source: JsonObject) -> set[str]:
    return {flag for flag in as_array(source.get("flags")) if isinstance(flag, str)}


def _candidate(case: ReportCase, least: Mapping[str, int]) -> Candidate | None:
    """Derive the label of a quarter; None without both ratios, with too few signals, or with equal ones (a constant is
    right).
    """
    report, answer = case.report, engine.quality_answer(case.quarter, case.year_before)
    signals = answer["piotroski_components"]
    known = [signal for signal in signals.values() if signal is not None]
    if len(known) < least["signals"] or len(set(known)) < 2 or any(answer[name] is None for name in _EVIDENCE):
        return None
    now, before, prior_end = a_year_apart(case.source, report.period_end)
    again = quality(now, before)
    outcome = (round(4 * sum(known) / len(known)), answer["beneish_flag"], tuple(answer["flags"]))
    return Candidate(
        report,
        answer,
        again.answer,
        (report.symbol, report.form, report.filed.year, *outcome),
        work.count_decisions(case.filed_values, [case.quarter, case.year_before], engine.METRICS),
        answer["beneish_m_score"] is not None and answer["piotroski_score"] is not None,
        case.year_before.end,
        prior_end,
        again.doubtful,
        work.meaningful(answer, case.quarter, case.year_before)
        and work.indices_meaningful(case.quarter, case.year_before),
    )


def _task(label: Candidate, level: str) -> BuiltTask:
    report = label.report
    prompt = Prompt(
        f"Assess the earnings quality of {report.symbol} in the quarter that ended on {report.period_end}, as public "
        f"on {report.filed}, the day its {report.form} was filed: Piotroski's nine signals and their sum, Beneish's "
        "M-score, the accruals ratio and the income quality ratio, and the concerns they raise. conventions defines "
        "each of them and its threshold.",
        "Submit a JSON object with piotroski_score, piotroski_components, beneish_m_score, beneish_flag, "
        f"accruals_ratio, income_quality_ratio and flags. {PRECISION} Give null for what cannot be computed.",
    )
    fields = {"period_end": report.period_end.isoformat()}
    task_id = f"{SUBTASK.prefix}_{report.symbol}_{report.period_end}"
    return assemble_task(label, level, NAME, task_id, fields, QUALITY, prompt)


def _rederive(task_input: FilingInput) -> JsonObject:
    facts = VisibleFacts(filing_facts(task_input)[0])
    now, before, _ = a_year_apart(facts, date.fromisoformat(task_input["period_end"]))
    return quality(now, before).answer


def _proof(label: Label[FilingInput], findings: Findings) -> None:
    expected = label.truth.expected_output
    for found in work.oversized_figures(expected):
        findings.fail(label.truth.task_id, found)
    findings.add("scores", int(as_number(expected.get("piotroski_score")) is not None))
    findings.add("m_scores", int(as_number(expected.get("beneish_m_score")) is not None))
    findings.add("needs_a_decision", int(label.certificate.get("decisions", 0) > 0))
    for name in sorted(_flags(expected)):
        findings.add(name)


def _trivial(data: Mapping[str, object]) -> JsonObject:
    del data
    return {
        "piotroski_score": len(engine.COMPONENTS),
        "piotroski_components": dict.fromkeys(engine.COMPONENTS, 1),
        "beneish_m_score": -2.5,
        "beneish_flag": False,
        "accruals_ratio": 0.0,
        "income_quality_ratio": 1.0,
        "flags": [],
    }


def _no_skill_baseline(data: Mapping[str, Any]) -> JsonObject:
    rows, end = data["filing_facts"]["facts"], date.fromisoformat(data["period_end"])
    now, before = (read_statement(rows, "", day, Duration.QUARTERLY) for day in (end, a_year_before(rows, end)))
    return engine.quality_answer(now, before)


def _build(context: BuildContext, objects: FundamentalObjects) -> list[BuiltTask]:
    return build_tasks(context, objects, NAME, _candidate, _task)


SUBTASK = Subtask(
    name=NAME,
    prefix="fa_eq",
    input=FilingInput,
    answer=EarningsQuality,
    definitions=merge_conventions(CONVENTIONS, QUALITY),
    cluster=by_input("symbol"),
    build=_build,
    rederive=_rederive,
    proof=_proof,
    scorers={Profile.PAPER: _paper, Profile.STRICT: _strict, Profile.CERTIFIED: _certified},
    verification=Verification(
        method=METHOD,
        parameters={
            "component_weight": 0.4,
            "beneish_flag_weight": 0.3,
            "flag_f1_weight": 0.3,
            "metrics": ["piotroski_mae", "beneish_flag_accuracy", "flag_f1"],
        },
    ),
    baselines=Baselines(
        no_skill=Naive(("period_end", "filing_facts"), _no_skill_baseline),
        trivial=Naive((), _trivial),
        heuristic="an ordinary company, no flags, typical ratios",
    ),
    examples=Examples(
        graded=lambda label: tuple(graded.earnings_quality_examples(label)),
        exploits=exploits.earnings_quality_exploits,
        shortcuts=Shortcuts(shortcuts.earnings_quality_shortcuts),
        misreadings=explain.earnings_quality_misreadings,
    ),
)
