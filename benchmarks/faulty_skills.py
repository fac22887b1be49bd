"""Outcomes of planted faults for a program that follows a skill blindly, and for one that checks its result.

    python benchmarks/faulty_skills.py [--episodes 32] [--seed 1]

Both play every subtask concerned under each kind of fault and under `curated`. Exit code 1 if the reference falls for
less than all faults that change an answer, the checker for any, or a kind concerns fewer than 40 episodes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from finskillbench import load_edition, run
from finskillbench.analysis.faults import fault_outcomes
from finskillbench.analysis.results import CURATED, collect
from finskillbench.domains.faults import FaultKind
from finskillbench.edition.build import build_edition
from finskillbench.harness.programs.checker import Checker
from finskillbench.harness.programs.reference import Reference
from finskillbench.harness.skills.faults import FAULTY_PREFIX, faults
from finskillbench.reports.formats import Format, render
from finskillbench.reports.tables.episodes.faults import faults_table

PROGRAMS = (Reference.name, Checker.name)
FEWEST = 40


def played(edition: Path, condition: str, sub_tasks: list[str], out: Path) -> pl.DataFrame:
    """Return the rows of both programs under a condition."""
    loaded = load_edition(edition)
    return run(loaded, models=[*PROGRAMS], conditions=[condition], subtasks=sub_tasks, out=out).rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=32, help="episodes of each subtask")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    concerned = {kind: [name for _, fault in faults(kind) for name in fault.clauses] for kind in FaultKind}
    every = sorted({name for names in concerned.values() for name in names})
    with TemporaryDirectory() as folder:
        edition = Path(folder) / "edition"
        build_edition(seed=arguments.seed, episodes=arguments.episodes, out=edition)
        wanted = {CURATED: every} | {f"{FAULTY_PREFIX}{kind}": names for kind, names in concerned.items()}
        rows = [played(edition, name, names, Path(folder) / str(at)) for at, (name, names) in enumerate(wanted.items())]
    results = collect(pl.concat(rows))
    found = fault_outcomes(results)
    tables = [faults_table(collect(pl.concat(rows).filter(pl.col("model") == name))) for name in PROGRAMS]
    print(render([table for table in tables if table is not None], Format.TABLE, 250))
    counts = results.rows.filter(pl.col("model") == Reference.name, pl.col("condition") != CURATED)
    affected = counts.filter(pl.col("scoring_details").str.contains('"fault":', literal=True))
    lines = affected.group_by("condition", "sub_task", maintain_order=True).len().rows()
    print("Episodes concerned:", "; ".join(f"{kind}, {name}: {count}" for kind, name, count in lines))
    follows, checks = (found.filter(pl.col("model") == name) for name in PROGRAMS)
    exact = follows["faulty"].min() == 1.0 and checks["faulty"].max() == 0.0 and found.height == 2 * len(FaultKind)
    return 0 if exact and (follows["episodes"] >= FEWEST).all() else 1


if __name__ == "__main__":
    sys.exit(main())
