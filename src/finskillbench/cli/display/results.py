"""What a run has come to, as it is printed at its end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from finskillbench.cli.display.console import Progress

if TYPE_CHECKING:
    from finskillbench.edition import Edition
    from finskillbench.reports.report import Report
    from finskillbench.runs.execute.run import RunResult

INTERRUPTED = 130
PAGE = "report"
"""Folder of the page of a run, in the run's own."""
RUN_A_MODEL = "finskillbench run --model openai/gpt-5 --condition no_skill --condition curated --limit 2"
MESSAGE = 300
"""Characters of an error that the end of a run shows."""


def print_result(result: RunResult, edition: Edition, *, page: bool = False) -> None:
    """Print the short table of a run, with `page` where its page is, which is written first, then its end."""
    from finskillbench.reports.report import report

    if not edition.has_truth:
        typer.echo("No scores: the edition was handed out without its truth; finskillbench submit makes a bundle for")
        typer.echo("whoever holds it.")
    elif not (result.rows["status"] == "error").all():  # else the end of the run says all there is
        found = report(result.rows)
        typer.echo(found)
        if page:
            typer.echo(f"Page:         {_write_page(result, found)}")
    print_end(result, edition)


def _write_page(result: RunResult, found: Report) -> Path:
    from finskillbench.reports.page import write_page
    from finskillbench.reports.read import RunRows
    from finskillbench.runs.store.record import read_record

    with Progress() as progress:
        progress("Writing the page")
        run = RunRows(result.folder, result.rows, read_record(result.folder))
        return write_page(found.results, result.folder / PAGE, [run]).index


def print_end(result: RunResult, edition: Edition, command: str = RUN_A_MODEL) -> None:
    """Print where a run lies and what became of its episodes; leave with its exit code.

    After baseline programs alone `command` is printed as the one that takes a model.
    """
    from finskillbench.runs.store.rows import ROWS
    from finskillbench.runs.store.version import validation_text

    typer.echo(f"Edition:      {edition.path}")
    typer.echo(f"Validated:    {validation_text(edition)}")
    typer.echo(f"Rows:         {result.folder / ROWS}")
    typer.echo(f"Trajectories: {result.folder / 'trajectories'}")
    for line in (*_closing(result), *_next_step(result, command)):
        typer.echo(line)
    if result.interrupted:
        raise typer.Exit(INTERRUPTED)
    if result.errors or result.dropped or result.not_run:
        raise typer.Exit(1)


def _closing(result: RunResult) -> list[str]:
    """What became of every episode, and why some were not run."""
    others = {
        "kept from before": result.kept,
        "ended in an error": result.errors,
        "dropped in flight": result.dropped,
        "not run": result.not_run,
        "of other calls in the folder": result.others,
    }
    counts = [f"{result.ran} run", *(f"{count} {what}" for what, count in others.items() if count)]
    lines = [f"Episodes:     {', '.join(counts)}"]
    lines += _errors(result)
    for what, why in result.stopped.items():
        lines.append(f"Stopped:      {why if what == 'run' else f'{what}: {why}'}")
    if result.errors or result.dropped or result.not_run:
        lines.append("              the same command runs the missing ones")
    return lines


def _errors(result: RunResult) -> list[str]:
    """The first message of each cause for which episodes ended in an error, unless a stop states it."""
    import polars as pl

    from finskillbench.runs.afterwards.show import printable

    if not result.errors or result.stopped:
        return []
    failed = result.rows.filter(pl.col("status") == "error")
    first = failed.group_by("error_cause", maintain_order=True).agg(pl.col("error").first())
    return [
        f"Error:        {cause}: {printable(' '.join((error or '').split())[:MESSAGE])}"
        for cause, error in first.iter_rows()
    ]


def _next_step(result: RunResult, command: str) -> list[str]:
    """After a run of baseline programs alone: what was run, and the commands that run a model."""
    from finskillbench.harness.providers.prices import PROGRAMS

    models, conditions, episodes = (result.rows[name].n_unique() for name in ("model", "condition", "task_id"))
    if not result.rows.height or not all(name.startswith(PROGRAMS) for name in result.rows["model"].unique()):
        return []
    return [
        "",
        f"{_count(models, 'baseline program')} answered {_count(episodes, 'episode')} under "
        f"{_count(conditions, 'condition')}; no language model took part. To run yours:",
        "  make llm",
        "  export OPENAI_API_KEY=...",
        f"  .venv/bin/{command}",
    ]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
