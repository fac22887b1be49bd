"""The pools that risk episodes are drawn from: exact labels against the second derivation, remedies against HiGHS."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.sampling import sampled

from finskillbench.arrays import FACTORS
from finskillbench.domains.checks.agreement import leaf_by_leaf
from finskillbench.domains.risk import rederive, rederive_stress
from finskillbench.domains.risk.catalogs import EPISODES
from finskillbench.domains.risk.objects.construct import RiskObjects
from finskillbench.domains.risk.objects.portfolios import PortfolioCase
from finskillbench.domains.risk.objects.stress import at_tier
from finskillbench.domains.risk.remediation.cure import RemediationProgram
from finskillbench.domains.risk.shared import betas_by_ticker, resolved_covariance, sector_mapping, values_by_ticker
from finskillbench.edition import Edition
from finskillbench.engines.portfolio.problem import require_array
from finskillbench.engines.risk.full_stress import stress
from finskillbench.engines.risk.monitor import constraint_report
from finskillbench.engines.risk.report import exposure_list, stress_answer
from finskillbench.engines.risk.stress import scenario_from
from finskillbench.episode import Episode

Json = dict[str, Any]


def _rows(edition: Edition, sub_task: str) -> list[tuple[Episode, Any, Json]]:
    return [
        (episode, edition.full_input(episode), dict(edition.truth(episode.task_id).expected_output))
        for episode in sampled(edition.episodes([sub_task]), 4)
    ]


def differences(label: Json, derived: Any) -> list[str]:
    """The leaves that differ, without the words of an exposure."""
    leaves = leaf_by_leaf(label, derived)
    return [
        f"{leaf.path}: {leaf.left!r}, {leaf.right!r}"
        for leaf in leaves
        if not leaf.agrees and "detail" not in leaf.path
    ]


# --- the pools -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def objects(synthetic_risk_objects: RiskObjects) -> RiskObjects:
    """Those of the synthetic edition only: the pools are large."""
    return synthetic_risk_objects


def input_of(case: PortfolioCase, **more: Any) -> Any:
    """A full input as an episode of the pair would resolve to."""
    market = case.market
    volume = market.dollar_volume
    assert volume is not None
    fields = {
        "portfolio": case.to_json(),
        "sector_mapping": sector_mapping(market),
        "factor_exposures": betas_by_ticker(market),
        "benchmark_weights": values_by_ticker(market, require_array(market.benchmark, "benchmark")),
        "covariance_matrix": resolved_covariance(market),
        "average_daily_volume_usd": values_by_ticker(market, volume),
        "factor_volatility": dict(
            zip(FACTORS, require_array(market.factor_volatility, "volatility").tolist(), strict=True)
        ),
    }
    return fields | more


def _none(found: dict[str, list[str]]) -> None:
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_pool_sizes(objects: RiskObjects) -> None:
    pools = objects.identification, objects.monitoring, objects.stress
    assert [len(pool) for pool in pools] == [200, 600, 2400]
    assert len(objects.remediation) >= EPISODES


def test_the_pool_of_identification(objects: RiskObjects) -> None:
    found: dict[str, list[str]] = {}
    for one in objects.identification:
        label = {"top_risk_exposures": exposure_list(one.exposures)}
        found[one.case.portfolio_id] = differences(label, rederive.identification_answer(input_of(one.case)))
    _none(found)


def test_the_pool_of_monitoring(objects: RiskObjects) -> None:
    found: dict[str, list[str]] = {}
    for pair in objects.monitoring:
        task_input = input_of(pair.case, mandate=pair.mandate.to_json())
        labelled = constraint_report(pair.case.portfolio, pair.mandate, pair.case.market)
        lines = differences(labelled, rederive.monitoring_answer(task_input))
        broken = [row["type"] for row in labelled["constraints"] if row["status"] == "FAIL"]
        if broken != [kind.value for kind in pair.violations]:
            lines.append(f"the pair says {pair.violations}")
        found[f"{pair.case.portfolio_id} {pair.mandate.mandate_id}"] = lines
    _none(found)


def test_the_pool_of_stress(objects: RiskObjects) -> None:
    found: dict[str, list[str]] = {}
    inputs = {case.portfolio_id: input_of(case) for case in objects.portfolios}
    for pair in objects.stress:
        task_input: Any = {**inputs[pair.case.portfolio_id], "stress_scenario": pair.scenario}
        labelled = stress_answer(stress(pair.case.portfolio, (), scenario_from(pair.scenario), pair.case.market))
        derived = rederive_stress.rederived_stress_answer(task_input)
        found[f"{pair.case.portfolio_id} {pair.scenario['scenario_id']}"] = differences(labelled, derived)
    assert len(found) == len(objects.stress)
    _none(found)


@pytest.mark.parametrize("tier", ["medium", "hard"])
def test_the_pool_of_stress_at_a_tier(objects: RiskObjects, tier: str) -> None:
    """The options and what is estimated, closed and correlated, of a sample of the pairs."""
    found: dict[str, list[str]] = {}
    rng = np.random.default_rng(7)
    for pair in objects.stress[::20]:
        case = at_tier(pair, tier, objects.scenarios, rng)
        if case is None:
            continue
        changes = {"stress_scenario": case.scenario, "factor_exposures": case.exposures}
        task_input: Any = {**input_of(pair.case), **changes}
        task_input["portfolio"] = {**task_input["portfolio"], "option_overlay": list(case.overlay)}
        derived = rederive_stress.rederived_stress_answer(task_input)
        found[f"{pair.case.portfolio_id} {pair.scenario['scenario_id']}"] = differences(
            stress_answer(case.result), derived
        )
    assert len(found) >= 20
    _none(found)


@pytest.mark.slow
def test_the_pool_of_remediation(objects: RiskObjects) -> None:
    """No cure is better than the certified one, by mixed-integer programs of another solver that settle most."""
    found: dict[str, list[str]] = {}
    left_open = 0
    for pair in objects.remediation[::8]:
        stage, terms = pair.remedy.stages[-1], pair.rules
        stated = {
            "cost_bps": values_by_ticker(pair.case.market, 100 * terms.costs),
            "minimum_trade": terms.ticket,
            "headroom": {kind.value: room for kind, room in terms.headroom.items()},
        }
        task_input = input_of(pair.case, mandate=pair.mandate.to_json(), trading_terms=stated)
        cure, value = RemediationProgram(task_input, stage.aim.goal.value), pair.remedy.value
        bound = cure.bound(stage.certified.weights, value - 1e-6, value + 1e-5)
        left_open += cure.open
        apart = bound > value if cure.open else abs(bound - value) > 1e-5
        found[pair.case.portfolio_id] = [f"{pair.remedy.value} stated, {bound} bounded"] * apart
    _none(found)
    assert left_open <= len(found) / 3
