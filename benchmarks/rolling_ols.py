"""67,920 rolling regressions (30 names x 2,264 windows of 252 sessions, six factors) against statsmodels.

    python benchmarks/rolling_ols.py

Both sides fit the same returns in this one process and give intercept, slopes and r²; medians of repeated runs. The
row "coefficients only" is statsmodels without r², its cheapest call. Exit code 1 if a requirement fails.
"""

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import statsmodels.api as sm
from statsmodels.regression.rolling import RollingOLS

from finskillbench.engines.statistics.regression import rolling_ols

SESSIONS, NAMES, FACTORS, WINDOW, MIN_OBS = 2515, 30, 6, 252, 120
REQUIRED_RATIO, REQUIRED_DIFFERENCE = 30.0, 1e-10


def median_seconds(run: Callable[[], object], repeats: int) -> float:
    """Median wall time of `run` after one unmeasured call."""
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> int:
    """Measure, print the table, and say by the exit code whether the requirements hold."""
    rng = np.random.default_rng(20250131)
    x = rng.standard_normal((SESSIONS, FACTORS)) * 0.006 + 0.0003
    y = x @ rng.normal(0.4, 0.4, (FACTORS, NAMES)) + rng.standard_normal((SESSIONS, NAMES)) * 0.015
    design = sm.add_constant(x)

    def ours() -> np.ndarray:
        fit = rolling_ols(y, x, WINDOW, MIN_OBS)
        return np.concatenate([fit.alpha[:, :, None], fit.beta, fit.r2[:, :, None]], axis=2)

    def theirs(params_only: bool = False) -> np.ndarray:
        models = [RollingOLS(y[:, j], design, WINDOW, min_nobs=MIN_OBS) for j in range(NAMES)]
        fits = [model.fit(params_only=params_only) for model in models]
        parts = [fit.params if params_only else np.column_stack([fit.params, fit.rsquared]) for fit in fits]
        return np.stack(parts, axis=1)[WINDOW - 1 :]

    mine, other = ours(), theirs()
    difference = float(np.abs(mine - other).max())
    fast, slow = median_seconds(ours, 15), median_seconds(theirs, 3)
    coefficients_only = median_seconds(lambda: theirs(params_only=True), 3)
    ratio = slow / fast
    print(f"{mine.shape[0] * mine.shape[1]:,} regressions of {WINDOW} sessions on {FACTORS} factors")
    print(f"{'median seconds':<28}{'time':>12}{'ratio':>12}")
    print(f"{'statsmodels RollingOLS':<28}{slow:>12.4f}{ratio:>11.1f}x   required >= {REQUIRED_RATIO:.0f}x")
    print(f"{'  coefficients only':<28}{coefficients_only:>12.4f}{coefficients_only / fast:>11.1f}x")
    print(f"{'finskillbench rolling_ols':<28}{fast:>12.4f}")
    print(f"{'largest difference':<28}{difference:>12.1e}{'':>12}   required <= {REQUIRED_DIFFERENCE:.0e}")
    return 0 if ratio >= REQUIRED_RATIO and difference <= REQUIRED_DIFFERENCE else 1


if __name__ == "__main__":
    sys.exit(main())
