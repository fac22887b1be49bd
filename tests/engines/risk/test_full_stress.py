"""Options, the cost of closing, estimated betas and VaR at stressed correlations: hand arithmetic and limits."""

import math
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines.risk.cases import books, market, scenario_json, task
from tests.sampling import examples

from finskillbench.arrays import FACTORS
from finskillbench.engines.risk.full_stress import (
    Option,
    liquidation_costs,
    overlay_from,
    put_value,
    stress,
    stressed_var,
    with_estimated_betas,
)
from finskillbench.engines.risk.portfolio import MarketSnapshot, Portfolio
from finskillbench.engines.risk.stress import scenario_from
from finskillbench.engines.risk.task import market_from
from finskillbench.engines.statistics.risk_model import RiskModel
from finskillbench.errors import InputError

PUT = Option(0.4, 0.95, 0.5, 0.2, 0.3)


def _two_names(correlation: float = 0.4) -> MarketSnapshot:
    covariance = np.array([[0.04, correlation * 0.06], [correlation * 0.06, 0.09]])
    return MarketSnapshot(
        tickers=("A", "B"),
        sectors=("Energy", "Utilities"),
        betas=np.zeros((2, 6)),
        benchmark=np.array([0.75, 0.25]),
        risk=RiskModel.from_matrix(covariance),
        dollar_volume=np.array([1e8, 1e6]),
    )


@pytest.mark.parametrize(
    ("spot", "strike", "years", "volatility", "rate", "carry", "value"),
    [
        (20.0, 20.0, 4 / 12, 0.25, 0.09, 0.0, 1.12),  # Hull, Options, Futures, and Other Derivatives: a futures put
        (42.0, 40.0, 0.5, 0.2, 0.1, 0.1, 0.81),  # Hull: a put on a stock, at its forward price
    ],
)
def test_puts_of_a_textbook(
    spot: float, strike: float, years: float, volatility: float, rate: float, carry: float, value: float
) -> None:
    found = put_value(spot * math.exp(carry * years), strike, years, volatility) * math.exp(-rate * years)
    assert found == pytest.approx(value, abs=0.005)


_PUTS = st.tuples(st.floats(0.3, 1.5), st.floats(0.5, 1.5), st.floats(0.02, 3.0), st.floats(0.02, 1.0))


@settings(max_examples=examples(100))
@given(put=_PUTS)
def test_limits_of_a_put(put: tuple[float, float, float, float]) -> None:
    level, strike, years, volatility = put
    value = put_value(level, strike, years, volatility)
    assert max(0.0, strike - level) - 1e-12 <= value <= strike
    assert -1.0 <= Option(1.0, strike, years, volatility, volatility).delta <= 0.0
    assert value <= put_value(level, strike, years, volatility + 0.1) + 1e-12


def test_options_are_revalued_at_the_shocked_index_and_volatility() -> None:
    gained = put_value(0.8, 0.95, 0.5, 0.3) - put_value(1.0, 0.95, 0.5, 0.2)
    assert PUT.pnl(-0.2) == pytest.approx(0.4 * gained, abs=1e-15)
    assert gained == pytest.approx(0.138232, abs=1e-6)
    assert replace(PUT, notional=-0.4).pnl(-0.2) == -PUT.pnl(-0.2)
    assert replace(PUT, stressed_volatility=0.2).pnl(0.0) == 0.0
    small = 1e-5
    calm = replace(PUT, notional=1.0, stressed_volatility=0.2)
    assert calm.pnl(small) / small == pytest.approx(calm.delta, abs=1e-4)
    with pytest.raises(InputError, match="mkt_rf is -1; with an option_overlay give a number above -1"):
        PUT.pnl(-1.0)


def test_closing_costs_half_the_wider_spread_and_the_root_of_the_days() -> None:
    # A: 0.5 x 4e7 / (0.2 x 1e8) = 1 day; B: 0.4 x 4e7 / (0.2 x 1e6) = 80 days. Half of 100 bp is 0.005.
    costs = liquidation_costs(Portfolio(np.array([0.5, -0.4]), 0.9, 4e7), 100.0, _two_names())
    assert costs == pytest.approx([0.5 * 0.005, 0.4 * 0.005 * 80**0.5], abs=1e-15)


def test_a_name_that_nobody_trades_cannot_be_closed() -> None:
    universe = market(2, 0)
    silent = MarketSnapshot(universe.tickers, universe.sectors, universe.betas, dollar_volume=np.array([0.0, 1e6]))
    with pytest.raises(InputError, match=f"average_daily_volume_usd of {universe.tickers[0]} is 0"):
        liquidation_costs(Portfolio(np.array([0.5, 0.5]), 0.0, 1e6), 100.0, silent)


