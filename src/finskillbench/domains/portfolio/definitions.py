"""What a portfolio task says of itself: objectives in words, and the exact definition of everything it refers to."""

from __future__ import annotations

from collections.abc import Collection

from finskillbench.engines.holdings import HOLDING
from finskillbench.engines.portfolio.measures import BROKEN, BROKEN_BETA, FEASIBILITY_TOLERANCE
from finskillbench.engines.portfolio.problem import Objective
from finskillbench.episode import JsonObject
from finskillbench.panels.market.benchmark_weights import RULE
from finskillbench.scoring.values import mapping

SKILL = "portfolio_construction"
METADATA = {"covariance_method": "ledoit_wolf", "lookback_sessions": 252}
"""Facts of every portfolio episode for stratified reports; never shown to an agent."""

OBJECTIVE_TEXT = {
    Objective.MAX_SHARPE: "mean_variance_utility (max_sharpe): maximise expected_returns'w - risk_aversion * w'Sw "
    "(no factor 1/2)",
    Objective.MIN_VARIANCE: "minimise w'Sw",
    Objective.MAX_RETURN: "maximise expected_returns'w",
    Objective.RISK_PARITY: "inverse_variance (risk_parity): minimise "
    "||w - v||^2 + 0.5 * w'Sw, v_i = (1/S_ii) / sum_j (1/S_jj)",
}
"""The objectives as the agent reads them; S is the covariance. Rendered beside the truth's own definition."""

OBJECTIVE_NAME = {
    Objective.MAX_SHARPE: "maximum mean-variance utility (max_sharpe)",
    Objective.MIN_VARIANCE: "minimum variance (min_variance)",
    Objective.MAX_RETURN: "maximum expected return (max_return)",
    Objective.RISK_PARITY: "inverse variance (risk_parity)",
}
_READ = {
    Objective.MAX_SHARPE: ("expected_returns", "risk_aversion"),
    Objective.MIN_VARIANCE: (),
    Objective.MAX_RETURN: ("expected_returns",),
    Objective.RISK_PARITY: (),
}
"""What an objective reads beside the covariance."""
_REFERRED = {
    "max_turnover": ("current_portfolio",),
    "max_tracking_error": ("benchmark_weights",),
    "factor_neutrality": ("benchmark_weights", "factor_exposures"),
}
"""What a limit refers to."""
_OPTIONAL = (
    "expected_returns",
    "risk_aversion",
    "risk_free_rate",
    "benchmark_weights",
    "current_portfolio",
    "factor_exposures",
)
"""What an input may hold without a use for it."""

PRECISION = "Give every number with at least 6 decimals."
"""Said in every arm: three decimals of a weight may break a limit that binds, and the prompt itself abridges."""
TOLERANCE = (
    f"limits are checked on the submitted weights; an excess of up to {FEASIBILITY_TOLERANCE} is forgiven, beyond it "
    f"marks fall in proportion and reach 0 at {BROKEN:.0%} over the limit"
)
_OF_BETAS = f" (an active beta: {BROKEN_BETA} over it)"
_ANNUAL = ("expected_returns", "covariance_matrix", "risk_free_rate")
EXACT_LIMITS = "limits hold exactly: a portfolio that exceeds one by any amount does not keep it"
LIMITS = {
    "long_only": "no negative weight",
    "sector_limits": "total weight of the sector's tickers, by sector_mapping",
    "min_position": "a weight is 0 or at least min_position",
    "names": f"{HOLDING}; min_names and max_names count holdings",
    "max_turnover": "one-way: half the sum of |w - current_portfolio|",
    "max_tracking_error": "annualised: sqrt((w - b)'S(w - b)), b the benchmark_weights, S the covariance",
    "factor_neutrality": "|beta_f'(w - b)| <= neutrality_tolerance for each of neutral_factors, by factor_exposures",
}
"""The limits that need a definition, in the order in which an input states them."""


def conventions(task_input: JsonObject, *also: str) -> dict[str, str]:
    """The definitions that the truth of an input depends on: its objective, units, and the limits that it sets.

    `also` names limits that are not set but that the task refers to.
    """
    limits = mapping(task_input.get("constraints"))
    present = {name for name in LIMITS if limits.get(name)} | set(also)
    if limits.get("min_names") is not None or limits.get("max_names") is not None:
        present.add("names")
    found = {**_of_objective(task_input, present), "units": units(task_input), "fully_invested": "weights sum to 1"}
    if "benchmark_weights" in task_input:
        found["benchmark"] = f"benchmark_weights are {RULE}"
    found |= {name: text for name, text in LIMITS.items() if name in present}
    return {**found, "tolerance": TOLERANCE + (_OF_BETAS if "factor_neutrality" in present else "")}


def units(task_input: JsonObject) -> str:
    """The units of the annual figures that an input holds."""
    held = [name for name in _ANNUAL if name in task_input]
    listed = held[0] if len(held) == 1 else f"{', '.join(held[:-1])} and {held[-1]}"
    return f"{listed}: annualised decimals (0.05 is 5% a year)"


def _of_objective(task_input: JsonObject, present: Collection[str]) -> dict[str, str]:
    """The objective's definition, and which data of the input neither it nor a limit reads."""
    name = task_input.get("objective")
    if name not in set(Objective):
        return {}
    objective = Objective(str(name))
    read = {*_READ[objective], *(field for limit in present for field in _REFERRED.get(limit, ()))}
    unused = [field for field in _OPTIONAL if field in task_input and field not in read]
    text = {"objective": OBJECTIVE_TEXT[objective]}
    return text | ({"not_used": f"{', '.join(unused)}: no part of this problem"} if unused else {})
