"""`finskillbench run`: models under conditions on episodes, and the table at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from finskillbench.cli.display.console import Progress
from finskillbench.cli.options import RunOptions

if TYPE_CHECKING:
    from finskillbench.runs.execute.run import RunResult

INTERRUPTED = 130
EXAMPLE = """\b
Examples:
  finskillbench run
  finskillbench run --edition editions/mine --model baseline/reference --limit 5 --out runs/mine
  finskillbench run --model openai/gpt-4o --condition no_skill --condition curated --max-cost 25"""


def run(options: RunOptions) -> None:
    """Run models under conditions on an edition and print the table; the same command again resumes.

    Ctrl-C lets the episodes in flight finish, a second one drops them. Exit code 1 if an episode ended in an error, was
    dropped or was not run: the same command runs it again.
    """
    from finskillbench.analysis.summary import summary_table
    from finskillbench.analysis.text import render_text
    from finskillbench.cli.display.board import Display
    from finskillbench.episode import Profile
    from finskillbench.runs.execute import run as runs
    from finskillbench.runs.store.rows import ROWS

    part = options.part
    options.check_names()
    # A missing key or price is reported before an edition is built.
    models = runs.make_models(options.models, options.called, options.max_cost)
    with Progress() as progress:
        loaded = options.open_edition(progress)
    folder = options.folder(loaded)
    with Display() as display:
        result = runs.run(
            loaded,
            list(models.values()),
            options.conditions,
            options.subtask or None,
            limit=options.limit,
            epochs=options.epochs,
            seed=options.seed,
            max_concurrency=options.max_concurrency or runs.DEFAULT_CONCURRENCY,
            max_cost=options.max_cost,
            shard=part,
            retry_errors=options.retry_errors,
            allow_unconfined=options.allow_unconfined,
            options=options.called,
            out=folder,
            progress=display,
        )
    if result.rows.height:
        typer.echo(render_text(summary_table(result.rows)))
        # The published scorers pay trivial answers: their floors belong beside every score read under them.
        typer.echo(render_text(summary_table(result.rows, Profile.PAPER), differences=False))
    typer.echo(f"Edition:      {loaded.path}")
    typer.echo(f"Rows:         {folder / ROWS}")
    typer.echo(f"Trajectories: {folder / 'trajectories'}")
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
    }
    counts = [f"{result.ran} run", *(f"{count} {what}" for what, count in others.items() if count)]
    lines = [f"Episodes:     {', '.join(counts)}"]
    for what, why in result.stopped.items():
        lines.append(f"Stopped:      {why if what == 'run' else f'{what}: {why}'}")
    if result.errors or result.dropped or result.not_run:
        lines.append("              the same command runs the missing ones")
    return lines
