"""The example of a Slurm array: its parts, run as Slurm would run them, merge into the run of one process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from tests.sampling import thorough

from finskillbench.edition import Edition
from finskillbench.runs.execute.run import run
from finskillbench.runs.store.rows import ROWS, TIMINGS

SCRIPTS = Path(__file__).parents[2] / "examples" / "slurm"
PARTS = 2


def submitted(script: str, *arguments: str, **slurm: str) -> subprocess.CompletedProcess[str]:
    """A script run as a task of a job, with this environment's programs."""
    environment = os.environ | slurm | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    command = ["bash", str(SCRIPTS / script), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("script", ["array.sh", "merge.sh", "cluster.sh"])
def test_a_script_is_sound_and_says_how_it_is_used(script: str) -> None:
    subprocess.run(["bash", "-n", str(SCRIPTS / script)], check=True)
    done = submitted(script)
    assert done.returncode
    assert f"usage: sbatch {script}" in done.stderr


@thorough
@pytest.mark.slow
def test_the_parts_of_an_array_merge_into_the_run_of_one_process(edition: Edition, tmp_path: Path) -> None:
    options = ("--model", "baseline/nop", "--condition", "no_skill", "--limit", "1")
    for part in range(1, PARTS + 1):
        slurm = {"SLURM_ARRAY_TASK_ID": str(part), "SLURM_ARRAY_TASK_COUNT": str(PARTS)}
        done = submitted("array.sh", str(edition.path), str(tmp_path), *options, **slurm)
        assert done.returncode == 0, done.stderr
    done = submitted("merge.sh", str(tmp_path))
    assert done.returncode == 0, done.stderr
    alone = run(edition.part("paper"), ["baseline/nop"], ["no_skill"], limit=1, out=tmp_path / "alone")
    merged = pl.read_parquet(tmp_path / "whole" / ROWS)
    assert merged.drop(*TIMINGS).equals(alone.rows.drop(*TIMINGS))
    assert merged.height == alone.ran > PARTS
