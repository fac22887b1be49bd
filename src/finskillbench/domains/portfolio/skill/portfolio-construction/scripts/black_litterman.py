"""Black-Litterman: posterior expected returns from market weights and views, and the portfolio optimal under them.

Payload: market_cap_weights, covariance_matrix, risk_free_rate, analyst_views, risk_aversion, tau.
Result: posterior_returns, optimal_weights, equilibrium_returns, used (the inputs), proof. Returns are total returns,
the risk-free rate included. Numbers have ten decimals.
"""

from typing import Any

from finskillbench.engines.fields import require
from finskillbench.engines.portfolio.mandates.fields import black_litterman_from
from finskillbench.engines.portfolio.measures import clean
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.report import named, proof
from finskillbench.sandbox.script import cli, rounded


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Combine views and equilibrium; every return is annual."""
    require(payload, "market_cap_weights", "risk_free_rate", "analyst_views", "risk_aversion", "tau")
    problem, after = black_litterman_from(payload)
    best, cash = optimise(problem), payload["risk_free_rate"]
    answer: dict[str, Any] = {
        "posterior_returns": named(problem, after.mean + cash),
        "optimal_weights": named(problem, clean(best.weights)),
        "equilibrium_returns": named(problem, after.equilibrium + cash),
        "used": {name: payload[name] for name in ("risk_free_rate", "risk_aversion", "tau", "analyst_views")},
        "proof": proof(best),
    }
    return rounded(answer)


if __name__ == "__main__":
    cli(main)
