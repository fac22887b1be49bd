"""The full-run protocol: 660 episodes under three conditions with two baselines, from nothing to the table of rows.

Run: python benchmarks/run.py [--edition FOLDER]

Everything is as in `finskillbench run`: skill scripts in their own processes, judging under every profile, journal,
trajectories. Peak memory is that of this process and of the largest of its children. Without --edition the default one
is used, and built where it is missing, before the clock starts.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

from finskillbench.cli.display.console import Progress
from finskillbench.domains import subtasks
from finskillbench.edition import load_edition
from finskillbench.runs.execute.run import run
from finskillbench.runs.plan.defaults import default_edition

MODELS = ("baseline/reference", "baseline/trivial")
CONDITIONS = ("no_skill", "curated", "self_generated")
SUBTASKS = tuple(subtask.name for subtask in subtasks() if subtask.headline)
"""The twelve of the protocol."""
EPISODES, REQUIRED_SECONDS, REQUIRED_GIGABYTES = 3_960, 60.0, 1.0


def main() -> int:
    """Print time and peak memory beside what is required; exit code 1 where either is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--edition", type=Path, help="folder of an edition (default: the default one)")
    arguments = parser.parse_args()
    with Progress() as progress:
        path = arguments.edition or default_edition(progress)
    with tempfile.TemporaryDirectory() as folder:
        started, processor = time.perf_counter(), time.process_time()
        result = run(load_edition(path), MODELS, CONDITIONS, SUBTASKS, out=Path(folder) / "run")
        seconds, busy = time.perf_counter() - started, time.process_time() - processor
    own, child = (resource.getrusage(who).ru_maxrss / 2**20 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(f"{result.ran} episodes, {result.errors} errors: {seconds:.1f} s ({busy:.1f} s of them this process's CPU)")
    print(f"peak memory: {own:.2f} GB, largest child {child:.2f} GB")
    print(
        f"required: {EPISODES} episodes in {REQUIRED_SECONDS:.0f} s and {REQUIRED_GIGABYTES:.0f} GB; "
        f"ratios {seconds / REQUIRED_SECONDS:.2f} and {(own + child) / REQUIRED_GIGABYTES:.2f}"
    )
    missed = result.ran != EPISODES or seconds > REQUIRED_SECONDS or own + child > REQUIRED_GIGABYTES
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
