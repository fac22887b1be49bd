"""The definitions and settings that an input states, held against those by which its truth was computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from finskillbench.episode import Episode
from finskillbench.findings import Findings
from finskillbench.scoring.values import mapping


def examine_definitions(
    episode: Episode,
    known: Mapping[str, Any],
    findings: Findings,
    *,
    needed: Iterable[str] | None = None,
) -> None:
    """Every definition that an input states is the engine's, and none that it needs is missing.

    Parameters
    ----------
    known : every definition that an input of this subtask may state.
    needed : those that it must state; None for all of `known`. An imported release has none, so it needs none.
    """
    where, given = episode.task_id, mapping(episode.input.get("conventions"))
    for name, text in sorted(given.items()):
        findings.expect(text == known.get(name), where, f"conventions: {name} is not defined as the engine computes it")
    absent = sorted(set(known if needed is None else needed) - set(given))
    findings.expect(not absent, where, f"conventions: {', '.join(absent)} is not defined")
