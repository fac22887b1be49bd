"""Definitions of portfolio tasks for inputs and prompts, their form in the release, and changes of single limits."""

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
from finskillbench.scoring.values import as_array, as_object

SKILL = "portfolio_construction"
METADATA = {"covariance_method": "ledoit_wolf", "lookback_sessions": 252}
"""Facts of every portfolio episode for stratified reports; hidden from agents."""

OBJECTIVE_TEXT = {
    Objective.MAX_SHARPE: "max_sharpe: maximise expected_returns'w - risk_aversion * w'Sw (no factor 1/2)",
    Objective.MIN_VARIANCE: "min_variance: minimise w'Sw",
    Objective.MAX_RETURN: "max_return: maximise expected_returns'w",
    Objective.RISK_PARITY: "risk_parity: minimise ||w - v||^2 + 0.5 * w'Sw, v_i = (1/S_ii) / sum_j (1/S_jj)",
}
"""Objectives for the agent; S is the covariance."""

MINIMISED: Mapping[Any, str] = {
    Objective.MAX_SHARPE: "risk_aversion*w'Sw - expected_returns'w",
    Objective.MIN_VARIANCE: "w'Sw",
    Objective.MAX_RETURN: "-expected_returns'w",
    Objective.RISK_PARITY: "||w - v||^2 + 0.5*w'Sw",
}
"""Objectives in minimisation form."""
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
_REFERRED = {
    "sector_limits": ("sector_mapping",),
    "turnover": ("current_portfolio",),
    "max_turnover": ("current_portfolio",),
    "max_tracking_error": ("benchmark_weights", "covariance_matrix"),
    "factor_neutrality": ("benchmark_weights", "factor_exposures"),
}
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
"""Fields that an input may hold without using them."""

PRECISION = "Give every number with at least 6 decimals."
"""Stated in every arm: three decimals can break a binding limit, and prompts abbreviate numbers."""
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
"""Limits whose excess costs in proportion."""
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
"""Limits that need a definition, in the order of an input."""


def portfolio_conventions(task_input: JsonObject, *also: str) -> dict[str, str]:
    """Return the definitions for an input: objective, units, limits set, and the entries of `LIMITS` in `also`."""
    limits = as_object(task_input.get("constraints"))
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
    """State the tolerance of each limit that is set, and the cost of exceeding it."""
    widths: dict[str, list[str]] = {}
    for name in (one for one in BANDED if limits.get(one)):
        limit = {"long_only": 0.0, "factor_neutrality": limits.get("neutrality_tolerance", 0.0)}.get(name, limits[name])
        width = f"{BROKEN:.0%} of the cap" if name == "sector_limits" else f"{band(name, limit):g}"
        widths.setdefault(width, []).append("short positions" if name == "long_only" else name)
    beyond = ", ".join(f"{width} ({', '.join(names)})" for width, names in widths.items())
    exact = [name for name in COUNTS if limits.get(name) is not None]
    holds = f"; {' and '.join(exact)} missed by one name: no marks" if exact else ""
    spare = forgiven_budget(len(as_array(as_object(task_input.get("covariance_matrix")).get("tickers"))))
    return (
        f"limits are measured on the submitted weights. An excess of up to {FEASIBILITY_TOLERANCE} costs nothing; then "
        f"marks fall in proportion, to 0 at a further {beyond}{holds}. Weights that miss a sum of 1 by up to {spare:g} "
        f"lose nothing, by {2 * spare:g} everything. Losses of several limits add up"
    )


def _units(task_input: JsonObject) -> str:
    held = [name for name in _ANNUAL if name in task_input]
    return f"{_listed(held)}: annualised decimals (0.05 is 5% a year)"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def data_read(task_input: JsonObject, *also: str) -> str:
    """List the fields that the objective and limits of an input read, for a prompt."""
    read = _read(task_input, also)
    return _listed([field for field in _OPTIONAL if field in task_input and field in read])


def _present(task_input: JsonObject, also: Collection[str]) -> set[str]:
    limits = as_object(task_input.get("constraints"))
    return {name for name in LIMITS if limits.get(name)} | set(also)


def _read(task_input: JsonObject, also: Collection[str]) -> set[str]:
    present = _present(task_input, also)
    of_limits = {field for limit in present for field in _REFERRED.get(limit, ())}
    return of_limits | set(_READ[Objective(str(task_input["objective"]))])


def _of_objective(task_input: JsonObject, also: Collection[str]) -> dict[str, str]:
    name = task_input.get("objective")
    if name not in set(Objective):
        return {}
    read = _read(task_input, also)
    unused = [field for field in _OPTIONAL if field in task_input and field not in read]
    text = {"objective": OBJECTIVE_TEXT[Objective(str(name))]}
    return text | ({"not_used": f"{', '.join(unused)}: no part of this problem"} if unused else {})


_NEEDS_RETURNS = ("max_sharpe", "max_return")


def _fields(*fields: str) -> Callable[[JsonObject], tuple[str, ...]]:
    """Return a function that adds the fields referred to by an episode's objective and limits."""
    return lambda task_input: tuple(dict.fromkeys((*fields, *_referred_to(task_input))))


def _referred_to(task_input: JsonObject) -> Iterator[str]:
    if task_input.get("objective") in _NEEDS_RETURNS:
        yield "expected_returns"
    limits = as_object(task_input.get("constraints"))
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
    """Return the entry of `WAIVABLE` that contains a limit: `sector_limits` for `sector_limits.Energy`."""
    return _SECTOR[:-1] if limit.startswith(_SECTOR) else limit


def sector_of(limit: str) -> str:
    """Return the optimiser's name of a limit to relax: the sector's name for its cap."""
    return limit.removeprefix(_SECTOR)


def printed(task_input: JsonObject, limit: str) -> float:
    """Return the value of a limit in the input."""
    limits = task_input["constraints"]
    if limit.startswith(_SECTOR):
        return limits["sector_limits"][sector_of(limit)]
    return limits["neutrality_tolerance" if limit == "factor_neutrality" else limit]


def moved(task_input: JsonObject, limit: str, value: float) -> JsonObject:
    """Return the input with another value of a limit."""
    limits = task_input["constraints"]
    if limit.startswith(_SECTOR):
        change: JsonObject = {"sector_limits": {**limits["sector_limits"], sector_of(limit): value}}
    else:
        change = {"neutrality_tolerance" if limit == "factor_neutrality" else limit: value}
    return {**task_input, "constraints": {**limits, **change}}


def waive_limits(task_input: JsonObject, names: Iterable[str]) -> JsonObject:
    """Return the input without some of `WAIVABLE`."""
    off = {name: False if name == "factor_neutrality" else None for name in names}
    return {**task_input, "constraints": {**task_input["constraints"], **off}}


def level(task_input: JsonObject, limit: str, sigma: rederive.Floats, weights: rederive.Floats) -> float:
    """Return the quantity of weights (n,) that a limit bounds."""
    at_zero = moved(waive_limits(task_input, [name for name in WAIVABLE if name != family(limit)]), limit, 0.0)
    if limit.startswith(_SECTOR):
        at_zero["constraints"]["sector_limits"] = {sector_of(limit): 0.0}
    return rederive.excesses(at_zero, sigma, weights)[family(limit)]
