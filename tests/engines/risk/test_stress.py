"""Stress P&L: hand arithmetic, linearity, and two attributions that add up."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines.risk.cases import books, market, permuted, scenario_json
from tests.sampling import examples

from finskillbench.arrays import FACTORS, SECTORS
from finskillbench.engines.risk.portfolio import MarketSnapshot, Portfolio
from finskillbench.engines.risk.stress import BY_FACTOR, Scenario, apply, apply_all, apply_to_names, scenario_from
from finskillbench.errors import InputError


def _scenarios() -> st.SearchStrategy[Scenario]:
    shock = st.floats(-0.5, 0.5)
    return st.builds(
        lambda shocks, sectors: Scenario(
            "S", "hypothetical", "", np.array(shocks), dict(zip(SECTORS, sectors, strict=True))
        ),
        st.lists(shock, min_size=6, max_size=6),
        st.lists(shock, min_size=11, max_size=11),
    )


def test_hand_computed() -> None:
    universe = MarketSnapshot(
        tickers=("A", "B", "C"),
        sectors=("Energy", "Utilities", "Energy"),
        betas=np.array([[1.0, 0.5, 0, 0, 0, 0], [0.5, 0, 0, 0, 0, -1.0], [2.0, 0, 0, 0, 0, 0]]),
    )
    shocks = dict.fromkeys(FACTORS, 0.0) | {"mkt_rf": -0.2, "smb": 0.1, "mom": 0.05}
    scenario = scenario_from(
        scenario_json(factor_shocks=shocks, sector_sensitivities={"Energy": -0.1, "Utilities": 0.02})
    )
    # Names: A -0.2 + 0.05 - 0.1 = -0.25; B -0.1 - 0.05 + 0.02 = -0.13; C -0.4 - 0.1 = -0.5.
    result = apply(Portfolio(np.array([0.5, 0.3, -0.1]), 0.3, 1e6), scenario, universe)
    assert result.pnl == pytest.approx(-0.125 - 0.039 + 0.05, abs=1e-15)
    assert result.by_sector == pytest.approx({"Energy": -0.075, "Utilities": -0.039}, abs=1e-15)
    # Betas: mkt_rf 0.5 + 0.15 - 0.2 = 0.45, smb 0.25, mom -0.3; sectors -0.05 + 0.006 + 0.01.
    by_factor = dict.fromkeys(BY_FACTOR, 0.0) | {"mkt_rf": -0.09, "smb": 0.025, "mom": -0.015}
    assert result.by_factor == pytest.approx(by_factor | {"sector_sensitivity": -0.034}, abs=1e-15)


@settings(max_examples=examples(100))
@given(book=books(), scenario=_scenarios())
def test_both_attributions_add_up(book: Portfolio, scenario: Scenario) -> None:
    result = apply(book, scenario, market())
    assert sum(result.by_sector.values()) == pytest.approx(result.pnl, abs=1e-12)
    assert sum(result.by_factor.values()) == pytest.approx(result.pnl, abs=1e-12)
    assert tuple(result.by_factor) == BY_FACTOR
    held = {sector for sector, w in zip(market().sectors, book.weights, strict=True) if abs(w) > 1e-9}
    assert set(result.by_sector) == held


@settings(max_examples=examples(100))
@given(first=books(), second=books(), scenario=_scenarios(), a=st.floats(-2, 2), b=st.floats(-2, 2))
def test_linear_in_weights(first: Portfolio, second: Portfolio, scenario: Scenario, a: float, b: float) -> None:
    universe = market()
    both = np.array([first.weights, second.weights, a * first.weights + b * second.weights])
    for part in apply_all(both, (scenario,), universe):
        np.testing.assert_allclose(part[2], a * part[0] + b * part[1], atol=1e-12)


@settings(max_examples=examples(100))
@given(book=books(), first=_scenarios(), second=_scenarios(), a=st.floats(-2, 2), b=st.floats(-2, 2))
def test_linear_in_shocks(book: Portfolio, first: Scenario, second: Scenario, a: float, b: float) -> None:
    mixed = replace(
        first,
        factor_shocks=a * first.factor_shocks + b * second.factor_shocks,
        sector_sensitivities={
            sector: a * first.sector_sensitivities[sector] + b * second.sector_sensitivities[sector]
            for sector in SECTORS
        },
    )
    for part in apply_all(book.weights[None, :], (first, second, mixed), market()):
        np.testing.assert_allclose(part[:, 2], a * part[:, 0] + b * part[:, 1], atol=1e-12)


@settings(max_examples=examples(50))
@given(book=books(), scenario=_scenarios(), order=st.permutations(range(12)), nav=st.floats(1e3, 1e12))
def test_neither_the_order_of_names_nor_nav_matters(
    book: Portfolio, scenario: Scenario, order: list[int], nav: float
) -> None:
    first = apply(book, scenario, market())
    moved = replace(book, weights=book.weights[order], nav=nav)
    second = apply(moved, scenario, permuted(market(), np.array(order)))
    assert second.pnl == pytest.approx(first.pnl, abs=1e-12)
    assert second.by_sector == pytest.approx(first.by_sector, abs=1e-12)
    assert second.by_factor == pytest.approx(first.by_factor, abs=1e-12)


@settings(max_examples=examples(30))
@given(many=st.lists(books(), min_size=1, max_size=5), scenarios=st.lists(_scenarios(), min_size=1, max_size=4))
def test_many_at_once_are_the_same_as_one_by_one(many: list[Portfolio], scenarios: list[Scenario]) -> None:
    universe = market()
    pnl, by_factor, by_sector = apply_all(np.array([book.weights for book in many]), scenarios, universe)
    for p, book in enumerate(many):
        for s, scenario in enumerate(scenarios):
            single = apply(book, scenario, universe)
            plain = sum(
                weight * (float(beta @ scenario.factor_shocks) + scenario.sector_sensitivities[sector])
                for weight, beta, sector in zip(book.weights, universe.betas, universe.sectors, strict=True)
            )
            assert pnl[p, s] == pytest.approx(single.pnl, abs=1e-13)
            assert pnl[p, s] == pytest.approx(plain, abs=1e-12)
            np.testing.assert_allclose(by_factor[p, s], list(single.by_factor.values()), atol=1e-13)
            named = dict(zip(universe.sector_names, by_sector[p, s], strict=True))
            assert {sector: named[sector] for sector in single.by_sector} == pytest.approx(
                dict(single.by_sector), abs=1e-13
            )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"type": "guess"}, "type must be one of historical_replay, hypothetical"),
        ({"scenario_id": 7}, "scenario_id and name must be text"),
        ({"factor_shocks": None}, "factor_shocks is missing"),
        ({"factor_shocks": dict.fromkeys((*FACTORS, "oil"), 0.0)}, "factor_shocks names oil; known: mkt_rf"),
        ({"factor_shocks": {"mkt_rf": -0.2}}, "factor_shocks: smb must be a number"),
        ({"factor_shocks": dict.fromkeys(FACTORS, float("nan"))}, "factor_shocks: mkt_rf must be a number"),
        ({"sector_sensitivities": {"Financials": -0.1}}, "sector_sensitivities names Financials; known: Technology"),
        ({"sector_sensitivities": {"Energy": "-10%"}}, "sector_sensitivities: Energy must be a number"),
        ({"sector_sensitivities": []}, "sector_sensitivities must be an object"),
    ],
)
def test_refuses_in_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        scenario_from(scenario_json(**changes))
    assert "\n" not in str(refused.value)


def test_a_sector_held_needs_a_sensitivity_and_another_does_not() -> None:
    lacking = scenario_json()
    del lacking["sector_sensitivities"]["Technology"]
    scenario, universe = scenario_from(lacking), market()
    assert universe.sectors[0] == "Technology"
    weights = np.zeros(12)
    weights[1] = 1.0
    assert apply(Portfolio(weights, 0.0, 1e6), scenario, universe).by_sector.keys() == {universe.sectors[1]}
    with pytest.raises(InputError, match="stress_scenario S1: sector_sensitivities lacks Technology, which is held"):
        apply(Portfolio(np.full(12, 1 / 12), 0.0, 1e6), scenario, universe)


@given(st.lists(_scenarios(), min_size=1, max_size=3))
@settings(max_examples=examples(20))
def test_names_alone_lose_what_portfolios_of_one_name_lose(scenarios: list[Scenario]) -> None:
    universe = market()
    alone = apply_all(np.eye(len(universe.tickers)), scenarios, universe)[0]
    assert np.array_equal(apply_to_names(scenarios, universe), alone)


def test_names_alone_need_every_sensitivity() -> None:
    universe = market()
    scenario = scenario_from(scenario_json())
    known = dict.fromkeys(universe.sector_names[1:], 0.1)
    with pytest.raises(InputError, match=f"sector_sensitivities lacks {universe.sector_names[0]}"):
        apply_to_names((replace(scenario, sector_sensitivities=known),), universe)


def test_cash_alone_loses_nothing() -> None:
    result = apply(Portfolio(np.zeros(12), 1.0, 1e6), scenario_from(scenario_json()), market())
    assert (result.pnl, dict(result.by_sector)) == (0.0, {})
    assert set(result.by_factor.values()) == {0.0}
