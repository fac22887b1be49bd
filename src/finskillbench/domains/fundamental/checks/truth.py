"""The labels of normalization, earnings quality and driver decomposition, each derived again from what an agent sees.

The arithmetic is that of `fundamental_measures`, which shares no code with the engines that made the labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from itertools import pairwise
from typing import Any

from finskillbench.domains import by_name
from finskillbench.domains.definitions import examine_definitions
from finskillbench.domains.examination import Subject, examining
from finskillbench.domains.fundamental.checks import measures
from finskillbench.domains.fundamental.checks.measures import Facts
from finskillbench.domains.risk.checks.truth import labels
from finskillbench.episode import Truth
from finskillbench.findings import Findings
from finskillbench.scoring.values import mapping

_SAME = 1e-9
"""Largest relative difference of a label's number from the one derived again; of numbers below 1 the absolute one."""

Derivation = Callable[[Mapping[str, Any], Facts, Truth, Findings], None]


def normalization(subject: Subject, findings: Findings) -> None:
    """Ten metrics of the quarter of a 10-Q or of the year of any other form."""
    _derive(subject, findings, "normalization", _normalization)


def _normalization(task_input: Mapping[str, Any], facts: Facts, label: Truth, findings: Findings) -> None:
    period = measures.period_of(task_input["form_type"])
    derived = measures.normalised(facts.statement(date.fromisoformat(task_input["period_end"]), period))
    stated = label.expected_output["metrics"]
    findings.expect(set(stated) == set(derived), label.task_id, "does not name each of the ten metrics once")
    for name in stated.keys() & derived.keys():
        _compare(stated[name], derived[name], label, name, findings)
        findings.add("figures", int(derived[name] is not None))
        findings.add("nulls", int(derived[name] is None))


def earnings_quality(subject: Subject, findings: Findings) -> None:
    """Nine signals and their sum, the M-score and its verdict, two ratios and the flags that they raise."""
    _derive(subject, findings, "earnings_quality", _earnings_quality)


def _earnings_quality(task_input: Mapping[str, Any], facts: Facts, label: Truth, findings: Findings) -> None:
    where, output = label.task_id, label.expected_output
    end = date.fromisoformat(task_input["period_end"])
    ends = end, facts.before(end, "year")
    now, then = (facts.statement(day, "quarterly") for day in ends)
    this_year, year_before = (facts.statement(day, "annual") for day in ends)
    derived = measures.quality(now, then, (this_year, year_before))
    for name in ("piotroski_score", "beneish_m_score", "accruals_ratio", "income_quality_ratio"):
        _compare(output[name], derived[name], label, name, findings)
    signals, stated = derived["piotroski_components"], output["piotroski_components"]
    findings.expect(set(stated) == set(signals), where, "does not name each of the nine signals once")
    for name in stated.keys() & signals.keys():
        findings.expect(
            stated[name] == signals[name] and not isinstance(stated[name], bool),
            where,
            f"{name} is {stated[name]} in the label and {signals[name]} derived again",
        )
    findings.expect(output["beneish_flag"] is derived["beneish_flag"], where, "beneish_flag is wrong")
    raised = output["flags"]
    findings.expect(
        sorted(raised) == derived["flags"],
        where,
        f"flags are {', '.join(sorted(raised)) or 'none'} in the label and {', '.join(derived['flags']) or 'none'} "
        "derived again",
    )
    findings.add("scores", int(derived["piotroski_score"] is not None))
    findings.add("m_scores", int(derived["beneish_m_score"] is not None))
    for name in derived["flags"]:
        findings.add(name)


def driver_decomposition(subject: Subject, findings: Findings) -> None:
    """The change of revenue, the segments of the axis that explains it, and the ratios that moved."""
    _derive(subject, findings, "driver_decomposition", _driver_decomposition)


