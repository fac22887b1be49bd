"""Checks of the tasks as a whole: coverage and taxonomy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import date

from finskillbench.arrays import FACTORS, SECTORS
from finskillbench.domains.checks.coverage import episodes_and_files
from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.engines.portfolio.problem import Objective
from finskillbench.episode import Episode
from finskillbench.findings import Findings
from finskillbench.panels import Panels
from finskillbench.scoring.values import array, mapping


def coverage(subject: Subject, findings: Findings) -> None:
    """Every subtask has its episodes, dates and strata; episodes, truth and certificates are of the same tasks."""
    episodes_and_files(subject, findings, "portfolio")
    for subtask in subject.domain.subtasks:
        objectives = {episode.input.get("objective") for episode in subject.of(subtask.name)} - {None}
        if subject.built and objectives and objectives != set(Objective):
            missing = ", ".join(sorted(set(Objective) - objectives))
            findings.warn(subtask.name, f"no episode has the objective {missing}")
    findings.figures["as_of_dates"] = len(subject.edition.manifest["as_of_dates"])


def taxonomy(subject: Subject, findings: Findings) -> None:
    """One vocabulary of sectors and of factors, from the panels to the tool calls; no other."""
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
    for episode in subject.episodes:
        with examining(episode.task_id, findings):
            _check_episode(subject, episode, sectors, _present(panels, episode.as_of_date), findings)
    findings.figures |= {"sectors": dict(sorted(Counter(sectors.values()).items())), "episodes": len(subject.episodes)}


def _present(panels: Panels | None, day: date) -> set[str]:
    """The sectors that a month-end has names of: in a small universe a sector may have none whose figures are known."""
    if panels is None or day not in panels.covariance:
        return set()  # a day that is no month-end is told by trading_days
    return {panels.sectors[symbol] for symbol in panels.symbols_at(day) if symbol in panels.sectors}


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
        differ = sorted(set(caps) ^ set(mapped.values()))
        findings.expect(not differ, task_id, f"sector_limits and sector_mapping disagree on {', '.join(differ)}")
    if mapped and sectors:
        agrees = all(sectors.get(symbol) == sector for symbol, sector in mapped.items())
        findings.expect(agrees, task_id, "sector_mapping is not that of the panels")
    factors = set(array(limits.get("neutral_factors"))) - set(FACTORS)
    findings.expect(not factors, task_id, f"unknown factors: {', '.join(sorted(map(str, factors)))}")
    for ticker, betas in mapping(given.get("factor_exposures")).items():
        findings.expect(tuple(betas) == FACTORS, task_id, f"factor_exposures of {ticker} name other factors")
    if "sectors" in given:
        if present:
            findings.expect(set(given["sectors"]) == present, task_id, "its sectors are not those of the month-end")
        if subject.edition.has_truth:
            call = mapping(subject.edition.truth(task_id).expected_output.get("optimizer_call"))
            asked = mapping(call.get("constraints"))
            named = {*mapping(asked.get("sector_limits")), *array(asked.get("excluded_sectors"))}
            strangers = sorted(map(str, named - set(given["sectors"])))
            findings.expect(not strangers, task_id, f"its call names sectors it does not list: {', '.join(strangers)}")
