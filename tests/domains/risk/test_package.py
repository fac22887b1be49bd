"""The risk-management package: its documents, and its scripts against the second derivation of the domain."""

import asyncio
import copy
import json
import subprocess
import sys
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.domains.package import Mend, Package, set_at, solved

from finskillbench.domains import subtask_named
from finskillbench.domains.base import Subtask
from finskillbench.domains.checks.agreement import leaf_by_leaf
from finskillbench.domains.risk import DOMAIN, rederive
from finskillbench.episode import JsonObject
from finskillbench.harness.conditions import Condition
from finskillbench.harness.programs.program import naive_answer
from finskillbench.harness.skills.lint import lint
from finskillbench.harness.skills.loader import load_package
from finskillbench.sandbox.runner import ScriptRunner

PACKAGE = Package("risk-management")
ROOT, run, recipe_of, refusal = PACKAGE.root, PACKAGE.run, PACKAGE.recipe_of, PACKAGE.refusal
SUB_TASKS = ("constraint_monitoring", "risk_identification", "stress_testing", "risk_remediation")
FACTORS = ("mkt_rf", "smb", "hml", "rmw", "cma", "mom")
TICKERS = tuple(f"N{number:02d}" for number in range(12))
SECTORS = {ticker: ("Energy", "Technology", "Utilities", "Healthcare")[i % 4] for i, ticker in enumerate(TICKERS)}


@pytest.fixture
def task() -> JsonObject:
    """The resolved input of a portfolio of 8 of 12 names that breaks three of its limits."""
    rng = np.random.default_rng(7)
    weights = [0.31, 0.22, 0.13, 0.10, 0.08, 0.05, 0.03, 0.02]
    loadings = rng.normal(0.0, 0.08, (3, 12))
    covariance = loadings.T @ loadings + np.diag(rng.uniform(0.02, 0.06, 12))
    betas = rng.normal(0.0, 0.3, (12, 6)) + np.array([1.0, 0, 0, 0, 0, 0])
    return {
        "portfolio": {
            "portfolio_id": "P001",
            "holdings": [{"symbol": t, "weight": w} for t, w in zip(TICKERS, weights, strict=False)],
            "cash_weight": 0.06,
            "total_nav": 5e8,
            "trades_this_month": {"N00": 0.02, "N05": -0.01},
        },
        "trading_terms": {
            "cost_bps": {ticker: 4.0 + number for number, ticker in enumerate(TICKERS)},
            "minimum_trade": 0.005,
            "headroom": {"position_limit_max": 0.0025},
        },
        "mandate": {
            "mandate_id": "M1",
            "name": "Core",
            "constraints": [
                {"type": "long_only", "value": True},
                {"type": "position_limit_max", "value": 0.2},
                {"type": "position_limit_min", "value": 0.01},
                {"type": "sector_limit_max", "value": 0.35},
                {"type": "tracking_error_max", "value": 0.3},
                {"type": "beta_range", "min": 0.5, "max": 1.5},
                {"type": "factor_exposure_max", "factors": ["smb", "hml"], "value": 0.6},
                {"type": "turnover_max_monthly", "value": 0.4},
                {"type": "cash_max", "value": 0.05},
                {"type": "gross_exposure_max", "value": 1.0},
                {"type": "hhi_max", "value": 0.2},
                {"type": "name_count", "min": 6, "max": 12},
            ],
        },
        "stress_scenario": {
            "scenario_id": "S1",
            "type": "hypothetical",
            "name": "Selloff",
            "description": "Everything falls.",
            "market_shocks": {"equity_pct": -20.0},
            "factor_shocks": dict(zip(FACTORS, (-0.2, -0.05, 0.03, 0.02, 0.01, -0.04), strict=True)),
            "sector_sensitivities": {"Energy": -0.1, "Technology": 0.02, "Utilities": 0.0, "Healthcare": 0.03},
        },
        "sector_mapping": SECTORS,
        "factor_exposures": {t: dict(zip(FACTORS, map(float, betas[i]), strict=True)) for i, t in enumerate(TICKERS)},
        "benchmark_weights": dict.fromkeys(TICKERS, 1 / 12),
        "covariance_matrix": {"tickers": list(TICKERS), "matrix": covariance.tolist()},
        "average_daily_volume_usd": {t: float(v) for t, v in zip(TICKERS, rng.uniform(1e7, 2e8, 12), strict=True)},
        "factor_volatility": dict(zip(FACTORS, (0.18, 0.09, 0.1, 0.06, 0.07, 0.12), strict=True)),
        "conventions": {},
        "violations": [],
    }


def test_the_package_is_clean() -> None:
    assert lint(ROOT) == []


@pytest.mark.parametrize("sub_task", SUB_TASKS)
def test_the_table_names_a_script_and_the_answers_keys(sub_task: str) -> None:
    recipe = recipe_of(sub_task)
    assert recipe.script in load_package(ROOT).scripts
    assert recipe.keys == tuple(subtask_named(sub_task).answer.model_fields)


