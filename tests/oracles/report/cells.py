"""From rows to scored cells and to paired differences.

A cell is one episode by one entry of a model under one condition: its score is the mean over its repeats, so that an
episode asked five times counts once. A row of status `error` has no verdict and no score, never a zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
Entry = tuple[str, str, str]

HEADLINE_EXCLUDES = "infeasibility_detection"  # "a thirteenth that never enters the headline" (benchmark.md)


@dataclass(frozen=True)
class Cell:
    """One episode by one entry under one condition."""

    entry: Entry
    condition: str
    task_id: str
    sub_task: str
    domain: str
    cluster: str
    score: float

    @property
    def model(self) -> str:
        return self.entry[1]

    @property
    def harness(self) -> str:
        return self.entry[0]


@dataclass(frozen=True)
class Pair:
    """Treatment minus reference for one episode and entry, where both have a score."""

    entry: Entry
    task_id: str
    sub_task: str
    domain: str
    cluster: str
    reference: float
    treatment: float

    @property
    def model(self) -> str:
        return self.entry[1]

    @property
    def difference(self) -> float:
        return self.treatment - self.reference


def score_of(row: Row, profile: str | None = None) -> float | None:
    """The row's score, None where nothing was judged."""
    if row["status"] == "error":
        return None
    return row["score"] if profile is None else row["scores"][profile]


def profile_of(rows: list[Row], sub_task: str, wanted: str) -> str:
    """The profile a subtask is read under: the wanted one, or the first of the published order that it defines."""
    for profile in (wanted, "certified", "strict", "paper"):
        for row in rows:
            if row["sub_task"] == sub_task and score_of(row, profile) is not None:
                return profile
    return wanted


def mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def median(values: list[float]) -> float | None:
    ordered = sorted(values)
    if not ordered:
        return None
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def entry_of(row: Row) -> Entry:
    return row["harness"], row["model"], row["arguments"]


def cells(rows: list[Row], profile: str | None = None, exclude: tuple[str, ...] = ()) -> list[Cell]:
    """Scored cells of the headline, repeats averaged; `exclude` names models."""
    repeats: dict[tuple[Entry, str, str], list[float]] = {}
    first: dict[tuple[Entry, str, str], Row] = {}
    read = {row["sub_task"]: profile and profile_of(rows, row["sub_task"], profile) for row in rows}
    for row in rows:
        score = score_of(row, read[row["sub_task"]])
        if score is None or row["model"] in exclude or row["sub_task"] == HEADLINE_EXCLUDES:
            continue
        key = entry_of(row), row["condition"], row["task_id"]
        repeats.setdefault(key, []).append(score)
        first.setdefault(key, row)
    return [
        Cell(
            entry=key[0],
            condition=key[1],
            task_id=key[2],
            sub_task=first[key]["sub_task"],
            domain=first[key]["domain"],
            cluster=first[key]["cluster"],
            score=sum(scores) / len(scores),
        )
        for key, scores in repeats.items()
    ]


def pairs(found: list[Cell], treatment: str = "curated", reference: str = "no_skill") -> list[Pair]:
    """Pairs of the same entry on the same episode."""
    others = {(cell.entry, cell.task_id): cell for cell in found if cell.condition == reference}
    result: list[Pair] = []
    for cell in found:
        other = others.get((cell.entry, cell.task_id))
        if cell.condition == treatment and other is not None:
            where = cell.entry, cell.task_id, cell.sub_task, cell.domain, cell.cluster
            result.append(Pair(*where, reference=other.score, treatment=cell.score))
    return result


def micro(values: list[tuple[str, float]]) -> float | None:
    """Mean over all (sub_task, value)."""
    return mean([value for _, value in values])


def macro(values: list[tuple[str, float]]) -> float | None:
    """Unweighted mean over subtasks of the mean within each."""
    groups: dict[str, list[float]] = {}
    for sub_task, value in values:
        groups.setdefault(sub_task, []).append(value)
    return mean([sum(group) / len(group) for group in groups.values()])
