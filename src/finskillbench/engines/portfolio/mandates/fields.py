"""Validated conversion of task or tool-call JSON to a portfolio problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.fields import (
    LARGEST,
    covered,
    describe_value,
    exposures_from,
    list_of,
    listed,
    mapping,
    number,
    table_of,
    texts_of,
    tickers_of,
    values_from,
    weights_from,
)
from finskillbench.engines.portfolio import black_litterman
from finskillbench.engines.portfolio.problem import Objective, PortfolioLimits, PortfolioProblem
from finskillbench.engines.statistics.risk_model import RiskModel
from finskillbench.errors import InputError

_LIMIT_FIELDS = frozenset(
    {
        "long_only",
        "min_weight",
        "max_weight",
        "max_sector_weight",
        "sector_limits",
        "excluded_sectors",
        "restricted_names",
        "min_position",
        "min_names",
        "max_names",
        "max_turnover",
        "max_tracking_error",
        "factor_neutrality",
        "neutral_factors",
        "neutrality_tolerance",
    }
)


def problem_from(data: Mapping[str, Any], *, risk: RiskModel | None = None) -> PortfolioProblem:
    """Read a resolved episode input, or a script payload with the same fields.

    Tickers are in the order of `covariance_matrix`. Weight maps may omit names (weight 0), other maps must cover all
    tickers. With `risk`, only the tickers of the covariance are read. Raises `InputError` with field and remedy.
    """
    tickers = tickers_from(data)
    risk = covariance_from(data) if risk is None else risk
    constraints: Mapping[str, Any] = {} if data.get("constraints") is None else mapping(data, "constraints")
    sectors: tuple[str, ...] = ()
    if any(constraints.get(field) is not None for field in ("max_sector_weight", "sector_limits", "excluded_sectors")):
        by_ticker = mapping(data, "sector_mapping")
        names = texts_of([covered(by_ticker, ticker, "sector_mapping") for ticker in tickers])
        if names is None:
            raise InputError("sector_mapping must map every ticker to the name of a sector")
        sectors = names
    limits = limits_from(constraints, sectors)
    objective = data.get("objective", Objective.MIN_VARIANCE.value)
    if not isinstance(objective, str) or objective not in set(Objective):
        raise InputError(f"objective {describe_value(objective)} is unknown; choose one of {', '.join(Objective)}")
    mean = data.get("expected_returns")
    exposures = None
    if limits.neutral_factors:
        exposures = exposures_from(mapping(data, "factor_exposures"), tickers, limits.neutral_factors)
    needs_benchmark = limits.max_tracking_error is not None or bool(limits.neutral_factors)
    return PortfolioProblem(
        tickers=tickers,
        risk=risk,
        objective=Objective(objective),
        limits=limits,
        expected_returns=None if mean is None else values_from(mean, tickers, "expected_returns"),
        risk_aversion=number(data, "risk_aversion", "the task", default=1.0),
        sectors=sectors,
        benchmark=weights_from(mapping(data, "benchmark_weights"), tickers, "benchmark_weights")
        if needs_benchmark
        else None,
        current=weights_from(mapping(data, "current_portfolio"), tickers, "current_portfolio")
        if limits.max_turnover is not None or data.get("current_portfolio")
        else None,
        exposures=exposures,
        ceilings=_ceilings(constraints, tickers),
    )


def _ceilings(constraints: Mapping[str, Any], tickers: Sequence[str]) -> Floats | None:
    """(n,) 0 for restricted names, 1 for others; None without restrictions."""
    restricted = texts_of(constraints.get("restricted_names") or ())
    if restricted is None:
        raise InputError("restricted_names must be a list of tickers")
    unknown = sorted(set(restricted) - set(tickers))
    if unknown:
        raise InputError(f"restricted_names has {listed(unknown)}, which covariance_matrix does not cover")
    return np.where(np.isin(tickers, restricted), 0.0, 1.0) if restricted else None


def limits_from(data: Mapping[str, Any], sectors: Sequence[str]) -> PortfolioLimits:
    """Read a `constraints` object; null disables a limit.

    `sectors` are the universe's: `max_sector_weight` caps each of them, `sector_limits` takes precedence, and
    `excluded_sectors` have a cap of 0. Raises `InputError` for unknown fields or sectors and invalid values.
    """
    unknown = sorted(set(data) - _LIMIT_FIELDS - {"description"})
    if unknown:
        known = ", ".join(sorted(_LIMIT_FIELDS))
        raise InputError(f"constraints has unknown fields {listed(unknown)}; known: {known}")
    neutral = texts_of(data.get("neutral_factors") or ())
    if neutral is None:
        raise InputError("neutral_factors must be a list of factor names")
    for name in ("long_only", "factor_neutrality"):
        if not isinstance(data.get(name), bool | None):
            raise InputError(f"constraints: {name} must be true, false or null, not {describe_value(data[name])}")
    if data.get("factor_neutrality") and not neutral:
        raise InputError("factor_neutrality is true but neutral_factors names no factor")
    return PortfolioLimits(
        long_only=data.get("long_only") is not False,
        min_weight=_optional(data, "min_weight"),
        max_weight=_optional(data, "max_weight"),
        sector_limits=_sector_caps(data, sectors),
        min_position=_optional(data, "min_position"),
        min_names=_count(data, "min_names"),
        max_names=_count(data, "max_names"),
        max_turnover=_optional(data, "max_turnover"),
        max_tracking_error=_optional(data, "max_tracking_error"),
        neutral_factors=neutral if data.get("factor_neutrality", True) else (),
        neutrality_tolerance=number(data, "neutrality_tolerance", "constraints", default=0.01),
    )


def _sector_caps(data: Mapping[str, Any], sectors: Sequence[str]) -> dict[str, float]:
    named: Mapping[str, Any] = {} if data.get("sector_limits") is None else mapping(data, "sector_limits")
    excluded = texts_of(data.get("excluded_sectors") or ())
    if excluded is None:
        raise InputError("excluded_sectors must be a list of sector names")
    unknown = sorted((set(named) | set(excluded)) - set(sectors))
    if unknown:
        raise InputError(f"constraints name the sectors {listed(unknown)}, which no ticker of sector_mapping has")
    general = _optional(data, "max_sector_weight")
    caps = {} if general is None else dict.fromkeys(dict.fromkeys(sectors), general)
    caps |= {str(name): number(named, name, "sector_limits") for name in named}
    return caps | dict.fromkeys(excluded, 0.0)


def tickers_from(data: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the tickers of `covariance_matrix`, which define the order of arrays."""
    return tickers_of(data, "covariance_matrix")


