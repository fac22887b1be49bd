"""Checks of the tasks as a whole: coverage and taxonomy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from finskillbench.arrays import FACTORS, SECTORS
from finskillbench.domains import Subtask
from finskillbench.domains.examination import Subject, examining
from finskillbench.domains.portfolio.checks import definitions
from finskillbench.engines.portfolio.problem import Objective
from finskillbench.episode import Episode
from finskillbench.findings import Findings
from finskillbench.scoring.values import array, mapping

_OF_THE_TRUTH = frozenset({"expected_output", "verification", "proof", "certificate", "ground_truth"})


def coverage(subject: Subject, findings: Findings) -> None:
    """Every subtask has its episodes, dates and strata; episodes, truth and certificates are of the same tasks."""
    episodes_and_files(subject, findings, "portfolio")
    for subtask in subject.domain.subtasks:
        objectives = {episode.input.get("objective") for episode in subject.of(subtask.name)} - {None}
        if subject.built and objectives and objectives != set(Objective):
            missing = ", ".join(sorted(set(Objective) - objectives))
            findings.warn(subtask.name, f"no episode has the objective {missing}")
    findings.figures["as_of_dates"] = len(subject.edition.manifest["as_of_dates"])


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
            (findings.fail if subject.built else findings.warn)(subtask.name, "has no episodes")
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
    told = bool(episode.prompt.task_description and episode.prompt.output_instructions)
    findings.expect(told, task_id, "has no task description or no output instructions")


def _check_files(subject: Subject, subtask: Subtask, episodes: tuple[Episode, ...], findings: Findings) -> None:
    """The files of one subtask, line by line: truth and certificates of the same tasks, and no truth in episodes."""
    folder, name = subject.edition.path, subtask.name
    for row in subject.edition.lines("episodes", name):
        found = sorted(set(_keys(row)) & _OF_THE_TRUTH)
        findings.expect(not found, row.get("task_id", name), f"an episode carries {', '.join(found)}")
        findings.expect(row.get("sub_task") == name, row.get("task_id", name), f"is of {row.get('sub_task')}")
    expected = [episode.task_id for episode in episodes]
    for part in ("truth", "certificates"):
        if (folder / part).is_dir():
            with examining(f"{part}/{name}.jsonl", findings):
                given = [row["task_id"] for row in subject.edition.lines(part, name)]
                findings.expect(given == expected, f"{part}/{name}.jsonl", "has other tasks than the episodes")


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield key
            yield from _keys(item)
    elif isinstance(value, list):
        for item in value:
            yield from _keys(item)


def taxonomy(subject: Subject, findings: Findings) -> None:
    """One vocabulary of sectors and of factors, from the panels to the tool calls; definitions are the engine's."""
    panels = subject.panels(Findings())
    sectors = dict(panels.sectors) if panels is not None else {}
    for symbol, sector in sectors.items():
        findings.expect(sector in SECTORS, symbol, f"sector {sector!r} is not of the vocabulary")
    if panels is not None:
        for symbol in panels.symbols:
            findings.expect(symbol in sectors, symbol, "has no sector")
        for sector in SECTORS:
            if sector not in sectors.values():
                findings.warn(sector, "no name of the universe belongs to it")
    present = set(sectors.values())
    for episode in subject.episodes:
        with examining(episode.task_id, findings):
            _check_episode(subject, episode, sectors, present, findings)
            definitions.examine(episode, findings, built=subject.built)
    findings.figures |= {"sectors": dict(sorted(Counter(sectors.values()).items())), "episodes": len(subject.episodes)}


def _check_episode(
    subject: Subject, episode: Episode, sectors: Mapping[str, str], present: set[str], findings: Findings
) -> None:
    task_id, given = episode.task_id, episode.input
    limits = mapping(given.get("constraints"))
    caps = mapping(limits.get("sector_limits"))
    mapped = mapping(given.get("sector_mapping"))
    unknown = sorted((set(mapped.values()) | set(caps)) - set(SECTORS))
    findings.expect(not unknown, task_id, f"sectors outside the vocabulary: {', '.join(unknown)}")
    if caps and not mapped:
        findings.fail(task_id, "has sector_limits but no sector_mapping")
    elif caps:
        apart = sorted(set(caps) ^ set(mapped.values()))
        findings.expect(not apart, task_id, f"sector_limits and sector_mapping disagree on {', '.join(apart)}")
    if mapped and sectors:
        findings.expect(dict(mapped) == dict(sectors), task_id, "sector_mapping is not that of the panels")
    factors = set(array(limits.get("neutral_factors"))) - set(FACTORS)
    findings.expect(not factors, task_id, f"unknown factors: {', '.join(sorted(map(str, factors)))}")
    for ticker, betas in mapping(given.get("factor_exposures")).items():
        findings.expect(tuple(betas) == FACTORS, task_id, f"factor_exposures of {ticker} name other factors")
    if "sectors" in given:
        if present:
            findings.expect(set(given["sectors"]) == present, task_id, "its sectors are not those of the panels")
        if subject.edition.has_truth:
            call = mapping(subject.edition.truth(task_id).expected_output.get("optimizer_call"))
            asked = mapping(call.get("constraints"))
            named = {*mapping(asked.get("sector_limits")), *array(asked.get("excluded_sectors"))}
            strangers = sorted(map(str, named - set(given["sectors"])))
            findings.expect(not strangers, task_id, f"its call names sectors it does not list: {', '.join(strangers)}")
