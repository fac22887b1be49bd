"""What a portfolio task says of itself: objectives in words, and the exact definition of everything it refers to.

How the published release carries the portfolio subtasks.

Limits of an input waived, moved or measured: what infeasibility detection asks of a mandate, on its JSON alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from finskillbench.domains.base import Released
from finskillbench.domains.portfolio import rederive
from finskillbench.engines.holdings import HOLDING
from finskillbench.engines.portfolio.measures import BROKEN, COUNTS, FEASIBILITY_TOLERANCE, band, forgiven_budget
from finskillbench.engines.portfolio.problem import Objective
from finskillbench.episode import JsonObject
from finskillbench.panels.market.benchmark_weights import RULE
from finskillbench.scoring.values import array, mapping

SKILL = "portfolio_construction"
METADATA = {"covariance_method": "ledoit_wolf", "lookback_sessions": 252}
"""Facts of every portfolio episode for stratified reports; never shown to an agent."""

OBJECTIVE_TEXT = {
    Objective.MAX_SHARPE: "max_sharpe: maximise expected_returns'w - risk_aversion * w'Sw (no factor 1/2)",
    Objective.MIN_VARIANCE: "min_variance: minimise w'Sw",
    Objective.MAX_RETURN: "max_return: maximise expected_returns'w",
    Objective.RISK_PARITY: "risk_parity: minimise ||w - v||^2 + 0.5 * w'Sw, v_i = (1/S_ii) / sum_j (1/S_jj)",
}
"""The objectives as the agent reads them; S is the covariance. Rendered beside the truth's own definition."""

MINIMISED: Mapping[Any, str] = {
    Objective.MAX_SHARPE: "risk_aversion*w'Sw - expected_returns'w",
    Objective.MIN_VARIANCE: "w'Sw",
    Objective.MAX_RETURN: "-expected_returns'w",
    Objective.RISK_PARITY: "||w - v||^2 + 0.5*w'Sw",
}
"""The objectives as functions to be minimised."""
OBJECTIVE_NAME = {
    Objective.MAX_SHARPE: "maximum mean-variance utility",
    Objective.MIN_VARIANCE: "minimum variance",
    Objective.MAX_RETURN: "maximum expected return",
    Objective.RISK_PARITY: "regularised inverse-variance weights",
}
_READ = {
    Objective.MAX_SHARPE: ("expected_returns", "covariance_matrix", "risk_aversion"),
    Objective.MIN_VARIANCE: ("covariance_matrix",),
    Objective.MAX_RETURN: ("expected_returns",),
    Objective.RISK_PARITY: ("covariance_matrix",),
}
"""What an objective reads."""
_REFERRED = {
    "sector_limits": ("sector_mapping",),
    "turnover": ("current_portfolio",),
    "max_turnover": ("current_portfolio",),
    "max_tracking_error": ("benchmark_weights", "covariance_matrix"),
    "factor_neutrality": ("benchmark_weights", "factor_exposures"),
}
"""What a limit refers to."""
_OPTIONAL = (
    "expected_returns",
    "covariance_matrix",
    "risk_aversion",
    "risk_free_rate",
    "benchmark_weights",
    "current_portfolio",
    "sector_mapping",
    "factor_exposures",
)
"""What an input may hold without a use for it."""

PRECISION = "Give every number with at least 6 decimals."
"""Said in every arm: three decimals of a weight may break a limit that binds, and the prompt itself abridges."""
_ANNUAL = ("expected_returns", "covariance_matrix", "risk_free_rate")
BANDED = (
    "long_only",
    "max_weight",
    "sector_limits",
    "min_position",
    "max_turnover",
    "max_tracking_error",
    "factor_neutrality",
)
"""Limits of which an excess costs in proportion."""
EXACT_LIMITS = "limits hold exactly: a portfolio that exceeds one by any amount does not keep it"
_TURNOVER = "one-way: half the sum of |w - current_portfolio|"
LIMITS = {
    "long_only": "no negative weight",
    "sector_limits": "total weight of the sector's tickers, by sector_mapping",
    "min_position": "a weight is 0 or at least min_position",
    "names": HOLDING,
    "turnover": _TURNOVER,
    "max_turnover": _TURNOVER,
    "max_tracking_error": "annualised: sqrt((w - b)'S(w - b)), b the benchmark_weights, S the covariance",
    "factor_neutrality": "|beta_f'(w - b)| <= neutrality_tolerance for each of neutral_factors, by factor_exposures",
}
"""The limits that need a definition, in the order in which an input states them."""


