"""Every risk label of whole editions, and of the pools they are drawn from, against the second implementation."""

from __future__ import annotations

import dataclasses
import json
from functools import cache
from typing import Any

import pytest
from tests.oracles import risk as oracle
from tests.subtasks.attacks import scored

from finskillbench.domains.building import BuildContext
from finskillbench.domains.risk.objects.construct import RiskObjects, risk_context
from finskillbench.domains.risk.objects.portfolios import PortfolioCase
from finskillbench.domains.risk.shared import by_ticker, factor_exposures, resolved_covariance, sector_mapping
from finskillbench.edition import Edition
from finskillbench.engines.portfolio.problem import required
from finskillbench.engines.risk.exposures import ranked
from finskillbench.engines.risk.monitor import constraint_report
from finskillbench.engines.risk.report import exposure_list, remedy_answer, stress_answer
from finskillbench.engines.risk.stress import apply, scenario_from
from finskillbench.engines.statistics.value_at_risk import portfolio_returns, value_at_risk
from finskillbench.episode import Episode

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")  # cvxpy on its retries
EXACT = 1e-9
"""Tolerance of what has one right number (absolute; labels of order one)."""
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
KEPT = 1e-6
"""Excess that a labelled portfolio may have over a limit it keeps."""
Json = dict[str, Any]


def _rows(edition: Edition, sub_task: str) -> list[tuple[Episode, Json, Json]]:
    found = [
        (episode, dict(edition.full_input(episode)), dict(edition.truth(episode.task_id).expected_output))
        for episode in edition.episodes([sub_task])
    ]
    assert len(found) == 40
    return found


def differences(expected: Any, found: Any, path: str = "") -> list[str]:
    """Leaves of the oracle's answer that the label lacks or has otherwise; numbers to 1e-9, all else exactly."""
    if isinstance(expected, dict):
        if not isinstance(found, dict):
            return [f"{path}: no object"]
        return [line for key in expected for line in differences(expected[key], found.get(key), f"{path}.{key}")]
    if isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            return [f"{path}: another length"]
        pairs = enumerate(zip(expected, found, strict=True))
        return [line for i, (one, other) in pairs for line in differences(one, other, f"{path}[{i}]")]
    if all(isinstance(side, (int, float)) and not isinstance(side, bool) for side in (expected, found)):
        return [] if abs(expected - found) <= EXACT else [f"{path}: oracle {expected!r}, label {found!r}"]
    return [] if expected == found and type(expected) is type(found) else [f"{path}: {expected!r}, label {found!r}"]


def monitoring_differences(task_input: Json, labelled: Json) -> list[str]:
    """Statuses, values, excesses and counts; a magnitude on a PASS would be a claim of a violation."""
    found = differences(oracle.monitoring(task_input), labelled)
    for row in labelled["constraints"]:
        if row["status"] == "PASS" and row.get("violation_magnitude"):
            found.append(f"{row['type']}: passes with a magnitude")
    return found


def identification_differences(task_input: Json, labelled: Json) -> list[str]:
    """Ranks, types and magnitudes; among equal magnitudes any order of subjects is right."""
    listed = oracle.exposures(task_input)
    rows = labelled["top_risk_exposures"]
    kept = [{"rank": i, **row} for i, row in enumerate(listed[:5], 1)]
    if len(rows) != len(kept):
        return [f"{len(rows)} exposures, oracle {len(kept)}"]
    found = []
    for mine, row in zip(kept, rows, strict=True):
        tied = [x for x in listed if abs(x["magnitude"] - mine["magnitude"]) <= EXACT]
        same = differences({"rank": mine["rank"], "magnitude": mine["magnitude"]}, row)
        found += same
        among = {(x["type"], x["subject"]) for x in tied}
        # The one single name listed may be any of the largest holdings.
        weights = oracle.holdings(task_input)
        if mine["type"] == "single_name" or any(x["type"] == "single_name" for x in tied):
            top = max(abs(w) for w in weights.values())
            among |= {("single_name", s) for s, w in weights.items() if abs(w) >= top - EXACT}
        if (row["type"], row["subject"]) not in among:
            found.append(f"rank {mine['rank']}: oracle {mine['type']} {mine['subject']}, label {row}")
    return found


