"""Editions small enough to be copied, damaged and read by every command a hundred times."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from finskillbench.edition.store import MANIFEST, read_lines, write_lines, write_manifest

Row = dict[str, Any]


def shrink(edition: Path, folder: Path, sub_tasks: Sequence[str]) -> Path:
    """Copy the first episode of some subtasks and what their inputs refer to, under a manifest of its own."""
    for name in sub_tasks:
        for part in ("episodes", "truth", "certificates"):
            rows = [next(read_lines(edition / part / f"{name}.jsonl"))]
            if part == "episodes":
                _carry(rows[0]["input"], edition, folder)
            write_lines(folder / part / f"{name}.jsonl", rows)
    manifest = orjson.loads((edition / MANIFEST).read_bytes())
    manifest |= {"counts": dict.fromkeys(sub_tasks, 1), "subtasks": list(sub_tasks), "work": {}, "parameters": {}}
    (folder / MANIFEST).write_bytes(orjson.dumps(manifest))
    reseal(folder)
    return folder


def _carry(task_input: Row, edition: Path, folder: Path) -> None:
    """Copy what an input refers to: a covariance to a place where no panels are, of the facts one company's."""
    for value in task_input.values():
        if not isinstance(value, dict) or "ref" not in value:
            continue
        if value["ref"].endswith(".npz"):
            (folder / "inputs").mkdir(parents=True, exist_ok=True)
            place = f"inputs/{Path(value['ref']).name}" if (folder / COVARIANCE).exists() else COVARIANCE
            shutil.copyfile(edition / value["ref"], folder / place)
            value["ref"] = place
        else:
            (folder / "panels").mkdir(parents=True)
            for name in ("facts", "filings", "segments", "filed"):
                table = pl.read_parquet(edition / "panels" / f"{name}.parquet")
                table.filter(symbol=value["symbol"]).write_parquet(folder / "panels" / f"{name}.parquet")


COVARIANCE = "inputs/covariance.npz"


def reseal(folder: Path, change: Callable[[Row], None] = lambda manifest: None) -> None:
    """Write a manifest that fits whatever the folder now holds, as whoever altered it would."""
    manifest = orjson.loads((folder / MANIFEST).read_bytes())
    change(manifest)
    write_manifest(folder, {name: value for name, value in manifest.items() if name not in _SEALED})


_SEALED = ("format", "digest", "files", "seal")
