"""`run.json`: what a run was asked to do and with what, so that a resumed run is the same run."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from finskillbench.errors import InputError
from finskillbench.harness.conditions import Condition, Mount
from finskillbench.harness.prompts import wording_digest
from finskillbench.runs.files import write_beside
from finskillbench.runs.plan import Plan
from finskillbench.runs.version import code_version, scorer_version

FILE = "run.json"
_INFORMATION = ("versions", "edition_path")
"""Parts of the record that may differ between the start of a run and its resumption."""


def make_record(
    arguments: Mapping[str, Any],
    edition_digest: str,
    edition_path: Path,
    plan: Plan,
    mounts: Mapping[Condition, Mount],
) -> dict[str, Any]:
    """Everything that decides the outcome of a run, as JSON.

    `arguments` are those that change results; concurrency is not one of them.
    """
    return {
        "arguments": dict(arguments),
        "edition_digest": edition_digest,
        "edition_path": str(edition_path),
        "plan": {"digest": plan.digest, "items": len(plan.items), "episodes": len(plan.episodes)},
        "prompts_digest": wording_digest(),
        "code_version": code_version(),
        "scorer_version": scorer_version(),
        "mounts": {
            condition.value: {"digest": mounted.digest, "packages": mounted.package_digests()}
            for condition, mounted in mounts.items()
        },
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


def _compare(path: Path, record: Mapping[str, Any]) -> None:
    try:
        old = orjson.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not a readable run record ({error}); choose another --out") from error
    now = orjson.loads(orjson.dumps(record))
    if not isinstance(old, dict):
        raise InputError(f"{path}: not a run record; choose another --out")
    differing = _differences(
        {key: value for key, value in old.items() if key not in _INFORMATION},
        {key: value for key, value in now.items() if key not in _INFORMATION},
    )
    if differing:
        # The arguments come first and explain the digests that follow from them.
        raise InputError(
            f"{path.parent}: started with another {differing[0]}; choose another --out, or the same values"
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
