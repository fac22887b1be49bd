"""`finskillbench report`: what runs come to, in tables."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from finskillbench.cli.display import console

if TYPE_CHECKING:
    from finskillbench.reports.read import RunRows

EXAMPLE = """\b
Examples:
  finskillbench report runs/mine
  finskillbench report runs/a runs/b --by model --exclude openai/gpt-4o
  finskillbench report runs/mine --format latex --out tables
  finskillbench report results_all.jsonl --paper"""
FORMATS = "table, md, csv, latex or json"


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Run folders, rows.parquet, or rows of the published release."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            parser=console.out_path, metavar="DIR", help="Folder for a file of each table. Default: print them."
        ),
    ] = None,
    form: Annotated[str, typer.Option("--format", metavar="FORMAT", help=f"{FORMATS}.")] = "table",
    by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Only the tables by domain, subtask, difficulty, model, condition, status or harness.",
        ),
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="certified, strict or paper. Default: certified; paper with --paper.")
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="MODEL", help="Model to leave out of all tables but the first; repeatable."),
    ] = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="The values that the paper prints beside ours, by the published scorers.")
    ] = False,
) -> None:
    """Make tables of runs: conditions, domains, subtasks, models, resources, harnesses, how episodes ended.

    A run need not be finished. docs/reports.md says how to read each table.
    """
    from finskillbench.errors import InputError
    from finskillbench.reports.formats import Format, render, write_tables
    from finskillbench.reports.read import joined, read_runs
    from finskillbench.reports.report import By
    from finskillbench.reports.report import report as make_report

    if form not in {*Format}:
        raise InputError(f"--format {form!r} is unknown; choose from: {', '.join(Format)}")
    if by is not None and by not in {*By}:
        raise InputError(f"--by {by!r} is unknown; choose from: {', '.join(By)}")
    with console.Progress() as progress:
        progress("Reading the rows")
        read = read_runs(runs)
        rows = joined(read)
        progress("Making the tables")
        tables = make_report(rows, profile, exclude or (), paper=paper).tables(None if by is None else By(by))
    for line in _unfinished(read):
        typer.echo(line, err=True)
    if out is not None:
        for path in write_tables(tables, Format(form), out):
            typer.echo(path)
        return
    width = shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else 100
    try:
        typer.echo(render(tables, Format(form), width), nl=False)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _unfinished(runs: list[RunRows]) -> list[str]:
    """What runs still lack."""
    return [
        f"{run.path}: not finished, {run.missing} of {run.missing + run.rows.height} episodes have no row yet"
        for run in runs
        if run.missing
    ]
