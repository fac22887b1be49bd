"""A small edition written by hand, for tests that need one in milliseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from finskillbench.edition.store import episode_row, write_lines, write_manifest
from finskillbench.episode import Episode, Truth


def write_edition(
    folder: Path, tasks: Sequence[tuple[Episode, Truth]], certificate: Mapping[str, Any] | None = None
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
            "source": {"kind": "synthetic", "names": 2},
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
