"""Choose the backend of a run: this process, or the workers of a cluster."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from uuid import uuid4

from finskillbench.edition import Edition
from finskillbench.errors import InputError
from finskillbench.harness.conditions import Mount
from finskillbench.harness.loop import Play
from finskillbench.harness.models import ModelKey, Participant
from finskillbench.harness.skills.runner import check_guards
from finskillbench.harness.skills.user_skills import SkillFolder
from finskillbench.harness.trace import BUILTIN_HARNESS
from finskillbench.runs.config import RunConfig
from finskillbench.runs.execute.backend import Backend, LocalBackend, open_resources
from finskillbench.runs.execute.executor import Job, OpenBackend


@dataclass(frozen=True, slots=True)
class Participants:
    """Edition, models and agents by key in the order of the configuration, and mounted skills by condition."""

    edition: Edition
    models: Mapping[ModelKey, Participant]
    mounts: Mapping[str, Mount]


@asynccontextmanager
async def open_backend(
    participants: Participants, config: RunConfig, sleep: Callable[[float], Awaitable[None]]
) -> AsyncGenerator[tuple[OpenBackend, Mapping[str, bool]]]:
    """Yield a function that opens the backend, and the guards of scripts there.

    Raises `InputError` if scripts cannot be confined, or the cluster cannot be reached or cannot run the configuration.
    """
    edition, mounts, limits = participants.edition, participants.mounts, config.limits
    if config.cluster is None:
        guards = check_guards(mounts.values(), allow_unconfined=limits.allow_unconfined)
        async with config.harness.opened() as play:
            yield partial(_open_local, participants, config, sleep, play), guards
        return
    if config.harness.name != BUILTIN_HARNESS:
        raise InputError(f"--cluster cannot use the harness {config.harness.name}; leave --harness out")
    from finskillbench.cluster.connection import connected, require_cluster_extra

    require_cluster_extra()
    from finskillbench.harness.serialization import serialize
    from finskillbench.runs.cluster.driver import DaskBackend
    from finskillbench.runs.cluster.worker import WorkerConfig

    skills = {
        name: each if isinstance(each, SkillFolder) else SkillFolder(Path(each)) for name, each in config.skills.items()
    }
    configured = [replace(each, options=each.options or config.options) for each in config.models]
    worker_config = WorkerConfig(
        run=f"finskillbench-{uuid4().hex[:12]}",
        edition=str(edition.path.resolve()),
        digest=edition.digest,
        models=tuple(
            (key, serialize(each, model))
            for (key, model), each in zip(participants.models.items(), configured, strict=True)
        ),
        mounts={name: each.digest for name, each in mounts.items()},
        skills={name: replace(each, folder=each.folder.resolve()) for name, each in skills.items()},
        library=None if config.library is None else config.library.resolve(),
        max_tokens=config.options.max_tokens,
        max_concurrency=limits.max_concurrency,
        max_cost=limits.max_cost,
        allow_unconfined=limits.allow_unconfined,
    )
    async with connected(config.cluster) as connection:
        backend = DaskBackend(connection, worker_config, edition, participants.models)
        await backend.attach(*await connection.first_workers())
        yield backend.playing, backend.guards


@asynccontextmanager
async def _open_local(
    participants: Participants, config: RunConfig, sleep: Callable[[float], Awaitable[None]], play: Play, job: Job
) -> AsyncGenerator[Backend]:
    edition, mounts, allow = participants.edition, participants.mounts, config.limits.allow_unconfined
    mounted = [mounts[name] for name in job.conditions]
    with open_resources(edition, mounted, job.scratch, allow_unconfined=allow, sleep=sleep) as resources:
        yield LocalBackend(edition, participants.models, mounts, resources, config.options.max_tokens, play)
