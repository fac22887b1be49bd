"""What a subtask is: its name, the type of its answer, and how an answer is judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict

from finskillbench.episode import JsonObject, Profile, Score, Truth
from finskillbench.subtasks.building import BuildContext, Task

Scorer = Callable[[JsonObject, Truth, JsonObject], Score]
"""`(answer, truth, task_input) -> Score`: never raises on any JSON object and returns a finite value."""

Builder = Callable[[BuildContext], list[Task]]


class Answer(BaseModel):
    """Base of the answer types.

    An answer type is what the agent is shown: every key with its type, unit, sign and vocabulary. It is never
    used to judge, since a scorer must take any JSON object, and it never depends on an episode's data.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True, slots=True)
class Subtask:
    """One subtask of the benchmark.

    Attributes
    ----------
    name : the episode's `sub_task`.
    skill : the domain, which is also the id of the curated skill.
    prefix : what its task ids begin with.
    method : the `verification.method` that published truths name for it.
    answer : pydantic type describing the answer to the agent.
    scorers : one scorer per profile that is defined for it.
    headline : whether it counts towards headline tables.
    build : draws its episodes and proves their truth; None while only imported releases carry it.
    """

    name: str
    skill: str
    prefix: str
    method: str
    answer: type[Answer]
    scorers: Mapping[Profile, Scorer] = field(repr=False)
    headline: bool = True
    build: Builder | None = field(default=None, repr=False)
