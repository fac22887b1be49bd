"""Stress P&L of portfolios under scenarios, attributed by sector and by factor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from finskillbench.arrays import FACTORS, SECTORS, Floats, Integers
from finskillbench.engines.fields import describe_value, listed, mapping, number, table_of
from finskillbench.engines.risk.batch import Batch
from finskillbench.engines.risk.portfolio import MarketSnapshot, Portfolio
from finskillbench.errors import InputError

KINDS = ("historical_replay", "hypothetical")
SECTOR_SENSITIVITY = "sector_sensitivity"
"""Factor attribution's seventh entry: contribution of sector sensitivities."""
BY_FACTOR = (*FACTORS, SECTOR_SENSITIVITY)
WIDEST = 5000.0
"""Maximum widening of bid-ask spreads in basis points."""


@dataclass(frozen=True)
class Scenario:
    """Decimal shocks of the six `FACTORS` (6,), and decimal sector sensitivities.

    Sectors without a sensitivity use their proxy's. `spread_widening_bp` and `correlation_shift` (the part of its
    distance to 1 by which every correlation moves) are None if unchanged.
    """

    scenario_id: str
    kind: str
    name: str
    factor_shocks: Floats
    sector_sensitivities: Mapping[str, float]
    spread_widening_bp: float | None = None
    correlation_shift: float | None = None


@dataclass(frozen=True, slots=True)
class StressResult:
    """P&L (decimal of NAV, a loss is negative), by held sector and by `BY_FACTOR`.

    `stressed_var` is a positive decimal of NAV, None if correlations do not move.
    """

    pnl: float
    by_sector: Mapping[str, float]
    by_factor: Mapping[str, float]
    stressed_var: float | None = None


def scenario_from(data: object) -> Scenario:
    """Read a stress scenario; raise `InputError` for unknown types, factors or sectors, and invalid numbers."""
    if (scenario := table_of(data)) is None:
        raise InputError("stress_scenario must be an object; inject it from the task data")
    identity, kind, name = (scenario.get(field, "") for field in ("scenario_id", "type", "name"))
    if not isinstance(identity, str) or not isinstance(name, str):
        raise InputError("stress_scenario: scenario_id and name must be text")
    if kind not in KINDS:
        raise InputError(f"stress_scenario: type must be one of {', '.join(KINDS)}, not {describe_value(kind)}")
    shocks, sensitivities = (mapping(scenario, field) for field in ("factor_shocks", "sector_sensitivities"))
    for field, table, known in (("factor_shocks", shocks, FACTORS), ("sector_sensitivities", sensitivities, SECTORS)):
        unknown = sorted(str(key) for key in set(table) - set(known))
        if unknown:
            raise InputError(f"stress_scenario: {field} names {listed(unknown[:5])}; known: {', '.join(known)}")
    stated = [sector for sector in SECTORS if sector in sensitivities]
    direct = {sector: number(sensitivities, sector, "sector_sensitivities") for sector in stated}
    return Scenario(
        scenario_id=identity,
        kind=kind,
        name=name,
        factor_shocks=np.array([number(shocks, factor, "factor_shocks") for factor in FACTORS]),
        sector_sensitivities=direct | _by_proxy(scenario.get("sector_proxies"), direct),
        spread_widening_bp=_within(scenario, "spread_widening_bp", WIDEST),
        correlation_shift=_within(scenario, "correlation_shift", 1.0),
    )


def _by_proxy(data: object, direct: Mapping[str, float]) -> dict[str, float]:
    if data is None:
        return {}
    if (proxies := table_of(data)) is None:
        raise InputError("stress_scenario: sector_proxies must map a sector to the sector whose sensitivity it takes")
    for sector, proxy in proxies.items():
        if sector not in SECTORS or sector in direct or proxy not in direct:
            raise InputError(
                f"stress_scenario: sector_proxies gives {describe_value(sector)} the sensitivity of "
                f"{describe_value(proxy)}; name a sector without a sensitivity and one that has its own"
            )
    return {sector: direct[str(proxy)] for sector, proxy in proxies.items()}


def _within(scenario: Mapping[str, Any], field: str, largest: float) -> float | None:
    if scenario.get(field) is None:
        return None
    value = number(scenario, field, "stress_scenario", largest=largest)
    if value < 0:
        raise InputError(f"stress_scenario: {field} is {value:g}; give a number from 0 to {largest:g}")
    return value


