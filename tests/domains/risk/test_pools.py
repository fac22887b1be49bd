"""The pools that risk episodes are drawn from: exact labels against the second derivation, remedies against CVXPY."""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Any

import pytest
from tests.domains.risk import oracle
from tests.domains.shared.attacks import scored
from tests.sampling import sampled, thorough

from finskillbench.arrays import FACTORS
from finskillbench.domains.checks.agreement import leaf_by_leaf
from finskillbench.domains.risk import second
from finskillbench.domains.risk.catalogs import EPISODES
from finskillbench.domains.risk.objects.construct import RiskObjects
from finskillbench.domains.risk.objects.portfolios import PortfolioCase
from finskillbench.domains.risk.shared import by_ticker, factor_exposures, resolved_covariance, sector_mapping
from finskillbench.edition import Edition
from finskillbench.engines.portfolio.problem import required
from finskillbench.engines.risk.monitor import constraint_report
from finskillbench.engines.risk.report import exposure_list, remedy_answer, stress_answer
from finskillbench.engines.risk.stress import apply, scenario_from
from finskillbench.episode import Episode

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")  # cvxpy on its retries
VALUE = 1e-6
"""Tolerance of remediation's objectives."""
WEIGHTS = 2e-4
"""Tolerance of the weights of a tie that was broken to the end."""
SQUARES = 1e-5
"""Tolerance of the sum of squared trades: what weights 1e-4 apart can make of it."""
BESIDE_A_CONE = 3e-5
"""The same under a tracking error or HHI limit: feasible to 1e-9 moves the ties of the value by the root of it."""
EQUAL = 1e-7
"""Squares that are this near are those of one tie."""
ACCURACY = 1e-6
"""Excess that a labelled portfolio may have over a limit it meets."""
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
        f"{leaf.path}: {leaf.first!r}, {leaf.second!r}"
        for leaf in leaves
        if not leaf.agrees and "detail" not in leaf.path
    ]


def solved(task_input: Json) -> oracle.Remedy:
    """The oracle's remedy; several tests ask for the same one."""
    return _solved(json.dumps(task_input))


@cache
def _solved(task_input: str) -> oracle.Remedy:
    return oracle.remediation(json.loads(task_input))


def remediation_differences(task_input: Any, labelled: Json) -> tuple[bool, list[str]]:
    """Verdict; objective; the labelled trades applied by hand; their squares within the oracle's bounds.

    The first value says whether the oracle had a tie to compare with.
    """
    remedy = solved(task_input)
    changes = {row["symbol"]: row["trade_pct"] for row in labelled["trades"]}
    done = second.after(task_input, changes, second.NO_WEIGHT)
    cash, turnover = done["portfolio"]["cash_weight"], second.turnover(changes.values())
    found: list[str] = []
    if labelled["post_trade_compliant"] is not remedy.compliant:
        return bool(remedy.weights), [f"oracle {remedy.compliant} (T* {remedy.turnover}, budget {remedy.budget})"]
    if abs(labelled["total_turnover"] - turnover) > VALUE:
        found.append(f"turnover reported {labelled['total_turnover']}, of the trades {turnover}")
    if cash < -ACCURACY or turnover > max(remedy.budget, 0.0) + ACCURACY:
        found.append(f"cash {cash}, turnover {turnover}, budget {remedy.budget}")
    after = second.monitored_after(task_input, changes, second.NO_WEIGHT)
    broken = {kind for kind, one in after.items() if one.excess > ACCURACY}
    hard = broken if remedy.compliant else broken & second.NEVER_GIVEN_UP
    found += [f"after the trades {kind} is broken" for kind in sorted(hard)]
    value = turnover if remedy.compliant else second.relative_excess(done)
    if not remedy.compliant and not broken:
        found.append("said to be impossible, and compliant after the trades")
    low, high = remedy.value_bounds
    if not low - VALUE <= value <= high + VALUE:
        found.append(f"objective {value}, oracle [{low}, {high}]")
    if remedy.weights:
        conic = {rule["type"] for rule in task_input["mandate"]["constraints"]} & set(oracle.CONIC)
        squares = math.fsum(change**2 for change in (*changes.values(), math.fsum(changes.values())))
        found += _tie_differences(remedy, second.weights(done), squares, BESIDE_A_CONE if conic else SQUARES)
    return bool(remedy.weights), found


def _tie_differences(remedy: oracle.Remedy, weights: dict[str, float], squares: float, near: float) -> list[str]:
    """The label's squares against the oracle's bounds, and its weights where the tie is proved and one of its kind.

    Who is held decides between ties: with the same names held the program is strictly convex and its tie unique; with
    others held and equal squares (two names alike in all that the mandate measures) there are several.
    """
    least, most = remedy.squares_bounds
    if squares < least - near or (remedy.sharp and squares > most + near):
        return [f"squares {squares}, oracle [{least}, {most}]"]
    if not remedy.proved:
        return []
    apart = max(abs(remedy.weights[s] - weights.get(s, 0.0)) for s in remedy.weights)
    alike = abs(squares - most) <= EQUAL and _counted(remedy.weights) != _counted(weights)
    return [f"weights {apart} apart, squares {squares}, oracle {most}"] if apart > WEIGHTS and not alike else []


