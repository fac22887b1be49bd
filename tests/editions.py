"""Small editions for tests that need one in milliseconds, and builds and audits in one process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import orjson
import pytest

from finskillbench.edition.store import MANIFEST, episode_row, write_lines, write_manifest
from finskillbench.episode import Episode, Truth


def write_edition(
    folder: Path,
    tasks: Sequence[tuple[Episode, Truth]],
    certificate: Mapping[str, Any] | None = None,
    source: str = "synthetic",
) -> Path:
    """Write episodes with their labels, subtask by subtask, each with the certificate if there is one."""
    counts: dict[str, int] = {}
    for name, group in groupby(tasks, key=lambda task: task[0].sub_task):
        episodes, truths = zip(*group, strict=True)
        counts[name] = len(episodes)
        write_lines(folder / "episodes" / f"{name}.jsonl", map(episode_row, episodes))
        write_lines(folder / "truth" / f"{name}.jsonl", truths)
        if certificate is not None:
            lines = [{"task_id": truth.task_id, "certificate": certificate} for truth in truths]
            write_lines(folder / "certificates" / f"{name}.jsonl", lines)
    write_manifest(
        folder,
        {
            "source": {"kind": source, "names": 2},
            "seed": 1,
            "universe": ["A", "B"],
            "as_of_dates": ["2025-01-31"],
            "counts": counts,
            "parameters": {},
            "notes": ["Made for tests."],
            "versions": {"finskillbench": "0.1.0"},
        },
    )
    return folder


def first_episodes(edition: Path, folder: Path, count: int) -> Path:
    """Write a copy of an edition with the first episodes of each subtask: whole, and as much quicker to go through.

    What its episodes were drawn from, panels and tables, is linked and not copied.
    """
    manifest = orjson.loads((edition / MANIFEST).read_bytes())
    for path in sorted(path for path in edition.rglob("*") if path.is_file() and path.name != MANIFEST):
        copy = folder / path.relative_to(edition)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".jsonl" and path.parent.name in ("episodes", "truth", "certificates"):
            copy.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:count]))
        else:
            copy.hardlink_to(path)
    counts = {name: min(number, count) for name, number in manifest["counts"].items()}
    kept = {name: value for name, value in manifest.items() if name not in ("format", "digest", "files", "seal")}
    write_manifest(folder, kept | {"counts": counts})
    return folder


@contextmanager
def one_process() -> Iterator[None]:
    """Keep builds and audits in this process: another test has the other core, and new processes import for seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "sched_getaffinity", lambda process: {0})
        yield
