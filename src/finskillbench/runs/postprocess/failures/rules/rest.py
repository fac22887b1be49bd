"""What is left when nothing above explains it: data that were not read, choices, arithmetic, parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import UnionType
from typing import get_origin

from pydantic import BaseModel

from finskillbench.domains.checks.agreement import Leaf
from finskillbench.runs.postprocess.failures.attempt import Attempt, nearly
from finskillbench.runs.postprocess.failures.counts import FailureCause
from finskillbench.runs.postprocess.failures.rules.matching import Found, Rule, several, shown
from finskillbench.runs.postprocess.losses import points_lost
from finskillbench.scoring.values import as_number, as_text, is_object


def not_read(attempt: Attempt, before: Sequence[Found]) -> Iterator[Found]:
    """None was read, injected or used in code of the fields that the task's skill names and the prompt leaves out."""
    if attempt.answer is None or attempt.shipped is None or _all_explained(before):
        return
    needed = attempt.unprinted & frozenset(attempt.shipped.fields)
    if needed and not needed & _read(attempt):
        names = sorted(needed)
        words = f"{several(names)} was never read; the prompt does not print it"
        yield Found(FailureCause.DATA_NOT_READ, words, explains_all=True)


def discarded(attempt: Attempt, before: Sequence[Found]) -> Iterator[Found]:
    """The script's output was right, and what was submitted in its place is wrong in a way that nothing explains."""
    left = _left(attempt, before)
    if left and attempt.output_is_right and attempt.decisive is not None:
        leaf = left[0]
        yield Found(
            FailureCause.SKILL_IGNORED,
            f"{attempt.decisive.script} returned {leaf.path} {shown(leaf.left)}, and {_given(leaf)} was submitted",
            explains_all=True,
        )


def wrong_value(attempt: Attempt, before: Sequence[Found]) -> Iterator[Found]:
    """Numbers, or only words, verdicts and counts, are wrong in a way that nothing above explains."""
    left = _left(attempt, before) or ([] if before else _costly(attempt))
    if not left:
        return
    numbers = [leaf for leaf in left if isinstance(leaf.left, float) or isinstance(leaf.right, float)]
    leaf = max(numbers or left, key=_telling)
    cause = FailureCause.ARITHMETIC if numbers else FailureCause.WRONG_CHOICE
    yield Found(cause, f"{leaf.path} is {_given(leaf)} and should be {_wanted(leaf)}{_more(left)}")


def partial(attempt: Attempt, before: Sequence[Found]) -> Iterator[Found]:
    """Of the parts that the schema names, at the top or below its only key, some are right and some left out."""
    if attempt.answer is None or attempt.subtask is None or attempt.known is None:
        return
    if any(found.cause == FailureCause.EMPTY_ANSWER for found in before):
        return  # its nulls are right where the label's are
    parts = _parts(attempt.subtask.answer, attempt.expected)
    absent = {part for part in _absent_parts(attempt) & parts if _at(attempt.expected, part) is not None}
    wrong = {part for part in parts if any(_of(leaf.path, part) and not _alike(leaf) for leaf in attempt.leaves)}
    right = sorted(parts - absent - wrong)
    if right and absent:
        yield Found(FailureCause.PARTIAL_ANSWER, f"{several(right)} right; {several(sorted(absent))} left out or null")


def unexplained(attempt: Attempt, before: Sequence[Found]) -> Iterator[Found]:
    """Nothing was found."""
    del attempt
    if not before:
        yield Found(FailureCause.UNEXPLAINED, "no rule that could be tried applies")


def _left(attempt: Attempt, before: Sequence[Found]) -> list[Leaf]:
    """The wrong leaves that nothing explains, without parts that are left out and what is only rounded as usual."""
    if attempt.answer is None or _all_explained(before):
        return []
    explained = frozenset[str]().union(*(found.explains for found in before))
    absent = _absent_parts(attempt)
    return [
        leaf
        for leaf in attempt.leaves
        if leaf.path not in explained and not _alike(leaf) and not any(_of(leaf.path, part) for part in absent)
    ]


def _costly(attempt: Attempt) -> list[Leaf]:
    """The leaves off by usual rounding, or a zero that is left out, which cost points all the same."""
    if attempt.known is None or attempt.answer is None or attempt.subtask is None:
        return []
    absent = _absent_parts(attempt)
    found = points_lost(attempt.known, attempt.answer)
    return [
        leaf
        for leaf in attempt.leaves
        if any(loss.covers(leaf) for loss in found) and not any(_of(leaf.path, part) for part in absent)
    ]


def _all_explained(before: Sequence[Found]) -> bool:
    return any(found.explains_all for found in before)


def _absent_parts(attempt: Attempt) -> set[str]:
    """The parts, and the objects below the top, that the answer leaves out or null."""
    answer, subtask = attempt.answer, attempt.subtask
    if answer is None or subtask is None:
        return set()
    found: set[str] = set()
    for part in _parts(subtask.answer, attempt.expected) | set(attempt.expected):
        if _at(answer, part) is None:
            found.add(part)
    return found


def _at(answer: object, part: str) -> object:
    """What stands at a part; None where there is nothing."""
    for key in part.split("."):
        answer = answer.get(key) if is_object(answer) else None
    return answer


def _parts(schema: type[BaseModel], expected: object) -> set[str]:
    """The label's top-level keys; those below it where there is only one and the schema names them."""
    keys = set(expected) if is_object(expected) else set[str]()
    if len(keys) != 1 or not is_object(expected):
        return keys
    (only,) = keys
    field = schema.model_fields.get(only)
    kind = None if field is None else field.annotation
    named = isinstance(kind, type) and get_origin(kind) not in (dict, list, UnionType) and issubclass(kind, BaseModel)
    return {f"{only}.{key}" for key in expected[only]} if named and is_object(expected[only]) else keys


def _of(path: str, part: str) -> bool:
    return path == part or path.startswith((f"{part}.", f"{part}["))


def _alike(leaf: Leaf) -> bool:
    """Whether a leaf is as good as right: off by usual rounding, or a zero that one side leaves out."""
    first, second = as_number(leaf.left), as_number(leaf.right)
    if leaf.absent:
        there = second if leaf.absent == "left" else first
        return there is not None and nearly(there, 0.0)
    if isinstance(leaf.left, float) and first is not None and second is not None:
        return nearly(second, first)
    return False


def _read(attempt: Attempt) -> frozenset[str]:
    """The fields that any tool was asked for with success."""
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


def _telling(leaf: Leaf) -> tuple[int, float]:
    """What tells most of what is wrong: two values before one that is absent, the widest difference first."""
    return {"": 2, "right": 1, "left": 0}[leaf.absent], leaf.difference


def _given(leaf: Leaf) -> str:
    return "absent" if leaf.absent == "right" else shown(leaf.right)


def _wanted(leaf: Leaf) -> str:
    return "absent" if leaf.absent == "left" else shown(leaf.left)


def _more(leaves: Sequence[Leaf]) -> str:
    return f" ({len(leaves)} values differ)" if len(leaves) > 1 else ""


RULES = (
    Rule((FailureCause.DATA_NOT_READ,), not_read),
    Rule((FailureCause.SKILL_IGNORED,), discarded, needs_truth=True),
    Rule((FailureCause.WRONG_CHOICE, FailureCause.ARITHMETIC), wrong_value, needs_truth=True),
    Rule((FailureCause.PARTIAL_ANSWER,), partial, needs_truth=True),
    Rule((FailureCause.UNEXPLAINED,), unexplained),
)
