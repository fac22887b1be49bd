"""What an agent is given of a task that was just built: tables in the places of their references."""

from __future__ import annotations

from typing import Any

from finskillbench.domains.building import BuiltTask
from finskillbench.domains.tables import EpisodeTable, refers_to_table


def as_seen(task: BuiltTask) -> dict[str, Any]:
    given = dict(task.episode.input)
    return {name: EpisodeTable(task.tables[name]) if refers_to_table(value) else value for name, value in given.items()}
