"""The labels of monitoring, identification and stress, each derived again from what an agent sees.

The arithmetic is that of `risk_measures`, which shares no code with the engines that made the labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from finskillbench.domains import by_name
from finskillbench.domains.definitions import examine_definitions
from finskillbench.domains.examination import Subject, examining
from finskillbench.domains.risk.checks import measures as risk_measures
from finskillbench.domains.risk.checks.measures import LISTED, Position
from finskillbench.episode import Truth
from finskillbench.errors import EditionError
from finskillbench.findings import Findings

_SAME = 1e-9
"""A label's number differs from the one derived again by no more than this, in its own unit."""
_KEPT = 1e-9
"""A limit is kept by an excess of no more than this."""

Derivation = Callable[[Mapping[str, Any], Position, Truth, Findings], None]


def derive(subject: Subject, findings: Findings, sub_task: str, derivation: Derivation) -> None:
    """Derive the labels of one subtask again, where the edition has truth."""
    if not subject.edition.has_truth:
        findings.skip("the edition was handed out without truth")
        return
    known = by_name(sub_task).definitions or {}
    for episode in subject.of(sub_task):
        examine_definitions(episode, known, findings, needed=None if subject.built else ())
    for task_id, task_input, label in labels(subject, findings, sub_task):
        with examining(task_id, findings, fatal=subject.built):
            method = by_name(sub_task).method
            findings.expect(label.verification.get("method") == method, task_id, f"is not judged by {method}")
            derivation(task_input, risk_measures.position(task_input), label, findings)
            findings.add("labels")


def labels(subject: Subject, findings: Findings, sub_task: str) -> Iterator[tuple[str, Mapping[str, Any], Truth]]:
    """Task id, resolved input and label of each episode of a subtask; what cannot be read becomes a finding."""
    for episode in subject.of(sub_task):
        with examining(episode.task_id, findings, fatal=subject.built):
            label, task_input = subject.edition.truth(episode.task_id), subject.input_of(episode)
            for name, value in task_input.items():
                if isinstance(value, Mapping) and "ref" in value:
                    raise EditionError(
                        f"cannot be derived: {name} refers to {value['ref']}, which the edition does not hold"
                    )
            yield episode.task_id, task_input, label


def same(given: float, expected: float, where: str, what: str, findings: Findings, within: float = _SAME) -> None:
    """Add a defect unless two numbers agree, and keep the widest difference as a figure."""
    apart = abs(given - expected)
    findings.widest("greatest_difference", apart if math.isfinite(apart) else math.inf)
    findings.expect(apart <= within, where, f"{what} is {given:.12g} in the label and {expected:.12g} derived again")


def monitoring(subject: Subject, findings: Findings) -> None:
    """Every constraint's value, verdict, excess and worst name or sector, and the verdict on the whole."""
    derive(subject, findings, "constraint_monitoring", _monitoring)


def _monitoring(task_input: Mapping[str, Any], held: Position, label: Truth, findings: Findings) -> None:
    where, output = label.task_id, label.expected_output
    constraints = task_input["mandate"]["constraints"]
    entries = {entry["type"]: entry for entry in output["constraints"]}
    one_each = len(entries) == len(output["constraints"]) and set(entries) == {c["type"] for c in constraints}
    findings.expect(one_each, where, "its entries are not one for each constraint of the mandate")
    failing = 0
    for constraint in constraints:
        kind = constraint["type"]
        found = risk_measures.measured(constraint, task_input, held)
        fails = found.excess > _KEPT
        failing += fails
        findings.add("constraints")
        findings.add("failed", int(fails))
        entry = entries.get(kind)
        if entry is None:
            continue
        same(entry["value"], found.value, where, f"the value of {kind}", findings)
        findings.expect(entry["status"] == ("FAIL" if fails else "PASS"), where, f"{kind} is called {entry['status']}")
        stated = entry.get("violation_magnitude")
        findings.expect((stated is not None) is fails, where, f"{kind} has an excess though it passes, or has none")
        if stated is not None:
            same(stated, found.excess, where, f"the excess of {kind}", findings)
        for mine, its in (("limit", "value"), ("min", "min"), ("max", "max")):
            if entry.get(mine) is not None and its in constraint and kind != "long_only":
                findings.expect(entry[mine] == constraint[its], where, f"the {mine} of {kind} is not the mandate's")
        for name in ("worst_symbol", "worst_sector"):
            worst = entry.get(name)
            if worst is not None and found.by:
                attains = abs(found.by.get(worst, math.nan) - found.value) <= _SAME
                findings.expect(attains, where, f"{kind} is not worst at {worst}")
        findings.figures["least_distance_from_limit"] = min(
            findings.figures.get("least_distance_from_limit", math.inf), abs(found.excess)
        )
    findings.expect(output["overall_compliant"] is (failing == 0), where, "overall_compliant is wrong")
    findings.expect(output["violations_count"] == failing, where, f"counts {output['violations_count']} of {failing}")


