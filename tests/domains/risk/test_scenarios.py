"""The scenarios: economically signed, rendered from their numbers, replays measured on the panels."""

from __future__ import annotations

import copy
import math
from datetime import date
from typing import Any

import polars as pl
import pytest

from finskillbench.arrays import FACTORS, SECTORS
from finskillbench.domains.risk.catalogs import scenario_catalog
from finskillbench.domains.risk.objects.scenarios import ScenarioSet, build_scenarios, economics
from finskillbench.engines.risk.stress import scenario_from
from finskillbench.panels.tables import Panels


@pytest.fixture(scope="module")
def scenarios(panels: Panels) -> ScenarioSet:
    return build_scenarios(panels, scenario_catalog(), [])


def test_four_replays_and_eight_hypothetical_scenarios(scenarios: ScenarioSet) -> None:
    assert len(scenarios.replays) == 4
    assert len(scenarios.hypothetical) == len(scenarios.severe) == 8
    names = [one["scenario_id"] for one in (*scenarios.replays, *scenarios.hypothetical, *scenarios.severe)]
    assert len(set(names)) == 20


def test_every_scenario_keeps_the_rules_of_economics(scenarios: ScenarioSet) -> None:
    for scenario in (*scenarios.replays, *scenarios.hypothetical, *scenarios.severe):
        assert economics(scenario) == []
        scenario_from(scenario)


def test_each_hypothetical_scenario_has_tables_of_its_own_in_the_one_vocabulary(scenarios: ScenarioSet) -> None:
    for table in ("factor_shocks", "sector_sensitivities"):
        assert len({tuple(one[table].values()) for one in scenarios.hypothetical}) == 8
    for one in scenarios.hypothetical:
        assert set(one["sector_sensitivities"]) == set(SECTORS)
        assert tuple(one["factor_shocks"]) == FACTORS
        assert all(shock != 0 for shock in one["factor_shocks"].values())


def test_a_severe_version_is_one_and_a_half_times_the_scenario(scenarios: ScenarioSet) -> None:
    for usual, severe in zip(scenarios.hypothetical, scenarios.severe, strict=True):
        assert severe["scenario_id"] == usual["scenario_id"] + "_x1.5"
        assert "1.5 times" in severe["name"]
        for table in ("market_shocks", "factor_shocks", "sector_sensitivities"):
            assert severe[table] == pytest.approx({name: 1.5 * value for name, value in usual[table].items()})
    crash = next(one for one in scenarios.severe if one["scenario_id"].startswith("equity_crash"))
    spike = next(one for one in scenarios.severe if one["scenario_id"].startswith("correlation_spike"))
    assert spike["market_shocks"]["correlation_change"] <= 0.5
    assert "-30.0 %" in crash["description"]
    assert "{" not in crash["description"] + crash["name"]


@pytest.mark.parametrize(
    ("name", "table", "key", "value"),
    [
        ("credit_crisis", "sector_sensitivities", "Financial Services", 0.03),
        ("rates_up_200", "sector_sensitivities", "Utilities", 0.01),
        ("rates_down_100", "sector_sensitivities", "Real Estate", -0.15),
        ("rates_down_100", "sector_sensitivities", "Financial Services", 0.03),
        ("equity_crash_20", "factor_shocks", "mkt_rf", 0.2),
        ("strong_dollar", "sector_sensitivities", "Technology", 0.02),
        ("stagflation", "sector_sensitivities", "Energy", -0.06),
        ("sector_rotation", "factor_shocks", "hml", 0.02),
        ("correlation_spike", "sector_sensitivities", "Energy", math.nan),
    ],
)
def test_a_wrong_sign_is_found(scenarios: ScenarioSet, name: str, table: str, key: str, value: float) -> None:
    scenario: Any = copy.deepcopy(next(one for one in scenarios.hypothetical if one["scenario_id"] == name))
    scenario[table][key] = value
    assert economics(scenario)


def test_a_replay_is_what_the_panels_say_happened(scenarios: ScenarioSet, panels: Panels) -> None:
    covid = next(one for one in scenarios.replays if one["scenario_id"] == "replay_2020_covid")
    start, end = date(2020, 2, 19), date(2020, 3, 23)
    inside = panels.factors.filter(pl.col("date").is_between(start, end)).sort("date")
    shocks = {f: math.prod(1 + x for x in inside[f].to_list()) - 1 for f in FACTORS}
    assert covid["factor_shocks"] == pytest.approx(shocks, abs=1e-12)
    riskless = math.prod(1 + x for x in inside["rf"].to_list()) - 1
    base = panels.factor_exposures.filter(pl.col("date") == date(2020, 1, 31))
    betas = {row["symbol"]: row for row in base.iter_rows(named=True)}
    residuals: dict[str, list[float]] = {}
    for symbol in panels.symbols:
        own = panels.returns.filter((pl.col("symbol") == symbol) & pl.col("date").is_between(start, end))
        returns = own["simple"].drop_nulls().to_list()
        if symbol in betas and len(returns) == inside.height:
            explained = sum(betas[symbol][f] * shocks[f] for f in FACTORS)
            total = math.prod(1 + x for x in returns) - 1
            residuals.setdefault(panels.sectors[symbol], []).append(total - riskless - explained)
    everyone = [value for values in residuals.values() for value in values]
    overall = sum(everyone) / len(everyone)
    expected = {sector: sum(values) / len(values) for sector, values in residuals.items()}
    few = {sector for sector, values in residuals.items() if len(values) < 3}
    expected |= {sector: (expected[sector] + overall) / 2 for sector in few}
    assert "fewer than 3 such names" in covid["description"]
    assert covid["sector_sensitivities"] == pytest.approx(expected, abs=1e-12)


def test_a_replay_is_applied_only_after_its_window(scenarios: ScenarioSet) -> None:
    names = [one["scenario_id"] for one in scenarios.at(date(2020, 3, 23))]
    assert "replay_2018_selloff" in names
    assert "replay_2020_covid" not in names
    assert "replay_2020_covid" in [one["scenario_id"] for one in scenarios.at(date(2020, 3, 31))]


def test_a_replay_that_the_panels_do_not_cover_is_left_out_with_a_note(panels: Panels) -> None:
    from dataclasses import replace

    late = replace(panels, factor_exposures=panels.factor_exposures.filter(pl.col("date") >= date(2019, 6, 1)))
    notes: list[str] = []
    assert len(build_scenarios(late, scenario_catalog(), notes).replays) == 3
    assert any("replay_2018_selloff is left out" in note for note in notes)
