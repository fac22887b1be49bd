"""`finskillbench run`: models under conditions on episodes, and the table at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from finskillbench.cli import console

EXAMPLE = """\b
Examples:
  finskillbench run
  finskillbench run --edition editions/mine --model baseline/reference --limit 5 --out runs/mine"""


def run(
    edition: Annotated[
        Path | None, typer.Option(help="Folder of the edition; the default one is built into the user's cache.")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(help="Model; repeatable. Default: the reference, trivial and nop baselines.")
    ] = None,
    condition: Annotated[
        list[str] | None, typer.Option(help="no_skill, curated or self_generated; repeatable. Default: all three.")
    ] = None,
    subtask: Annotated[list[str] | None, typer.Option(help="Subtask; repeatable. Default: all of the edition.")] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, max=console.LARGEST, help="First episodes of each subtask. Default: 40, and 100 for fundamentals."
        ),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, max=console.LARGEST, help="Repeats of each episode.")] = 1,
    seed: Annotated[int, typer.Option(min=0, max=console.LARGEST, help="Seed handed to whatever draws.")] = 0,
    max_concurrency: Annotated[int | None, typer.Option(min=1, help="Episodes in flight.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            parser=console.out_path,
            metavar="PATH",
            help="Run folder. Default: a folder in runs/ named after what is run.",
        ),
    ] = None,
) -> None:
    """Run models under conditions on an edition and print the table; the same command again resumes.

    Exit code 1 if an episode could not be finished: the same command runs it again.
    """
    from finskillbench.analysis.summary import summary_table
    from finskillbench.analysis.text import render_text
    from finskillbench.cli.defaults import default_edition, run_folder
    from finskillbench.edition import load_edition
    from finskillbench.episode import Profile
    from finskillbench.harness.conditions import parse_condition
    from finskillbench.harness.models import get_model
    from finskillbench.runs import run as runs
    from finskillbench.subtasks import by_name

    models = model or runs.DEFAULT_MODELS
    conditions = condition or [each.value for each in runs.DEFAULT_CONDITIONS]
    # Names are checked before an edition is built for them.
    for names, find in ((models, get_model), (conditions, parse_condition), (subtask or (), by_name)):
        for name in names:
            find(name)

    with console.Progress() as progress:
        loaded = load_edition(edition or default_edition(progress))
        folder = out or run_folder(loaded, models, conditions, subtask, limit, epochs, seed)
        result = runs.run(
            loaded,
            models,
            conditions,
            subtask or None,
            limit=limit,
            epochs=epochs,
            seed=seed,
            max_concurrency=max_concurrency or runs.DEFAULT_CONCURRENCY,
            out=folder,
            progress=lambda done, total, _: progress("Running episodes", done, total),
        )
    typer.echo(render_text(summary_table(result.rows, seed=seed)))
    # The published scorers pay trivial answers: their floors belong beside every score read under them.
    typer.echo(render_text(summary_table(result.rows, Profile.PAPER, seed=seed), differences=False))
    typer.echo(f"Edition:      {loaded.path}")
    typer.echo(f"Rows:         {folder / runs.ROWS}")
    typer.echo(f"Trajectories: {folder / 'trajectories'}")
    kept = f", {result.kept} kept from before" if result.kept else ""
    typer.echo(f"Episodes:     {result.ran} run{kept}")
    if result.errors:
        raise typer.Exit(1)
