"""The scenarios: economically signed, rendered from their numbers, replays measured on the panels."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise
from typing import Any

import polars as pl
import pytest

from finskillbench.arrays import FACTORS, SECTORS
from finskillbench.domains.risk.catalogs import scenario_catalog
from finskillbench.domains.risk.checks.data import replay_window
from finskillbench.domains.risk.objects.scenarios import (
    ScenarioSet,
    build_scenarios,
    drawdowns,
    economic_violations,
    is_history,
)
from finskillbench.edition import Edition
from finskillbench.engines.risk.portfolio import MarketSnapshot
from finskillbench.panels import Panels, read_panels
from finskillbench.panels.tables import Tables


@pytest.fixture(scope="module")
def scenarios(panels: Panels) -> ScenarioSet:
    return build_scenarios(panels, scenario_catalog(), [])


@pytest.fixture(scope="module")
def synthetic_panels(synthetic_edition: Edition) -> Panels:
    return read_panels(synthetic_edition.path / "panels")


@pytest.fixture(scope="module")
def market(panels: Panels) -> MarketSnapshot:
    return panels.snapshot(panels.risk_dates[9])


def test_four_replays_and_eight_hypothetical_scenarios(scenarios: ScenarioSet, market: MarketSnapshot) -> None:
    usual, severe = scenarios.hypothetical_at(market), scenarios.severe_at(market)
    assert len(scenarios.replays) == 4
    assert len(usual) == len(severe) == 8
    assert len({one["scenario_id"] for one in (*scenarios.replays, *usual, *severe)}) == 20


def test_every_scenario_keeps_the_rules_of_economics_on_every_date(scenarios: ScenarioSet, panels: Panels) -> None:
    for as_of in panels.risk_dates:
        market = panels.snapshot(as_of)
        for scenario in (*scenarios.at(as_of, market), *scenarios.severe_at(market)):
            assert economic_violations(scenario) == []
            assert scenario["market_shocks"]["equity_change_pct"] < 0


def test_the_benchmark_of_every_date_moves_by_the_headline(scenarios: ScenarioSet, panels: Panels) -> None:
    """Summed up name by name, whatever the engine says."""
    for as_of in panels.risk_dates:
        market = panels.snapshot(as_of)
        assert market.benchmark is not None
        for one in (*scenarios.hypothetical_at(market), *scenarios.severe_at(market)):
            shocks = [one["factor_shocks"][factor] for factor in FACTORS]
            moved = sum(
                weight * (sum(b * s for b, s in zip(betas, shocks, strict=True)) + one["sector_sensitivities"][sector])
                for weight, betas, sector in zip(market.benchmark, market.betas, market.sectors, strict=True)
            )
            assert moved == pytest.approx(one["market_shocks"]["equity_change_pct"] / 100, abs=5.1e-5)


def test_each_hypothetical_scenario_has_tables_of_its_own_in_the_one_vocabulary(
    scenarios: ScenarioSet, market: MarketSnapshot
) -> None:
    found = scenarios.hypothetical_at(market)
    for table in ("factor_shocks", "sector_sensitivities"):
        assert len({tuple(one[table].values()) for one in found}) == 8
    for one in found:
        assert set(one["sector_sensitivities"]) == set(SECTORS)
        assert tuple(one["factor_shocks"]) == FACTORS
        assert all(shock != 0 for shock in one["factor_shocks"].values())


def test_a_severe_version_is_one_and_a_half_times_the_scenario(scenarios: ScenarioSet, market: MarketSnapshot) -> None:
    both = zip(scenarios.hypothetical_at(market), scenarios.severe_at(market), strict=True)
    for usual, severe in both:
        assert severe["scenario_id"] == usual["scenario_id"] + "_x1.5"
        assert "1.5 times" in severe["name"]
        for table in ("market_shocks", "factor_shocks", "sector_sensitivities"):
            expected = {name: 1.5 * value for name, value in usual[table].items()}
            assert severe[table] == pytest.approx(expected, abs=0.11 if table == "market_shocks" else 1.3e-4)
    severe = {one["scenario_id"]: one for one in scenarios.severe_at(market)}
    crash, spike = severe["equity_crash_20_x1.5"], severe["correlation_spike_x1.5"]
    assert spike["correlation_shift"] == pytest.approx(spike["market_shocks"]["correlation_shift_pct"] / 100)
    assert "-30.0 %" in crash["description"]
    assert "{" not in crash["description"] + crash["name"]


def test_a_sector_with_a_proxy_has_no_sensitivity_and_the_benchmark_still_moves_by_the_headline(
    scenarios: ScenarioSet, market: MarketSnapshot
) -> None:
    assert market.benchmark is not None
    for usual in (*scenarios.hypothetical_at(market), *scenarios.severe_at(market), *scenarios.replays):
        one = scenarios.with_proxies(usual, market, {"Healthcare": "Utilities"})
        assert one["sector_sensitivities"].keys() == usual["sector_sensitivities"].keys() - {"Healthcare"}
        assert one.get("sector_proxies") == {"Healthcare": "Utilities"}
        sensitivities = {**one["sector_sensitivities"], "Healthcare": one["sector_sensitivities"]["Utilities"]}
        if usual["type"] == "historical_replay":
            assert {**usual["sector_sensitivities"], "Healthcare": sensitivities["Utilities"]} == sensitivities
            continue
        shocks = [one["factor_shocks"][factor] for factor in FACTORS]
        moved = sum(
            weight * (sum(b * s for b, s in zip(betas, shocks, strict=True)) + sensitivities[sector])
            for weight, betas, sector in zip(market.benchmark, market.betas, market.sectors, strict=True)
        )
        assert moved == pytest.approx(usual["market_shocks"]["equity_change_pct"] / 100, abs=5.1e-5)


@pytest.mark.parametrize(
    ("name", "table", "key", "value"),
    [
        ("credit_crisis", "sector_sensitivities", "Financial Services", 0.2),
        ("rates_up_200", "sector_sensitivities", "Utilities", 0.1),
        ("rates_down_100", "sector_sensitivities", "Real Estate", -0.15),
        ("rates_down_100", "sector_sensitivities", "Financial Services", 0.2),
        ("equity_crash_20", "factor_shocks", "mkt_rf", 0.2),
        ("strong_dollar", "sector_sensitivities", "Technology", 0.1),
        ("stagflation", "sector_sensitivities", "Energy", -0.06),
        ("equity_crash_20", "sector_sensitivities", "Industrials", 0.2),
        ("sector_rotation", "factor_shocks", "hml", 0.02),
        ("correlation_spike", "sector_sensitivities", "Energy", math.nan),
    ],
)
def test_a_wrong_sign_is_found(
    scenarios: ScenarioSet, market: MarketSnapshot, name: str, table: str, key: str, value: float
) -> None:
    found = scenarios.hypothetical_at(market)
    scenario: Any = copy.deepcopy(next(one for one in found if one["scenario_id"] == name))
    scenario[table][key] = value
    assert economic_violations(scenario)


def test_a_replay_is_what_the_panels_say_happened(scenarios: ScenarioSet, panels: Panels) -> None:
    covid = scenarios.replays[1]
    window = replay_window(covid)
    assert window is not None
    start, end = window
    inside = panels.factors.filter(pl.col("date").is_between(start, end)).sort("date")
    shocks = {f: math.prod(1 + x for x in inside[f].to_list()) - 1 for f in FACTORS}
    assert covid["factor_shocks"] == pytest.approx(shocks, abs=5.1e-5)
    riskless = math.prod(1 + x for x in inside["rf"].to_list()) - 1
    known = panels.factor_exposures.filter(pl.col("date") < start)
    base = known.filter(pl.col("date") == known["date"].max())
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
    assert covid["sector_sensitivities"] == pytest.approx(expected, abs=5.1e-5)


def test_a_replay_is_applied_only_after_its_window(scenarios: ScenarioSet, market: MarketSnapshot) -> None:
    for place, replay in enumerate(scenarios.replays):
        end = scenarios.ends[replay["scenario_id"]]
        for day, known in ((end, place), (end + timedelta(days=1), place + 1)):
            names = [one["scenario_id"] for one in scenarios.at(day, market)]
            assert names[:known] == [one["scenario_id"] for one in scenarios.replays[:known]]
            assert len(names) == known + 8


def test_a_fictional_market_replays_its_own_drawdowns_and_no_event_of_history(synthetic_panels: Panels) -> None:
    panels, catalog = synthetic_panels, scenario_catalog()
    assert not is_history(panels, catalog)
    found = drawdowns(panels, 4)
    names = {entry["name"] for entry in catalog["replays"]}
    windows = {(entry["start"], entry["end"]) for entry in catalog["replays"]}
    market = panels.factors.sort("date")
    deepest = []
    for entry in found:
        assert entry["name"] not in names
        assert (entry["start"], entry["end"]) not in windows
        start, end = date.fromisoformat(entry["start"]), date.fromisoformat(entry["end"])
        moves = market.filter(pl.col("date").is_between(start, end))["mkt_rf"].to_list()
        level = [math.prod(1 + x for x in moves[:count]) for count in range(len(moves) + 1)]
        assert level[0] == max(level)
        assert level[-1] == min(level)
        assert 100 * (level[-1] - 1) == pytest.approx(entry["market_pct"])
        deepest.append((start, end))
    assert all(first[1] < second[0] for first, second in pairwise(deepest))


def test_a_market_that_moved_as_in_fact_keeps_the_names_of_history(synthetic_panels: Panels) -> None:
    catalog = copy.deepcopy(scenario_catalog())
    for entry in catalog["replays"]:
        inside = pl.col("date").is_between(date.fromisoformat(entry["start"]), date.fromisoformat(entry["end"]))
        moved = (synthetic_panels.factors.filter(inside)["mkt_rf"] + 1).product()
        entry["market_pct"] = 100 * (float(moved) - 1) + 1.0
    assert is_history(synthetic_panels, catalog)
    found = build_scenarios(synthetic_panels, catalog, [])
    assert [one["name"].partition(" (")[0] for one in found.replays] == [one["name"] for one in catalog["replays"]]
    catalog["replays"][2]["market_pct"] += 2.0
    assert not is_history(synthetic_panels, catalog)


def test_a_replay_that_the_panels_do_not_cover_is_left_out_with_a_note(synthetic_panels: Panels) -> None:
    catalog = copy.deepcopy(scenario_catalog())
    del catalog["replays"][1:]
    inside = pl.col("date").is_between(date(2018, 10, 1), date(2018, 12, 24))
    catalog["replays"][0]["market_pct"] = 100 * float(
        (synthetic_panels.factors.filter(inside)["mkt_rf"] + 1).product() - 1
    )
    betas = synthetic_panels.factor_exposures.filter(pl.col("date") >= date(2019, 6, 1))
    late = replace(synthetic_panels, tables=Tables({"factor_exposures": betas}).merged_over(synthetic_panels.tables))
    notes: list[str] = []
    assert build_scenarios(late, catalog, notes).replays == ()
    assert any("replay_2018_selloff is left out" in note for note in notes)