def conventions(task_input: JsonObject, *also: str) -> dict[str, str]:
    """The definitions that the truth of an input depends on: its objective, units, and the limits that it sets.

    `also` names entries of `LIMITS` that are not set but that the task refers to.
    """
    limits = mapping(task_input.get("constraints"))
    present = _present(task_input, also)
    counts = [name for name in COUNTS if limits.get(name) is not None]
    found = {**_of_objective(task_input, also), "units": _units(task_input), "fully_invested": "weights sum to 1"}
    if "benchmark_weights" in task_input:
        found["benchmark"] = f"benchmark_weights are {RULE}"
    found |= {name: text for name, text in LIMITS.items() if name in present}
    if counts:
        found["names"] = f"{HOLDING}; {' and '.join(counts)} count{'s' if len(counts) == 1 else ''} holdings"
    return {**found, "tolerance": tolerance(task_input, limits)}


def tolerance(task_input: JsonObject, limits: Mapping[str, Any]) -> str:
    """How far submitted weights may exceed each limit that is set, and what more than that costs."""
    widths: dict[str, list[str]] = {}
    for name in (one for one in BANDED if limits.get(one)):
        limit = {"long_only": 0.0, "factor_neutrality": limits.get("neutrality_tolerance", 0.0)}.get(name, limits[name])
        width = f"{BROKEN:.0%} of the cap" if name == "sector_limits" else f"{band(name, limit):g}"
        widths.setdefault(width, []).append("short positions" if name == "long_only" else name)
    beyond = ", ".join(f"{width} ({', '.join(said)})" for width, said in widths.items())
    exact = [name for name in COUNTS if limits.get(name) is not None]
    holds = f"; {' and '.join(exact)} missed by one name: no marks" if exact else ""
    spare = forgiven_budget(len(array(mapping(task_input.get("covariance_matrix")).get("tickers"))))
    return (
        f"limits are measured on the submitted weights. An excess of up to {FEASIBILITY_TOLERANCE} costs nothing; then "
        f"marks fall in proportion, to 0 at a further {beyond}{holds}. Weights that miss a sum of 1 by up to {spare:g} "
        f"lose nothing, by {2 * spare:g} everything. Losses of several limits add up"
    )


def _units(task_input: JsonObject) -> str:
    """The units of the annual figures that an input holds."""
    held = [name for name in _ANNUAL if name in task_input]
    return f"{_listed(held)}: annualised decimals (0.05 is 5% a year)"


def _listed(names: Sequence[str]) -> str:
    """Names as a sentence lists them."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def data_read(task_input: JsonObject, *also: str) -> str:
    """The fields of an input that its objective and limits read, as a prompt names them."""
    read = _read(task_input, also)
    return _listed([field for field in _OPTIONAL if field in task_input and field in read])


def _present(task_input: JsonObject, also: Collection[str]) -> set[str]:
    """The entries of `LIMITS` that an input sets or refers to."""
    limits = mapping(task_input.get("constraints"))
    return {name for name in LIMITS if limits.get(name)} | set(also)


def _read(task_input: JsonObject, also: Collection[str]) -> set[str]:
    """The fields that the objective of an input and its limits read."""
    present = _present(task_input, also)
    of_limits = {field for limit in present for field in _REFERRED.get(limit, ())}
    return of_limits | set(_READ[Objective(str(task_input["objective"]))])


def _of_objective(task_input: JsonObject, also: Collection[str]) -> dict[str, str]:
    """The objective's definition, and which data of the input neither it nor a limit reads."""
    name = task_input.get("objective")
    if name not in set(Objective):
        return {}
    read = _read(task_input, also)
    unused = [field for field in _OPTIONAL if field in task_input and field not in read]
    text = {"objective": OBJECTIVE_TEXT[Objective(str(name))]}
    return text | ({"not_used": f"{', '.join(unused)}: no part of this problem"} if unused else {})


