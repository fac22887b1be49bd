"""Where the episodes of a run are played: in this process, or on the workers of a cluster."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from finskillbench.edition import Edition
from finskillbench.errors import InputError
from finskillbench.harness.conditions import Mount
from finskillbench.harness.loop import Harness, Play
from finskillbench.harness.models import Contender, Entrant, Entry, ModelOptions
from finskillbench.harness.skills.given import SkillFolder
from finskillbench.harness.skills.runner import check_guards
from finskillbench.harness.trace import OURS
from finskillbench.runs.execute.here import Here, Place, surrounded
from finskillbench.runs.execute.work import Job, Limits, Where


@dataclass(frozen=True, slots=True)
class Party:
    """Who plays what under what: the entrants as they are, and in the same order as they were given."""

    edition: Edition
    entrants: Mapping[Entry, Entrant]
    given: Sequence[str | Entrant | Contender]
    mounts: Mapping[str, Mount]
    skills: Mapping[str, SkillFolder | Path | str]
    options: ModelOptions
    harness: Harness
    sleep: Callable[[float], Awaitable[None]]


@asynccontextmanager
async def venue(cluster: str | None, party: Party, limits: Limits) -> AsyncGenerator[tuple[Where, Mapping[str, bool]]]:
    """The place of a run, to be opened when there is something to play, and the guards that scripts have there.

    Raises
    ------
    InputError : scripts of others cannot be confined there, or the cluster cannot be reached or cannot play this.
    """
    if cluster is None:
        guards = check_guards(party.mounts.values(), allow_unconfined=limits.allow_unconfined)
        async with party.harness.opened() as play:
            yield partial(_here, party, limits, play), guards
        return
    if party.harness.name != OURS:
        raise InputError(f"--cluster plays in our own loop, not in that of {party.harness.name}; leave --harness out")
    from finskillbench.cluster.connection import connected, require_extra

    require_extra()
    from finskillbench.runs.cluster.driver import examined, seated
    from finskillbench.runs.cluster.room import make_room

    room = make_room(
        *(party.edition, party.entrants, _contenders(party), party.mounts, party.skills),
        max_tokens=limits.max_tokens,
        allow_unconfined=limits.allow_unconfined,
        budgeted=limits.max_cost is not None,
    )
    async with connected(cluster) as connection:
        guards = await examined(connection, room, await connection.first_workers())

        def seats(job: Job) -> AbstractAsyncContextManager[Place]:
            return seated(connection, room, party.edition, party.entrants, job)

        yield seats, guards


@asynccontextmanager
async def _here(party: Party, limits: Limits, play: Play, job: Job) -> AsyncGenerator[Place]:
    mounts = [party.mounts[name] for name in job.conditions]
    allow = limits.allow_unconfined
    with surrounded(party.edition, mounts, job.scratch, allow_unconfined=allow, sleep=party.sleep) as around:
        yield Here(party.edition, party.entrants, party.mounts, around, limits.max_tokens, play)


def _contenders(party: Party) -> dict[Entry, Contender]:
    """The entrants as they were given, each with its options."""
    given = [each if isinstance(each, Contender) else Contender(each) for each in party.given]
    return {
        entry: Contender(each.model, each.options or party.options, each.allowance)
        for entry, each in zip(party.entrants, given, strict=True)
    }
