"""What the warm process imports before its first call, and the work it does once so that the first call is not slow.

Add a module here when a curated script imports it. No module that starts threads (polars) may be among them.
"""

import json

from finskillbench.sandbox.child import encode_result

PRELOAD: tuple[str, ...] = (
    "numpy",
    "scipy.sparse",
    "clarabel",
    "finskillbench.engines.accounting.task",
    "finskillbench.engines.portfolio.black_litterman",
    "finskillbench.engines.portfolio.feasibility",
    "finskillbench.engines.portfolio.mandate",
    "finskillbench.engines.portfolio.mandate_text",
    "finskillbench.engines.portfolio.optimise",
    "finskillbench.engines.portfolio.rebalance",
    "finskillbench.engines.portfolio.report",
    "finskillbench.engines.risk.exposures",
    "finskillbench.engines.risk.mandate",
    "finskillbench.engines.risk.monitor",
    "finskillbench.engines.risk.remediation",
    "finskillbench.engines.risk.report",
    "finskillbench.engines.risk.stress",
    "finskillbench.engines.risk.task",
    "finskillbench.sandbox.script",
)


_NAMES = 30


def solve_small() -> None:
    """Optimise 30 names through the engines, as the curated scripts do, and write the result as they do.

    Of the size of a usual call on purpose: it is also what a forked child does before its call to touch the memory
    that the call will need.
    """
    from finskillbench.engines.portfolio.mandate import problem_from
    from finskillbench.engines.portfolio.measures import clean
    from finskillbench.engines.portfolio.optimise import optimise
    from finskillbench.engines.portfolio.report import checks, named, proof, satisfaction

    tickers = [f"W{number:02d}" for number in range(_NAMES)]
    covariance = [[0.01 + 0.05 * (row == column) for column in range(_NAMES)] for row in range(_NAMES)]
    payload = {
        "covariance_matrix": {"tickers": tickers, "matrix": covariance},
        "expected_returns": {ticker: 0.04 + 0.002 * number for number, ticker in enumerate(tickers)},
        "risk_free_rate": 0.02,
        "objective": "max_sharpe",
        "risk_aversion": 3.0,
        "constraints": {"long_only": True, "max_weight": 0.2},
    }
    problem = problem_from(json.loads(json.dumps(payload)))
    best = optimise(problem)
    weights = clean(best.weights)
    result = {"weights": named(problem, weights), "proof": proof(best), "checks": checks(problem, weights)}
    encode_result(result | {"constraint_satisfaction": satisfaction(problem, weights)})


WARM_UP = f"{__name__}:{solve_small.__name__}"
