"""The edition under examination, read once for all checks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import polars as pl

from finskillbench.episode import Episode, JsonObject, Truth
from finskillbench.errors import FinSkillBenchError
from finskillbench.findings import Findings
from finskillbench.panels import Panels, read_panels

if TYPE_CHECKING:
    from finskillbench.domains.base import Domain
    from finskillbench.domains.interactive import InteractiveState

_MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, np.linalg.LinAlgError)


class ExaminedEdition(Protocol):
    """What checks may ask of an edition; `finskillbench.edition.Edition` is one."""

    @property
    def path(self) -> Path: ...
    @property
    def manifest(self) -> JsonObject: ...
    @property
    def sub_tasks(self) -> tuple[str, ...]: ...
    @property
    def has_truth(self) -> bool: ...
    @property
    def has_certificates(self) -> bool: ...
    def episodes(self, sub_tasks: Collection[str] | None = None) -> tuple[Episode, ...]: ...
    def truth(self, task_id: str) -> Truth: ...
    @property
    def has_stages(self) -> bool: ...
    def certificates(self, sub_task: str) -> dict[str, JsonObject]: ...
    def hidden(self, sub_task: str) -> Mapping[str, JsonObject]: ...
    def stage(self, episode: Episode) -> InteractiveState | None: ...
    def lines(self, part: str, sub_task: str) -> Iterator[dict[str, Any]]: ...
    def full_input(self, episode: Episode) -> dict[str, Any]: ...
    @property
    def filings(self) -> Any: ...


class Shared:
    """What the checks of all domains share: the edition and its panels, read once.

    `raw_dir` is a collection of raw files from outside the edition, a witness of labels that bring no facts.
    """

    def __init__(self, edition: ExaminedEdition, raw_dir: Path | None = None) -> None:
        self.edition = edition
        self.raw_dir = raw_dir

    @property
    def built(self) -> bool:
        """Whether the edition was built here: an imported release promises less, and is told so by warnings."""
        return self.edition.manifest["source"].get("kind") != "release"

    @cached_property
    def panels(self) -> Panels | FinSkillBenchError:
        """The panels, every table of them read, or why they cannot be."""
        try:
            panels = read_panels(self.edition.path / "panels")
            for name in panels.tables:
                _ = panels.tables[name]
            return panels
        except FinSkillBenchError as error:
            return error


class Subject:
    """One domain of an edition: its episodes, their inputs as an agent gets them, and the panels."""

    def __init__(self, shared: Shared, domain: Domain) -> None:
        self.edition = shared.edition
        self.domain = domain
        names = [subtask.name for subtask in domain.subtasks if subtask.name in self.edition.sub_tasks]
        self.episodes: tuple[Episode, ...] = self.edition.episodes(names) if names else ()
        self.built = shared.built
        self.raw_dir = shared.raw_dir
        self._shared = shared

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
        if isinstance(self._shared.panels, FinSkillBenchError):
            findings.fail("panels", str(self._shared.panels))
            return None
        return self._shared.panels


@contextmanager
def examining(where: str, findings: Findings, *, fatal: bool = True) -> Generator[None]:
    """Turn whatever malformed data raises into a finding that names it; a warning unless `fatal`."""
    add = findings.fail if fatal else findings.warn
    try:
        yield
    except FinSkillBenchError as error:
        add(where, str(error))
    except (*_MALFORMED, pl.exceptions.PolarsError) as error:
        told = next(iter(str(error).splitlines()), "")
        add(where, f"malformed: {type(error).__name__}: {told}")


def each_label(subject: Subject, findings: Findings, examine: Callable[[Episode, Truth], None]) -> None:
    """Examine every label of a domain, whatever malformed data raises; skipped where an edition has no truth."""
    if not subject.edition.has_truth:
        findings.skip("the edition was handed out without truth")
        return
    for episode in subject.episodes:
        with examining(episode.task_id, findings):
            examine(episode, subject.edition.truth(episode.task_id))
