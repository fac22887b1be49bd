"""`run.json`: what a run was asked to do and with what, so that a resumed run is the same run."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from finskillbench.errors import InputError
from finskillbench.harness.prompts import wording_digest
from finskillbench.runs.plan.items import Plan
from finskillbench.runs.store.files import write_beside
from finskillbench.runs.store.version import code_version, scorer_version

FILE = "run.json"
_INFORMATION = ("versions", "edition_path")
"""Parts of the record that may differ between the start of a run and its resumption."""


def make_record(
    arguments: Mapping[str, Any],
    edition_digest: str,
    edition_path: Path,
    plan: Plan,
    mounts: Mapping[str, Any],
    shard: str | None,
) -> dict[str, Any]:
    """Everything that decides the outcome of a run, as JSON.

    `arguments` are those that change results; concurrency is not one of them. `mounts` is the proof of
    `finskillbench.harness.proof.prove_arms`. `shard` is the part of the plan that this run takes, as "i/n".
    """
    return {
        "arguments": dict(arguments),
        "edition_digest": edition_digest,
        "edition_path": str(edition_path),
        "shard": shard,
        "plan": {
            "digest": plan.digest,
            "items": len(plan.items),
            "episodes": len(plan.episodes),
            "task_ids": [episode.task_id for episode in plan.episodes],
        },
        "prompts_digest": wording_digest(),
        "code_version": code_version(),
        "scorer_version": scorer_version(),
        "mounts": mounts,
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "polars", "clarabel", "pydantic")},
        },
    }


def check_folder(folder: Path, record: Mapping[str, Any]) -> None:
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
        _compare(folder / FILE, record)
        return
    strangers = [name for name in entries if name not in ("run.lock", f"{FILE}.part")]
    if strangers:
        raise InputError(f"{folder}: not empty and no run ({strangers[0]} is there); choose another --out")


def settle_record(folder: Path, record: Mapping[str, Any]) -> None:
    """Write the record of a new run, or check that the folder's record is of the same run.

    Raises
    ------
    InputError : the folder holds something else, its record is damaged, or it differs; the message names where.
    """
    check_folder(folder, record)
    path = folder / FILE
    if not path.exists():
        write_beside(path, orjson.dumps(record, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE), durable=True)


def read_record(path: Path) -> dict[str, Any]:
    """Read a `run.json`.

    Raises
    ------
    InputError : it is absent, damaged, or no record.
    """
    try:
        record = orjson.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not a readable run record ({error}); choose another folder") from error
    if not isinstance(record, dict):
        raise InputError(f"{path}: not a run record; choose another folder")
    return record


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What decides an outcome and differs between two records, the arguments first: they explain the digests."""
    return _differences(
        {key: value for key, value in old.items() if key not in _INFORMATION},
        {key: value for key, value in new.items() if key not in _INFORMATION},
    )


def _compare(path: Path, record: Mapping[str, Any]) -> None:
    differing = differences(read_record(path), orjson.loads(orjson.dumps(record)))
    if differing:
        judged = differing[0].startswith("scorer_version ")
        mend = "judge it again with finskillbench rescore, or choose another --out"
        raise InputError(
            f"{path.parent}: started with another {differing[0]}; "
            f"{mend if judged else 'choose another --out, or the same values'}"
        )


def _differences(old: Any, new: Any, prefix: str = "") -> list[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        keys = [*new, *(key for key in old if key not in new)]
        return [
            text
            for key in keys
            for text in _differences(old.get(key), new.get(key), f"{prefix}.{key}" if prefix else str(key))
        ]
    name = prefix.removeprefix("arguments.")
    return [] if old == new else [f"{name} (then {_brief(old)}, now {_brief(new)})"]


def _brief(value: Any) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= 80 else text[:77] + "..."
