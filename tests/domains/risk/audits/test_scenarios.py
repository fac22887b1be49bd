"""The audit of stress scenarios: a sound edition has no findings, each planted defect exactly its own."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from finskillbench.domains.risk.checks.economics import check_scenario_economics
from finskillbench.edition import Edition
from finskillbench.episode import Episode, Truth
from finskillbench.findings import Findings
from finskillbench.panels import Panels

Json = dict[str, Any]


@pytest.fixture(scope="module")
def cases(edition: Edition) -> list[tuple[Episode, Truth]]:
    return [(episode, edition.truth(episode.task_id)) for episode in edition.episodes(["stress_testing"])]


def found(cases: list[tuple[Episode, Truth]], panels: Panels, source: Json) -> Findings:
    truths = {truth.task_id: truth for _, truth in cases}
    edition = SimpleNamespace(manifest={"source": source}, has_truth=True, truth=truths.__getitem__)
    subject: Any = SimpleNamespace(
        edition=edition, built=True, of=lambda _: [episode for episode, _ in cases], panels=lambda _: panels
    )
    findings = Findings()
    check_scenario_economics(subject, findings)
    return findings


def test_the_edition_has_no_findings(cases: Any, panels: Panels, edition: Edition) -> None:
    findings = found(cases, panels, edition.manifest["source"])
    assert findings.found == []
    assert findings.figures["headline_apart"] <= 0.005


def _deeper(scenario: Json, label: Json) -> None:
    scenario["market_shocks"]["equity_change_pct"] += 0.6


def _rally(scenario: Json, label: Json) -> None:
    for table in ("factor_shocks", "sector_sensitivities", "market_shocks"):
        scenario[table] = {name: -value for name, value in scenario[table].items()}
    for amount in (label, *label["attribution"]["by_sector"], *label["attribution"]["by_factor"]):
        for key in ("estimated_pnl_pct", "contribution_pct"):
            if key in amount:
                amount[key] = -amount[key]


def _real_name(scenario: Json, label: Json) -> None:
    scenario["name"] = "COVID-19 crash (2020-02-19 to 2020-03-23)"


@pytest.mark.parametrize(
    ("defect", "told"), [(_deeper, "equities move"), (_rally, "which is no stress"), (_real_name, "never went through")]
)
def test_a_planted_defect_is_found_at_its_episode_and_nothing_else(
    cases: list[tuple[Episode, Truth]], panels: Panels, defect: Callable[[Json, Json], None], told: str
) -> None:
    place = next(
        index
        for index, (episode, _) in enumerate(cases)
        if episode.input["stress_scenario"]["type"] == "hypothetical" and episode.difficulty == "easy"
    )
    episode, truth = copy.deepcopy(cases[place])
    task_input, label = dict(episode.input), dict(truth.expected_output)
    defect(task_input["stress_scenario"], label)
    planted = list(cases)
    planted[place] = replace(episode, input=task_input), replace(truth, expected_output=label)
    failures = found(planted, panels, {"kind": "synthetic"}).found
    hits = [failure for failure in failures if failure.where == episode.task_id]
    others = [
        failure for failure in failures if failure.where != episode.task_id and "never went" not in failure.message
    ]
    assert len(hits) == 1
    assert told in hits[0].message
    assert others == []
