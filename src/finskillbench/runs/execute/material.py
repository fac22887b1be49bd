"""What the loop needs of an episode: its prompt, and its input at full precision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from finskillbench.domains import by_method, by_name
from finskillbench.domains.base import Subtask
from finskillbench.domains.interactive import Stage
from finskillbench.edition import Edition
from finskillbench.episode import Episode
from finskillbench.errors import InputError
from finskillbench.harness.allowance import FULL, Allowance
from finskillbench.harness.conditions import Mount
from finskillbench.harness.seat import Assignment
from finskillbench.harness.skills.memory import EMPTY, Memory
from finskillbench.harness.words.prompts import task_prompt


@dataclass(frozen=True, slots=True)
class Material:
    """An episode ready to be run."""

    episode: Episode
    prompt: str
    full_input: Mapping[str, Any]
    open_stage: Callable[[], Stage | None] = lambda: None

    def under(
        self, mounted: Mount, memory: Memory = EMPTY, *, allowance: Allowance = FULL, repeat: int = 0
    ) -> Assignment:
        """What is played under an arm."""
        return Assignment(
            self.episode, self.prompt, lambda: self.full_input, mounted, memory, allowance, repeat, self.open_stage
        )


def prepare(edition: Edition, episode: Episode) -> Material:
    """Write the task prompt of an episode and resolve its input.

    Raises
    ------
    EditionError : the panels cannot be read, or the episode's own words are too long for a prompt.
    """
    subtask = _subtask(episode.sub_task)
    prompt = task_prompt(episode, subtask.answer if subtask is not None else None)
    return Material(episode, prompt, edition.full_input(episode), lambda: edition.stage(episode))


def _subtask(name: str) -> Subtask | None:
    """The subtask of an episode; None for an imported episode under a name that is not registered."""
    for find in (by_name, by_method):
        try:
            return find(name)
        except InputError:
            continue
    return None
