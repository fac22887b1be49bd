"""The edition under examination, read once for all checks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from finskillbench.edition.load import Edition
from finskillbench.edition.validate.report import Findings
from finskillbench.episode import Episode
from finskillbench.errors import FinSkillBenchError
from finskillbench.panels import Panels, read_panels
from finskillbench.subtasks import SUBTASKS, Subtask

DOMAIN = "portfolio_construction"
SUBTASKS_OF_DOMAIN: tuple[Subtask, ...] = tuple(subtask for subtask in SUBTASKS if subtask.skill == DOMAIN)
_MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, np.linalg.LinAlgError)


class Subject:
    """The edition with its portfolio episodes, their inputs as an agent gets them, and its panels."""

    def __init__(self, edition: Edition) -> None:
        self.edition = edition
        names = [subtask.name for subtask in SUBTASKS_OF_DOMAIN if subtask.name in edition.sub_tasks]
        self.episodes: tuple[Episode, ...] = edition.episodes(names) if names else ()

    @property
    def built(self) -> bool:
        """Whether the edition was built here: an imported release promises less, and is told so by warnings."""
        return self.edition.manifest["source"].get("kind") != "release"

    def of(self, sub_task: str) -> tuple[Episode, ...]:
        """The episodes of one subtask."""
        return tuple(episode for episode in self.episodes if episode.sub_task == sub_task)

    def input_of(self, episode: Episode) -> dict[str, Any]:
        """The input with its references resolved."""
        if episode.task_id not in self._inputs:
            self._inputs[episode.task_id] = self.edition.full_input(episode)
        return self._inputs[episode.task_id]

    @cached_property
    def _inputs(self) -> dict[str, dict[str, Any]]:
        return {}

    def panels(self, findings: Findings) -> Panels | None:
        """The panels, or None with the check marked as skipped (there are none) or failed (they cannot be read)."""
        folder = self.edition.path / "panels"
        if not folder.is_dir():
            findings.skip("the edition has no panels")
            return None
        if isinstance(self._panels, FinSkillBenchError):
            findings.fail("panels", str(self._panels))
            return None
        return self._panels

    @cached_property
    def _panels(self) -> Panels | FinSkillBenchError:
        try:
            return read_panels(self.edition.path / "panels")
        except FinSkillBenchError as error:
            return error


@contextmanager
def examining(where: str, findings: Findings, *, fatal: bool = True) -> Iterator[None]:
    """Turn whatever malformed data raises into a finding that names it; a warning unless `fatal`."""
    add = findings.fail if fatal else findings.warn
    try:
        yield
    except FinSkillBenchError as error:
        add(where, str(error))
    except (*_MALFORMED, pl.exceptions.PolarsError) as error:
        told = next(iter(str(error).splitlines()), "")
        add(where, f"malformed: {type(error).__name__}: {told}")
