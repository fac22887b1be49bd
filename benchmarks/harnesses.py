"""The reference program through the Hermes Agent and through our loop: are the rows the same?

Run: python benchmarks/harnesses.py [--edition FOLDER] [--limit N] [--hermes-python PATH]   (needs make hermes)

The first N episodes of each subtask of the protocol, with skills and without, in both harnesses; prints how many rows
agree in status, scores, answer, skills, scripts and incidents, and the time of both. Under `unshare -n`, with the
loopback interface up, the same run shows that nothing asks another machine.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import polars as pl

from finskillbench.cli.display.console import Progress
from finskillbench.domains import subtasks
from finskillbench.edition import load_edition
from finskillbench.harness.loop import Harness
from finskillbench.integrations.hermes import Hermes
from finskillbench.runs.execute.run import run
from finskillbench.runs.plan.streams import default_edition

ALIKE = ("status", "score", "scores", "answer_digest", "valid_json", "skills_loaded", "scripts_run", "incidents")
KEYS = ("condition", "task_id")


def main() -> int:
    """Print how many rows agree; exit code 1 where one does not."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--edition", type=Path, help="folder of an edition (default: the default one)")
    parser.add_argument("--limit", type=int, default=20, help="episodes of each subtask")
    parser.add_argument("--hermes-python", type=Path, help="interpreter that Hermes is installed in")
    arguments = parser.parse_args()
    with Progress() as progress:
        edition = load_edition(arguments.edition or default_edition(progress))
    names = [subtask.name for subtask in subtasks() if subtask.headline]
    harnesses: dict[str, Harness | None] = {"ours": None, "hermes": Hermes(arguments.hermes_python)}
    tables: dict[str, pl.DataFrame] = {}
    for name, harness in harnesses.items():
        with tempfile.TemporaryDirectory() as folder:
            started = time.perf_counter()
            result = run(
                edition,
                ["baseline/reference"],
                ["no_skill", "curated"],
                names,
                limit=arguments.limit,
                harness=harness,
                out=Path(folder) / "run",
            )
            seconds = time.perf_counter() - started
        print(f"{name}: {result.ran} episodes, {result.errors} errors, {seconds:.1f} s", flush=True)
        tables[name] = result.rows.select(*KEYS, *ALIKE).sort(KEYS)
    ours, theirs = (table.rows() for table in tables.values())
    same = sum(one == other for one, other in zip(ours, theirs, strict=True))
    print(f"rows that agree: {same} of {len(ours)}")
    return int(same < len(ours))


if __name__ == "__main__":
    sys.exit(main())
