"""Inspect's own commands, as a user calls them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from inspect_ai import eval as inspect_eval
from inspect_ai.log import read_eval_log
from tests.sampling import THOROUGH, thorough

from finskillbench.edition import Edition
from finskillbench.integrations.logs import export_run
from finskillbench.runs.execute.run import run

pytestmark = pytest.mark.slow
INSPECT = Path(sys.executable).with_name("inspect")


def _inspect(*arguments: object) -> str:
    environment = {**os.environ, "INSPECT_DISPLAY": "plain"}
    command = [str(INSPECT), *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_inspect_eval_finds_the_tasks_and_the_baselines(small_edition: Edition, tmp_path: Path) -> None:
    """By its command in a thorough run, which takes seven seconds, else by the function behind it."""
    found = {point.value for point in entry_points(group="inspect_ai", name="finskillbench")}
    assert found == {"finskillbench.integrations.tasks"}, "the package was installed before it had this entry point"
    logs = tmp_path / "logs"
    task, model = "finskillbench/rebalancing", "finskillbench/baseline-trivial"
    arguments = {"edition": str(small_edition.path), "condition": "curated", "limit": 1}
    if THOROUGH:
        given = [part for name, value in arguments.items() for part in ("-T", f"{name}={value}")]
        _inspect("eval", task, *given, "--log-dir", logs, "--model", model)
    else:
        inspect_eval(task, model=model, task_args=arguments, log_dir=str(logs), display="none")
    (path,) = logs.iterdir()
    log = read_eval_log(str(path))
    assert (log.status, log.eval.task, log.eval.model) == (
        "success",
        "finskillbench/rebalancing",
        "finskillbench/baseline-trivial",
    )
    (sample,) = log.samples or ()
    assert sample.scores is not None
    assert sample.scores["verdict"].metadata == {"status": "scored"}


@thorough
def test_inspect_view_bundles_an_exported_run(small_edition: Edition, tmp_path: Path) -> None:
    models = ["baseline/nop", "baseline/trivial"]
    run(small_edition, models, ["no_skill"], limit=1, out=tmp_path / "run")
    logs = export_run(tmp_path / "run", tmp_path / "logs")
    site = tmp_path / "site"
    _inspect("view", "bundle", "--log-dir", tmp_path / "logs", "--output-dir", site)
    assert (site / "index.html").is_file()
    listing = json.loads((site / "logs" / "listing.json").read_bytes())
    assert sorted(listing) == sorted(path.name for path in logs)
    assert {entry["model"] for entry in listing.values()} == set(models)
    assert {entry["task"] for entry in listing.values()} == {"finskillbench/all"}
    assert {path.name for path in (site / "logs").glob("*.eval")} == set(listing)