def identification(subject: Subject, findings: Findings) -> None:
    """The listed exposures are those beyond the thresholds, the largest first, five at most."""
    derive(subject, findings, "risk_identification", _identification)


def _identification(task_input: Mapping[str, Any], held: Position, label: Truth, findings: Findings) -> None:
    where = label.task_id
    known = risk_measures.exposures(task_input, held)
    listed = label.expected_output["top_risk_exposures"]
    # Of several names of the largest weight one is listed, and any of them may be.
    singles = [each for each in known if each[0] == "single_name"]
    count = min(LISTED, len(known) - len(singles) + 1)
    findings.expect(len(listed) == count, where, f"lists {len(listed)} exposures of {count}")
    findings.expect(
        [entry.get("rank") for entry in listed] == [*range(1, len(listed) + 1)], where, "ranks are not 1, 2 ..."
    )
    wanted = [each for each in known if each not in singles[1:]]
    named = [(entry["type"], entry["subject"]) for entry in listed]
    findings.expect(len(set(named)) == len(named), where, "an exposure is listed twice")
    for entry, (kind, subject, size) in zip(listed, wanted, strict=False):
        same(entry["magnitude"], size, where, f"magnitude {entry['rank']}", findings)
        # Exposures of the same size may stand in either order.
        own = next((each for each in known if each[:2] == (entry["type"], entry["subject"])), None)
        findings.expect(
            own is not None and abs(own[2] - size) <= _SAME,
            where,
            f"rank {entry['rank']} is {entry['type']} {entry['subject']}, not {kind} {subject}",
        )
    for kind, _, _ in wanted[:LISTED]:
        findings.add(kind)


def stress(subject: Subject, findings: Findings) -> None:
    """P&L and both attributions, which add up to it."""
    derive(subject, findings, "stress_testing", _stress)
    losses, labelled = findings.figures.get("losses", 0), findings.figures.get("labels", 0)
    if subject.built and labelled and losses in {0, labelled}:
        findings.warn("stress_testing", f"{losses} of {labelled} scenarios lose money: the sign needs no thought")


def _stress(task_input: Mapping[str, Any], held: Position, label: Truth, findings: Findings) -> None:
    where, output = label.task_id, label.expected_output
    derived = risk_measures.stressed(task_input, held)
    pnl = output["estimated_pnl_pct"]
    same(pnl, derived.pnl, where, "the P&L", findings)
    findings.add("losses", int(pnl < 0))
    splits = (("by_sector", "sector", derived.by_sector), ("by_factor", "factor", derived.by_factor))
    for split, key, parts in splits:
        entries = output["attribution"][split]
        given = {entry[key]: entry["contribution_pct"] for entry in entries}
        complete = len(given) == len(entries) and set(given) == set(parts)
        findings.expect(complete, where, f"{split} does not name each {key} once")
        for name in given.keys() & parts.keys():
            same(given[name], parts[name], where, f"{split} of {name}", findings)
        apart = abs(math.fsum(given.values()) - pnl)
        findings.expect(apart <= _SAME, where, f"{split} misses the P&L by {apart:.1e}")
