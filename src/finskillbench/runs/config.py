"""Configuration of a run: one frozen object for command line, run file and Python."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from finskillbench.edition.store import LARGEST, refuse_inside_edition
from finskillbench.episode import Episode
from finskillbench.errors import InputError
from finskillbench.harness.allowance import MAX_TURNS, MIN_TOKENS, Allowance
from finskillbench.harness.conditions import Condition
from finskillbench.harness.loop import BuiltinLoop, Harness
from finskillbench.harness.models import ModelConfig, ModelKey, ModelOptions
from finskillbench.harness.skills.user_skills import SkillFolder
from finskillbench.runs.plan.items import Plan, make_plan
from finskillbench.runs.plan.streams import Shard

DEFAULT_MODELS = ("baseline/reference", "baseline/heuristic", "baseline/trivial", "baseline/nop")
DEFAULT_CONDITIONS = (Condition.NO_SKILL, Condition.CURATED, Condition.SELF_GENERATED)
DEFAULT_CONCURRENCY = 64
BATCH_CONCURRENCY = 1_000
"""Default concurrency where calls are sent in batches; a batch holds at most the calls in flight."""


def _check_largest(name: str, value: int | None) -> None:
    if value is not None and value > LARGEST:
        raise InputError(f"{name} is too large; it must not be above {LARGEST}")


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeSelection:
    """Episodes of a run.

    `limit`, `sample` and `tasks` are arguments of `finskillbench.runs.plan.items.choose_episodes`; `limits` replaces
    `limit` for single conditions. `epochs` is the number of repeats; `shard` is the part of the plan to run.
    """

    subtasks: Sequence[str] | None = None
    limit: int | None = None
    sample: int | None = None
    tasks: Sequence[str] | None = None
    limits: Mapping[str, int] = field(default_factory=dict[str, int])
    epochs: int = 1
    shard: Shard | None = None

    def __post_init__(self) -> None:
        _check_largest("limit", self.limit)
        _check_largest("epochs", self.epochs)

    def plan(self, episodes: Sequence[Episode], model_keys: Sequence[ModelKey], conditions: Sequence[str]) -> Plan:
        """Plan the items of all shards; raises as `make_plan`."""
        return make_plan(
            *(episodes, model_keys, conditions),
            limit=self.limit,
            sample=self.sample,
            tasks=self.tasks,
            limits=self.limits,
            epochs=self.epochs,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """Limits of a run and of its episodes.

    turns, token_budget : model calls and generated tokens of an episode; None: no limit of tokens.
    max_concurrency : episodes in flight for each model; all programs together count as one model, eight at most.
    max_cost : US dollars that the run folder may cost in total, including earlier calls; None: no limit.
    retry_errors : True repeats episodes that ended in an error.
    allow_unconfined : True runs scripts of third-party packages where the sandbox lacks a guard.
    """

    turns: int = MAX_TURNS
    token_budget: int | None = None
    max_concurrency: int = DEFAULT_CONCURRENCY
    max_cost: float | None = None
    retry_errors: bool = True
    allow_unconfined: bool = False

    def __post_init__(self) -> None:
        if self.max_concurrency < 1:
            raise InputError(f"max_concurrency is {self.max_concurrency}; it must be at least 1")
        if self.max_cost is not None and not (math.isfinite(self.max_cost) and self.max_cost >= 0):
            raise InputError(f"max_cost is {self.max_cost}; it must be a number of US dollars, 0 or more")
        if not 1 <= self.turns <= LARGEST:
            raise InputError(f"turns is {self.turns}; it must be at least 1, and not above {LARGEST}")
        if self.token_budget is not None and not MIN_TOKENS <= self.token_budget <= LARGEST:
            raise InputError(
                f"token_budget is {self.token_budget}; it must be at least {MIN_TOKENS}, and not above {LARGEST}"
            )

    @property
    def allowance(self) -> Allowance:
        """Turns and tokens of an episode."""
        return Allowance(self.turns, self.token_budget)


DEFAULT_LIMITS = RunLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """Configuration of a run.

    models : models and agents; each may override the options of the run.
    conditions : names of conditions.
    skills : skill folders by NAME; each adds the condition `skill:NAME` after `conditions`.
    library : folder of public packages for the conditions `library:N`; None: all distractors are generated.
    episodes, limits : episodes to run, and limits on them.
    options : options of hosted models.
    harness : loop between models and tools.
    cluster : address of a Dask scheduler; None runs the episodes in this process.
    out : run folder; created if absent.
    """

    models: Sequence[ModelConfig]
    conditions: Sequence[str] = DEFAULT_CONDITIONS
    skills: Mapping[str, SkillFolder | Path | str] = field(default_factory=dict[str, SkillFolder | Path | str])
    library: Path | None = None
    episodes: EpisodeSelection = EpisodeSelection()
    limits: RunLimits = DEFAULT_LIMITS
    options: ModelOptions = field(default_factory=ModelOptions)
    harness: Harness = field(default_factory=BuiltinLoop)
    cluster: str | None = None
    out: Path

    def __post_init__(self) -> None:
        if self.options.seed is not None and self.options.seed < 0:
            raise InputError(f"seed is {self.options.seed}; it must not be negative")
        _check_largest("seed", self.options.seed)
        refuse_inside_edition(self.out)
