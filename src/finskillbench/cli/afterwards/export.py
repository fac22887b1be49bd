"""`finskillbench export`: a run for other programs."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from finskillbench.cli.display import console

EXAMPLE = """\b
Examples:
  finskillbench export runs/mine --out logs
  inspect view --log-dir logs
  inspect view bundle --log-dir logs --output-dir site
  finskillbench export runs/mine --to csv --out rows.csv
  finskillbench export runs/mine --to mlflow --out tracking --attach report"""


class To(StrEnum):
    """Whom a run can be written for."""

    INSPECT = "inspect"
    PARQUET = "parquet"
    CSV = "csv"
    MLFLOW = "mlflow"
    WANDB = "wandb"


def export(
    run: Annotated[Path, typer.Argument(help="Run folder; but for Inspect, a table of rows will do.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            parser=console.out_path,
            metavar="PATH",
            help="Folder of the logs or the tracker's store, made if absent; the file of parquet and csv.",
        ),
    ],
    to: Annotated[str, typer.Option(help=f"{', '.join(To)}.")] = To.INSPECT,
    model: Annotated[list[str] | None, typer.Option(help="Model; repeatable. Default: all of the run.")] = None,
    condition: Annotated[list[str] | None, typer.Option(help="Condition; repeatable. Default: all of the run.")] = None,
    profile: Annotated[
        str, typer.Option(help="Of the scores that mlflow and wandb are told: certified, strict or paper.")
    ] = "certified",
    attach: Annotated[
        list[Path] | None,
        typer.Option(help="File or folder, such as that of a report, to lie at a run of mlflow or wandb; repeatable."),
    ] = None,
) -> None:
    """Write a run as Inspect logs, flat rows (Parquet or CSV), an MLflow store or offline runs of Weights & Biases.

    Inspect logs are one .eval file per model and condition and hold nothing of the truth. MLflow and Weights & Biases
    get one run per model and condition, with its parameters, and as metrics its scores and gains by headline, domain
    and subtask, with the ends of their intervals. Nothing is sent anywhere. Inspect needs the extra llm, the trackers
    mlflow and wandb.
    """
    from finskillbench.errors import InputError

    whom = console.one_of(To, to, "--to")
    if attach and whom not in (To.MLFLOW, To.WANDB):
        raise InputError(f"--attach is for mlflow and wandb; {whom} takes the run alone")
    if whom is To.INSPECT:
        _to_inspect(run, out, model, condition)
    else:
        _to_others(run, out, whom, (model or (), condition or ()), profile, attach or ())


def _to_inspect(run: Path, out: Path, model: list[str] | None, condition: list[str] | None) -> None:
    from finskillbench.integrations import require_inspect

    require_inspect()
    with console.Progress() as progress:
        progress("Reading the run")
        from finskillbench.integrations.export import export_run

        logs = export_run(run, out, model or None, condition or None, progress=progress)
    for log in logs:
        typer.echo(log)


def _to_others(
    run: Path, out: Path, to: To, chosen: tuple[Sequence[str], Sequence[str]], profile: str, attach: Sequence[Path]
) -> None:
    from finskillbench.episode import Profile
    from finskillbench.integrations.exports.flat import Flat, write_flat
    from finskillbench.integrations.exports.mlflow import export_mlflow
    from finskillbench.integrations.exports.wandb import export_wandb
    from finskillbench.reports.read import only, read_run

    judged_by = console.one_of(Profile, profile, "--profile")
    with console.Progress() as progress:
        progress("Reading the run")
        read = only(read_run(run), *chosen)
        progress(f"Writing for {to}")
        match to:
            case To.MLFLOW:
                ids = export_mlflow(read, out, judged_by, attach)
                told = [f"{out}: {len(ids)} runs, shown by: mlflow ui --backend-store-uri sqlite:///{out}/mlflow.db"]
            case To.WANDB:
                told = [str(folder) for folder in export_wandb(read, out, judged_by, attach)]
            case _:
                write_flat(read.rows, out, Flat(to.value))
                told = [str(out)]
    for line in told:
        typer.echo(line)
