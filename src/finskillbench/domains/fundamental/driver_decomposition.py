"""Driver decomposition: segments behind the change of revenue, and ratios behind the change of margins."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date
from itertools import pairwise
from typing import Any, Literal

from pydantic import Field

from finskillbench.domains.base import Answer, Baselines, Naive, Subtask, Verification, by_input
from finskillbench.domains.building import BuildContext, BuiltTask, merge_conventions
from finskillbench.domains.checks.agreement import AGREEMENT
from finskillbench.domains.examples import Examples, Label, Shortcuts
from finskillbench.domains.fundamental import explain
from finskillbench.domains.fundamental.examples import exploits, graded, shortcuts
from finskillbench.domains.fundamental.inputs import CONVENTIONS, PRECISION, QuartersInput, filing_facts, read_statement
from finskillbench.domains.fundamental.normalization import Unit, credit
from finskillbench.domains.fundamental.objects.pools import Candidate, assemble_task, build_tasks
from finskillbench.domains.fundamental.objects.reports import FundamentalObjects, ReportCase
from finskillbench.domains.fundamental.objects.work import count_decisions, meaningful, oversized_figures
from finskillbench.domains.fundamental.rederive import definitions
from finskillbench.domains.fundamental.rederive.answers import Figures, decomposed, margins
from finskillbench.engines.accounting import drivers as engine
from finskillbench.engines.accounting.periods import Duration
from finskillbench.episode import JsonObject, Profile, Prompt, Score, Truth
from finskillbench.findings import Findings
from finskillbench.scoring.values import as_number, as_text, clip, is_array, mean, objects, parameter, ramp, share
from finskillbench.sums import exact_sum

NAME = "driver_decomposition"
METHOD = "driver_f1_and_direction"
_RATIOS = ", ".join(f"{name} {metric}" for name, metric in {**engine.MARGINS, **engine.EXPENSE_RATIOS}.items())
DECOMPOSITION = {
    "period": "two consecutive quarters, flows of each quarter alone (the last of a year derived as above); "
    "every change is the current quarter less the prior one",
    "revenue_delta": "revenue of the current quarter less that of the prior one",
    "top_revenue_drivers": f"the segments of one axis, the first of {' and '.join(engine.AXES)} that names the same "
    f"segments in both quarters and adds up to revenue within {engine.SEGMENT_TOLERANCE:.0%} in both; a quarter that "
    "no filing breaks down alone is the difference of two years to date, or of a half and its second quarter in one "
    f"filing; at most the {engine.TOP_SEGMENTS} largest changes by absolute size, without those that did not change; "
    "contribution_pct = 100 magnitude_usd / revenue_delta. An empty array if no axis qualifies",
    "margin_drivers": f"each over revenue of its quarter: {_RATIOS}; delta_pp = 100 (current - prior), the "
    f"largest first, without ratios that are unknown in a quarter or moved by less than {engine.LEAST_DELTA_PP:g} pp, "
    f"and without cogs_ratio if its change only offsets that of gross_margin (their sum is below that limit)",
}

_TOP = 5
_SIZES = ("magnitude_usd", "contribution_pct")
_TOLERANCES = {
    "magnitude_usd": "revenue_magnitude_rel_tol",
    "contribution_pct": "revenue_contribution_rel_tol",
    "delta_pp": "margin_delta_pp_tol",
}
"""Verification keys for the tolerances of the size ramps; the default is 0.15."""

_LISTS: tuple[tuple[str, float, Mapping[str, Unit]], ...] = (
    ("top_revenue_drivers", 0.4, {"magnitude_usd": "usd", "contribution_pct": "percent"}),
    ("margin_drivers", 0.4, {"delta_pp": "percent"}),
)
"""Lists of drivers with their weight, and the sizes of an entry with their units."""

_Driver = Mapping[str, Any]
_Direction = Literal["increase", "decrease"]


class RevenueDriver(Answer):
    """One segment's part in the change of revenue."""

    driver: str = Field(description="Segment name, as filed.")
    type: Literal["product_segment", "geographic_segment"] = Field(description="Axis of the segment.")
    direction: _Direction = Field(description="Direction of the segment's revenue.")
    magnitude_usd: float = Field(description="Change of the segment's revenue, USD (unscaled); a fall is negative.")
    contribution_pct: float = Field(
        description="The segment's change as a percentage of the change of total revenue (36.35 is 36.35 %), signed."
    )


class MarginDriver(Answer):
    """One margin or expense ratio, each over revenue."""

    driver: Literal[
        "operating_margin",
        "gross_margin",
        "cogs_ratio",
        "sga_ratio",
        "rnd_ratio",
        "da_ratio",
        "interest_ratio",
        "tax_ratio",
    ] = Field(description="Name of the ratio.")
    type: Literal["margin", "expense_ratio"] = Field(description="Kind of ratio.")
    direction: _Direction = Field(description="Direction of the ratio.")
    delta_pp: float = Field(description="Change of the ratio in percentage points (-2.94 is -2.94 pp), signed.")


