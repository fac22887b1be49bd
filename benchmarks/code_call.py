"""One call of `run_python`: warm through an interpreter against a cold `python -c` with the same imports.

    python benchmarks/code_call.py

The same code finds the portfolio of least variance of 30 names on both sides, once with scipy and once with polars, and
finds the task's fields in the dict `task`. Times are what the caller waits for. An agent thinks between two calls, so
calls are 50 ms apart; "back to back" is the other extreme, in which the next child is made ready while a call waits.
Exit code 1 if a requirement fails.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from finskillbench.harness.conditions import ARMS, Condition
from finskillbench.harness.tools.interpreters import Interpreter, Interpreters

NAMES, WARM_CALLS, COLD_CALLS, PAUSE_SECONDS = 30, 200, 10, 0.05
REQUIRED_MILLISECONDS = 15.0
IMPORTS = "import numpy as np, polars as pl, scipy.linalg, scipy.optimize, scipy.sparse, scipy.stats\n"
CODES = {
    "scipy": (
        "covariance = np.array(task['covariance_matrix']['matrix'])\n"
        "solved = scipy.linalg.solve(covariance, np.ones(len(covariance)), assume_a='pos')\n"
        "dict(zip(task['covariance_matrix']['tickers'], solved / solved.sum()))\n"
    ),
    "polars": (
        "frame = pl.DataFrame(task['covariance_matrix']['matrix'], schema=task['covariance_matrix']['tickers'])\n"
        "inverse = np.linalg.inv(frame.to_numpy())\n"
        "table = pl.DataFrame({'ticker': frame.columns, 'weight': inverse.sum(axis=0)})\n"
        "table = table.with_columns(pl.col('weight') / pl.col('weight').sum()).sort('ticker')\n"
        "dict(table.rows())\n"
    ),
}


def task() -> dict[str, Any]:
    """The fields of a problem of 30 names with a dense covariance, annualised decimals."""
    rng = np.random.default_rng(20250131)
    loadings = rng.normal(0.0, 0.08, (6, NAMES))
    covariance = loadings.T @ loadings + np.diag(rng.uniform(0.02, 0.08, NAMES))
    tickers = [f"AS{number:02d}" for number in range(NAMES)]
    return {"covariance_matrix": {"tickers": tickers, "matrix": covariance.tolist()}}


async def warm(
    interpreter: Interpreter, code: str, names: Mapping[str, Any], pause: float
) -> tuple[dict[str, float], list[float]]:
    """The value and the seconds per call, after ten unmeasured calls."""
    waited, value = [], {}
    for number in range(WARM_CALLS + 10):
        start = time.perf_counter()
        ran = await interpreter.run(IMPORTS + code, names, {})
        if ran.error is not None:
            raise SystemExit(ran.error)
        if number >= 10:
            waited.append(time.perf_counter() - start)
        value = ran.value
        await asyncio.sleep(pause)
    return value, waited


def cold(code: str, names: Mapping[str, Any]) -> tuple[dict[str, float], list[float]]:
    """The value and the seconds per call, after one unmeasured call that fills the disk cache."""
    *lines, last = code.splitlines()
    program = f"import json, sys\n{IMPORTS}task = json.load(sys.stdin)\n" + "\n".join([*lines, f"value = {last}"])
    waited, value = [], {}
    for number in range(COLD_CALLS + 1):
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", f"{program}\nprint(json.dumps(value))"],
            input=json.dumps(names["task"]),
            capture_output=True,
            text=True,
            check=True,
        )
        if number:
            waited.append(time.perf_counter() - start)
        value = json.loads(done.stdout)
    return value, waited


def main() -> int:
    """Measure, print the table, and say by the exit code whether the requirement holds."""
    names, slowest = {"task": task()}, 0.0
    print(f"{'milliseconds':<44}{'p50':>10}{'p95':>10}{'ratio':>10}")
    for condition in (Condition.CODE, Condition.CODE_CURATED):
        with Interpreters([ARMS[condition]]) as interpreters:
            interpreter = interpreters.for_arm(ARMS[condition])
            assert interpreter is not None
            for library, code in CODES.items():
                theirs, cold_times = cold(code, names)
                ours, warm_times = asyncio.run(warm(interpreter, code, names, PAUSE_SECONDS))
                _, dense_times = asyncio.run(warm(interpreter, code, names, 0.0))
                gap = max(abs(ours[name] - weight) for name, weight in theirs.items())
                if gap > 1e-12:
                    raise SystemExit(f"the warm and the cold call gave different weights: {gap:.1e} apart")
                slow, fast = statistics.median(cold_times), statistics.median(warm_times)
                rows = {"cold python -c": cold_times, "warm call": warm_times, "back to back": dense_times}
                for row, times in rows.items():
                    p50, p95 = statistics.median(times) * 1e3, statistics.quantiles(times, n=20)[-1] * 1e3
                    ratio = f"{slow / fast:>9.1f}x" if row == "warm call" else ""
                    print(f"{condition.value + ', ' + library + ', ' + row:<44}{p50:>10.2f}{p95:>10.2f}{ratio}")
                slowest = max(slowest, fast * 1e3)
    print(f"{'warm p50, the slowest':<44}{slowest:>10.2f}{'':>10}   required <= {REQUIRED_MILLISECONDS:.0f} ms")
    return 0 if slowest <= REQUIRED_MILLISECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
