"""What a run has come to, as it is printed at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from finskillbench.edition import Edition
    from finskillbench.runs.execute.run import RunResult

INTERRUPTED = 130


def print_result(result: RunResult, edition: Edition) -> None:
    """Print the short table of a run, then its end."""
    from finskillbench.reports.report import report

    if result.rows.height:
        typer.echo(report(result.rows))
    print_end(result, edition)


def print_end(result: RunResult, edition: Edition) -> None:
    """Print where a run lies and what became of its episodes; leave with its exit code."""
    from finskillbench.runs.store.rows import ROWS

    typer.echo(f"Edition:      {edition.path}")
    typer.echo(f"Rows:         {result.folder / ROWS}")
    typer.echo(f"Trajectories: {result.folder / 'trajectories'}")
    for line in _closing(result):
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
    for what, why in result.stopped.items():
        lines.append(f"Stopped:      {why if what == 'run' else f'{what}: {why}'}")
    if result.errors or result.dropped or result.not_run:
        lines.append("              the same command runs the missing ones")
    return lines
