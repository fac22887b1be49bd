"""Rules for what earlier rules leave unexplained: unread data, choices, arithmetic, missing parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import UnionType
from typing import get_origin

from pydantic import BaseModel

from finskillbench.domains.checks.agreement import Leaf
from finskillbench.runs.postprocess.failures.attempt import FinishedAttempt, is_nearly_equal
from finskillbench.runs.postprocess.failures.counts import FailureCause
from finskillbench.runs.postprocess.failures.rules.matching import DetectedCause, FailureRule, several, shown
from finskillbench.runs.postprocess.losses import points_lost
from finskillbench.scoring.values import as_number, as_text, is_object


def not_read(attempt: FinishedAttempt, before: Sequence[DetectedCause]) -> Iterator[DetectedCause]:
    """Detect that no field that the skill needs and the prompt omits was read, injected or used in code."""
    if attempt.answer is None or attempt.shipped is None or _all_explained(before):
        return
    needed = attempt.unprinted & frozenset(attempt.shipped.fields)
    if needed and not needed & _read(attempt):
        names = sorted(needed)
        evidence = f"{several(names)} was never read; the prompt does not print it"
        yield DetectedCause(FailureCause.DATA_NOT_READ, evidence, explains_all=True)


def discarded(attempt: FinishedAttempt, before: Sequence[DetectedCause]) -> Iterator[DetectedCause]:
    """Detect a right script output that was replaced by a wrong value without other explanation."""
    unexplained_leaves = _unexplained_leaves(attempt, before)
    if unexplained_leaves and attempt.output_is_right and attempt.decisive_call is not None:
        leaf = unexplained_leaves[0]
        script = attempt.decisive_call.script
        yield DetectedCause(
            FailureCause.SKILL_IGNORED,
            f"{script} returned {leaf.path} {shown(leaf.left)}, and {_submitted_text(leaf)} was submitted",
            explains_all=True,
        )


def wrong_value(attempt: FinishedAttempt, before: Sequence[DetectedCause]) -> Iterator[DetectedCause]:
    """Detect wrong numbers, or only wrong texts, verdicts and counts, without other explanation."""
    wrong_leaves = _unexplained_leaves(attempt, before) or ([] if before else _costly(attempt))
    if not wrong_leaves:
        return
    numbers = [leaf for leaf in wrong_leaves if isinstance(leaf.left, float) or isinstance(leaf.right, float)]
    leaf = max(numbers or wrong_leaves, key=_evidence_priority)
    cause = FailureCause.ARITHMETIC if numbers else FailureCause.WRONG_CHOICE
    yield DetectedCause(
        cause, f"{leaf.path} is {_submitted_text(leaf)} and should be {_expected_text(leaf)}{_more(wrong_leaves)}"
    )


def partial(attempt: FinishedAttempt, before: Sequence[DetectedCause]) -> Iterator[DetectedCause]:
    """Detect that some parts named by the schema, at the top or below its only key, are right and some omitted."""
    if attempt.answer is None or attempt.subtask is None or attempt.task is None:
        return
    if any(found.cause == FailureCause.EMPTY_ANSWER for found in before):
        return  # its nulls are right if the label has them
    parts = _parts(attempt.subtask.answer, attempt.expected)
    absent = {part for part in _absent_parts(attempt) & parts if _value_at(attempt.expected, part) is not None}
    wrong = {
        part
        for part in parts
        if any(_belongs_to(leaf.path, part) and not _is_nearly_right(leaf) for leaf in attempt.leaves)
    }
    right = sorted(parts - absent - wrong)
    if right and absent:
        yield DetectedCause(
            FailureCause.PARTIAL_ANSWER, f"{several(right)} right; {several(sorted(absent))} omitted or null"
        )


def unexplained(attempt: FinishedAttempt, before: Sequence[DetectedCause]) -> Iterator[DetectedCause]:
    """Report that no cause was found."""
    del attempt
    if not before:
        yield DetectedCause(FailureCause.UNEXPLAINED, "no applicable rule explains it")


def _unexplained_leaves(attempt: FinishedAttempt, before: Sequence[DetectedCause]) -> list[Leaf]:
    """Return wrong leaves without explanation, except omitted parts and usual rounding."""
    if attempt.answer is None or _all_explained(before):
        return []
    explained = frozenset[str]().union(*(found.explains for found in before))
    absent = _absent_parts(attempt)
    return [
        leaf
        for leaf in attempt.leaves
        if leaf.path not in explained
        and not _is_nearly_right(leaf)
        and not any(_belongs_to(leaf.path, part) for part in absent)
    ]


def _costly(attempt: FinishedAttempt) -> list[Leaf]:
    """Return leaves that usual rounding or an omitted zero explains and that still cost points."""
    if attempt.task is None or attempt.answer is None or attempt.subtask is None:
        return []
    absent = _absent_parts(attempt)
    found = points_lost(attempt.task, attempt.answer)
    return [
        leaf
        for leaf in attempt.leaves
        if any(loss.covers(leaf) for loss in found) and not any(_belongs_to(leaf.path, part) for part in absent)
    ]


def _all_explained(before: Sequence[DetectedCause]) -> bool:
    return any(found.explains_all for found in before)


def _absent_parts(attempt: FinishedAttempt) -> set[str]:
    """Return the parts, and the top-level objects, that the answer omits or sets to null."""
    answer, subtask = attempt.answer, attempt.subtask
    if answer is None or subtask is None:
        return set()
    found: set[str] = set()
    for part in _parts(subtask.answer, attempt.expected) | set(attempt.expected):
        if _value_at(answer, part) is None:
            found.add(part)
    return found


def _value_at(answer: object, part: str) -> object:
    """Return the value of a part, or None."""
    for key in part.split("."):
        answer = answer.get(key) if is_object(answer) else None
    return answer


def _parts(schema: type[BaseModel], expected: object) -> set[str]:
    """Return the label's top-level keys; below its only key, those that the schema names."""
    keys = set(expected) if is_object(expected) else set[str]()
    if len(keys) != 1 or not is_object(expected):
        return keys
    (only,) = keys
    field = schema.model_fields.get(only)
    kind = None if field is None else field.annotation
    named = isinstance(kind, type) and get_origin(kind) not in (dict, list, UnionType) and issubclass(kind, BaseModel)
    return {f"{only}.{key}" for key in expected[only]} if named and is_object(expected[only]) else keys


