"""A run in a local MLflow store: an experiment with one run for the folder and one below it for each arm."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import polars as pl

from finskillbench.analysis.results import collect
from finskillbench.edition.store import refuse_inside_edition
from finskillbench.episode import Profile
from finskillbench.errors import InputError
from finskillbench.integrations.exports.arms import Arm, arms_of
from finskillbench.integrations.exports.attached import gathered
from finskillbench.reports.read import RunRows
from finskillbench.runs.store.files import make_folder

DATABASE = "mlflow.db"
_LONGEST = 6000
"""Characters that MLflow takes in a parameter."""


def export_mlflow(
    run: RunRows, out: Path, profile: Profile = Profile.CERTIFIED, attach: Sequence[Path] = ()
) -> list[str]:
    """Add a run to the store in a folder; one that is there grows, and nothing leaves this machine.

    The metrics and parameters are those of `Arm`; the files of `gathered` lie at the run of the folder.

    Returns
    -------
    The MLflow ids: of the run folder, then of each arm.

    Raises
    ------
    InputError : MLflow is not installed, or the folder cannot be made.
    """
    if find_spec("mlflow") is None:
        raise InputError(
            "MLflow is not installed; run: pip install 'finskillbench[mlflow]' (in a checkout: make mlflow)"
        )
    refuse_inside_edition(out)
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"  # read on import
    results = collect(run.rows, profile)
    arms = arms_of(run, results)
    make_folder(out)
    # MLflow is an extra, which type checkers need not have.
    client = cast("Any", import_module("mlflow.tracking")).MlflowClient(
        tracking_uri=f"sqlite:///{(out / DATABASE).absolute()}"
    )
    name = run.path.resolve().name
    known = client.get_experiment_by_name(name)
    experiment = (
        known.experiment_id
        if known is not None
        else client.create_experiment(name, artifact_location=(out / "artifacts").absolute().as_uri())
    )
    begun, ended = _times(run.rows)
    parent = client.create_run(experiment, start_time=begun, run_name=name).info.run_id
    with gathered(run.rows, attach) as folder:
        client.log_artifacts(parent, str(folder))
    ids = [parent]
    for arm in arms:
        rows = results.rows.filter(model=arm.model, harness=arm.harness, condition=arm.condition)
        ids.append(_log(client, experiment, parent, arm, _times(rows)))
    client.set_terminated(parent, end_time=ended)
    return ids


def _log(client: Any, experiment: str, parent: str, arm: Arm, times: tuple[int | None, int | None]) -> str:
    entities = cast("Any", import_module("mlflow.entities"))
    begun, ended = times
    tags = {"mlflow.parentRunId": parent}
    made: str = client.create_run(experiment, start_time=begun, tags=tags, run_name=arm.name).info.run_id
    client.log_batch(
        made,
        metrics=[entities.Metric(name, value, ended or 0, 0) for name, value in arm.metrics.items()],
        params=[entities.Param(name, value[:_LONGEST]) for name, value in arm.parameters.items()],
    )
    client.set_terminated(made, end_time=ended)
    return made


def _times(rows: pl.DataFrame) -> tuple[int | None, int | None]:
    """When the first episode began and the last was over, in milliseconds since 1970; None where nobody knows."""
    if "started" not in rows.columns or "ended" not in rows.columns:
        return None, None
    moments = (cast("datetime | None", rows["started"].min()), cast("datetime | None", rows["ended"].max()))
    begun, ended = (None if each is None else int(each.timestamp() * 1000) for each in moments)
    return begun, ended