def covariance_from(data: Mapping[str, Any]) -> RiskModel:
    """Read `covariance_matrix`: {"tickers", "matrix"} or {"tickers", "loadings", "specific"}."""
    table, size = mapping(data, "covariance_matrix"), len(tickers_from(data))
    try:
        if "loadings" in table:
            loadings, specific = (np.asarray(table[key], dtype=float) for key in ("loadings", "specific"))
            if loadings.ndim != 2 or loadings.shape[1] != size:
                raise InputError(f"covariance_matrix.loadings has shape {loadings.shape} for {size} tickers")
            _check_size(loadings, specific)
            return RiskModel.from_factors(loadings, specific)
        matrix = np.asarray(table.get("matrix"), dtype=float)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise InputError("covariance_matrix holds something that is not a number; inject the field") from None
    if matrix.shape != (size, size):
        raise InputError(f"covariance_matrix.matrix has shape {matrix.shape} for {size} tickers; inject the field")
    _check_size(matrix)
    return RiskModel.from_matrix(matrix)


def _check_size(*arrays: Floats) -> None:
    if any(array.size and np.nanmax(np.abs(array), initial=0.0) > LARGEST for array in arrays):
        raise InputError(f"covariance_matrix holds a number beyond {LARGEST:.0e}; inject the field, in annual decimals")


def views_from(data: object) -> list[black_litterman.AnalystView]:
    """Read the analyst views of a Black-Litterman task."""
    if (rows := list_of(data)) is None:
        raise InputError("analyst_views must be a list of objects")
    views: list[black_litterman.AnalystView] = []
    for index, row in enumerate(rows):
        where, view = f"analyst_views[{index}]", table_of(row) or {}
        kind = view.get("type")
        if kind not in ("absolute", "relative"):
            raise InputError(f"{where}.type must be absolute or relative, not {describe_value(kind)}")
        expected, confidence = number(view, "return", where), number(view, "confidence", where)
        against = () if view.get("against") is None else _leg(view, "against", where)
        views.append(black_litterman.AnalystView(kind, _leg(view, "symbols", where), expected, confidence, against))
    return views


def _leg(view: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    if (symbols := texts_of(view.get(name))) is None:
        raise InputError(f"{where}.{name} must be a list of tickers, not {describe_value(view.get(name))}")
    return symbols


def black_litterman_from(
    data: Mapping[str, Any], *, risk: RiskModel | None = None
) -> tuple[PortfolioProblem, black_litterman.Posterior]:
    """Return a task's posterior, in excess of `risk_free_rate`, and the long-only problem of its optimal weights."""
    tickers = tickers_from(data)
    aversion = number(data, "risk_aversion", "the task", default=black_litterman.RISK_AVERSION)
    fixed = {"objective": Objective.MAX_SHARPE.value, "constraints": {"long_only": True}, "expected_returns": None}
    problem = problem_from({**data, **fixed, "risk_aversion": aversion / 2}, risk=risk)
    market = weights_from(data.get("market_cap_weights"), tickers, "market_cap_weights")
    tau = number(data, "tau", "the task", default=black_litterman.TAU)
    picks = black_litterman.picks_of(
        tickers, views_from(data.get("analyst_views")), market, number(data, "risk_free_rate", "the task")
    )
    uncertainty = black_litterman.idzorek(picks.confidence, black_litterman.view_variances(problem.risk, picks, tau))
    after = black_litterman.posterior_returns(
        problem.risk, black_litterman.equilibrium(problem.risk, market, aversion), picks, uncertainty, tau=tau
    )
    return replace(problem, expected_returns=after.mean), after


def _optional(data: Mapping[str, Any], key: str) -> float | None:
    return None if data.get(key) is None else number(data, key, "constraints")


def _count(data: Mapping[str, Any], key: str) -> int | None:
    value = _optional(data, key)
    if value is None:
        return None
    if value != int(value) or value < 0:
        raise InputError(f"constraints: {key} must be a whole number, not {value}")
    return int(value)
