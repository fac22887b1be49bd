"""`run.json`: what a run was asked to do and with what, so that a resumed run is the same run."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeGuard

import msgspec
import orjson

from finskillbench.errors import InputError
from finskillbench.harness.conditions import ArmName
from finskillbench.harness.words.prompts import wording_digest
from finskillbench.runs.plan.items import Item, Plan, digest_of, list_items
from finskillbench.runs.store.files import write_beside
from finskillbench.runs.store.version import code_version, scorer_version

FILE = "run.json"
_INFORMATION = ("versions", "edition_path", "sandbox", "interpreters")
"""Parts of the record that may differ between the start of a run and its resumption."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The arguments of a run that change its results; concurrency is not one of them."""

    models: tuple[str, ...]
    conditions: tuple[ArmName, ...]
    subtasks: tuple[str, ...] | None
    limit: int | None
    sample: int | None
    epochs: int
    seed: int
    base_url: str | None
    max_tokens: int
    reasoning_effort: str | None


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """The plan of a run: digest and number of its items, and its episodes in order."""

    digest: str
    items: int
    episodes: int
    task_ids: tuple[str, ...]


def _versions() -> dict[str, str]:
    libraries = {name: version(name) for name in ("numpy", "polars", "clarabel", "pydantic")}
    return {"python": platform.python_version(), **libraries}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """Everything that decides the outcome of a run.

    `mounts` is the proof of `finskillbench.harness.proof.prove_arms`; `shard` the part of the plan that this run takes,
    as "i/n"; `sandbox` the guards that scripts run under, where any are mounted; `interpreters` who runs the scripts of
    skills that were given, by arm.
    """

    arguments: Arguments
    edition_digest: str
    edition_path: str
    shard: str | None
    plan: PlanRecord
    prompts_digest: str = field(default_factory=wording_digest)
    code_version: str = field(default_factory=code_version)
    scorer_version: str = field(default_factory=scorer_version)
    mounts: Mapping[str, Any]
    versions: Mapping[str, str] = field(default_factory=_versions)
    sandbox: Mapping[str, bool] = field(default_factory=dict[str, bool])
    interpreters: Mapping[str, str] = field(default_factory=dict[str, str])

    def items(self) -> tuple[Item, ...]:
        """The items of the whole plan, in its order.

        Raises
        ------
        InputError : they are not those that the plan's digest was made of.
        """
        arguments = self.arguments
        items = list_items(arguments.models, arguments.conditions, self.plan.task_ids, arguments.epochs)
        if digest_of(items) != self.plan.digest:
            raise InputError(f"{FILE}: its arguments are not those of its plan; restore it")
        return items


def record_plan(plan: Plan) -> PlanRecord:
    """The plan as the record keeps it."""
    tasks = tuple(episode.task_id for episode in plan.episodes)
    return PlanRecord(plan.digest, len(plan.items), len(tasks), tasks)


def check_folder(folder: Path, record: RunRecord) -> None:
    """Check, writing nothing, that a folder is absent, empty or that of the same run.

    Raises
    ------
    InputError : the folder holds something else, its record is damaged, or it differs; the message names where.
    """
    try:
        # One look at the folder: another process may be starting the same run in it.
        entries = sorted(entry.name for entry in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror}); choose another --out") from error
    if FILE in entries:
        _compare(folder, record)
        return
    strangers = [name for name in entries if name not in ("run.lock", f"{FILE}.part")]
    if strangers:
        raise InputError(f"{folder}: not empty and no run ({strangers[0]} is there); choose another --out")


def settle_record(folder: Path, record: RunRecord) -> None:
    """Write the record of a new run, or check that the folder's record is of the same run.

    Raises
    ------
    InputError : the folder holds something else, its record is damaged, or it differs; the message names where.
    """
    check_folder(folder, record)
    if not (folder / FILE).exists():
        write_record(folder, record)


def write_record(folder: Path, record: RunRecord) -> None:
    """Write the record of a run folder, in place of the one that is there."""
    data = orjson.dumps(record, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    write_beside(folder / FILE, data, durable=True)


def read_record(folder: Path) -> RunRecord:
    """Read the record of a run folder.

    Raises
    ------
    InputError : it is absent, damaged, or no record.
    """
    path = folder / FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=RunRecord)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not a readable run record ({error}); choose another folder") from error


def differences(old: RunRecord, new: RunRecord) -> list[str]:
    """What decides an outcome and differs between two records, the arguments first: they explain the digests."""
    return _differences(_deciding(old), _deciding(new))


def _deciding(record: RunRecord) -> dict[str, Any]:
    parts: dict[str, Any] = msgspec.to_builtins(record)
    return {name: value for name, value in parts.items() if name not in _INFORMATION}


def _compare(folder: Path, record: RunRecord) -> None:
    differing = differences(read_record(folder), record)
    if differing:
        judged = differing[0].startswith("scorer_version ")
        remedy = "judge it again with finskillbench rescore, or choose another --out"
        raise InputError(
            f"{folder}: started with another {differing[0]}; "
            f"{remedy if judged else 'choose another --out, or the same values'}"
        )


def _differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> list[str]:
    found: list[str] = []
    for key in [*new, *(key for key in old if key not in new)]:
        then, now = old.get(key), new.get(key)
        if _is_object(then) and _is_object(now):
            found += _differences(then, now, f"{prefix}{key}.")
        elif then != now:
            found.append(f"{prefix.removeprefix('arguments.')}{key} (then {_brief(then)}, now {_brief(now)})")
    return found


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _brief(value: object) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= 80 else text[:77] + "..."
