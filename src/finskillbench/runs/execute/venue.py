"""Where the episodes of a run are played: in this process, or on the workers of a cluster."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from uuid import uuid4

from finskillbench.edition import Edition
from finskillbench.errors import InputError
from finskillbench.harness.conditions import Mount
from finskillbench.harness.loop import Harness, Play
from finskillbench.harness.models import ModelConfig, ModelKey, ModelOptions, Participant
from finskillbench.harness.skills.runner import check_guards
from finskillbench.harness.skills.user_skills import SkillFolder
from finskillbench.harness.trace import OURS
from finskillbench.runs.execute.here import Here, Place, surrounded
from finskillbench.runs.execute.work import Job, Limits, Where


@dataclass(frozen=True, slots=True)
class Party:
    """Who plays what under what: the entrants as they are, and in the same order as they were given."""

    edition: Edition
    entrants: Mapping[ModelKey, Participant]
    given: Sequence[str | Participant | ModelConfig]
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
    from finskillbench.harness.serialization import serializable
    from finskillbench.runs.cluster.driver import DaskBackend
    from finskillbench.runs.cluster.worker import WorkerConfig

    skills = {
        name: each if isinstance(each, SkillFolder) else SkillFolder(Path(each)) for name, each in party.skills.items()
    }

    config = WorkerConfig(
        run=f"finskillbench-{uuid4().hex[:12]}",
        edition=str(party.edition.path.resolve()),
        digest=party.edition.digest,
        models=tuple((entry, serializable(each, party.entrants[entry])) for entry, each in _contenders(party)),
        mounts={name: each.digest for name, each in party.mounts.items()},
        skills={name: replace(each, folder=each.folder.resolve()) for name, each in skills.items()},
        max_tokens=limits.max_tokens,
        max_concurrency=limits.max_concurrency,
        max_cost=limits.max_cost,
        allow_unconfined=limits.allow_unconfined,
    )
    async with connected(cluster) as connection:
        backend = DaskBackend(connection, config, party.edition, party.entrants)
        await backend.attach(*await connection.first_workers())
        yield backend.playing, backend.guards


@asynccontextmanager
async def _here(party: Party, limits: Limits, play: Play, job: Job) -> AsyncGenerator[Place]:
    mounts = [party.mounts[name] for name in job.conditions]
    allow = limits.allow_unconfined
    with surrounded(party.edition, mounts, job.scratch, allow_unconfined=allow, sleep=party.sleep) as around:
        yield Here(party.edition, party.entrants, party.mounts, around, limits.max_tokens, play)


def _contenders(party: Party) -> Iterator[tuple[ModelKey, ModelConfig]]:
    """The entrants as they were given, each with its options."""
    for entry, each in zip(party.entrants, party.given, strict=True):
        given = each if isinstance(each, ModelConfig) else ModelConfig(each)
        yield entry, replace(given, options=given.options or party.options)
