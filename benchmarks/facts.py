"""Facts panel of all of realdata/companyfacts against json and pandas: company by company, and all at once.

Each side runs in a process of its own, in turn, so that its peak memory is its own. Seconds are of reading and
building, imports apart: wall time, and CPU time for the ratio, since a shared machine changes its speed.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd

from finskillbench.panels.filings.facts import build_facts
from finskillbench.sources.edgar.companyfacts import parse_companyfacts
from finskillbench.sources.edgar.numerals import TABLE
from peers import facts_pandas

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "realdata" / "companyfacts"
ROUNDS = 3
LEAST_RATIO, MOST_SECONDS, MOST_GB = 5.0, 10.0, 1.5
SIDES = ("ours", "pandas", "pandas at once")


def files() -> dict[str, Path]:
    """Every company file by a name of its own: some companies are there twice."""
    return {f"{path.parent.name}/{path.name.partition('.')[0]}": path for path in sorted(DATA.rglob("*.json.gz"))}


def build(side: str) -> Any:
    """The panel of one side, a polars or a pandas frame."""
    if side == "ours":
        return build_facts({symbol: parse_companyfacts(path) for symbol, path in files().items()}).frame
    table = json.loads(TABLE.read_text())["metrics"]
    return (facts_pandas.build if side == "pandas" else facts_pandas.build_at_once)(files(), table)


def latest(frame: Any) -> dict[tuple[str, ...], float]:
    """The last version of every figure, reported before derived: what both sides have to agree on."""
    columns = ["symbol", "metric", "start", "end", "derived", "filed", "value"]
    if isinstance(frame, pd.DataFrame):
        frame = frame.assign(start=frame["start"].astype(object).where(frame["start"].notna(), None))
        rows = frame[columns].itertuples(index=False, name=None)
    else:
        rows = frame.select(columns).iter_rows()
    found: dict[tuple[str, ...], tuple[bool, str, float]] = {}
    for symbol, metric, start, end, derived, filed, value in rows:
        key = (symbol, metric, str(start)[:10], str(end)[:10])
        version = (not derived, str(filed)[:10], value)
        found[key] = max(found.get(key, version), version)
    return {key: value for key, (_, _, value) in found.items()}


def one_side(side: str) -> None:
    """Build once; print seconds, peak memory and rows as JSON."""
    wall, cpu = time.perf_counter(), time.process_time()
    frame = build(side)
    taken = {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "rows": len(frame)}
    print(json.dumps(taken | {"peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2}))


def child(*arguments: str) -> dict[str, Any]:
    """What one process measured."""
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> int:
    """Measure, print, and say by the exit code whether the requirements hold."""
    if not DATA.is_dir():
        print(f"skipped: no real company facts at {DATA}")
        return 0
    rounds = [{side: child("--side", side) for side in SIDES} for _ in range(ROUNDS)]
    middle = {side: sorted((one[side] for one in rounds), key=lambda one: one["cpu"])[ROUNDS // 2] for side in SIDES}
    ours = middle["ours"]
    print(f"facts panel of {len(files())} files, median of {ROUNDS} rounds in turn")
    print(f"{'':<16}{'seconds':>10}{'CPU':>10}{'peak GB':>10}{'rows':>12}{'ratio':>9}")
    for side, one in middle.items():
        ratio = one["cpu"] / ours["cpu"]
        print(
            f"{side:<16}{one['seconds']:>10.2f}{one['cpu']:>10.2f}{one['peak_gb']:>10.2f}{one['rows']:>12,}{ratio:>8.1f}x"
        )
    print(f"required: ratio to pandas >= {LEAST_RATIO:.0f}x, < {MOST_SECONDS:.0f} s, < {MOST_GB} GB")
    ratio = middle["pandas"]["cpu"] / ours["cpu"]
    held = [ratio >= LEAST_RATIO, ours["seconds"] < MOST_SECONDS, ours["peak_gb"] < MOST_GB]

    mine, other = latest(build("ours")), latest(build("pandas"))
    same = sum(
        1 for key in mine.keys() & other.keys() if abs(mine[key] - other[key]) <= 1e-9 * max(1.0, abs(mine[key]))
    )
    union = len(mine.keys() | other.keys())
    print(f"latest figures: {same:,} of {union:,} agree ({union - same:,} differ)")

    return 0 if all(held) else 1


if __name__ == "__main__":
    if "--side" in sys.argv:
        one_side(sys.argv[-1])
    else:
        sys.exit(main())
