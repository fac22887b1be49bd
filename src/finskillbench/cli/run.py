"""`finskillbench run`: models under conditions on episodes, and the table at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from finskillbench.cli import console, options

if TYPE_CHECKING:
    from finskillbench.runs.execute.run import RunResult

INTERRUPTED = 130
EXAMPLE = """\b
Examples:
  finskillbench run
  finskillbench run --edition editions/mine --model baseline/reference --limit 5 --out runs/mine
  finskillbench run --model openai/gpt-4o --condition no_skill --condition curated --max-cost 25"""


def run(
    edition: options.Edition_ = None,
    model: options.Models = None,
    condition: options.Conditions = None,
    subtask: options.Subtasks = None,
    limit: options.Limit = None,
    epochs: options.Epochs = 1,
    seed: options.Seed = 0,
    max_concurrency: options.MaxConcurrency = None,
    out: options.Out = None,
    base_url: options.BaseUrl = None,
    max_tokens: options.MaxTokens = options.DEFAULT_MAX_TOKENS,
    request_timeout: options.RequestTimeout = options.DEFAULT_REQUEST_TIMEOUT,
    attempt_timeout: options.AttemptTimeout = None,
    reasoning_effort: options.ReasoningEffort = None,
    prices: options.Prices = None,
    max_cost: options.MaxCost = None,
    shard: options.ShardText = None,
    retry_errors: options.RetryErrors = True,
) -> None:
    """Run models under conditions on an edition and print the table; the same command again resumes.

    Ctrl-C lets the episodes in flight finish, a second one drops them. Exit code 1 if an episode ended in an error, was
    dropped or was not run: the same command runs it again.
    """
    from finskillbench.analysis.summary import summary_table
    from finskillbench.analysis.text import render_text
    from finskillbench.cli.board import Display
    from finskillbench.episode import Profile
    from finskillbench.runs.execute import run as runs
    from finskillbench.runs.plan.streams import parse_shard
    from finskillbench.runs.store.rows import ROWS

    models = model or list(runs.DEFAULT_MODELS)
    conditions = condition or [each.value for each in runs.DEFAULT_CONDITIONS]
    part = None if shard is None else parse_shard(shard)
    called = options.model_options(
        base_url=base_url,
        seed=seed,
        max_tokens=max_tokens,
        request_timeout=request_timeout,
        attempt_timeout=attempt_timeout,
        reasoning_effort=reasoning_effort,
        prices=prices,
    )
    options.check_names(models, conditions, subtask or ())
    # A missing key or price is told before an edition is built.
    cast = runs.make_cast(models, called, max_cost)
    with console.Progress() as progress:
        loaded = options.open_edition(edition, progress)
    folder = out or options.default_folder(
        loaded, models, conditions, subtask, limit=limit, epochs=epochs, called=called, shard=shard
    )
    with Display() as display:
        result = runs.run(
            loaded,
            list(cast.values()),
            conditions,
            subtask or None,
            limit=limit,
            epochs=epochs,
            seed=seed,
            max_concurrency=max_concurrency or runs.DEFAULT_CONCURRENCY,
            max_cost=max_cost,
            shard=part,
            retry_errors=retry_errors,
            options=called,
            out=folder,
            progress=display,
        )
    if result.rows.height:
        typer.echo(render_text(summary_table(result.rows, seed=seed)))
        # The published scorers pay trivial answers: their floors belong beside every score read under them.
        typer.echo(render_text(summary_table(result.rows, Profile.PAPER, seed=seed), differences=False))
    typer.echo(f"Edition:      {loaded.path}")
    typer.echo(f"Rows:         {folder / ROWS}")
    typer.echo(f"Trajectories: {folder / 'trajectories'}")
    for line in closing(result):
        typer.echo(line)
    if result.interrupted:
        raise typer.Exit(INTERRUPTED)
    if result.errors or result.dropped or result.not_run:
        raise typer.Exit(1)


def closing(result: RunResult) -> list[str]:
    """What became of every episode, and why some were not run."""
    told = [f"{result.ran} run"]
    told += [f"{result.kept} kept from before"] * bool(result.kept)
    told += [f"{result.errors} ended in an error"] * bool(result.errors)
    told += [f"{result.dropped} dropped in flight"] * bool(result.dropped)
    told += [f"{result.not_run} not run"] * bool(result.not_run)
    lines = [f"Episodes:     {', '.join(told)}"]
    for what, why in result.stopped.items():
        lines.append(f"Stopped:      {why if what == 'run' else f'{what}: {why}'}")
    if result.errors or result.dropped or result.not_run:
        lines.append("              the same command runs the missing ones")
    return lines
