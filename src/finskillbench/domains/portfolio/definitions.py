"""What a portfolio task says of itself: objectives in words, and the exact definition of everything it refers to."""

from __future__ import annotations

from finskillbench.engines.portfolio.measures import FEASIBILITY_TOLERANCE
from finskillbench.engines.portfolio.problem import HOLDING_THRESHOLD, Objective
from finskillbench.episode import JsonObject
from finskillbench.scoring.values import mapping

SKILL = "portfolio_construction"
METADATA = {"covariance_method": "ledoit_wolf", "lookback_sessions": 252}
"""Facts of every portfolio episode for stratified reports; never shown to an agent."""

OBJECTIVE_TEXT = {
    Objective.MAX_SHARPE: "maximise expected_returns'w - risk_free_rate - risk_aversion * w'Sw",
    Objective.MIN_VARIANCE: "minimise w'Sw",
    Objective.MAX_RETURN: "maximise expected_returns'w",
    Objective.RISK_PARITY: "minimise ||w - v||^2 + 0.5 * w'Sw, v_i = (1/S_ii) / sum_j (1/S_jj)",
}
"""The objectives as the agent reads them; S is the covariance. Rendered beside the truth's own definition."""

OBJECTIVE_NAME = {
    Objective.MAX_SHARPE: "maximum risk-adjusted return (max_sharpe)",
    Objective.MIN_VARIANCE: "minimum variance (min_variance)",
    Objective.MAX_RETURN: "maximum expected return (max_return)",
    Objective.RISK_PARITY: "risk balance (risk_parity)",
}

PRECISION = "Give every number with at least 6 decimals."
"""Said in every arm: three decimals of a weight are not enough to keep a limit, and the prompt itself abridges."""
UNITS = "expected_returns, covariance_matrix and risk_free_rate are annualised decimals (0.05 is 5% a year)"
TOLERANCE = f"limits are checked on the submitted weights with a tolerance of {FEASIBILITY_TOLERANCE}"
LIMITS = {
    "long_only": "no negative weight",
    "sector_limits": "total weight of the sector's tickers, by sector_mapping",
    "names": f"a holding is a weight >= {HOLDING_THRESHOLD}; min_names and max_names count holdings",
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
    objective = {name.value: text for name, text in OBJECTIVE_TEXT.items()}.get(str(task_input.get("objective")))
    return {
        **({} if objective is None else {"objective": objective}),
        "units": UNITS,
        "fully_invested": "weights sum to 1",
        **{name: text for name, text in LIMITS.items() if name in present},
        "tolerance": TOLERANCE,
    }
