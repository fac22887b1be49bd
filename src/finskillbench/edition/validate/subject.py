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

_MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, np.linalg.LinAlgError)


class Shelf:
    """What the domains of one edition share: its panels, read once."""

    def __init__(self, edition: Edition) -> None:
        self.edition = edition

    @cached_property
    def panels(self) -> Panels | FinSkillBenchError:
        """The panels, or why they cannot be read."""
        try:
            return read_panels(self.edition.path / "panels")
        except FinSkillBenchError as error:
            return error


class Subject:
    """One domain of an edition: its episodes, their inputs as an agent gets them, and the panels."""

    def __init__(self, shelf: Shelf, domain: str) -> None:
        self.edition = shelf.edition
        self.domain = domain
        self.subtasks: tuple[Subtask, ...] = tuple(subtask for subtask in SUBTASKS if subtask.skill == domain)
        names = [subtask.name for subtask in self.subtasks if subtask.name in self.edition.sub_tasks]
        self.episodes: tuple[Episode, ...] = self.edition.episodes(names) if names else ()
        self._shelf = shelf

    @property
    def built(self) -> bool:
        """Whether the edition was built here: an imported release promises less, and is told so by warnings."""
        return self.edition.manifest["source"].get("kind") != "release"

    def of(self, sub_task: str) -> tuple[Episode, ...]:
        """The episodes of one subtask."""
        return tuple(episode for episode in self.episodes if episode.sub_task == sub_task)

    def input_of(self, episode: Episode) -> dict[str, Any]:
        """The input with its references resolved; the edition keeps what it resolved last."""
        return self.edition.full_input(episode)

    def panels(self, findings: Findings) -> Panels | None:
        """The panels, or None with the check marked as skipped (there are none) or failed (they cannot be read)."""
        if not (self.edition.path / "panels").is_dir():
            findings.skip("the edition has no panels")
            return None
        if isinstance(self._shelf.panels, FinSkillBenchError):
            findings.fail("panels", str(self._shelf.panels))
            return None
        return self._shelf.panels


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
