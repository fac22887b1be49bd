"""`finskillbench run`: models under conditions on episodes, and the table at the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from finskillbench.cli.display.console import Progress, print_result
from finskillbench.cli.options.runs import RunOptions

if TYPE_CHECKING:
    from finskillbench.edition import Edition
    from finskillbench.runs.execute.run import RunResult

EXAMPLE = """\b
Examples:
  finskillbench run
  finskillbench run --edition editions/seven --model baseline/reference --limit 5 --out runs/mine
  finskillbench run --file run.toml
  finskillbench run --model openai/gpt-4o --condition no_skill --condition curated --max-cost 25"""


@dataclass(kw_only=True)
class PlayOptions(RunOptions):
    """The options of a run that is played, and not only planned."""

    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Scheduler of a Dask cluster whose workers play the episodes, such as tcp://host:8786.",
        ),
    ] = None
    page: Annotated[bool, typer.Option("--page", help="Write the page of the run too, into its folder report.")] = False


def run(options: PlayOptions) -> None:
    """Run models under conditions on an edition and print the table; the same command again resumes.

    Ctrl-C lets the episodes in flight finish, a second one drops them. Exit code 1 if an episode ended in an error, was
    dropped or was not run: the same command runs it again.
    """
    print_result(*perform(options, options.cluster), page=options.page)


def perform(options: RunOptions, cluster: str | None = None) -> tuple[RunResult, Edition]:
    """Do what the options say, here or on a cluster, and return what came of it with the edition."""
    from finskillbench.cli.display.progress import Display
    from finskillbench.cluster.connection import require_extra
    from finskillbench.harness.models import ModelConfig, allowance_of
    from finskillbench.runs.execute import run as runs

    part = options.piece
    options.check_names()
    harness = options.loop()
    # A missing key or price is reported before an edition is built.
    models = runs.make_models(options.contenders, options.called, options.allowance, options.max_cost)
    entered = [ModelConfig(model, allowance=allowance_of(entry)) for entry, model in models.items()]
    if cluster is not None:  # each worker makes its own by their names
        require_extra()
        entered = options.contenders
    with Progress() as progress:
        loaded = options.open_edition(progress)
    with Display() as display:
        result = runs.run(
            loaded,
            entered,
            options.conditions,
            options.subtask or None,
            skills=options.folders,
            limit=options.limit,
            sample=options.sample,
            tasks=options.tasks(loaded),
            limits=options.limits,
            epochs=options.epochs,
            seed=options.seed,
            max_concurrency=options.max_concurrency
            or (runs.BATCH_CONCURRENCY if options.batch else runs.DEFAULT_CONCURRENCY),
            max_cost=options.max_cost,
            shard=part,
            retry_errors=options.retry_errors,
            allow_unconfined=options.allow_unconfined,
            options=options.called,
            harness=harness,
            cluster=cluster,
            out=options.folder(loaded),
            progress=display,
        )
    return result, loaded
