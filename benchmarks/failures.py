"""How well the rules of failure find what scripted models do wrong, and how long they take over a whole run.

    python benchmarks/failures.py EDITION [--of-each 2] [--run RUN] [--cases]

Every recipe of `tests/runs/postprocess/failures` is played through the loop on episodes of every subtask. Printed are,
for each cause, in how many trajectories it was put and found, put and missed, found and not put, with precision and
recall. `--run` also times `failures_of` over a run folder.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.runs.postprocess.failures.table import confusion

from finskillbench.edition import load_edition
from finskillbench.runs.postprocess.failures import FailureCause, failures_of


def share(value: float | None) -> str:
    """A share with three decimals; "-" where there is nothing that it could be of."""
    return "-" if value is None else f"{value:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("edition", type=Path)
    parser.add_argument("--of-each", type=int, default=2, help="episodes of each subtask and recipe")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--cases", action="store_true", help="print every case that was missed or falsely found")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = confusion(load_edition(arguments.edition), Path(folder), of_each=arguments.of_each, seed=arguments.seed)
    print(f"{found.played} trajectories, {found.failed} without full marks")
    print(f"{'cause':18} {'found':>6} {'missed':>7} {'false':>6} {'precision':>10} {'recall':>7}")
    for cause in FailureCause:
        shares = f"{share(found.precision(cause)):>10} {share(found.recall(cause)):>7}"
        print(f"{cause:18} {found.hits[cause]:6} {found.missed[cause]:7} {found.false[cause]:6} {shares}")
    if arguments.cases:
        print(*found.cases, sep="\n")
    if arguments.run is not None:
        started, worked = time.perf_counter(), time.process_time()
        lines = failures_of(arguments.run, None)
        print(
            f"{lines.height:,} failures of {arguments.run.name} in {time.perf_counter() - started:.1f} s "
            f"({time.process_time() - worked:.1f} s of processor)"
        )


if __name__ == "__main__":
    main()
