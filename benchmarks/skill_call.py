"""One call of a skill script: warm through the runner against a cold `python script.py --input FILE`.

    python benchmarks/skill_call.py

The same script solves the same portfolio of 30 names on both sides: `optimize.py` of the portfolio-construction
package, or a small quadratic programme of the same kind where that package is absent. Times are what the caller waits
for. An agent thinks between two calls, so the calls that count are 20 ms apart; "back to back" is the other extreme, in
which the next child is made ready while a call waits. "Script" is the script's share as the warm server measures it.
Exit code 1 if a requirement fails.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from finskillbench.errors import SkillError
from finskillbench.harness.skills.loader import curated, script_path
from finskillbench.harness.skills.runner import script_runner
from finskillbench.sandbox.runner import ScriptRunner

NAMES, WARM_CALLS, COLD_CALLS, PAUSE_SECONDS = 30, 300, 15, 0.02
# Apart by rounding only: the cold side may sum with several threads.
SAME = 1e-12
REQUIRED_MILLISECONDS, REQUIRED_RATIO = 6.0, 50.0

STAND_IN = '''"""Maximise expected return less risk, long-only and fully invested."""

import argparse
import json
from pathlib import Path

import clarabel
import numpy as np
from scipy import sparse


def main(payload: dict) -> dict:
    tickers = payload["covariance_matrix"]["tickers"]
    covariance = np.array(payload["covariance_matrix"]["matrix"])
    expected = np.array([payload["expected_returns"][ticker] for ticker in tickers])
    n = len(tickers)
    matrix = sparse.csc_matrix(np.vstack([np.ones((1, n)), -np.eye(n)]))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    hessian = sparse.triu(2 * payload["risk_aversion"] * covariance, format="csc")
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n)]
    bounds = np.concatenate([[1.0], np.zeros(n)])
    solution = clarabel.DefaultSolver(hessian, -expected, matrix, bounds, cones, settings).solve()
    return {"weights": dict(zip(tickers, solution.x, strict=True))}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--input")
    print(json.dumps(main(json.loads(Path(parser.parse_args().input).read_text()))))
'''


def task() -> bytes:
    """The JSON of an unconstrained problem of 30 names with a dense covariance, annualised decimals."""
    rng = np.random.default_rng(20250131)
    tickers = [f"AS{number:02d}" for number in range(NAMES)]
    loadings = rng.normal(0.0, 0.08, (6, NAMES))
    covariance = loadings.T @ loadings + np.diag(rng.uniform(0.02, 0.08, NAMES))
    return json.dumps(
        {
            "expected_returns": dict(zip(tickers, rng.normal(0.08, 0.04, NAMES).tolist(), strict=True)),
            "covariance_matrix": {"tickers": tickers, "matrix": covariance.tolist()},
            "risk_free_rate": 0.0421,
            "objective": "max_sharpe",
            "risk_aversion": 3.0,
            "constraints": {"long_only": True},
        }
    ).encode()


async def warm(
    runner: ScriptRunner, script: Path, payload: bytes, pause: float
) -> tuple[dict, list[float], list[float]]:
    """The result, and per call the seconds waited and the script's share of them, after ten unmeasured calls."""
    waited, inside, output = [], [], {}
    for number in range(WARM_CALLS + 10):
        start = time.perf_counter()
        result = await runner.run(script, payload)
        if result.output is None:
            raise SystemExit(f"{script.name}: {result.error}")
        if number >= 10:
            waited.append(time.perf_counter() - start)
            inside.append(result.seconds)
        output = result.output
        await asyncio.sleep(pause)
    return output, waited, inside


def cold(script: Path, file: Path) -> tuple[dict, list[float]]:
    """The result, and the seconds per call, after one unmeasured call that fills the disk cache."""
    waited, output = [], {}
    for number in range(COLD_CALLS + 1):
        start = time.perf_counter()
        done = subprocess.run([sys.executable, script, "--input", file], capture_output=True, check=True)
        if number:
            waited.append(time.perf_counter() - start)
        output = json.loads(done.stdout)
    return output, waited


def main() -> int:
    """Measure, print the table, and say by the exit code whether the requirements hold."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            script = script_path(curated()["portfolio-construction"], "optimize.py")
        except (KeyError, SkillError):
            script = Path(folder) / "stand_in.py"
            script.write_text(STAND_IN)
        payload = task()
        file = Path(folder) / "input.json"
        file.write_bytes(payload)
        with script_runner() as runner:
            ours, warm_times, inside = asyncio.run(warm(runner, script, payload, PAUSE_SECONDS))
            _, dense_times, _ = asyncio.run(warm(runner, script, payload, 0.0))
            guards = ", ".join(name for name, held in runner.guards.items() if held)
        theirs, cold_times = cold(script, file)
    gap = max(abs(ours["weights"].get(name, 0.0) - weight) for name, weight in theirs["weights"].items())
    if gap > SAME:
        raise SystemExit(f"the warm and the cold call gave different weights: {gap:.1e} apart")
    fast, slow = statistics.median(warm_times), statistics.median(cold_times)
    print(f"{script.name}, {NAMES} names, payload of {len(payload):,} bytes; guards: {guards}")
    print(f"{'milliseconds':<28}{'p50':>10}{'p95':>10}")
    rows = {
        "cold python script.py": cold_times,
        "warm call": warm_times,
        "  script": inside,
        "warm call, back to back": dense_times,
    }
    for name, times in rows.items():
        p95 = statistics.quantiles(times, n=20)[-1]
        print(f"{name:<28}{statistics.median(times) * 1e3:>10.2f}{p95 * 1e3:>10.2f}")
    ratio = slow / fast
    print(f"{'ratio of medians':<28}{ratio:>9.1f}x{'':>10}   required >= {REQUIRED_RATIO:.0f}x")
    print(f"{'warm p50':<28}{fast * 1e3:>10.2f}{'':>10}   required <= {REQUIRED_MILLISECONDS:.0f} ms")
    return 0 if fast * 1e3 <= REQUIRED_MILLISECONDS and ratio >= REQUIRED_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
