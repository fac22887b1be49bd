"""Coverage of an edition's episodes and files, definitions of inputs, and panel helpers shared by domains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from functools import cache
from typing import Any, cast

import numpy as np

from finskillbench.domains.base import Subtask
from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.engines.statistics.covariance import Covariance
from finskillbench.episode import Episode
from finskillbench.findings import Findings
from finskillbench.panels import Panels
from finskillbench.panels.market.estimates.views import WINDOW
from finskillbench.scoring.values import as_object

_SHIFTS = (-21, -5, -1, 1, 5, 21)
"""Shifts in sessions at which a covariance's window is tested for a better fit."""


@cache
def nyse(first: date, last: date) -> frozenset[date]:
    """Return the NYSE sessions from a month before the first date to a month after the last."""
    # Imported here: the calendar library takes half a second, which loading an edition does not need.
    import exchange_calendars

    month = timedelta(days=31)
    calendar = exchange_calendars.get_calendar("XNYS", start=str(first - month), end=str(last + month))
    return frozenset(date(day.year, day.month, day.day) for day in calendar.sessions)


def simple_returns(panels: Panels) -> tuple[list[date], np.ndarray]:
    """Return sessions and simple returns (T, n) from prices; NaN where undefined."""
    adjusted = panels.prices_of("adj_close").drop("date").to_numpy()
    simple = np.full_like(adjusted, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        simple[1:] = adjusted[1:] / adjusted[:-1] - 1
    return panels.prices["date"].to_list(), simple


def columns_of(panels: Panels, estimate: Covariance) -> list[int]:
    """Return the panel columns of the names in a covariance."""
    at = {symbol: place for place, symbol in enumerate(panels.symbols)}
    return [at[symbol] for symbol in estimate.symbols]


def best_shift(simple: np.ndarray, end: int, estimate: Covariance) -> int:
    """Return the shift in sessions, relative to row `end`, of the best-fitting window by normalised off-diagonal row
    sums.
    """
    sums = estimate.times(np.ones(len(estimate.symbols))) - estimate.variances()
    wanted = sums / np.linalg.norm(sums)
    errors: dict[int, float] = {}
    for shift in (0, *_SHIFTS):
        window = simple[max(end + shift - WINDOW + 1, 0) : end + shift + 1]
        if len(window) == WINDOW and end + shift < len(simple) and np.isfinite(window).all():
            centred = window - window.mean(axis=0)
            sums = centred.T @ centred.sum(axis=1) - np.einsum("tn,tn->n", centred, centred)
            errors[shift] = float(np.abs(wanted - sums / np.linalg.norm(sums)).max())
    return min(errors, key=lambda shift: (errors[shift], abs(shift)))


_OF_THE_TRUTH = frozenset({"expected_output", "verification", "proof", "certificate", "ground_truth"})


def episodes_and_files(subject: Subject, findings: Findings, settings: str) -> None:
    """Check that all files hold the episodes counted in the manifest; `settings` names its parameters."""
    counts = subject.edition.manifest["counts"]
    wanted = subject.edition.manifest["parameters"].get(settings, {}).get("episodes_per_subtask")
    seen = Counter(episode.task_id for episode in subject.episodes)
    for task_id, count in seen.items():
        findings.expect(count == 1, task_id, f"is the id of {count} episodes")
    for subtask in subject.domain.subtasks:
        if subtask.name not in counts:
            if not subject.built:
                findings.warn(subtask.name, "has no episodes")
            elif _was_to_be_built(subject, subtask):
                findings.fail(subtask.name, "has no episodes")
            continue
        episodes = subject.of(subtask.name)
        findings.expect(
            len(episodes) == counts[subtask.name],
            subtask.name,
            f"{len(episodes)} episodes where the manifest counts {counts[subtask.name]}",
        )
        if wanted is not None and len(episodes) < wanted:
            findings.warn(subtask.name, f"{len(episodes)} episodes of {wanted}: the pool has no more that discriminate")
        for episode in episodes:
            _check_identity(subject, subtask, episode, findings)
        _check_files(subject, subtask, episodes, findings)
        findings.figures[subtask.name] = _figures(episodes)


def _was_to_be_built(subject: Subject, subtask: Subtask) -> bool:
    """Return True if the build knew the subtask; manifests without a list of subtasks count those of this package."""
    registered = subject.edition.manifest.get("subtasks")
    ours = subtask.answer.__module__.partition(".")[0] == __name__.partition(".")[0]
    return subtask.build is not None and (ours if registered is None else subtask.name in registered)


def _figures(episodes: tuple[Episode, ...]) -> dict[str, Any]:
    objectives = Counter(str(e.input["objective"]) for e in episodes if "objective" in e.input)
    return {
        "episodes": len(episodes),
        "dates": len({episode.as_of_date for episode in episodes}),
        "difficulties": dict(sorted(Counter(episode.difficulty for episode in episodes).items())),
        **({"objectives": dict(sorted(objectives.items()))} if objectives else {}),
    }


def _check_identity(subject: Subject, subtask: Subtask, episode: Episode, findings: Findings) -> None:
    task_id = episode.task_id
    findings.expect(task_id.startswith(f"{subtask.prefix}_"), task_id, f"does not begin with {subtask.prefix}_")
    findings.expect(episode.skill == subject.domain.name, task_id, f"is of the skill {episode.skill}")
    worded = bool(episode.prompt.task_description and episode.prompt.output_instructions)
    findings.expect(worded, task_id, "has no task description or no output instructions")


def _check_files(subject: Subject, subtask: Subtask, episodes: tuple[Episode, ...], findings: Findings) -> None:
    """Check the files of one subtask line by line: same tasks throughout, and no truth in episodes."""
    folder, name = subject.edition.path, subtask.name
    for row in subject.edition.lines("episodes", name):
        found = sorted(_keys(row) & _OF_THE_TRUTH)
        findings.expect(not found, row.get("task_id", name), f"an episode carries {', '.join(found)}")
        findings.expect(row.get("sub_task") == name, row.get("task_id", name), f"is of {row.get('sub_task')}")
    expected = [episode.task_id for episode in episodes]
    for part in ("truth", "certificates"):
        if (folder / part).is_dir():
            with examining(f"{part}/{name}.jsonl", findings):
                task_ids = [row["task_id"] for row in subject.edition.lines(part, name)]
                findings.expect(task_ids == expected, f"{part}/{name}.jsonl", "has other tasks than the episodes")


def _keys(value: object) -> set[str]:
    found: set[str] = set()
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            part = cast("dict[str, object]", one)
            found.update(part)
            left.extend(part.values())
        elif isinstance(one, list):
            left.extend(cast("list[object]", one))
    return found


def examine_definitions(
    episode: Episode, known: Mapping[str, Any], findings: Findings, *, needed: Iterable[str] | None = None
) -> None:
    """Check that stated definitions equal the engine's and that no needed definition is missing.

    known : every definition that an input of this subtask may state.
    needed : required names; None for all of `known`. Imported releases state none and need none.
    """
    where, stated = episode.task_id, as_object(episode.input.get("conventions"))
    for name, text in sorted(stated.items()):
        findings.expect(text == known.get(name), where, f"conventions: {name} is not defined as the engine computes it")
    absent = sorted(set(known if needed is None else needed) - set(stated))
    findings.expect(not absent, where, f"conventions: {', '.join(absent)} is not defined")