_NEEDS_RETURNS = ("max_sharpe", "max_return")


def _fields(*fields: str) -> Callable[[JsonObject], tuple[str, ...]]:
    """These fields, and those that the episode's own objective and limits refer to."""
    return lambda task_input: tuple(dict.fromkeys((*fields, *_referred_to(task_input))))


def _referred_to(task_input: JsonObject) -> Iterator[str]:
    if task_input.get("objective") in _NEEDS_RETURNS:
        yield "expected_returns"
    limits = mapping(task_input.get("constraints"))
    neutral = bool(limits.get("factor_neutrality"))
    if limits.get("sector_limits"):
        yield "sector_mapping"
    if limits.get("max_turnover") is not None:
        yield "current_portfolio"
    if limits.get("max_tracking_error") is not None or neutral:
        yield "benchmark_weights"
    if neutral:
        yield "factor_exposures"


RELEASED = {
    "unconstrained_optimization": Released(_fields("covariance_matrix", "objective"), folder="unconstrained"),
    "constrained_optimization": Released(
        _fields("covariance_matrix", "objective", "constraints"), folder="constrained"
    ),
    "rebalancing": Released(_fields("covariance_matrix", "objective", "current_portfolio")),
    "black_litterman": Released(_fields("covariance_matrix", "market_cap_weights", "analyst_views")),
    "tool_use_parameterization": Released(_fields("scenario_description", "tool_documentation")),
}


WAIVABLE = ("max_weight", "sector_limits", "max_turnover", "max_tracking_error", "factor_neutrality")
"""Limits that can be waived, each as a whole; budget, long-only and restricted names cannot."""
_SECTOR = "sector_limits."


def family(limit: str) -> str:
    """The limit of `WAIVABLE` that `limit_to_relax` belongs to: `sector_limits.Energy` is one of `sector_limits`."""
    return _SECTOR[:-1] if limit.startswith(_SECTOR) else limit


def sector_of(limit: str) -> str:
    """The name that the optimiser has for a limit to relax: a sector stands for its cap."""
    return limit.removeprefix(_SECTOR)


def printed(task_input: JsonObject, limit: str) -> float:
    """The value of a limit to relax as the input sets it."""
    limits = task_input["constraints"]
    if limit.startswith(_SECTOR):
        return limits["sector_limits"][sector_of(limit)]
    return limits["neutrality_tolerance" if limit == "factor_neutrality" else limit]


def moved(task_input: JsonObject, limit: str, value: float) -> JsonObject:
    """The input with another value of a limit to relax."""
    limits = task_input["constraints"]
    if limit.startswith(_SECTOR):
        change: JsonObject = {"sector_limits": {**limits["sector_limits"], sector_of(limit): value}}
    else:
        change = {"neutrality_tolerance" if limit == "factor_neutrality" else limit: value}
    return {**task_input, "constraints": {**limits, **change}}


def waived(task_input: JsonObject, names: Iterable[str]) -> JsonObject:
    """The input without some of `WAIVABLE`."""
    off = {name: False if name == "factor_neutrality" else None for name in names}
    return {**task_input, "constraints": {**task_input["constraints"], **off}}


def level(task_input: JsonObject, limit: str, sigma: rederive.Floats, weights: rederive.Floats) -> float:
    """What a limit to relax limits, of weights (n,)."""
    at_zero = moved(waived(task_input, [name for name in WAIVABLE if name != family(limit)]), limit, 0.0)
    if limit.startswith(_SECTOR):
        at_zero["constraints"]["sector_limits"] = {sector_of(limit): 0.0}
    return rederive.excesses(at_zero, sigma, weights)[family(limit)]
