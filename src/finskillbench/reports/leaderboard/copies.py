"""Answers that two submitters share byte for byte: no proof of a copy, and for readers to judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from finskillbench.runs.bundle.judge import Judged
from finskillbench.runs.bundle.names import folded

MOST_SHARED = 0.9
"""Of the answers to the same episodes under the same condition: above it, a remark says so."""
_FEWEST = 10


def with_copies(taken: Sequence[Judged]) -> list[Judged]:
    """The bundles, with a remark on each that has nearly the same answers as one of another submitter."""
    answers = [_answers(each) for each in taken]
    made: list[Judged] = []
    for judged, own in zip(taken, answers, strict=True):
        told: list[str] = []
        for other, theirs in zip(taken, answers, strict=True):
            both = own.keys() & theirs.keys()
            same = sum(1 for key in both if own[key] & theirs[key])
            if _who(other) != _who(judged) and len(both) >= _FEWEST and same > MOST_SHARED * len(both):
                told.append(f"{same} of {len(both)} answers are byte for byte those of {other.bundle.path.name}")
        made.append(replace(judged, remarks=(*judged.remarks, *told)))
    return made


def _who(judged: Judged) -> str:
    return folded(judged.bundle.manifest.submitter.name)


def _answers(judged: Judged) -> dict[tuple[str, str], set[str]]:
    """The digests of the answers to each episode under each condition."""
    found: dict[tuple[str, str], set[str]] = {}
    for row in judged.rows:
        if row.answer_digest is not None:
            found.setdefault((row.condition, row.task_id), set()).add(row.answer_digest)
    return found
