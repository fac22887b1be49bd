"""The witness itself: least turnover against exhaustive search over who is held."""

from __future__ import annotations

import copy
import itertools
from random import Random
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.domains.risk import oracle

from finskillbench.domains.risk import second

Json = dict[str, Any]
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # cvxpy's bounds: infinity times zero


def _random(seed: int, names: int = 6) -> Json:
    r = Random(seed)
    tickers = [f"T{i}" for i in range(names)]
    raw = [r.random() if i < 4 else 0.0 for i in range(names)]
    held = {t: round(0.95 * x / sum(raw), 4) for t, x in zip(tickers, raw, strict=True) if x}
    spread = np.array([[r.gauss(0, 1) for _ in range(names)] for _ in range(8)])
    return {
        "portfolio": {
            "holdings": [{"symbol": t, "weight": w} for t, w in held.items()],
            "cash_weight": 1 - sum(held.values()),
            "total_nav": 1e7,
            "trades_this_month": {},
        },
        "mandate": {
            "constraints": [
                {"type": "long_only", "value": True},
                {"type": "position_limit_max", "value": 0.35},
                {"type": "position_limit_min", "value": 0.08},
                {"type": "sector_limit_max", "value": 0.6},
                {"type": "beta_range", "min": 0.9, "max": 1.1},
                {"type": "cash_max", "value": 0.05},
                {"type": "name_count", "min": 5, "max": None},
            ]
        },
        "sector_mapping": {t: "XYZ"[i % 3] for i, t in enumerate(tickers)},
        "factor_exposures": {t: {f: r.uniform(0.6, 1.4) for f in second.FACTORS} for t in tickers},
        "benchmark_weights": dict.fromkeys(tickers, 1 / names),
        "covariance_matrix": {"tickers": tickers, "matrix": (0.03 * spread.T @ spread / 8).tolist()},
    }


def after(episode: Json, remedy: oracle.Remedy) -> Json:
    """The episode with the portfolio of a remedy."""
    held = [{"symbol": t, "weight": w} for t, w in remedy.weights.items() if w > 1e-7]
    portfolio = {**episode["portfolio"], "holdings": held, "cash_weight": 1 - sum(remedy.weights.values())}
    return {**episode, "portfolio": portfolio}


def _exhaustive(episode: Json) -> float:
    """Least turnover by a linear program for every set of names held (x, t, up with |t| <= up, cash, |sum t|)."""
    rules = {c["type"]: c for c in episode["mandate"]["constraints"]}
    tickers = list(episode["sector_mapping"])
    n, held = len(tickers), second.weights(episode)
    start = np.array([held.get(t, 0.0) for t in tickers])
    betas = np.array([episode["factor_exposures"][t]["mkt_rf"] for t in tickers])
    best = np.inf
    for chosen in itertools.product((0, 1), repeat=n):
        if sum(chosen) < rules["name_count"]["min"]:
            continue
        bounds = [(0.08, 0.35) if inside else (0.0, 0.0) for inside in chosen]
        bounds += [(0, None)] * n + [(0, 0.05), (0, None)]
        eye = np.eye(n)
        rows = [*np.hstack([eye, -eye, np.zeros((n, 2))]), *np.hstack([-eye, -eye, np.zeros((n, 2))])]
        limits = [*start, *-start]
        pad = np.zeros(n + 2)
        one = np.r_[np.ones(n), np.zeros(n), 0.0, -1.0]
        rows += [one, np.r_[-np.ones(n), np.zeros(n), 0.0, -1.0], np.r_[betas, pad], np.r_[-betas, pad]]
        limits += [start.sum(), -start.sum(), 1.1, -0.9]
        for sector in "XYZ":
            rows.append(np.r_[[float(episode["sector_mapping"][t] == sector) for t in tickers], pad])
            limits.append(0.6)
        cost = np.r_[np.zeros(n), np.full(n, 0.5), 0.0, 0.5]
        invested = np.r_[np.ones(n), np.zeros(n), 1.0, 0.0][None]
        found = linprog(cost, np.array(rows), limits, invested, [1.0], bounds)
        best = min(best, found.fun) if found.status == 0 else best
    return best


@pytest.mark.parametrize("seed", range(8))
def test_least_turnover_is_that_of_exhaustive_search(seed: int) -> None:
    episode = _random(seed)
    remedy, best = oracle.remediation(episode), _exhaustive(episode)
    assert remedy.value == pytest.approx(best, abs=1e-8)
    assert remedy.compliant
    assert remedy.proved
    assert all(one.excess <= 1e-6 for one in second.monitored(after(episode, remedy)).values())


@pytest.mark.parametrize("seed", range(4))
def test_branch_and_bound_finds_what_highs_finds(seed: int) -> None:
    program = oracle._Program(_random(seed), relaxed=False)
    low, high, _ = program.minimise(program.turnover, [])
    assert high - low <= 1e-8
    assert high == pytest.approx(oracle._milp(program), abs=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_conic_limits_bind_and_a_budget_makes_it_impossible(seed: int) -> None:
    episode = _random(seed)
    # A count that today's book misses is kept before the rest, and would leave nothing to attain.
    rules = [rule for rule in episode["mandate"]["constraints"] if rule["type"] != "name_count"]
    rules.append({"type": "hhi_max", "value": 0.22})
    rules.append({"type": "turnover_max_monthly", "value": 1.0})
    episode["mandate"]["constraints"] = rules
    remedy = oracle.remediation(episode)
    assert remedy.compliant
    tight = copy.deepcopy(episode)
    tight["mandate"]["constraints"][-1]["value"] = remedy.turnover / 2
    short = oracle.remediation(tight)
    assert not short.compliant
    assert short.turnover == pytest.approx(remedy.turnover, abs=1e-8)
    assert short.value > 1e-4
    assert second.relative_excess(after(tight, short)) == pytest.approx(short.value, abs=1e-6)


def test_a_compliant_portfolio_needs_no_trades() -> None:
    episode = _random(1)
    episode["mandate"]["constraints"] = [{"type": "long_only", "value": True}]
    remedy = oracle.remediation(episode)
    assert remedy.value == pytest.approx(0.0, abs=1e-9)
    for ticker, weight in second.weights(episode).items():
        assert remedy.weights[ticker] == pytest.approx(weight, abs=1e-5)
