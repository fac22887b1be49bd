"""Run attempts at episodes in this process or, through the same protocol, on a cluster.

A backend never receives the truth: it returns a trace, which the executor judges.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Protocol

from finskillbench.domains import find_subtask
from finskillbench.domains.interactive import InteractiveState
from finskillbench.edition import Edition
from finskillbench.episode import Episode
from finskillbench.harness.agents import Agent, play_episode
from finskillbench.harness.allowance import DEFAULT_ALLOWANCE, Allowance
from finskillbench.harness.conditions import Mount
from finskillbench.harness.episode_state import EpisodeSpec, Resources
from finskillbench.harness.loop import Play, run_episode
from finskillbench.harness.models import ModelKey, Participant, allowance_of
from finskillbench.harness.prompts.compose import task_prompt
from finskillbench.harness.skills.runner import MountedScripts
from finskillbench.harness.skills.user_skills import EMPTY, Memory
from finskillbench.harness.tools.interpreters import Interpreters
from finskillbench.harness.tools.toolbox import Runner
from finskillbench.harness.trace import Trace
from finskillbench.runs.execute.agent_cost import AgentCost
from finskillbench.runs.execute.limiter import Limiter
from finskillbench.runs.execute.metered import Budget, Metered
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store.journal import compress_trajectory, encode_trajectory
from finskillbench.runs.store.record import Expense


@dataclass(frozen=True, slots=True)
class PreparedEpisode:
    """Episode with its prompt and full input."""

    episode: Episode
    prompt: str
    full_input: Mapping[str, Any]
    open_state: Callable[[], InteractiveState | None] = lambda: None

    def spec(
        self, mounted: Mount, memory: Memory = EMPTY, *, allowance: Allowance = DEFAULT_ALLOWANCE, repeat: int = 0
    ) -> EpisodeSpec:
        """Return the specification of the episode under a condition."""
        return EpisodeSpec(
            self.episode, self.prompt, lambda: self.full_input, mounted, memory, allowance, repeat, self.open_state
        )


def prepare_episode(edition: Edition, episode: Episode) -> PreparedEpisode:
    """Compose the task prompt of an episode and resolve its input.

    Raises `EditionError` if the panels cannot be read or the texts exceed the length of a prompt.
    """
    subtask = find_subtask(episode.sub_task)
    prompt = task_prompt(episode, subtask.answer if subtask is not None else None)
    return PreparedEpisode(
        episode, prompt, edition.full_input(episode), lambda: edition.open_interactive_state(episode)
    )


CACHED_EPISODES = 512
"""Episodes whose prompt and input are cached; a covariance matrix of 30 names takes about 30 KB."""


@dataclass(frozen=True, slots=True)
class AttemptLimits:
    """Limits of an attempt on calls and cost.

    limiter : shared by all episodes of the model; None: no limit.
    budget : budget of the run; None: no limit.
    largest_cost : cost of the most expensive episode of an agent so far, in US dollars.
    on_expense : called under a budget with the cost so far.
    """

    limiter: Limiter | None
    budget: Budget | None
    largest_cost: float
    on_expense: Callable[[Expense], None]


@dataclass(frozen=True, slots=True)
class PlayedEpisode:
    """A finished episode: trace, packed trajectory, and input at full precision.

    `trajectory` packs when called, so that a thread can do it. A trace from a worker has no messages; they are in its
    trajectory.
    """

    trace: Trace
    trajectory: Callable[[], bytes]
    full_input: Mapping[str, Any]


class AttemptCost(Protocol):
    """Cost of an attempt so far: number of calls begun, and US dollars that unanswered calls may have cost."""

    @property
    def calls_begun(self) -> int: ...

    @property
    def lost_usd(self) -> float: ...

    def expense(self) -> Expense:
        """Return calls, usage and lost amount so far."""
        ...


class Attempt(Protocol):
    """One attempt at one episode."""

    @property
    def cost(self) -> AttemptCost: ...

    async def play(self, memory: Memory) -> PlayedEpisode: ...


class Backend(Protocol):
    """Runs episodes."""

    @property
    def machines(self) -> int:
        """Return the number of processes that run in parallel."""
        ...

    def attempt(self, item: Item, limits: AttemptLimits) -> Attempt: ...


class LocalBackend:
    """Backend that runs episodes in this process.

    `participants` are by key, `mounts` by condition; `max_tokens` is the default limit of tokens of a call, `play` the
    loop.
    """

    machines = 1

    def __init__(
        self,
        edition: Edition,
        participants: Mapping[ModelKey, Participant],
        mounts: Mapping[str, Mount],
        resources: Resources,
        max_tokens: int,
        play: Play = run_episode,
    ) -> None:
        self.edition, self.participants, self.mounts = edition, participants, mounts
        self.resources, self.max_tokens, self.play = resources, max_tokens, play
        self.by_id: dict[str, Episode] = {each.task_id: each for each in edition.episodes()}
        self.prepared = lru_cache(maxsize=CACHED_EPISODES)(self._prepare)

    def attempt(self, item: Item, limits: AttemptLimits) -> LocalAttempt:
        """Return a new attempt at an episode."""
        participant = self.participants[item.model_key]
        if isinstance(participant, Agent):
            cost = AgentCost(limits.budget, limits.largest_cost, limits.on_expense)
            return LocalAttempt(self, item, cost, partial(self._play_agent, participant, cost))
        max_tokens = item.model_key.named_arguments.get("max_tokens", self.max_tokens)
        calls = Metered(participant, limits.limiter, limits.budget, max_tokens, limits.on_expense, self.resources.clock)
        return LocalAttempt(self, item, calls, partial(self.play, calls))

    async def _play_agent(self, agent: Agent, cost: AgentCost, spec: EpisodeSpec, resources: Resources) -> Trace:
        await cost.begin()
        trace = await play_episode(agent, spec, resources)
        cost.end(trace.usage)
        return trace

    def _prepare(self, task_id: str) -> PreparedEpisode:
        return prepare_episode(self.edition, self.by_id[task_id])


PlaySpec = Callable[[EpisodeSpec, Resources], Awaitable[Trace]]


class LocalAttempt:
    def __init__(self, backend: LocalBackend, item: Item, cost: AttemptCost, play: PlaySpec) -> None:
        self.cost, self._backend, self._item, self._play = cost, backend, item, play

    async def play(self, memory: Memory) -> PlayedEpisode:
        """Run the episode to its end; raises as `finskillbench.harness.loop.run_episode`."""
        backend, item = self._backend, self._item
        prepared, allowance = backend.prepared(item.task_id), allowance_of(item.model_key)
        spec = prepared.spec(backend.mounts[item.condition], memory, allowance=allowance, repeat=item.run_idx)
        trace = await self._play(spec, backend.resources)
        data = encode_trajectory(item, prepared.episode, trace, edition_digest=backend.edition.digest)
        return PlayedEpisode(trace, partial(compress_trajectory, data), prepared.full_input)


@contextmanager
def open_resources(
    edition: Edition,
    mounts: Iterable[Mount],
    scratch: Path,
    *,
    allow_unconfined: bool,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Generator[Resources]:
    """Open script runner, interpreters and filings for the given conditions in this process."""
    mounts = list(mounts)
    with ExitStack() as stack:
        runner: Runner | None = None
        if any(mounted.arm.scripts for mounted in mounts):
            runner = stack.enter_context(MountedScripts(mounts, allow_unconfined=allow_unconfined))
        arms = [mounted.arm for mounted in mounts]
        yield Resources(
            runner=runner,
            interpreters=stack.enter_context(Interpreters(arms, allow_unconfined=allow_unconfined)),
            filings=edition.filings,
            scratch_root=scratch,
            clock=asyncio.get_running_loop().time,
            sleep=sleep,
        )
