"""Print baseline scores on the desk suite of whole editions: mean, standard error, least case.

    python packages/finskillbench-desk/benchmarks/baselines.py --seeds 1 2 3 4 5 6 [--disclosure full]

`--runs FOLDER...` prints finished runs instead. A seed takes five minutes on two cores.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

import polars as pl

from finskillbench.domains import domain
from finskillbench.edition import build_edition
from finskillbench.episode import Disclosure
from finskillbench.runs.execute.run import run

PROGRAMS = ("reference", "textbook", "trapped", "trivial", "nop")


def main() -> None:
    """Print one table for each seed or run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5, 6])
    parser.add_argument("--runs", type=Path, nargs="+", default=[])
    parser.add_argument("--disclosure", choices=get_args(Disclosure), help="Default: described and data.")
    arguments = parser.parse_args()
    runs = _finished_runs(arguments.runs) if arguments.runs else _played(arguments.seeds, arguments.disclosure)
    for name, rows in runs:
        print(name)
        for subtask in domain("desk").subtasks:
            for program in PROGRAMS:
                found = rows.filter(sub_task=subtask.name, model=f"baseline/{program}", condition="curated")
                if found.is_empty():
                    continue
                values, used = found["score"], found["total_output_tokens"]
                print(
                    f"  {subtask.name:16} {program:10} {len(found):3} cases  {values.mean():.3f} "
                    f"+- {(values.std() or 0.0) / len(found) ** 0.5:.3f}  {values.min():.3f} to {values.max():.3f}  "
                    f"output tokens {used.median():.0f}, {used.max()} at most"
                )


def _finished_runs(folders: Sequence[Path]) -> Iterator[tuple[str, pl.DataFrame]]:
    for folder in folders:
        yield str(folder), pl.read_parquet(folder / "rows.parquet")


def _played(seeds: Sequence[int], disclosure: Disclosure | None) -> Iterator[tuple[str, pl.DataFrame]]:
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            edition = build_edition(
                seed=seed, suite=domain("desk").suite, disclosure=disclosure, out=Path(folder) / "edition"
            )
            run(
                edition=edition,
                models=[f"baseline/{program}" for program in PROGRAMS],
                conditions=["curated"],
                subtasks=[subtask.name for subtask in domain("desk").subtasks],
                out=Path(folder) / "run",
            )
            yield f"seed {seed}", pl.read_parquet(Path(folder) / "run" / "rows.parquet")


if __name__ == "__main__":
    main()