class DriverDecomposition(Answer):
    """Answer: the change of revenue and its drivers."""

    revenue_delta: float = Field(description="Current minus prior revenue, USD (unscaled); a fall is negative.")
    top_revenue_drivers: list[RevenueDriver] = Field(
        description="At most 5 segments in descending order of absolute change."
    )
    margin_drivers: list[MarginDriver] = Field(description="The ratios that changed.")


def _paper(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """driver_f1_and_direction: mean of the active terms, k = 5.

    (a) half recall, half precision of revenue-driver names among the first k, 0 if none is expected; (b) share of
    right directions over matched drivers, if any; (c) mean ramp of `magnitude_usd` and `contribution_pct` of matched
    drivers, if any; (d) half margin-driver recall, half directions of matched ones, if any is expected; (e) mean ramp
    of matched `delta_pp`, if any; (f) max(0, 1 - relerr) of `revenue_delta`, if both give one and the expected is not
    0. Names and directions are lower-cased and stripped; a missing name is "". The verification may set other
    tolerances than 0.15, and omit (c) and (e) by `include_driver_numeric_terms`.
    """
    del task_input
    expected = truth.expected_output
    parts: dict[str, float] = {}

    predicted, labelled = (
        _drivers(answer, "top_revenue_drivers")[:_TOP],
        _by_name(_drivers(expected, "top_revenue_drivers")[:_TOP]),
    )
    names = {_name(driver) for driver in predicted}
    sized = truth.verification.get("include_driver_numeric_terms") is not False
    matched = [(driver, labelled[_name(driver)]) for driver in predicted if _name(driver) in labelled]
    shared = len(names & labelled.keys())
    parts["revenue_drivers"] = 0.5 * share(shared, len(labelled)) + 0.5 * share(shared, len(names))
    if matched:
        parts["revenue_direction"] = _direction_accuracy(matched)
        sizes = [size for field in _SIZES for size in _ramps(matched, field, truth)]
        if sizes and sized:
            parts["revenue_magnitude"] = mean(sizes)

    ratios = _by_name(_drivers(expected, "margin_drivers"))
    if ratios:
        named = [(_name(driver), driver) for driver in _drivers(answer, "margin_drivers")]
        found = [(driver, ratios[name]) for name, driver in named if name in ratios]
        recall = share(len(ratios.keys() & {name for name, _ in named}), len(ratios))
        parts["margin_drivers"] = 0.5 * recall + 0.5 * _direction_accuracy(found)
        changes = _ramps(found, "delta_pp", truth)
        if changes and sized:
            parts["margin_delta"] = mean(changes)

    delta, wanted = as_number(answer.get("revenue_delta")), as_number(expected.get("revenue_delta"))
    if delta is not None and wanted:
        parts["revenue_delta"] = max(0.0, 1.0 - abs(delta - wanted) / abs(wanted))
    return Score(mean(list(parts.values())), parts)


def _certified(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """0.2 change of revenue (see `credit`) + 0.4 revenue drivers + 0.4 margin drivers (see `_list_credit`).

    An empty list in the label leaves its weight to the other parts, unless the answer omits it or invents entries.
    """
    del task_input
    expected = truth.expected_output
    parts: dict[str, tuple[float, float]] = {}
    delta = as_number(expected.get("revenue_delta"))
    if delta is not None:
        parts["revenue_delta"] = (0.2, credit(as_number(answer.get("revenue_delta")), delta, unit="usd"))
    for key, weight, sizes in _LISTS:
        wanted = _drivers(expected, key)
        predicted = _without_mirrors(_drivers(answer, key), wanted)
        if predicted or wanted or not is_array(answer.get(key)):
            parts[key] = (weight, _list_credit(predicted, wanted, sizes))
    total = exact_sum(weight for weight, _ in parts.values())
    value = exact_sum(weight * term for weight, term in parts.values()) / total if total else 0.0
    return Score(clip(value), {name: term for name, (_, term) in parts.items()}, value)


def _without_mirrors(predicted: Sequence[_Driver], wanted: Sequence[_Driver]) -> list[_Driver]:
    """Drop a correct cost ratio that only mirrors the label's gross margin, so that it costs nothing."""
    labels = _by_name(wanted)
    margin, ratio = (labels.get(name) for name in engine.MIRROR)
    if margin is None or ratio is not None:
        return list(predicted)
    mirror = {"driver": engine.MIRROR[1], "type": "expense_ratio", "delta_pp": -margin["delta_pp"]}
    mirror["direction"] = "decrease" if margin["delta_pp"] > 0 else "increase"
    return [
        driver
        for driver in predicted
        if _name(driver) != engine.MIRROR[1] or not _driver_credit(driver, mirror, {"delta_pp": "percent"})
    ]


def _list_credit(predicted: Sequence[_Driver], wanted: Sequence[_Driver], sizes: Mapping[str, Unit]) -> float:
    """Sum the credit of the expected drivers over the length of the longer list.

    A driver earns the mean credit of its sizes if its name, type, direction and signs are right. Of repeated names the
    worst entry counts.
    """
    entries: dict[str, list[_Driver]] = {_name(label): [] for label in wanted}
    for driver in predicted:
        if (name := _name(driver)) in entries:
            entries[name].append(driver)
    earned = math.fsum(_least_credit(entries[_name(label)], label, sizes) for label in wanted)
    longest = max(len(predicted), len(wanted))
    return earned / longest if longest else 0.0


def _least_credit(entries: Sequence[_Driver], wanted: _Driver, sizes: Mapping[str, Unit]) -> float:
    least = 1.0 if entries else 0.0
    for driver in entries:
        if not least:
            break  # stop at the first wrong entry: lists may be long
        least = min(least, _driver_credit(driver, wanted, sizes))
    return least


def _driver_credit(predicted: _Driver, wanted: _Driver, sizes: Mapping[str, Unit]) -> float:
    if any(as_text(predicted.get(key)) != as_text(wanted.get(key)) for key in ("type", "direction")):
        return 0.0
    earned: list[float] = []
    for field, unit in sizes.items():
        expected, size = as_number(wanted.get(field)), as_number(predicted.get(field))
        if expected is not None:
            signed = size is not None and (size > 0) == (expected > 0) and (size < 0) == (expected < 0)
            earned.append(credit(size, expected, unit=unit) if signed else 0.0)
    return mean(earned)


def _drivers(source: JsonObject, key: str) -> list[_Driver]:
    return objects(source.get(key))


def _name(driver: _Driver) -> str:
    return _plain(driver.get("driver"))


def _plain(value: object) -> str:
    return value.lower().strip() if isinstance(value, str) else ""


def _by_name(drivers: Sequence[_Driver]) -> dict[str, _Driver]:
    """Map names to drivers; the last of equal names counts."""
    return {_name(driver): driver for driver in drivers}


def _direction_accuracy(matched: Sequence[tuple[_Driver, _Driver]]) -> float:
    right = sum(_plain(stated.get("direction")) == _plain(wanted.get("direction")) != "" for stated, wanted in matched)
    return share(right, len(matched))


def _ramps(matched: Sequence[tuple[_Driver, _Driver]], field: str, truth: Truth) -> list[float]:
    """Return the ramps of one field over matched drivers whose label has it; 0 if the answer lacks it."""
    tolerance = parameter(truth.verification, _TOLERANCES[field], 0.15)
    return [
        ramp(as_number(predicted.get(field)), amount, tolerance=tolerance)
        for predicted, wanted in matched
        if (amount := as_number(wanted.get(field))) is not None
    ]


def _candidate(case: ReportCase, least: Mapping[str, int]) -> Candidate | None:
    """Derive the label of a report's quarter; None without both revenues, or without an axis and enough ratios."""
    report, prior_end = case.report, case.before.end
    answer = engine.drivers(case.quarter, case.before, case.segments, case.segments_before)
    axis = engine.explaining_axis(case.quarter, case.before, case.segments, case.segments_before)
    supported = axis is not None or len(answer["margin_drivers"]) >= least["ratios"]
    if prior_end is None or not supported or not answer["revenue_delta"]:
        return None
    raw_prior_end = case.source.preceding(report.period_end, definitions.QUARTER_APART)
    now, before = definitions.comparable_quarters(case.source, report.period_end, raw_prior_end)
    shown = case.segments.get(axis or "", {})
    changes = case.raw_segments.explaining(axis, shown, report.period_end, prior_end, report.filed)
    return Candidate(
        report,
        answer,
        decomposed(now, before, changes),
        (report.symbol, report.form, report.filed.year, axis, answer["revenue_delta"] > 0),
        count_decisions(case.filed_values, [case.quarter, case.before], engine.METRICS)
        + 2 * len(answer["top_revenue_drivers"]),
        axis is not None or len(answer["margin_drivers"]) > least["ratios"],
        prior_end,
        raw_prior_end,
        _doubtful(case, axis, now, before),
        meaningful(answer, case.quarter, case.before),
    )


def _doubtful(case: ReportCase, axis: str | None, now: Figures, before: Figures) -> bool:
    """Return True if rounding decides which ratios moved, or which segment is listed last."""
    changes = margins(now, before).values()
    if any(abs(abs(change) - engine.LEAST_DELTA_PP) < 1e-6 for change in changes):
        return True
    if axis is None:
        return False
    segments, segments_before = case.segments[axis], case.segments_before[axis]
    sizes = sorted((abs(segments[name] - segments_before[name]) for name in segments), reverse=True)
    return len(sizes) > _TOP and sizes[_TOP - 1] == sizes[_TOP] != 0


def _task(label: Candidate, level: str) -> BuiltTask:
    report, prior_end = label.report, label.prior_end
    prompt = Prompt(
        f"Explain how revenue and margins of {report.symbol} changed from the quarter that ended on {prior_end} to the "
        f"one that ended on {report.period_end}, as public on {report.filed}: the change of revenue, the segments "
        "behind it, and the ratios that moved. conventions defines which segments and ratios count.",
        "Submit a JSON object with revenue_delta, top_revenue_drivers (driver, type, direction, magnitude_usd, "
        f"contribution_pct) and margin_drivers (driver, type, direction, delta_pp). {PRECISION}",
    )
    fields = {"current_period_end": report.period_end.isoformat(), "prior_period_end": f"{prior_end}"}
    task_id = f"{SUBTASK.prefix}_{report.symbol}_{prior_end}_to_{report.period_end}"
    return assemble_task(label, level, NAME, task_id, fields, DECOMPOSITION, prompt)


def _rederive(task_input: QuartersInput) -> JsonObject:
    rows, segments = filing_facts(task_input)
    facts = definitions.VisibleFacts(rows)
    end, prior_end = (date.fromisoformat(task_input[f]) for f in ("current_period_end", "prior_period_end"))
    now, before = definitions.comparable_quarters(facts, end, prior_end)
    return decomposed(now, before, definitions.segment_changes(segments, facts, end, prior_end))


def _proof(label: Label[QuartersInput], findings: Findings) -> None:
    """Check that the quarters are consecutive, drivers are sorted by size, and figures are plausible."""
    where, expected = label.truth.task_id, label.truth.expected_output
    for found in oversized_figures(expected):
        findings.fail(where, found)
    end, prior_end = (date.fromisoformat(label.task_input[name]) for name in ("current_period_end", "prior_period_end"))
    found = definitions.VisibleFacts(filing_facts(label.task_input)[0]).preceding(end, definitions.QUARTER_APART)
    findings.expect(found == prior_end, where, f"{prior_end} does not end the quarter before")
    for key, size in (("top_revenue_drivers", "magnitude_usd"), ("margin_drivers", "delta_pp")):
        sizes = [abs(entry[size]) for entry in expected[key]]
        ordered = all(right - left <= AGREEMENT * max(1.0, left) for left, right in pairwise(sizes))
        findings.expect(ordered, where, f"does not list the largest {size} first")
    segments = expected["top_revenue_drivers"]
    findings.add(segments[0]["type"] if segments else "no_axis")
    findings.add("ratios", len(expected["margin_drivers"]))
    findings.add("needs_a_decision", int(label.certificate.get("decisions", 0) > 0))


def _no_skill_baseline(data: Mapping[str, Any]) -> JsonObject:
    rows, segments = data["filing_facts"]["facts"], data["filing_facts"]["segments"]
    days = [date.fromisoformat(data[name]) for name in ("current_period_end", "prior_period_end")]
    now, before = (read_statement(rows, "", day, Duration.QUARTERLY) for day in days)
    return engine.drivers(now, before, *(engine.segments_at(segments, "", day) for day in days))


def _build(context: BuildContext, objects: FundamentalObjects) -> list[BuiltTask]:
    return build_tasks(context, objects, NAME, _candidate, _task)


SUBTASK = Subtask(
    name=NAME,
    prefix="fa_dd",
    input=QuartersInput,
    answer=DriverDecomposition,
    definitions=merge_conventions(CONVENTIONS, DECOMPOSITION),
    cluster=by_input("symbol"),
    build=_build,
    rederive=_rederive,
    proof=_proof,
    scorers={Profile.PAPER: _paper, Profile.STRICT: _paper, Profile.CERTIFIED: _certified},
    verification=Verification(
        method=METHOD,
        parameters={"top_k": _TOP, "metrics": ["driver_recall_at_5", "direction_accuracy", "margin_driver_f1"]},
    ),
    baselines=Baselines(
        no_skill=Naive(("current_period_end", "prior_period_end", "filing_facts"), _no_skill_baseline),
        trivial=Naive((), lambda data: {"revenue_delta": 0.0, "top_revenue_drivers": [], "margin_drivers": []}),
        heuristic="every ratio increases by 0.05 pp",
    ),
    examples=Examples(
        graded=lambda label: tuple(graded.driver_decomposition_examples(label)),
        exploits=exploits.driver_decomposition_exploits,
        shortcuts=Shortcuts(shortcuts.driver_decomposition_shortcuts),
        misreadings=explain.driver_decomposition_misreadings,
    ),
)
