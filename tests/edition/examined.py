"""Validation without what was seen before: labels that were found sound in another copy, and more cases of one kind."""

from __future__ import annotations

import hashlib
import io
import pickle
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from tests.editions import one_process
from tests.sampling import THOROUGH

from finskillbench.domains import Subtask, subtasks
from finskillbench.domains.examples import Label
from finskillbench.domains.tables import EpisodeTable
from finskillbench.edition import Edition
from finskillbench.edition.checks import labels
from finskillbench.edition.checks.catalog import CheckReport
from finskillbench.edition.checks.engine import Progress, validate_edition
from finskillbench.findings import Findings

_examine = vars(labels)["_examine"]


class SoundLabels:
    """Labels that were found sound, by their digests, which all processes of a test run tell each other in a file."""

    def __init__(self) -> None:
        self._file: Path | None = None
        self._read = 0
        self._known: set[bytes] = set()

    def share(self, file: Path) -> None:
        """Tell and hear of sound labels in a file."""
        if self._file is None:
            self._file = file

    def hear(self) -> None:
        """Read what other processes have told since."""
        if self._file is not None and self._file.exists():
            told = self._file.read_bytes()[self._read :]
            self._known.update(told[at : at + _LONG] for at in range(0, len(told) - _LONG + 1, _LONG))
            self._read += len(told) // _LONG * _LONG

    def add(self, digest: bytes) -> None:
        if digest not in self._known and self._file is not None:
            with self._file.open("ab", buffering=0) as file:
                file.write(digest)
        self._known.add(digest)

    def __contains__(self, digest: bytes) -> bool:
        return digest in self._known


_LONG = hashlib.sha256().digest_size
SOUND = SoundLabels()


def _digest(label: Label) -> bytes:
    """What a label holds, with its tables as they stand on disk: copies of an edition have others at other places."""

    def content(table: EpisodeTable) -> tuple[Any, ...]:
        source = vars(table)["_source"]
        return EpisodeTable, (source.read_bytes() if isinstance(source, Path) and source.is_file() else source,)

    stream = io.BytesIO()
    pickler = pickle.Pickler(stream)
    pickler.fast = True  # equal words, equal bytes: without it they tell which of equal strings are one object
    pickler.dispatch_table = {EpisodeTable: content}
    pickler.dump(label)
    return hashlib.sha256(stream.getbuffer()).digest()


def _is_registered(subtask: Subtask) -> bool:
    return any(one is subtask for one in subtasks())


def _examined(subtask: Subtask, label: Label, findings: Findings) -> None:
    """Examine a label, and tell of it if it is sound and its subtask is as it is registered."""
    before = len(findings.found)
    _examine(subtask, label, findings)
    sound = len(findings.found) == before and label.truth.task_id in findings.touched
    if sound and _is_registered(subtask):
        SOUND.add(_digest(label))


def _examined_once(subtask: Subtask, label: Label, findings: Findings) -> None:
    """Examine a label, unless one with its every word was found sound: nothing but its words says whether it is."""
    if _is_registered(subtask) and _digest(label) in SOUND:
        findings.add("labels")
    else:
        _examined(subtask, label, findings)


def validated_in_part(edition: Edition) -> CheckReport:
    """The report on an edition; of subtasks with a budget, which take a second, one label in four is derived again.

    In a thorough run all are. What comes before, and every other check, is of all labels in any run.
    """
    seen: Counter[str] = Counter()

    def examine(subtask: Subtask, label: Label, findings: Findings) -> None:
        seen[subtask.name] += 1
        if THOROUGH or subtask.interactive is None or seen[subtask.name] % 4 == 1:
            _examined(subtask, label, findings)

    with one_process(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(labels, "_examine", examine)
        return validate_edition(edition)


def validated(
    edition: Edition, only: Collection[str] | None = None, progress: Progress = lambda stage, done, total: None
) -> CheckReport:
    """The report on an edition; the figures of its labels, but their number, are of those that are examined now."""
    with one_process(), pytest.MonkeyPatch.context() as patch:
        SOUND.hear()
        patch.setattr(labels, "_examine", _examined_once)
        return validate_edition(edition, progress, only)
