"""What an audit asks of stress scenarios: the headline is the benchmark's loss, names are true."""

from __future__ import annotations

from datetime import date
from typing import cast

import polars as pl

from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.domains.risk.catalogs import scenario_catalog
from finskillbench.domains.risk.inputs import StressInput
from finskillbench.domains.risk.objects.scenarios import HYPOTHETICAL
from finskillbench.domains.risk.second_stress import stressed
from finskillbench.findings import Findings

_HEADLINE = 0.005
"""By how much of NAV the benchmark's loss may differ from a hypothetical scenario's stated equity move."""


def scenarios(subject: Subject, findings: Findings) -> None:
    """Each scenario is a loss, moves its benchmark by its headline, and bears the name of an event of its market."""
    panels = subject.panels(Findings())
    benchmarks: dict[date, dict[str, float]] = {}
    real = {entry["name"] for entry in scenario_catalog()["replays"]}
    fictional = subject.edition.manifest["source"].get("kind") == "synthetic"
    for episode in subject.of("stress_testing"):
        with examining(episode.task_id, findings, fatal=subject.built):
            task_input = cast("StressInput", episode.input)
            scenario, where = task_input["stress_scenario"], episode.task_id
            named = [name for name in real if name in scenario["name"]]
            findings.expect(
                not (fictional and named), where, f"replays {', '.join(named)}, which this market never went through"
            )
            if panels is None:
                continue
            if episode.as_of_date not in benchmarks:
                rows = panels.benchmark_weights.filter(pl.col("date") == episode.as_of_date)
                benchmarks[episode.as_of_date] = dict(rows.select("symbol", "weight").iter_rows())
            _check_headline(where, task_input, benchmarks[episode.as_of_date], findings)


def _check_headline(where: str, task_input: StressInput, benchmark: dict[str, float], findings: Findings) -> None:
    """The benchmark held through the scenario, name by name."""
    scenario = task_input["stress_scenario"]
    held = [{"symbol": symbol, "weight": benchmark.get(symbol, 0.0)} for symbol in task_input["sector_mapping"]]
    portfolio = {**task_input["portfolio"], "holdings": held, "cash_weight": 0.0}
    loss = stressed(cast("StressInput", {**task_input, "portfolio": portfolio}), scenario).pnl
    findings.expect(loss < 0, where, f"{scenario['name']}: the benchmark gains {loss:.2%}, which is no stress")
    if scenario["type"] != HYPOTHETICAL:
        return
    headline = scenario["market_shocks"]["equity_change_pct"] / 100
    apart = abs(loss - headline)
    findings.widest("headline_apart", apart)
    message = f"{scenario['name']}: equities move {headline:.1%}, the benchmark {loss:.1%}"
    findings.expect(apart <= _HEADLINE, where, message)
