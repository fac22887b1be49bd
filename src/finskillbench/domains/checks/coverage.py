"""What every domain promises of its episodes: those that the manifest counts, files of the same tasks, definitions.

What the checks of several domains read from panels: sessions, returns, the window of a covariance.
"""

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
from finskillbench.scoring.values import mapping

_SHIFTS = (-21, -5, -1, 1, 5, 21)
"""Sessions by which the window of a covariance is moved to see whether another one fits better."""


@cache
def nyse(first: date, last: date) -> frozenset[date]:
    """Sessions of the exchange from a month before the first date to a month after the last."""
    # Imported here: the calendar library costs half a second that loading an edition need not pay.
    import exchange_calendars

    month = timedelta(days=31)
    calendar = exchange_calendars.get_calendar("XNYS", start=str(first - month), end=str(last + month))
    return frozenset(date(day.year, day.month, day.day) for day in calendar.sessions)


def simple_returns(panels: Panels) -> tuple[list[date], np.ndarray]:
    """Sessions and simple returns (T, n) by the prices; NaN where undefined."""
    adjusted = panels.prices_of("adj_close").drop("date").to_numpy()
    simple = np.full_like(adjusted, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        simple[1:] = adjusted[1:] / adjusted[:-1] - 1
    return panels.prices["date"].to_list(), simple


def columns_of(panels: Panels, estimate: Covariance) -> list[int]:
    """Where the names of a covariance stand among those of the panels."""
    at = {symbol: place for place, symbol in enumerate(panels.symbols)}
    return [at[symbol] for symbol in estimate.symbols]


def best_shift(simple: np.ndarray, end: int, estimate: Covariance) -> int:
    """By how many sessions the window that fits the estimate best ends after the row `end`.

    Shrinkage and a ridge change the diagonal and the scale, so the off-diagonal row sums are compared, normalised.
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
    """What every domain promises: the episodes that the manifest counts, and files of the same tasks.

    `settings` names the part of the manifest's parameters that says how many episodes a subtask should have.
    """
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
    """Whether the build of an edition knew a subtask; one of a package that was installed since then is not missing.

    An edition from before manifests named the registered subtasks has those of this package.
    """
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
    """The files of one subtask, line by line: truth and certificates of the same tasks, and no truth in episodes."""
    folder, name = subject.edition.path, subtask.name
    for row in subject.edition.lines("episodes", name):
        found = sorted(_keys(row) & _OF_THE_TRUTH)
        findings.expect(not found, row.get("task_id", name), f"an episode carries {', '.join(found)}")
        findings.expect(row.get("sub_task") == name, row.get("task_id", name), f"is of {row.get('sub_task')}")
    expected = [episode.task_id for episode in episodes]
    for part in ("truth", "certificates"):
        if (folder / part).is_dir():
            with examining(f"{part}/{name}.jsonl", findings):
                given = [row["task_id"] for row in subject.edition.lines(part, name)]
                findings.expect(given == expected, f"{part}/{name}.jsonl", "has other tasks than the episodes")


def _keys(value: object) -> set[str]:
    """Every key of a JSON value, at any depth; without recursion, as a line has hundreds of values."""
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
