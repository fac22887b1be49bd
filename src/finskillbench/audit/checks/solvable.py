"""Whether the truth can be reached by what an agent gets: the printed fields, read through the real tools."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NotRequired, get_origin, get_type_hints

from finskillbench.audit.seen import REFERENCE, Seen, unresolved
from finskillbench.findings import Findings
from finskillbench.harness.conditions import Condition

_RIGHT = 0.999
"""The certified score from which on an answer counts as the truth: what rounding may cost."""


def solvable(seen: Seen, findings: Findings) -> None:
    """The truth follows from the fields that the prompt names, as `get_task_data` returns them.

    Facts of filings are those that scripts of skills are given; `Seen.fields` holds them to the facts as filed.
    Where the subtask has a second derivation, it is run on nothing but what the tools returned and must give every leaf
    of the truth. Where it has none, since an optimum is proved instead, the reference program must reach full marks
    with the scripts that the skill documents name, through the real loop; where nobody can be sure of full marks,
    `floor_and_ceiling` holds its mean.
    """
    if not _complete(seen, findings):
        return
    if seen.subtask is None:
        findings.fail(seen.task_id, f"{seen.episode.sub_task} is not registered: nothing can solve it", "sub_task")
        return
    findings.add("labels")
    if seen.subtask.second is not None:
        _rederived(seen, findings)
    elif seen.label.truth.proof and seen.subtask.baselines.ceiling is None:
        score = seen.earned(REFERENCE, Condition.CURATED)
        message = f"the reference program reaches {score:.3f} with the skill's scripts"
        findings.expect(score >= _RIGHT, seen.task_id, message)


def _complete(seen: Seen, findings: Findings) -> bool:
    """Whether every input that the answer depends on is there."""
    before = len(findings.found)
    task_input = seen.full_input
    filled = seen.subtask.interactive.filled if seen.subtask and seen.subtask.interactive else ()
    for name, value in task_input.items():
        if (ref := unresolved(value)) is not None:
            findings.fail(seen.task_id, f"refers to {ref}, which no tool serves", name)
    for name in sorted(needed(seen)):
        if name not in task_input:
            findings.fail(seen.task_id, "the answer depends on it and it is not given", name)
        elif (task_input[name] is None or task_input[name] in ({}, [], "")) and name not in filled:
            findings.fail(seen.task_id, "the answer depends on it and it is empty", name)
    for name in sorted(task_input.keys() - seen.printed.keys()):
        findings.fail(seen.task_id, "no prompt names this field", name)
    return len(findings.found) == before


def needed(seen: Seen) -> set[str]:
    """The input fields that the answer depends on: those of the subtask's input type, or what the release needs."""
    released = seen.domain.released.get(seen.subtask.name) if seen.domain and seen.subtask else None
    if not seen.bench.shared.built:
        return set(released.required(seen.episode.input)) if released is not None else set()
    return _required(seen.subtask.input) if seen.subtask is not None and seen.subtask.input is not None else set()


@cache
def _required(kind: type) -> set[str]:
    """The keys that an input type requires; `__required_keys__` is wrong where annotations are kept as text."""
    hints: Mapping[str, Any] = get_type_hints(kind, include_extras=True)
    return {name for name, hint in hints.items() if get_origin(hint) is not NotRequired}


def _rederived(seen: Seen, findings: Findings) -> None:
    assert seen.subtask is not None
    for leaf in seen.subtask.derived_again(seen.label.truth.expected_output, seen.fields):
        if not leaf.agrees:
            message = f"is {leaf.first!r} in the truth and {leaf.second!r} derived from what tools return or inject"
            findings.fail(seen.task_id, message, leaf.path)
