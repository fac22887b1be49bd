"""From the JSON of a task or of a tool call to a portfolio problem, with every field checked on the way in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from finskillbench.engines.portfolio.black_litterman import View
from finskillbench.engines.portfolio.problem import Limits, Objective, PortfolioProblem
from finskillbench.engines.portfolio.risk_model import Array, RiskModel
from finskillbench.errors import InputError

_LIMIT_FIELDS = frozenset(
    {
        "long_only",
        "min_weight",
        "max_weight",
        "sector_limits",
        "min_names",
        "max_names",
        "max_turnover",
        "max_tracking_error",
        "factor_neutrality",
        "neutral_factors",
        "neutrality_tolerance",
    }
)


def problem_from(data: Mapping[str, Any]) -> PortfolioProblem:
    """Read a resolved episode input (or a script's payload of the same fields).

    The ticker order is that of `covariance_matrix`; a weight map may leave names out (they weigh nothing), every other
    map must cover every ticker.

    Raises
    ------
    InputError : one line naming the field and the mend.
    """
    tickers, risk = covariance_from(data)
    limits = limits_from(data.get("constraints") or {"long_only": True})
    objective = data.get("objective", Objective.MIN_VARIANCE.value)
    if objective not in set(Objective):
        raise InputError(f"objective {objective!r} is unknown; choose one of {', '.join(Objective)}")
    mean = data.get("expected_returns")
    sectors: tuple[str, ...] = ()
    if limits.sector_limits:
        mapping = _mapping(data, "sector_mapping")
        sectors = tuple(_covered(mapping, ticker, "sector_mapping") for ticker in tickers)
        unknown = sorted(set(limits.sector_limits) - set(sectors))
        if unknown:
            raise InputError(f"sector_limits name {', '.join(unknown)}, which no ticker of sector_mapping has")
    exposures = None
    if limits.neutral_factors:
        table = _mapping(data, "factor_exposures")
        exposures = np.array(
            [[number(_covered(table, t, "factor_exposures"), f, t) for f in limits.neutral_factors] for t in tickers]
        )
    needs_benchmark = limits.max_tracking_error is not None or bool(limits.neutral_factors)
    return PortfolioProblem(
        tickers=tickers,
        risk=risk,
        objective=Objective(objective),
        limits=limits,
        expected_returns=None if mean is None else values_from(mean, tickers, "expected_returns"),
        risk_aversion=number(data, "risk_aversion", "the task", default=1.0),
        risk_free_rate=number(data, "risk_free_rate", "the task", default=0.0),
        sectors=sectors,
        benchmark=weights_from(_mapping(data, "benchmark_weights"), tickers, "benchmark_weights")
        if needs_benchmark
        else None,
        current=weights_from(_mapping(data, "current_portfolio"), tickers, "current_portfolio")
        if limits.max_turnover is not None or data.get("current_portfolio")
        else None,
        exposures=exposures,
    )


def limits_from(data: Mapping[str, Any]) -> Limits:
    """Read a `constraints` object; null switches a limit off, an unknown field is an error.

    Raises
    ------
    InputError : for an unknown field or a value of the wrong kind.
    """
    unknown = sorted(set(data) - _LIMIT_FIELDS - {"description"})
    if unknown:
        raise InputError(
            f"constraints has unknown fields {', '.join(unknown)}; known: {', '.join(sorted(_LIMIT_FIELDS))}"
        )
    neutral = data.get("neutral_factors") or ()
    if data.get("factor_neutrality") and not neutral:
        raise InputError("factor_neutrality is true but neutral_factors names no factor")
    caps = data.get("sector_limits") or {}
    if not isinstance(caps, Mapping):
        raise InputError("sector_limits must map sector names to caps")
    return Limits(
        long_only=bool(data.get("long_only", True)),
        min_weight=_optional(data, "min_weight"),
        max_weight=_optional(data, "max_weight"),
        sector_limits={str(name): number(caps, name, "sector_limits") for name in caps},
        min_names=_count(data, "min_names"),
        max_names=_count(data, "max_names"),
        max_turnover=_optional(data, "max_turnover"),
        max_tracking_error=_optional(data, "max_tracking_error"),
        neutral_factors=tuple(neutral) if data.get("factor_neutrality") else (),
        neutrality_tolerance=number(data, "neutrality_tolerance", "constraints", default=0.01),
    )


def covariance_from(data: Mapping[str, Any]) -> tuple[tuple[str, ...], RiskModel]:
    """Tickers and risk model of `covariance_matrix`: {"tickers", "matrix"} or {"tickers", "loadings", "specific"}."""
    table = _mapping(data, "covariance_matrix")
    tickers = table.get("tickers")
    if not isinstance(tickers, Sequence) or isinstance(tickers, str) or not tickers:
        raise InputError("covariance_matrix.tickers must list the names; inject the field instead of retyping it")
    try:
        if "loadings" in table:
            loadings, specific = (np.asarray(table[key], dtype=float) for key in ("loadings", "specific"))
            return tuple(tickers), RiskModel.from_factors(loadings, specific)
        matrix = np.asarray(table.get("matrix"), dtype=float)
    except (TypeError, ValueError):
        raise InputError("covariance_matrix holds something that is not a number; inject the field") from None
    if matrix.shape != (len(tickers), len(tickers)):
        raise InputError(
            f"covariance_matrix.matrix has shape {matrix.shape} for {len(tickers)} tickers; inject the field"
        )
    return tuple(tickers), RiskModel.from_matrix(matrix)


def values_from(data: Any, tickers: tuple[str, ...], field: str) -> Array:
    """(n,) numbers of a map that must cover every ticker."""
    if not isinstance(data, Mapping):
        raise InputError(f"{field} must map tickers to numbers")
    return np.array([number(data, ticker, field) for ticker in tickers])


def weights_from(data: Any, tickers: tuple[str, ...], field: str) -> Array:
    """(n,) weights of a map; absent names weigh nothing, a name outside the universe is an error."""
    if not isinstance(data, Mapping):
        raise InputError(f"{field} must map tickers to weights")
    unknown = sorted(set(data) - set(tickers))
    if unknown:
        raise InputError(f"{field} names {', '.join(map(str, unknown[:5]))}, which the covariance does not cover")
    return np.array([number(data, ticker, field, default=0.0) for ticker in tickers])


def views_from(data: Any) -> list[View]:
    """Analyst views of a Black-Litterman task."""
    if not isinstance(data, Sequence) or isinstance(data, str):
        raise InputError("analyst_views must be a list of objects")
    views = []
    for row, view in enumerate(data):
        kind = view.get("type") if isinstance(view, Mapping) else None
        if kind not in ("absolute", "relative"):
            raise InputError(f"analyst_views[{row}].type must be absolute or relative, not {kind!r}")
        symbols = tuple(view.get("symbols", ()))
        where = f"analyst_views[{row}]"
        views.append(View(kind, symbols, number(view, "return", where), number(view, "confidence", where)))
    return views


def number(data: Mapping[str, Any], key: str, where: str, default: float | None = None) -> float:
    """A finite number of a map, or its default where absent or null."""
    value = data.get(key)
    if value is None and default is not None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise InputError(f"{where}: {key} must be a finite number, not {value!r}")
    return float(value)


def _optional(data: Mapping[str, Any], key: str) -> float | None:
    return None if data.get(key) is None else number(data, key, "constraints")


def _count(data: Mapping[str, Any], key: str) -> int | None:
    value = _optional(data, key)
    if value is None:
        return None
    if value != int(value) or value < 0:
        raise InputError(f"constraints: {key} must be a whole number, not {value}")
    return int(value)


def _mapping(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = data.get(key)
    if not isinstance(value, Mapping):
        raise InputError(f"{key} is missing; inject it from the task data")
    return value


def _covered(table: Mapping[str, Any], ticker: str, field: str) -> Any:
    if ticker not in table:
        raise InputError(f"{field} does not cover {ticker}")
    return table[ticker]