@pytest.mark.parametrize(
    "subtask", [one for one in DOMAIN.subtasks if one.rederive is not None], ids=attrgetter("name")
)
def test_a_script_answers_what_is_derived_a_second_time(subtask: Subtask, task: JsonObject) -> None:
    found = run(subtask.name, task)
    answer = {key: found[key] for key in subtask.answer.model_fields if found[key] is not None}
    assert [leaf.path for leaf in subtask.derived_again(answer, task) if not leaf.agrees] == []


def test_a_report_gives_liquidity_and_concentration_too(task: JsonObject) -> None:
    answer: Any = run("risk_identification", task)
    resolved: Any = task
    portfolio, volumes = resolved["portfolio"], resolved["average_daily_volume_usd"]
    weights = rederive.weights(resolved)
    days = dict(zip(weights, rederive.days_to_sell(portfolio, volumes), strict=True))
    assert answer["illiquid_share"] == pytest.approx(rederive.rederived_illiquid_share(portfolio, volumes), abs=1e-12)
    assert answer["hhi"] == pytest.approx(sum(weight**2 for weight in weights.values()))
    assert answer["sector_weights"] == pytest.approx(rederive.sector_totals(resolved))
    assert answer["days_to_liquidate"] == pytest.approx(days)


def after_trades(task: Any, answer: JsonObject) -> JsonObject:
    """The task with the answer's trades made; also checks that each trade agrees with itself."""
    weights = rederive.weights(task)
    for trade in answer["trades"]:
        before = weights.get(trade["symbol"], 0.0)
        assert trade["current_weight"] == before
        assert trade["trade_pct"] == pytest.approx(trade["target_weight"] - before, abs=1e-15)
        assert abs(trade["trade_pct"]) > 1e-9
        assert trade["action"] == ("buy" if trade["trade_pct"] > 0 else "sell")
        weights[trade["symbol"]] = trade["target_weight"]
    traded = copy.deepcopy(task)
    traded["portfolio"]["holdings"] = [{"symbol": t, "weight": w} for t, w in weights.items() if w]
    traded["portfolio"]["cash_weight"] = 1.0 - sum(weights.values())
    return traded


def test_remediation_cures_the_whole_mandate_at_the_cost_it_reports(task: JsonObject) -> None:
    answer = run("risk_remediation", task)
    changes = {trade["symbol"]: trade["trade_pct"] for trade in answer["trades"]}
    turnover = rederive.turnover_of_trades(changes.values())
    assert answer["post_trade_compliant"] is True
    assert answer["total_turnover"] == pytest.approx(turnover, abs=1e-7)
    # 0.1125 above the position limit less its headroom has to go, and so 0.0225 of N01.
    assert {"N00", "N01"} <= {trade["symbol"] for trade in answer["trades"] if trade["action"] == "sell"}
    assert answer["cost_bps"] == pytest.approx(100 * rederive.cost_of(task, changes), abs=1e-6)
    assert rederive.undersized_names(task, changes, 1e-7) == []
    assert {check["status"] for check in answer["checks"]} == {"PASS"}
    report = run("constraint_monitoring", after_trades(task, answer))
    excesses = [item.get("violation_magnitude", 0.0) for item in report["constraints"]]
    assert max(excesses) <= 1e-6
    assert all(abs(stage["gap"]) <= 1e-6 for stage in answer["proof"]["stages"])


def test_a_compliant_portfolio_needs_no_trades(task: JsonObject) -> None:
    task["mandate"]["constraints"] = [{"type": "position_limit_max", "value": 0.4}, {"type": "cash_max", "value": 0.1}]
    answer = run("risk_remediation", task)
    assert (answer["trades"], answer["post_trade_compliant"]) == ([], True)
    assert answer["total_turnover"] == pytest.approx(0.0, abs=1e-9)


def test_a_budget_too_small_is_an_answer_and_not_an_error(task: JsonObject) -> None:
    task["mandate"]["constraints"] = [
        {"type": "long_only", "value": True},
        {"type": "position_limit_max", "value": 0.2},
        {"type": "turnover_max_monthly", "value": 0.07},
    ]
    answer = run("risk_remediation", task)
    assert answer["post_trade_compliant"] is False
    assert answer["total_turnover"] <= 0.05 + 1e-7
    assert {check["type"]: check["status"] for check in answer["checks"]}["position_limit_max"] == "FAIL"


def test_the_order_of_holdings_changes_nothing(task: JsonObject) -> None:
    before = [run(sub_task, task) for sub_task in ("constraint_monitoring", "stress_testing")]
    task["portfolio"]["holdings"].reverse()
    after = [run(sub_task, task) for sub_task in ("constraint_monitoring", "stress_testing")]
    assert after == before


HELD = ("portfolio", "holdings", 0)


