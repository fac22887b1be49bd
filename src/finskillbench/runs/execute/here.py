"""Where episodes are played: the contract, and this process, which a worker of a cluster is as well.

Nothing here knows the truth: an episode comes back as its trace, and whoever asked for it judges.

What an agent's episode costs, which only the agent knows, and tells when it is over.

No bound of it is known beforehand, as it is for a model call. Under a budget the price of the dearest episode so far is
set aside before each, so a run goes beyond its limit by no more than what the episodes in flight cost above that.

What the loop needs of an episode: its prompt, and its input at full precision.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Protocol

from finskillbench.domains import by_method, by_name
from finskillbench.domains.base import Subtask
from finskillbench.domains.interactive import InteractiveState
from finskillbench.edition import Edition
from finskillbench.episode import Episode
from finskillbench.errors import InputError
from finskillbench.harness.agents import Agent, play_episode
from finskillbench.harness.allowance import FULL, Allowance
from finskillbench.harness.conditions import Mount
from finskillbench.harness.episode_state import EpisodeSpec, Resources
from finskillbench.harness.loop import Play, run_episode
from finskillbench.harness.model import FREE, Usage
from finskillbench.harness.models import ModelKey, Participant, allowance_of
from finskillbench.harness.prompts.compose import task_prompt
from finskillbench.harness.skills.runner import MountedScripts
from finskillbench.harness.skills.user_skills import EMPTY, Memory
from finskillbench.harness.tools.interpreters import Interpreters
from finskillbench.harness.tools.toolbox import Runner
from finskillbench.harness.trace import Trace
from finskillbench.runs.execute.limiter import Limiter
from finskillbench.runs.execute.metered import Budget, Metered
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store.journal import encoded, packed
from finskillbench.runs.store.record import Expense


class Tab:
    """The price of one episode of an agent.

    `asked` says whether it was begun; `lost_usd` is what it may have cost where it does not say, as the dearest.

    Parameters
    ----------
    budget : of the run; None where nothing limits it.
    dearest : the price of the dearest episode so far, in US dollars.
    note : called with what is set aside, before the episode begins.
    """

    def __init__(self, budget: Budget | None, dearest: float, note: Callable[[Expense], None]) -> None:
        self.asked = 0
        self.lost_usd = 0.0
        self._budget, self._dearest, self._note = budget, dearest, note

    async def begin(self) -> None:
        """Set aside what the episode may cost.

        Raises
        ------
        RunStoppedError : the budget does not reach.
        """
        if self._budget is not None:
            await self._budget.reserve(self._dearest)
            self.lost_usd = self._dearest
            self._note(self.expense())
        self.asked = 1

    def end(self, usage: Usage) -> None:
        """Take what it has cost, or what was set aside where it does not say."""
        if self._budget is not None:
            self.lost_usd = self._dearest if usage.cost_usd is None else 0.0
            self._budget.settle(self._dearest, usage.cost_usd or 0.0, self.lost_usd)

    def expense(self) -> Expense:
        """What the episode may have cost so far."""
        return Expense(0, FREE, self.lost_usd)


@dataclass(frozen=True, slots=True)
class Material:
    """An episode ready to be run."""

    episode: Episode
    prompt: str
    full_input: Mapping[str, Any]
    open_stage: Callable[[], InteractiveState | None] = lambda: None

    def under(
        self, mounted: Mount, memory: Memory = EMPTY, *, allowance: Allowance = FULL, repeat: int = 0
    ) -> EpisodeSpec:
        """What is played under an arm."""
        return EpisodeSpec(
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


CACHED_EPISODES = 512
"""Episodes whose prompt and full input are kept: a covariance of 30 names takes some 30 KB."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What an episode is played under, beside its item: what its model or agent may do and spend.

    `limiter` is of all episodes of the model, `budget` of the run, None where there is none. `dearest` is the price of
    the dearest episode of an agent so far, in US dollars. `note` is called under a budget with what it has cost so far.
    """

    limiter: Limiter | None
    budget: Budget | None
    dearest: float
    note: Callable[[Expense], None]


@dataclass(frozen=True, slots=True)
class Played:
    """An episode that is over: its trace, its trajectory, and its input at full precision.

    `trajectory` gives it as it is written; called in a thread, it leaves the loop free while it packs. The trace of one
    that was played elsewhere comes without its messages, which stand in the trajectory.
    """

    trace: Trace
    trajectory: Callable[[], bytes]
    full_input: Mapping[str, Any]


class Sitting(Protocol):
    """One try at one episode: `asked` counts the calls that were made, `lost_usd` bounds what unanswered ones cost."""

    @property
    def asked(self) -> int: ...

    @property
    def lost_usd(self) -> float: ...

    def expense(self) -> Expense:
        """What it has cost so far."""
        ...

    async def play(self, memory: Memory) -> Played:
        """Play it to its end; errors as of `finskillbench.harness.loop.run_episode`."""
        ...


class Place(Protocol):
    """Where episodes are played."""

    @property
    def machines(self) -> int:
        """How many processes play side by side."""
        ...

    def sitting(self, item: Item, terms: Terms) -> Sitting:
        """A place for one try at an episode."""
        ...


class Here:
    """This process as a place: models, arms and what surrounds them.

    Parameters
    ----------
    edition : whose episodes are played.
    entrants, mounts : who plays and what is mounted, by entry and by condition.
    around : scripts, interpreters, filings, scratch folder, clock.
    max_tokens : the most that one call may generate, of a model that says nothing else.
    play : the loop between models and tools.
    """

    machines = 1

    def __init__(
        self,
        edition: Edition,
        entrants: Mapping[ModelKey, Participant],
        mounts: Mapping[str, Mount],
        around: Resources,
        max_tokens: int,
        play: Play = run_episode,
    ) -> None:
        self.edition, self.entrants, self.mounts = edition, entrants, mounts
        self.around, self.max_tokens, self.play = around, max_tokens, play
        self.by_id: dict[str, Episode] = {each.task_id: each for each in edition.episodes()}
        self.material = lru_cache(maxsize=CACHED_EPISODES)(self._material)

    def sitting(self, item: Item, terms: Terms) -> Sitting:
        """A place for one try at an episode."""
        entrant = self.entrants[item.entry]
        if isinstance(entrant, Agent):
            return _OfAgent(self, item, entrant, Tab(terms.budget, terms.dearest, terms.note))
        max_tokens = item.entry.by_name.get("max_tokens", self.max_tokens)
        meter = Metered(entrant, terms.limiter, terms.budget, max_tokens, terms.note, self.around.clock)
        return _OfModel(self, item, meter)

    def played(self, item: Item, material: Material, trace: Trace) -> Played:
        """What is handed back of an episode."""
        data = encoded(item, material.episode, trace, edition_digest=self.edition.digest)
        return Played(trace, partial(packed, data), material.full_input)

    def _material(self, task_id: str) -> Material:
        return prepare(self.edition, self.by_id[task_id])


class _OfModel:
    """An episode of a model in our loop, or in that of another harness."""

    def __init__(self, here: Here, item: Item, meter: Metered) -> None:
        self._here, self._item, self._meter = here, item, meter

    @property
    def asked(self) -> int:
        return self._meter.asked

    @property
    def lost_usd(self) -> float:
        return self._meter.lost_usd

    def expense(self) -> Expense:
        return self._meter.expense()

    async def play(self, memory: Memory) -> Played:
        here, item = self._here, self._item
        material, allowance = here.material(item.task_id), allowance_of(item.entry)
        given = material.under(here.mounts[item.condition], memory, allowance=allowance, repeat=item.run_idx)
        return here.played(item, material, await here.play(self._meter, given, here.around))


class _OfAgent:
    """An episode of an agent, whose calls do not pass through here."""

    def __init__(self, here: Here, item: Item, agent: Agent, tab: Tab) -> None:
        self._here, self._item, self._agent, self._tab = here, item, agent, tab

    @property
    def asked(self) -> int:
        return self._tab.asked

    @property
    def lost_usd(self) -> float:
        return self._tab.lost_usd

    def expense(self) -> Expense:
        return self._tab.expense()

    async def play(self, memory: Memory) -> Played:
        here, item = self._here, self._item
        material, allowance = here.material(item.task_id), allowance_of(item.entry)
        given = material.under(here.mounts[item.condition], memory, allowance=allowance, repeat=item.run_idx)
        await self._tab.begin()
        trace = await play_episode(self._agent, given, here.around)
        self._tab.end(trace.usage)
        return here.played(item, material, trace)


@contextmanager
def surrounded(
    edition: Edition,
    mounts: Iterable[Mount],
    scratch: Path,
    *,
    allow_unconfined: bool,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Generator[Resources]:
    """What surrounds episodes under some arms in this process and its event loop: scripts, interpreters, filings."""
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
