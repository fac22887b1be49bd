"""Tasks of a small edition whose labels are the examples of the scoring tests."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from tests.scoring.examples import truth

from finskillbench.domains import domain_of
from finskillbench.episode import Episode, Prompt, Truth


def tasks() -> list[tuple[Episode, Truth]]:
    """One task of each of three subtasks."""
    prompt, day = Prompt("Do it.", "Answer as JSON."), date(2025, 1, 31)
    found: list[tuple[Episode, Truth]] = []
    for name in ("tool_use_parameterization", "rebalancing", "normalization"):
        label = replace(truth(name), task_id=f"{name}_1")
        found.append((Episode(label.task_id, domain_of(name).name, name, day, "easy", {}, prompt), label))
    return found