def _driver_decomposition(task_input: Mapping[str, Any], facts: Facts, label: Truth, findings: Findings) -> None:
    where, output = label.task_id, label.expected_output
    ends = [date.fromisoformat(task_input[name]) for name in ("current_period_end", "prior_period_end")]
    findings.expect(facts.before(ends[0], "quarter") == ends[1], where, f"{ends[1]} does not end the quarter before")
    now, then = (facts.statement(end, "quarterly") for end in ends)
    late, early = (measures.breakdowns(task_input["filing_facts"]["segments"], end) for end in ends)
    delta = now["revenue"] - then["revenue"]
    _compare(output["revenue_delta"], delta if math.isfinite(delta) else None, label, "revenue_delta", findings)
    axis = measures.explaining(now, then, late, early)
    changes = {} if axis is None else measures.revenue_drivers(late[axis], early[axis])
    listed = output["top_revenue_drivers"]
    _compare_drivers(listed, changes, label, "magnitude_usd", findings)
    for entry in listed:
        findings.expect(entry["type"] == axis, where, f"{entry['driver']} is a {entry['type']}, the axis is {axis}")
        share = 100.0 * changes.get(entry["driver"], math.nan) / delta if delta else math.nan
        known = share if math.isfinite(share) else None
        _compare(entry["contribution_pct"], known, label, f"the contribution of {entry['driver']}", findings)
    ratios = measures.margin_drivers(now, then)
    _compare_drivers(output["margin_drivers"], ratios, label, "delta_pp", findings)
    for entry in output["margin_drivers"]:
        kind = "margin" if entry["driver"] in {"operating_margin", "gross_margin"} else "expense_ratio"
        findings.expect(entry["type"] == kind, where, f"{entry['driver']} is called a {entry['type']}")
    findings.add(axis or "no_axis")
    findings.add("ratios", len(ratios))


def _compare_drivers(
    listed: Sequence[Mapping[str, Any]], changes: Mapping[str, float], label: Truth, size: str, findings: Findings
) -> None:
    """The same drivers, each with its size and direction, the largest first (equal ones in either order)."""
    names = [entry["driver"] for entry in listed]
    same = len(set(names)) == len(names) and set(names) == set(changes)
    findings.expect(same, label.task_id, f"lists {', '.join(names) or 'none'}, derived {', '.join(changes) or 'none'}")
    for entry in listed:
        change = changes.get(entry["driver"])
        if change is not None:
            _compare(entry[size], change, label, f"{size} of {entry['driver']}", findings)
            direction = "increase" if change > 0 else "decrease"
            findings.expect(entry["direction"] == direction, label.task_id, f"{entry['driver']} is an {direction}")
    sizes = [abs(entry[size]) for entry in listed]
    ordered = all(right - left <= _SAME * max(1.0, left) for left, right in pairwise(sizes))
    findings.expect(ordered, label.task_id, f"does not list the largest {size} first")


def _compare(stated: object, derived: float | None, label: Truth, what: str, findings: Findings) -> None:
    """Add a defect unless two numbers agree, or neither is known; keep the widest difference as a figure."""
    if stated is None or derived is None:
        told = f"{what} is {stated} in the label and {derived} derived again"
        findings.expect(stated is derived, label.task_id, told)
        return
    if isinstance(stated, bool) or not isinstance(stated, int | float):
        findings.fail(label.task_id, f"{what} is no number")
        return
    apart = abs(stated - derived) / max(1.0, abs(derived))
    findings.widest("greatest_difference", apart if math.isfinite(apart) else math.inf)
    findings.expect(
        apart <= _SAME, label.task_id, f"{what} is {stated:.12g} in the label and {derived:.12g} derived again"
    )


def _derive(subject: Subject, findings: Findings, sub_task: str, derivation: Derivation) -> None:
    """Derive the labels of one subtask again, where the edition has truth."""
    if not subject.edition.has_truth:
        findings.skip("the edition was handed out without truth")
        return
    if not subject.of(sub_task):
        findings.skip(f"the edition has no episodes of {sub_task.replace('_', ' ')}")
        return
    known = by_name(sub_task).definitions or {}
    for episode in subject.of(sub_task):
        examine_definitions(episode, known, findings, needed=None if subject.built else ())
    for task_id, task_input, label in labels(subject, findings, sub_task):
        with examining(task_id, findings, fatal=subject.built):
            method = by_name(sub_task).method
            findings.expect(label.verification.get("method") == method, task_id, f"is not judged by {method}")
            if subject.built:
                _examine_proof(label, findings)
            derivation(task_input, Facts(task_input["filing_facts"]["facts"]), label, findings)
            findings.add("labels")


def _examine_proof(label: Truth, findings: Findings) -> None:
    """The truth states a second derivation that agreed."""
    proof = mapping(label.proof)
    agreed = proof.get("kind") == "rederived" and 0 <= proof.get("difference", math.nan) <= proof.get("tolerance", 0.0)
    findings.expect(agreed, label.task_id, "its proof does not state a second derivation that agreed")