def stress_differences(task_input: Json, labelled: Json) -> list[str]:
    """P&L and both attributions as maps; an entry beyond the oracle's has to be zero."""
    mine = oracle.stress(task_input)
    found = differences({"pnl": mine["estimated_pnl_pct"]}, {"pnl": labelled["estimated_pnl_pct"]})
    for name, key in (("by_sector", "sector"), ("by_factor", "factor")):
        ours, theirs = (
            {row[key]: row["contribution_pct"] for row in side["attribution"][name]} for side in (mine, labelled)
        )
        found += differences(ours | dict.fromkeys(theirs.keys() - ours.keys(), 0.0), theirs, name)
        if len(theirs) != len(labelled["attribution"][name]):
            found.append(f"{name}: an entry twice")
        if abs(sum(theirs.values()) - labelled["estimated_pnl_pct"]) > EXACT:
            found.append(f"{name} does not add up")
    return found


def solved(task_input: Json) -> oracle.Remedy:
    """The oracle's remedy; several tests ask for the same one."""
    return _solved(json.dumps(task_input))


@cache
def _solved(task_input: str) -> oracle.Remedy:
    return oracle.remediation(json.loads(task_input))


def remediation_differences(task_input: Json, labelled: Json) -> tuple[bool, list[str]]:
    """Verdict; objective; the labelled trades applied by hand; their squares within the oracle's bounds.

    The first value says whether the oracle had a tie to compare with.
    """
    remedy = solved(task_input)
    held, start = oracle.holdings(task_input), task_input["portfolio"]["cash_weight"]
    changes = {row["symbol"]: row["trade_pct"] for row in labelled["trades"]}
    weights = {s: held.get(s, 0.0) + changes.get(s, 0.0) for s in {*held, *changes}}
    weights = {s: w for s, w in weights.items() if abs(w) > oracle.HELD}
    cash = start - sum(changes.values())
    turnover = oracle.one_way(changes)
    found = []
    if labelled["post_trade_compliant"] is not remedy.compliant:
        return bool(remedy.weights), [f"oracle {remedy.compliant} (T* {remedy.turnover}, budget {remedy.budget})"]
    if abs(labelled["total_turnover"] - turnover) > VALUE:
        found.append(f"turnover reported {labelled['total_turnover']}, of the trades {turnover}")
    if cash < -KEPT or turnover > max(remedy.budget, 0.0) + KEPT:
        found.append(f"cash {cash}, turnover {turnover}, budget {remedy.budget}")
    traded = oracle.one_way(task_input["portfolio"].get("trades_this_month") or {})
    report = oracle.checked(task_input, weights, cash, traded + turnover, KEPT)
    broken = {row["type"] for row in report["constraints"] if row["status"] == "FAIL"}
    value = turnover
    if remedy.compliant:
        found += [f"after the trades {kind} is broken" for kind in sorted(broken)]
    else:
        kept = broken & set(oracle.KEPT_ALWAYS)
        found += [f"after the trades {kind} is broken" for kind in sorted(kept)]
        value = oracle.total_relative_excess(task_input, weights, cash)
        if not broken:
            found.append("said to be impossible, and compliant after the trades")
    low, high = remedy.value_bounds
    if not low - VALUE <= value <= high + VALUE:
        found.append(f"objective {value}, oracle [{low}, {high}]")
    if remedy.weights:
        conic = {rule["type"] for rule in task_input["mandate"]["constraints"]} & set(oracle.CONIC)
        squares, near = oracle.squared_trades(task_input, weights, cash), BESIDE_A_CONE if conic else SQUARES
        found += _tie_differences(remedy, weights, squares, near)
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


DIFFERENCES = {
    "constraint_monitoring": monitoring_differences,
    "risk_identification": identification_differences,
    "stress_testing": stress_differences,
    "risk_remediation": lambda task_input, labelled: remediation_differences(task_input, labelled)[1],
}


@pytest.mark.parametrize("sub_task", DIFFERENCES)
def test_every_label_of_the_edition_is_derived_again(edition: Edition, sub_task: str) -> None:
    found = {e.task_id: DIFFERENCES[sub_task](given, labelled) for e, given, labelled in _rows(edition, sub_task)}
    assert {task_id: lines for task_id, lines in found.items() if lines} == {}


def test_the_types_that_fail_now_are_those_of_the_monitor(edition: Edition) -> None:
    for episode, given, _ in _rows(edition, "risk_remediation"):
        rows = oracle.monitoring(given)["constraints"]
        assert given["violations"] == [row["type"] for row in rows if row["status"] == "FAIL"], episode.task_id
        assert given["violations"], episode.task_id