def apply(portfolio: Portfolio, scenario: Scenario, market: MarketSnapshot) -> StressResult:
    """Compute the P&L of one portfolio; raise `InputError` if a held sector has no sensitivity."""
    batch = Batch.within(market, portfolio.weights[None, :], np.array([portfolio.cash]), np.array([portfolio.traded]))
    first = np.zeros(1, dtype=int)
    pnl, by_factor, by_sector = apply_pairs(batch, first, (scenario,), first)
    return StressResult(
        pnl=float(pnl[0]),
        by_sector={
            sector: amount
            for sector, amount, held in zip(
                batch.sector_names, by_sector[0].tolist(), batch.sectors_held[0], strict=True
            )
            if held
        },
        by_factor=dict(zip(BY_FACTOR, by_factor[0].tolist(), strict=True)),
    )


def apply_all(weights: Floats, scenarios: Sequence[Scenario], market: MarketSnapshot) -> tuple[Floats, Floats, Floats]:
    """Compute the P&L of p portfolios of one market under s scenarios.

    Parameters
    ----------
    weights : (p, n) signed fractions of NAV.

    Returns
    -------
    pnl : (p, s). by_factor : (p, s, 7) in the order of `BY_FACTOR`. by_sector : (p, s, sectors) in the order of
        `market.sector_names`, 0 if not held. Raises `InputError` if a held sector has no sensitivity.
    """
    count = len(weights)
    batch = Batch.within(market, weights, 1.0 - weights.sum(axis=1), np.zeros(count))
    rows, columns = (places.ravel() for places in np.indices((count, len(scenarios))))
    pnl, by_factor, by_sector = apply_pairs(batch, rows, scenarios, columns)
    shape = count, len(scenarios)
    return (
        pnl.reshape(shape),
        by_factor.reshape(*shape, len(BY_FACTOR)),
        by_sector.reshape(*shape, len(batch.sector_names)),
    )


def apply_to_names(scenarios: Sequence[Scenario], market: MarketSnapshot) -> Floats:
    """(n, s) P&L of each name alone; raise `InputError` if a sector has no sensitivity."""
    sectors = np.array([market.sector_names.index(sector) for sector in market.sectors])
    pnl = np.empty((len(market.tickers), len(scenarios)))
    for column, scenario in enumerate(scenarios):
        unknown = sorted(set(market.sector_names) - scenario.sector_sensitivities.keys())
        if unknown:
            named = f"stress_scenario {scenario.scenario_id}"
            raise InputError(f"{named}: sector_sensitivities lacks {unknown[0]}, which is held")
        moves = np.array([scenario.sector_sensitivities[sector] for sector in market.sector_names])
        parts = np.column_stack([market.betas * np.array(scenario.factor_shocks), moves[sectors]])
        pnl[:, column] = parts.sum(axis=1)
    return pnl


def apply_pairs(
    batch: Batch, rows: Integers, scenarios: Sequence[Scenario], columns: Integers
) -> tuple[Floats, Floats, Floats]:
    """Compute the P&L of m pairs of a batch portfolio and a scenario, from exposures by sector.

    Parameters
    ----------
    rows, columns : (m,) portfolio and scenario of each pair.

    Returns
    -------
    pnl : (m,). by_factor : (m, 7) in the order of `BY_FACTOR`. by_sector : (m, sectors) in the order of
        `batch.sector_names`, 0 if not held. Raises `InputError` if a held sector has no sensitivity.
    """
    names = batch.sector_names
    shocks = np.array([scenario.factor_shocks for scenario in scenarios]).reshape(-1, len(FACTORS))
    stated = [[scenario.sector_sensitivities.get(sector, np.nan) for sector in names] for scenario in scenarios]
    sensitivities = np.array(stated).reshape(-1, len(names))
    unknown = np.isnan(sensitivities)
    if unknown.any():
        for pair, sector in np.argwhere(batch.sectors_held[rows] & unknown[columns]).tolist():
            lacking = scenarios[int(columns[pair])].scenario_id
            raise InputError(f"stress_scenario {lacking}: sector_sensitivities lacks {names[sector]}, which is held")
        sensitivities[unknown] = 0.0
    pair_shocks, sector_moves = shocks[columns], batch.sector_weights[rows] * sensitivities[columns]
    by_factor = np.empty((len(rows), len(BY_FACTOR)))
    by_factor[:, :-1] = batch.exposures[rows] * pair_shocks
    by_factor[:, -1] = sector_moves.sum(axis=1)
    # Effect of the shocks through a sector's betas, plus the sector's own move.
    by_sector = np.matmul(batch.by_sector[rows, :, :-1], pair_shocks[:, :, None])[:, :, 0] + sector_moves
    return by_factor.sum(axis=1), by_factor, by_sector