def _counted(weights: dict[str, float]) -> set[str]:
    """Names held by more than what the open end of a name count leaves to the others."""
    return {s for s, w in weights.items() if abs(w) > oracle.COUNTED + 1e-5}


@thorough
@pytest.mark.slow
def test_remedies_of_the_edition_are_those_of_the_oracle(edition: Edition) -> None:
    rows = _rows(edition, "risk_remediation")
    _none({e.task_id: remediation_differences(task_input, labelled)[1] for e, task_input, labelled in rows})


@pytest.mark.parametrize("digits", [6, 5])
def test_the_oracles_own_answers_keep_full_marks_when_rounded(edition: Edition, digits: int) -> None:
    """What an agent with the right method would send, computed without the project's engines."""
    for episode, task_input, _ in _rows(edition, "risk_remediation"):
        sent = remediation_answer(task_input)
        if sent is not None:
            value = scored(edition, episode, rounded(sent, digits)).value
            assert value >= 0.99, (episode.task_id, value)


def remediation_answer(task_input: Any) -> Json | None:
    """The oracle's trades as a submission, None where it has none; changes under 1e-7 are the solver's noise."""
    remedy, held = solved(task_input), second.weights(task_input)
    if not remedy.weights:
        return None
    changes = {s: w - held.get(s, 0.0) for s, w in remedy.weights.items()}
    changes = {s: x for s, x in changes.items() if abs(x) > 1e-7}
    rows = [
        {
            "symbol": s,
            "action": "buy" if x > 0 else "sell",
            "current_weight": held.get(s, 0.0),
            "target_weight": held.get(s, 0.0) + x,
            "trade_pct": x,
        }
        for s, x in changes.items()
    ]
    return {
        "trades": rows,
        "total_turnover": second.turnover(changes.values()),
        "post_trade_compliant": remedy.compliant,
    }


def rounded(value: Any, digits: int) -> Any:
    """Every float of an answer to so many digits."""
    if hasattr(value, "items"):
        return {key: rounded(item, digits) for key, item in value.items()}
    if hasattr(value, "append"):
        return [rounded(item, digits) for item in value]
    return round(value, digits) if isinstance(value, float) else value


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
        "factor_exposures": factor_exposures(market),
        "benchmark_weights": by_ticker(market, required(market.benchmark, "benchmark")),
        "covariance_matrix": resolved_covariance(market),
        "average_daily_volume_usd": by_ticker(market, volume),
        "factor_volatility": dict(zip(FACTORS, required(market.factor_volatility, "volatility").tolist(), strict=True)),
    }
    return fields | more


def _none(found: dict[str, list[str]]) -> None:
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_pool_sizes(objects: RiskObjects) -> None:
    pools = objects.identification, objects.monitoring, objects.stress
    assert [len(pool) for pool in pools] == [200, 600, 2400]
    # Three of each that is drawn: a pool that gives no choice would leave the draws uneven.
    assert len(objects.remediation) >= 3 * EPISODES


def test_the_pool_of_identification(objects: RiskObjects) -> None:
    found: dict[str, list[str]] = {}
    for one in objects.identification:
        label = {"top_risk_exposures": exposure_list(one.exposures)}
        found[one.case.portfolio_id] = differences(label, second.identification_answer(input_of(one.case)))
    _none(found)


def test_the_pool_of_monitoring(objects: RiskObjects) -> None:
    found: dict[str, list[str]] = {}
    for pair in objects.monitoring:
        task_input = input_of(pair.case, mandate=pair.mandate.to_json())
        labelled = constraint_report(pair.case.portfolio, pair.mandate, pair.case.market)
        lines = differences(labelled, second.monitoring_answer(task_input))
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
        labelled = stress_answer(apply(pair.case.portfolio, scenario_from(pair.scenario), pair.case.market))
        derived = second.stress_answer(task_input)
        found[f"{pair.case.portfolio_id} {pair.scenario['scenario_id']}"] = differences(labelled, derived)
    assert len(found) == len(objects.stress)
    _none(found)


@pytest.mark.slow
@pytest.mark.parametrize("eighth", sampled(range(8), 8))
def test_the_pool_of_remediation(objects: RiskObjects, eighth: int) -> None:
    """In parts, which processes can share."""
    found: dict[str, list[str]] = {}
    compared = 0
    pairs = objects.remediation[eighth::8]
    for pair in pairs:
        task_input = input_of(pair.case, mandate=pair.mandate.to_json())
        labelled = remedy_answer(pair.remedy, pair.case.portfolio, pair.mandate, pair.case.market)
        tie, lines = remediation_differences(task_input, labelled)
        found[f"{pair.case.portfolio_id} {pair.mandate.mandate_id}"] = lines
        compared += tie
    assert len(found) == len(pairs)
    _none(found)
    assert compared >= 0.95 * len(pairs)
