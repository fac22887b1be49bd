"""What a worker is told of a run: by name, so that each makes its own, except objects that have no name.

No key travels: models that are named are made on the worker and read its environment, and an object that holds the
value of a secret of the driver's environment is refused.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from finskillbench.edition import Edition, load_edition
from finskillbench.errors import EditionError, InputError
from finskillbench.harness.conditions import Mount, mount_all
from finskillbench.harness.models import BASELINES, Contender, Entrant, Entry, ModelOptions, get_entrant
from finskillbench.harness.providers.prices import Price, PriceTable
from finskillbench.harness.skills.given import SkillFolder, read_given
from finskillbench.harness.skills.runner import check_guards
from finskillbench.redaction import redactor_of_process, without_keys

EDITION = "FINSKILLBENCH_CLUSTER_EDITION"
"""Variable of a worker's environment: where the edition is there, if not at the driver's path."""


@dataclass(frozen=True, slots=True)
class Named:
    """A model or an agent that a worker makes by its name; its options travel without their table of prices.

    `prices` and `batch` are those of the table, as mappings that can be pickled.
    """

    name: str
    options: ModelOptions
    prices: Mapping[str, Price]
    batch: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Brought:
    """A model or an agent as an object, pickled."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Room:
    """All that decides how an episode comes out, and what the worker's own must agree with.

    `mounts` are the digests by condition, `budgeted` says whether a budget is to be asked.
    """

    edition: str
    digest: str
    entrants: tuple[tuple[Entry, Named | Brought], ...]
    mounts: Mapping[str, str]
    skills: Mapping[str, SkillFolder]
    max_tokens: int
    allow_unconfined: bool
    budgeted: bool


def make_room(
    edition: Edition,
    entrants: Mapping[Entry, Entrant],
    contenders: Mapping[Entry, Contender],
    mounts: Mapping[str, Mount],
    skills: Mapping[str, SkillFolder | Path | str],
    *,
    max_tokens: int,
    allow_unconfined: bool,
    budgeted: bool,
) -> Room:
    """What the workers of a cluster are told; `contenders` are the entrants as they were given.

    Raises
    ------
    InputError : a model or an agent was given as an object that cannot travel.
    """
    folders = {
        name: each if isinstance(each, SkillFolder) else SkillFolder(Path(each)) for name, each in skills.items()
    }
    return Room(
        str(edition.path.resolve()),
        edition.digest,
        tuple((entry, _described(contenders[entry], entrant)) for entry, entrant in entrants.items()),
        {name: each.digest for name, each in mounts.items()},
        {name: replace(each, folder=each.folder.resolve()) for name, each in folders.items()},
        max_tokens,
        allow_unconfined,
        budgeted,
    )


def _described(given: Contender, entrant: Entrant) -> Named | Brought:
    options = given.options or ModelOptions()
    if isinstance(given.model, str) or entrant.name in BASELINES:
        name = given.model if isinstance(given.model, str) else entrant.name
        if options.response_cache is not None and name not in BASELINES:
            raise InputError("--response-cache is a file of one process; leave it out under --cluster")
        table = options.prices
        bare = replace(options, prices=PriceTable({}, table.as_of), model_args=dict(options.model_args))
        _refuse_keys(f"{name} {bare!r}")
        return Named(name, bare, dict(table.prices), dict(table.batch))
    return Brought(_pickled(entrant))


def _refuse_keys(told: str) -> None:
    if without_keys(redactor_of_process()(told)) != told:
        raise InputError("a model's name or an option of it holds a key; give keys by the environment of every worker")


def _pickled(entrant: Entrant) -> bytes:
    import cloudpickle

    remedy = "give it by where it is defined, as package.module:name, and each worker makes its own"
    try:
        data = cast("bytes", cast("Any", cloudpickle).dumps(entrant))
    except Exception as error:  # pickling runs code of whoever wrote the object, which may raise anything
        told = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{entrant.name} cannot be sent to workers ({told}); {remedy}") from error
    text = data.decode("latin-1")
    if redactor_of_process()(text) != text:
        raise InputError(f"{entrant.name} holds a key of the environment, which never leaves this process; {remedy}")
    return data


class Withheld(Edition):
    """An edition where agents are played: whatever else its folder holds, nobody reads a truth from it."""

    def truth(self, task_id: str) -> Any:
        """Refuse."""
        raise EditionError(f"{self.path}: the truth of {task_id} was asked for where agents are played")

    def certificates(self, sub_task: str) -> Any:
        """Refuse."""
        raise EditionError(f"{self.path}: the certificates of {sub_task} were asked for where agents are played")


@dataclass(frozen=True, slots=True)
class Furnished:
    """A room on a worker: the edition without its truth, who plays, what is mounted, and the guards of the sandbox."""

    edition: Edition
    entrants: Mapping[Entry, Entrant]
    mounts: Mapping[str, Mount]
    guards: Mapping[str, bool]


_editions: dict[tuple[str, str], Edition] = {}
"""Editions that this process has verified, by folder and digest: a worker serves many runs of one."""


def furnish(room: Room) -> Furnished:
    """Make everything that a room names in this process.

    Raises
    ------
    InputError, EditionError : the edition cannot be read here or is another one, a mount is another one, a model lacks
        its package or its key, or scripts of others cannot be confined here.
    """
    edition = _edition(Path(os.environ.get(EDITION, room.edition)), room.digest)
    mounts = mount_all(room.mounts, read_given(room.skills))
    for name, each in mounts.items():
        if each.digest != room.mounts[name]:
            raise InputError(
                f"the skills of {name} are others than the driver's; bring the same folder to every worker"
            )
    guards = check_guards(mounts.values(), allow_unconfined=room.allow_unconfined)
    return Furnished(edition, {entry: _made(each) for entry, each in room.entrants}, mounts, guards)


def _edition(folder: Path, digest: str) -> Edition:
    key = str(folder), digest
    if key not in _editions:
        try:
            loaded = load_edition(folder)
        except (EditionError, OSError) as error:
            raise EditionError(
                f"{error}; put the edition at {folder} on every worker, or name its folder there in {EDITION} (truth/ "
                "and certificates/ may be left out)"
            ) from None
        if loaded.digest != digest:
            raise EditionError(
                f"{folder} is another edition ({loaded.digest[:12]}, the driver's is {digest[:12]}); bring the same one"
            )
        _editions[key] = Withheld(loaded.path, loaded.manifest)
    return _editions[key]


def _made(given: Named | Brought) -> Entrant:
    if isinstance(given, Named):
        prices = PriceTable(given.prices, given.options.prices.as_of, given.batch)
        return get_entrant(given.name, replace(given.options, prices=prices))
    import cloudpickle

    try:
        return cast("Any", cloudpickle).loads(given.data)
    except Exception as error:  # whatever a module of whoever wrote the object raises when it is imported
        raise InputError(
            f"a model given as an object cannot be made here ({error}); install its package on every worker"
        ) from error