@pytest.mark.parametrize("sub_task", SUB_TASKS)
@pytest.mark.parametrize(
    ("change", "named"),
    [
        (set_at("portfolio", "cash_weight", value=0.2), "sum"),
        (set_at(*HELD, "symbol", value="ZZZ"), "ZZZ"),
        (set_at(*HELD, "weight", value="much"), "weight"),
        (set_at(*HELD, "symbol", value="N01"), "N01"),
        (set_at("portfolio", "total_nav", value=0.0), "nav"),
        (set_at("portfolio", value=None), "portfolio"),
        (set_at("portfolio", "trades_this_month", value={"ZZZ": 0.1}), "ZZZ"),
        (set_at("sector_mapping", value=None), "sector_mapping"),
        (set_at("factor_exposures", value={"N00": {"mkt_rf": 1.0}}), "factor_exposures"),
    ],
)
def test_a_bad_portfolio_is_one_line_and_code_2(
    sub_task: str, change: Mend, named: str, task: JsonObject, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(task)
    assert named in refusal(sub_task, task, tmp_path, capsys)


@pytest.mark.parametrize("sub_task", ["constraint_monitoring", "risk_remediation"])
@pytest.mark.parametrize(
    ("constraints", "named"),
    [
        ([{"type": "leverage_max", "value": 1.0}], "leverage_max"),
        ([{"type": "hhi_max", "value": 0.1}] * 2, "hhi_max"),
        ([{"type": "hhi_max"}], "hhi_max"),
        ([{"type": "hhi_max", "value": "low"}], "hhi_max"),
        ([{"type": "factor_exposure_max", "factors": ["quality"], "value": 0.2}], "quality"),
        ([{"type": "beta_range", "min": 1.1, "max": 0.9}], "beta_range"),
        (
            [{"type": "position_limit_max", "value": 0.05}, {"type": "position_limit_min", "value": 0.1}],
            "position_limit_min",
        ),
        ([{"type": "position_limit_max", "value": 0.05}, {"type": "cash_max", "value": 0.1}], "position_limit_max"),
        ([{"type": "name_count", "min": 13, "max": None}], "name_count"),
    ],
)
def test_a_bad_mandate_is_one_line_and_code_2(
    sub_task: str,
    constraints: list[JsonObject],
    named: str,
    task: JsonObject,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    task["mandate"]["constraints"] = constraints
    assert named in refusal(sub_task, task, tmp_path, capsys)


SCENARIO = "stress_scenario"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (set_at(SCENARIO, "factor_shocks", "quality", value=-0.1), "quality"),
        (set_at(SCENARIO, "factor_shocks", "hml", value=None), "hml"),
        (set_at(SCENARIO, "sector_sensitivities", "Shipping", value=-0.1), "Shipping"),
        (
            set_at(SCENARIO, "sector_sensitivities", value={"Energy": -0.1, "Utilities": 0.0, "Healthcare": 0.0}),
            "Technology",
        ),
        (set_at(SCENARIO, value=None), SCENARIO),
    ],
)
def test_a_bad_scenario_is_one_line_and_code_2(
    change: Mend, named: str, task: JsonObject, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(task)
    assert named in refusal("stress_testing", task, tmp_path, capsys)


def test_a_script_runs_from_the_command_line(task: JsonObject, tmp_path: Path) -> None:
    file = tmp_path / "in.json"
    file.write_text(json.dumps(PACKAGE.payload_of("stress_testing", task)))
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "stress_test.py", "--input", file], capture_output=True, check=True
    )
    assert json.loads(done.stdout) == run("stress_testing", task)


@pytest.mark.slow
@pytest.mark.parametrize("sub_task", SUB_TASKS)
def test_the_runner_returns_what_the_script_returns(sub_task: str, task: JsonObject, warm: ScriptRunner) -> None:
    payload = json.dumps(PACKAGE.payload_of(sub_task, task)).encode()
    result = asyncio.run(warm.run(ROOT / recipe_of(sub_task).script, payload))
    assert result.error is None
    # Sums differ in their last digit by where the arrays lie in memory.
    leaves = leaf_by_leaf(run(sub_task, task), result.output)
    assert all(leaf.difference <= 1e-14 for leaf in leaves)


@pytest.mark.parametrize("sub_task", SUB_TASKS)
def test_the_reference_program_follows_the_table(
    sub_task: str, task: JsonObject, warm: ScriptRunner, tmp_path: Path
) -> None:
    answer = solved(sub_task, task, Condition.CURATED, warm, tmp_path)
    assert answer == {key: run(sub_task, task)[key] for key in subtask_named(sub_task).answer.model_fields}


@pytest.mark.parametrize("condition", [Condition.NO_SKILL, Condition.SELF_GENERATED])
@pytest.mark.parametrize("sub_task", SUB_TASKS)
def test_without_the_package_it_answers_by_hand(
    sub_task: str, condition: Condition, task: JsonObject, warm: ScriptRunner, tmp_path: Path
) -> None:
    answer = solved(sub_task, task, condition, warm, tmp_path)
    assert answer == naive_answer(subtask_named(sub_task).baselines.no_skill, task)
    assert tuple(answer) == tuple(subtask_named(sub_task).answer.model_fields)
