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
    """Interface of an edition for checks, implemented by `finskillbench.edition.Edition`."""

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
    def open_interactive_state(self, episode: Episode) -> InteractiveState | None: ...
    def lines(self, part: str, sub_task: str) -> Iterator[dict[str, Any]]: ...
    def full_input(self, episode: Episode) -> dict[str, Any]: ...
    @property
    def filings(self) -> Any: ...


class Shared:
    """Edition and panels shared by all checks, and `raw_dir`, a collection of raw files to check labels without stored
    facts.
    """

    def __init__(self, edition: ExaminedEdition, raw_dir: Path | None = None) -> None:
        self.edition = edition
        self.raw_dir = raw_dir

    @property
    def built(self) -> bool:
        """True for a built edition. Imported releases satisfy fewer checks; violations are warnings."""
        return self.edition.manifest["source"].get("kind") != "release"

    @cached_property
    def panels(self) -> Panels | FinSkillBenchError:
        """The panels with every table loaded, or the error that prevents it."""
        try:
            panels = read_panels(self.edition.path / "panels")
            for name in panels.tables:
                _ = panels.tables[name]
            return panels
        except FinSkillBenchError as error:
            return error


class Subject:
    """One domain of an edition: episodes, inputs as agents read them, and panels."""

    def __init__(self, shared: Shared, domain: Domain) -> None:
        self.edition = shared.edition
        self.domain = domain
        names = [subtask.name for subtask in domain.subtasks if subtask.name in self.edition.sub_tasks]
        self.episodes: tuple[Episode, ...] = self.edition.episodes(names) if names else ()
        self.built = shared.built
        self.raw_dir = shared.raw_dir
        self._shared = shared

    def of(self, sub_task: str) -> tuple[Episode, ...]:
        """Return the episodes of one subtask."""
        return tuple(episode for episode in self.episodes if episode.sub_task == sub_task)

    def input_of(self, episode: Episode) -> dict[str, Any]:
        """Return the input with its references resolved; the edition caches the last ones."""
        return self.edition.full_input(episode)

    def panels(self, findings: Findings) -> Panels | None:
        """Return the panels, or None after marking the check as skipped (no panels) or failed (unreadable)."""
        if not (self.edition.path / "panels").is_dir():
            findings.skip("the edition has no panels")
            return None
        if isinstance(self._shared.panels, FinSkillBenchError):
            findings.fail("panels", str(self._shared.panels))
            return None
        return self._shared.panels


@contextmanager
def examining(where: str, findings: Findings, *, fatal: bool = True) -> Generator[None]:
    """Turn exceptions from malformed data into findings, or into warnings unless `fatal`."""
    add = findings.fail if fatal else findings.warn
    try:
        yield
    except FinSkillBenchError as error:
        add(where, str(error))
    except (*_MALFORMED, pl.exceptions.PolarsError) as error:
        first_line = next(iter(str(error).splitlines()), "")
        add(where, f"malformed: {type(error).__name__}: {first_line}")


def each_label(subject: Subject, findings: Findings, examine: Callable[[Episode, Truth], None]) -> None:
    """Examine every label of a domain despite malformed data; skip an edition without truth."""
    if not subject.edition.has_truth:
        findings.skip("the edition contains no truth")
        return
    for episode in subject.episodes:
        with examining(episode.task_id, findings):
            examine(episode, subject.edition.truth(episode.task_id))
