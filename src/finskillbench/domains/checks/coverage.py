"""What every domain promises of its episodes: those that the manifest counts, files of the same tasks, definitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, cast

from finskillbench.domains.base import Subtask
from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.episode import Episode
from finskillbench.findings import Findings
from finskillbench.scoring.values import mapping

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
