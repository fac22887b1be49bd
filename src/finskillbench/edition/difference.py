"""What changed between two editions, and in which subtasks scores can still be compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from finskillbench.edition.load import Edition
from finskillbench.edition.store import episode_row
from finskillbench.episode import Episode, Truth
from finskillbench.errors import InputError
from finskillbench.scoring.values import is_object

PARTS = ("input", "prompt", "other fields", "expected output", "verification", "proof")
"""What of an episode can differ; the last three are of its truth."""
_UNSCORED = {"proof"}
"""Parts that change no score: what only says how a label was proved."""
_SHOWN_FIELDS = ("source", "seed", "catalog", "universe", "as_of_dates", "parameters", "versions")


@dataclass(frozen=True, slots=True)
class SubtaskDifference:
    """One subtask: task ids that only one side has, and those that both have but that differ, by part."""

    name: str
    common: int
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    changed: Mapping[str, tuple[str, ...]]

    @property
    def same_scores(self) -> bool:
        """Whether a score on one side is a score on the other: the same episodes, judged in the same way."""
        differing = any(tasks for part, tasks in self.changed.items() if part not in _UNSCORED)
        return not (self.only_first or self.only_second or differing)


@dataclass(frozen=True, slots=True)
class EditionDifference:
    """Two editions side by side: fields of the manifests that differ, and every subtask that either has."""

    fields: Mapping[str, tuple[Any, Any]]
    subtasks: tuple[SubtaskDifference, ...]
    compared_truth: bool

    @property
    def same_scores(self) -> bool:
        """Whether scores are comparable throughout; never said of editions whose truths could not be compared."""
        return self.compared_truth and all(each.same_scores for each in self.subtasks)


def compare_editions(
    first: Edition, second: Edition, progress: Callable[[str], None] = lambda step: None
) -> EditionDifference:
    """Compare two editions, episode by episode at full precision.

    What an input refers to (a covariance, returns, facts) is compared by its numbers. Truths are compared where both
    sides have them.

    Raises
    ------
    InputError : both are the same folder.
    EditionError : a file that cannot be read.
    """
    if first.path.resolve() == second.path.resolve():
        raise InputError(f"{first.path} and {second.path} are the same folder; name two editions")
    names = list(dict.fromkeys([*first.sub_tasks, *second.sub_tasks]))
    with_truth = first.has_truth and second.has_truth
    compared: list[SubtaskDifference] = []
    for name in names:
        progress(f"comparing {name}")
        compared.append(_compare_subtask(first, second, name, with_truth))
    fields = {
        field: (first.manifest.get(field), second.manifest.get(field))
        for field in _SHOWN_FIELDS
        if first.manifest.get(field) != second.manifest.get(field)
    }
    return EditionDifference(fields, tuple(compared), with_truth)


def _compare_subtask(first: Edition, second: Edition, name: str, with_truth: bool) -> SubtaskDifference:
    left, right = _episodes(first, name), _episodes(second, name)
    changed: dict[str, list[str]] = {part: [] for part in PARTS}
    for task_id in left.keys() & right.keys():
        before, after = _parts(first, left[task_id]), _parts(second, right[task_id])
        if with_truth:
            before |= _truth_parts(first.truth(task_id))
            after |= _truth_parts(second.truth(task_id))
        for part, value in before.items():
            if value != after[part] and not (part == "input" and _same_input(first, second, value, after[part])):
                changed[part].append(task_id)
    return SubtaskDifference(
        name,
        len(left.keys() & right.keys()),
        tuple(task for task in left if task not in right),
        tuple(task for task in right if task not in left),
        {part: tuple(sorted(tasks)) for part, tasks in changed.items()},
    )


def _episodes(edition: Edition, name: str) -> dict[str, Episode]:
    if name not in edition.sub_tasks:
        return {}
    return {episode.task_id: episode for episode in edition.episodes([name])}


def _parts(edition: Edition, episode: Episode) -> dict[str, Any]:
    row = dict(episode_row(episode))
    prompt, given = row.pop("prompt"), row.pop("input")
    named = {name: _with_digest(edition, value) for name, value in given.items()}
    return {"input": named, "prompt": prompt, "other fields": row}


def _with_digest(edition: Edition, value: Any) -> Any:
    """A reference together with the digest of the file it names, so that equal words about other numbers differ."""
    if is_object(value) and isinstance(value.get("ref"), str):
        return {**value, "digest": edition.manifest["files"].get(value["ref"])}
    return value


def _same_input(first: Edition, second: Edition, left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    """Whether inputs of other bytes are the same numbers: a file differs, but not in what is referred to."""
    return left.keys() == right.keys() and all(
        value == right[name] or first.resolved(value) == second.resolved(right[name]) for name, value in left.items()
    )


def _truth_parts(truth: Truth) -> dict[str, Any]:
    return {"expected output": truth.expected_output, "verification": truth.verification, "proof": truth.proof}