def _belongs_to(path: str, part: str) -> bool:
    return path == part or path.startswith((f"{part}.", f"{part}["))


def _is_nearly_right(leaf: Leaf) -> bool:
    """Return True for usual rounding, or a zero that one side omits."""
    expected, submitted = as_number(leaf.left), as_number(leaf.right)
    if leaf.absent:
        present = submitted if leaf.absent == "left" else expected
        return present is not None and is_nearly_equal(present, 0.0)
    if isinstance(leaf.left, float) and expected is not None and submitted is not None:
        return is_nearly_equal(submitted, expected)
    return False


def _read(attempt: FinishedAttempt) -> frozenset[str]:
    """Return the fields that successful tool calls requested."""
    found: set[str] = set()
    for call in attempt.calls:
        if not call.ok:
            continue
        if call.name == "get_task_data":
            found.add((as_text(call.arguments.get("field")) or "").partition(".")[0])
        elif call.name == "run_skill_script":
            found |= {*call.injected, *call.typed}
        elif call.name == "run_python":
            code = as_text(call.arguments.get("code")) or ""
            found |= {name for name in attempt.unprinted if name in code}
        elif call.name == "query_xbrl":
            found.add("filing_facts")
    return frozenset(found)


def _evidence_priority(leaf: Leaf) -> tuple[int, float]:
    """Sort key of evidence: pairs of values before absent ones, then by difference."""
    return {"": 2, "right": 1, "left": 0}[leaf.absent], leaf.difference


def _submitted_text(leaf: Leaf) -> str:
    return "absent" if leaf.absent == "right" else shown(leaf.right)


def _expected_text(leaf: Leaf) -> str:
    return "absent" if leaf.absent == "left" else shown(leaf.left)


def _more(leaves: Sequence[Leaf]) -> str:
    return f" ({len(leaves)} values differ)" if len(leaves) > 1 else ""


RULES = (
    FailureRule((FailureCause.DATA_NOT_READ,), not_read),
    FailureRule((FailureCause.SKILL_IGNORED,), discarded, needs_truth=True),
    FailureRule((FailureCause.WRONG_CHOICE, FailureCause.ARITHMETIC), wrong_value, needs_truth=True),
    FailureRule((FailureCause.PARTIAL_ANSWER,), partial, needs_truth=True),
    FailureRule((FailureCause.UNEXPLAINED,), unexplained),
)