@pytest.mark.parametrize(("shift", "variance"), [(0.0, 0.0445), (0.5, 0.0535), (1.0, 0.0625)])
def test_var_at_correlations_moved_towards_one(shift: float, variance: float) -> None:
    found = stressed_var(Portfolio(np.array([0.5, 0.5]), 0.0, 1e6), (), shift, _two_names())
    assert found == pytest.approx(2.326 * (variance / 252) ** 0.5, abs=1e-15)
    moved = _two_names(0.4 + shift * 0.6 - 1e-12)
    assert stressed_var(Portfolio(np.array([0.5, 0.5]), 0.0, 1e6), (), 0.0, moved) == pytest.approx(found, abs=1e-9)


def test_options_count_in_var_by_their_delta_spread_over_the_benchmark() -> None:
    hedge = Option(0.2 / -PUT.delta, PUT.strike, PUT.years, PUT.implied_volatility, 0.9)
    hedged = stressed_var(Portfolio(np.array([0.5, 0.5]), 0.0, 1e6), (hedge,), 0.3, _two_names())
    plain = stressed_var(Portfolio(np.array([0.35, 0.45]), 0.2, 1e6), (), 0.3, _two_names())
    assert hedged == pytest.approx(plain, abs=1e-15)


@settings(max_examples=examples(50))
@given(book=books(), shift=st.floats(0, 1), widening=st.floats(0, 500))
def test_both_attributions_add_up_with_every_part(book: Portfolio, shift: float, widening: float) -> None:
    scenario = scenario_from(scenario_json(spread_widening_bp=widening, correlation_shift=shift))
    found = stress(book, (PUT, Option(-0.3, 0.8, 0.5, 0.25, 0.35)), scenario, market())
    for split in (found.by_sector, found.by_factor):
        assert sum(split.values()) == pytest.approx(found.pnl, abs=1e-12)
    assert found.by_factor["liquidation"] <= 0
    assert found.stressed_var is not None
    plain = stress(book, (), scenario_from(scenario_json()), market())
    assert plain.stressed_var is None
    assert found.pnl == pytest.approx(
        plain.pnl + found.by_factor["option_overlay"] + found.by_factor["liquidation"], abs=1e-12
    )


def test_a_name_without_betas_has_those_of_its_sector_by_benchmark_weight() -> None:
    given_ = task()
    name = next(iter(given_["factor_exposures"]))
    peers = [one for one, sector in given_["sector_mapping"].items() if sector == given_["sector_mapping"][name]][1:]
    assert peers
    del given_["factor_exposures"][name]
    size = sum(given_["benchmark_weights"][peer] for peer in peers)
    for factor in FACTORS:
        total = sum(given_["benchmark_weights"][peer] * given_["factor_exposures"][peer][factor] for peer in peers)
        found = with_estimated_betas(given_)["factor_exposures"][name][factor]
        assert found == pytest.approx(total / size, abs=1e-14)
    assert market_from(with_estimated_betas(given_)).betas.shape == (12, 6)
    for peer in peers:
        del given_["factor_exposures"][peer]
    with pytest.raises(InputError, match=f"factor_exposures lacks {name}, and no name of its sector has betas"):
        with_estimated_betas(given_)


def test_nothing_is_estimated_where_nothing_is_missing() -> None:
    whole = task()
    assert with_estimated_betas(whole) is whole


def test_a_sector_with_a_proxy_moves_as_the_proxy_does() -> None:
    sensitivities = scenario_json()["sector_sensitivities"]
    del sensitivities["Energy"]
    scenario = scenario_from(scenario_json(sector_sensitivities=sensitivities, sector_proxies={"Energy": "Utilities"}))
    assert scenario.sector_sensitivities["Energy"] == sensitivities["Utilities"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sector_proxies": {"Energy": "Utilities"}}, "sector_proxies gives 'Energy' the sensitivity of 'Utilities'"),
        ({"sector_proxies": ["Energy"]}, "sector_proxies must map a sector"),
        ({"spread_widening_bp": -1.0}, "spread_widening_bp is -1; give a number from 0 to 5000"),
        ({"correlation_shift": 1.5}, "correlation_shift must be a number"),
    ],
)
def test_refuses_a_scenario_in_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        scenario_from(scenario_json(**changes))
    assert "\n" not in str(refused.value)


def test_reads_the_options_of_a_portfolio() -> None:
    whole = task()
    assert overlay_from(whole) == ()
    whole["portfolio"]["option_overlay"] = [{"option": "put", **asdict(PUT)}]
    assert overlay_from(whole) == (PUT,)
    whole["portfolio"]["option_overlay"][0]["years"] = "many"
    with pytest.raises(InputError, match=r"option_overlay\[0\]: years must be a number"):
        overlay_from(whole)
    whole["portfolio"]["option_overlay"][0]["years"] = 0.0
    with pytest.raises(InputError, match=r"option_overlay\[0\]: years is 0; give a number above 0"):
        overlay_from(whole)
    whole["portfolio"]["option_overlay"] = "put"
    with pytest.raises(InputError, match="option_overlay must be a list"):
        overlay_from(whole)
