"""A small universe, portfolios and mandates for the risk engines, as JSON and as objects, and the published sample."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from finskillbench.arrays import FACTORS, SECTORS, Integers
from finskillbench.engines.risk.portfolio import MarketSnapshot, Portfolio
from finskillbench.engines.statistics.risk_model import RiskModel

SAMPLE = Path(__file__).parents[4] / "shared" / "release_sample" / "data" / "risk_management"


def market(n: int = 12, seed: int = 0) -> MarketSnapshot:
    """n names over the eleven sectors in turn, with everything that a market can have."""
    rng = np.random.default_rng(seed)
    loadings = np.vstack([rng.normal(0.17, 0.05, n), rng.normal(0, 0.08, (3, n))])
    benchmark = rng.uniform(0.5, 1.5, n)
    return MarketSnapshot(
        tickers=tuple(f"T{place:02d}" for place in range(n)),
        sectors=tuple(SECTORS[place % len(SECTORS)] for place in range(n)),
        betas=rng.normal(0.3, 0.5, (n, len(FACTORS))),
        benchmark=benchmark / benchmark.sum(),
        risk=RiskModel.from_factors(loadings, rng.uniform(0.02, 0.08, n)),
        dollar_volume=rng.uniform(1e6, 1e8, n),
        factor_volatility=rng.uniform(0.05, 0.2, len(FACTORS)),
    )


def books(n: int = 12) -> st.SearchStrategy[Portfolio]:
    """Signed weights of n names, some of them 0, and the cash that completes them."""
    weight = st.one_of(st.just(0.0), st.floats(-0.5, 0.8).map(lambda value: round(value, 6)))

    def book(weights: list[float], nav: float, traded: float) -> Portfolio:
        return Portfolio(np.array(weights), 1.0 - float(np.sum(weights)), nav, traded)

    return st.builds(book, st.lists(weight, min_size=n, max_size=n), st.floats(1e5, 1e10), st.floats(0, 1))


def permuted(universe: MarketSnapshot, order: Integers) -> MarketSnapshot:
    """The same universe with its names in another order."""
    assert universe.risk is not None
    assert universe.benchmark is not None
    assert universe.dollar_volume is not None
    places: list[int] = order.tolist()
    return MarketSnapshot(
        tickers=tuple(universe.tickers[place] for place in places),
        sectors=tuple(universe.sectors[place] for place in places),
        betas=universe.betas[order],
        benchmark=universe.benchmark[order],
        risk=RiskModel(universe.risk.root[:, order], universe.risk.diagonal[order]),
        dollar_volume=universe.dollar_volume[order],
        factor_volatility=universe.factor_volatility,
    )


def mandate_json(**changes: Any) -> dict[str, Any]:
    """Every kind of constraint, in canonical order; a change replaces the numbers of a kind, None drops it."""
    numbers: dict[str, Any] = {
        "long_only": {"value": True},
        "position_limit_max": {"value": 0.2},
        "position_limit_min": {"value": 0.01},
        "sector_limit_max": {"value": 0.3},
        "tracking_error_max": {"value": 0.05},
        "beta_range": {"min": 0.0, "max": 1.0},
        "factor_exposure_max": {"factors": ["smb", "hml"], "value": 0.4},
        "turnover_max_monthly": {"value": 0.1},
        "cash_max": {"value": 0.05},
        "gross_exposure_max": {"value": 1.0},
        "hhi_max": {"value": 0.15},
        "name_count": {"min": 8, "max": None},
    }
    rows = [{"type": kind, **row} for kind, row in (numbers | changes).items() if row is not None]
    return {"mandate_id": "M1", "name": "Every kind", "constraints": rows}


def scenario_json(**changes: Any) -> dict[str, Any]:
    """Six shocks and eleven sensitivities."""
    return {
        "scenario_id": "S1",
        "type": "hypothetical",
        "name": "Crash",
        "description": "",
        "market_shocks": {"equity_drawdown_pct": -20},
        "factor_shocks": dict(zip(FACTORS, (-0.2, -0.05, 0.03, 0.02, 0.01, -0.04), strict=True)),
        "sector_sensitivities": {sector: round(0.005 * place - 0.03, 3) for place, sector in enumerate(SECTORS)},
    } | changes


def task(seed: int = 0, n: int = 12) -> dict[str, Any]:
    """The resolved input of a task that has every field."""
    universe = market(n, seed)
    assert universe.risk is not None
    assert universe.benchmark is not None
    assert universe.dollar_volume is not None
    assert universe.factor_volatility is not None
    names = list(universe.tickers)
    return {
        "portfolio": {
            "portfolio_id": "P001",
            "holdings": [{"symbol": name, "weight": 0.19} for name in names[:5]],
            "cash_weight": 0.05,
            "total_nav": 2.5e9,
            "trades_this_month": {names[0]: 0.03, names[1]: -0.01},
        },
        "sector_mapping": dict(zip(names, universe.sectors, strict=True)),
        "factor_exposures": {
            name: dict(zip(FACTORS, row, strict=True)) for name, row in zip(names, universe.betas.tolist(), strict=True)
        },
        "benchmark_weights": dict(zip(names, universe.benchmark.tolist(), strict=True)),
        "covariance_matrix": {"tickers": names, "matrix": universe.risk.matrix.tolist()},
        "average_daily_volume_usd": dict(zip(names, universe.dollar_volume.tolist(), strict=True)),
        "factor_volatility": dict(zip(FACTORS, universe.factor_volatility.tolist(), strict=True)),
    }


def sample(name: str) -> dict[str, Any]:
    """A published episode; skips where the sample is not beside the project."""
    found = sorted(SAMPLE.glob(f"episodes/layer_a/*/{name}.json"))
    if not found:
        pytest.skip(f"{SAMPLE} has no {name}")
    return json.loads(found[0].read_text())
