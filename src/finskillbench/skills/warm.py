"""What the warm process imports before its first call, and the work it does once so that the first call is not slow.

Add a module here when a curated script imports it. No module that starts threads (polars) may be among them.
"""

PRELOAD: tuple[str, ...] = (
    "numpy",
    "scipy.sparse",
    "scipy.linalg",
    "clarabel",
    "finskillbench.engines.portfolio.mandate",
    "finskillbench.engines.portfolio.optimise",
    "finskillbench.engines.portfolio.rebalance",
    "finskillbench.engines.portfolio.black_litterman",
    "finskillbench.skills.script",
)


def solve_small() -> None:
    """One small quadratic programme through the same libraries as the engines: loads what they load lazily."""
    from typing import Any

    import clarabel as native
    import numpy as np
    from scipy import sparse

    clarabel: Any = native  # a native module without type information
    n = 5
    covariance = np.eye(n) + 0.1
    np.linalg.cholesky(covariance)
    constraints = sparse.csc_matrix(np.vstack([np.ones((1, n)), -np.eye(n)]))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    bounds = np.concatenate([[1.0], np.zeros(n)])
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n)]
    hessian = sparse.triu(covariance, format="csc")
    clarabel.DefaultSolver(hessian, np.zeros(n), constraints, bounds, cones, settings).solve()


WARM_UP = f"{__name__}:{solve_small.__name__}"