@pytest.mark.parametrize("digits", [6, 5])
def test_the_oracles_own_answers_keep_full_marks_when_rounded(edition: Edition, digits: int) -> None:
    """What an agent with the right method would send, computed without the project's engines."""
    solve = {
        "constraint_monitoring": oracle.monitoring,
        "risk_identification": oracle.identification,
        "stress_testing": oracle.stress,
        "risk_remediation": remediation_answer,
    }
    for sub_task, answer in solve.items():
        for episode, given, _ in _rows(edition, sub_task):
            sent = answer(given)
            if sent is None:
                continue
            value = scored(edition, episode, rounded(sent, digits)).value
            assert value >= 0.99, (episode.task_id, value)


def remediation_answer(task_input: Json) -> Json | None:
    """The oracle's trades as a submission, None where it has none; changes under 1e-7 are the solver's noise."""
    remedy, held = solved(task_input), oracle.holdings(task_input)
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
    return {"trades": rows, "total_turnover": oracle.one_way(changes), "post_trade_compliant": remedy.compliant}


def rounded(value: Any, digits: int) -> Any:
    """Every float of an answer to so many digits."""
    if isinstance(value, dict):
        return {key: rounded(item, digits) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item, digits) for item in value]
    return round(value, digits) if isinstance(value, float) else value


# --- the pools -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def objects(synthetic_context: BuildContext) -> RiskObjects:
    """The risk objects that the synthetic edition of seed 1 was drawn from."""
    return risk_context(synthetic_context)


def given(case: PortfolioCase, **more: Any) -> Json:
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
    }
    return fields | more


def _none(found: dict[str, list[str]]) -> None:
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_pool_sizes(objects: RiskObjects) -> None:
    pools = objects.identification, objects.monitoring, objects.stress, objects.remediation
    assert [len(pool) for pool in pools] == [200, 600, 2400, 400]


def test_the_pool_of_identification(objects: RiskObjects) -> None:
    found = {}
    for case in objects.identification:
        labelled = {"top_risk_exposures": exposure_list(ranked(case.book, case.market))}
        found[case.portfolio_id] = identification_differences(given(case), labelled)
    _none(found)


def test_the_tail_risk_of_every_portfolio(objects: RiskObjects) -> None:
    found = {}
    for case in objects.identification:
        returns = portfolio_returns(case.book, case.market)
        mine = oracle.tail_risk(returns.tolist())
        market = required(case.market.returns, "returns")
        table = {"tickers": list(case.market.tickers), "matrix": market.tolist()}
        found[case.portfolio_id] = differences(
            {"returns": oracle.portfolio_returns(given(case, returns=table)), **mine},
            {"returns": returns.tolist(), **dataclasses.asdict(value_at_risk(returns))},
        )
    _none(found)


def test_the_pool_of_monitoring(objects: RiskObjects) -> None:
    found = {}
    for pair in objects.monitoring:
        task_input = given(pair.case, mandate=pair.mandate.to_json())
        labelled = constraint_report(pair.case.book, pair.mandate, pair.case.market)
        lines = monitoring_differences(task_input, labelled)
        broken = [row["type"] for row in labelled["constraints"] if row["status"] == "FAIL"]
        if broken != [kind.value for kind in pair.violations]:
            lines.append(f"the pair says {pair.violations}")
        found[f"{pair.case.portfolio_id} {pair.mandate.mandate_id}"] = lines
    _none(found)


def test_the_pool_of_stress(objects: RiskObjects) -> None:
    found = {}
    inputs = {case.portfolio_id: given(case) for case in objects.portfolios}
    for pair in objects.stress:
        task_input = {**inputs[pair.case.portfolio_id], "stress_scenario": pair.scenario}
        labelled = stress_answer(apply(pair.case.book, scenario_from(pair.scenario), pair.case.market))
        found[f"{pair.case.portfolio_id} {pair.scenario['scenario_id']}"] = stress_differences(task_input, labelled)
    assert len(found) == len(objects.stress)
    _none(found)


@pytest.mark.slow
@pytest.mark.parametrize("quarter", range(4))
def test_the_pool_of_remediation(objects: RiskObjects, quarter: int) -> None:
    """In four parts, which two processes can share."""
    found, compared = {}, 0
    pairs = objects.remediation[quarter::4]
    for pair in pairs:
        task_input = given(pair.case, mandate=pair.mandate.to_json())
        labelled = remedy_answer(pair.remedy, pair.case.book, pair.mandate, pair.case.market)
        tie, lines = remediation_differences(task_input, labelled)
        found[f"{pair.case.portfolio_id} {pair.mandate.mandate_id}"] = lines
        compared += tie
    assert len(found) == len(pairs)
    _none(found)
    assert compared >= 0.95 * len(pairs)
