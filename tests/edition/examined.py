"""Validation without what was seen before: labels that were found sound in another copy, and more cases of one kind."""

from __future__ import annotations

import hashlib
import io
import pickle
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest
from tests.sampling import THOROUGH

from finskillbench.domains import Subtask
from finskillbench.domains.base import Label
from finskillbench.domains.tables import Table
from finskillbench.edition import Edition
from finskillbench.edition.validation import ValidationReport, labels, validate_edition
from finskillbench.findings import Findings

_examine = vars(labels)["_examine"]
_SOUND: dict[tuple[int, bytes], Subtask] = {}
"""The subtasks of labels that were found sound, by its id and all that the label holds."""


def _digest(label: Label) -> bytes:
    """What a label holds, with its tables as they stand on disk: copies of an edition have others at other places."""

    def content(table: Table) -> tuple[Any, ...]:
        source = vars(table)["_source"]
        return Table, (source.read_bytes() if isinstance(source, Path) and source.is_file() else source,)

    stream = io.BytesIO()
    pickler = pickle.Pickler(stream)
    pickler.dispatch_table = {Table: content}
    pickler.dump(label)
    return hashlib.sha256(stream.getbuffer()).digest()


def _examined_once(subtask: Subtask, label: Label, findings: Findings) -> None:
    """Examine a label, unless one with its every word was found sound: nothing but its words says whether it is."""
    key = id(subtask), _digest(label)
    if key in _SOUND:
        findings.add("labels")
        return
    before = len(findings.found)
    _examine(subtask, label, findings)
    if len(findings.found) == before and label.truth.task_id in findings.touched:
        _SOUND[key] = subtask


def validated_in_part(edition: Edition) -> ValidationReport:
    """The report on an edition; of the desk, a label of which takes a second, one in four is derived again.

    In a thorough run all are. What comes before, and every other check, is of all labels in any run.
    """
    seen: Counter[str] = Counter()

    def examine(subtask: Subtask, label: Label, findings: Findings) -> None:
        seen[subtask.name] += 1
        if THOROUGH or subtask.budget is None or seen[subtask.name] % 4 == 1:
            _examine(subtask, label, findings)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(labels, "_examine", examine)
        return validate_edition(edition)


def validated(
    edition: Edition, only: Collection[str] | None = None, progress: Callable[[str], None] = lambda step: None
) -> ValidationReport:
    """The report on an edition; the figures of its labels, but their number, are of those that are examined now."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(labels, "_examine", _examined_once)
        return validate_edition(edition, progress, only)
