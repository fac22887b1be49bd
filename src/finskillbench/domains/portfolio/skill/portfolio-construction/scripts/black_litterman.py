"""Black-Litterman: posterior expected returns from market weights and views, and the portfolio optimal under them.

Payload: market_cap_weights, covariance_matrix, analyst_views; risk_aversion (default 2.5), tau (default 0.05).
Result: posterior_returns, optimal_weights, equilibrium_returns, proof.
"""

from typing import Any

from finskillbench.engines.portfolio.mandate import black_litterman_from
from finskillbench.engines.portfolio.measures import clean
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.report import named, proof
from finskillbench.sandbox.script import cli


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Combine views and equilibrium; every return is annual."""
    problem, after = black_litterman_from(payload)
    best = optimise(problem)
    return {
        "posterior_returns": named(problem, after.mean),
        "optimal_weights": named(problem, clean(best.weights)),
        "equilibrium_returns": named(problem, after.equilibrium),
        "proof": proof(best),
    }


if __name__ == "__main__":
    cli(main)
