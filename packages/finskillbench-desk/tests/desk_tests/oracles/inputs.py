"""What an agent is given of a task that was just built: tables in the places of their references."""

from __future__ import annotations

from typing import Any

from finskillbench.domains.building import Task
from finskillbench.domains.tables import Table, refers_to_table


def as_seen(task: Task) -> dict[str, Any]:
    given = dict(task.episode.input)
    return {name: Table(task.tables[name]) if refers_to_table(value) else value for name, value in given.items()}
