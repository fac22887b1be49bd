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
    from finskillbench.cluster.connection import require_cluster_extra
    from finskillbench.harness.models import ModelConfig, allowance_of
    from finskillbench.runs.config import RunConfig
    from finskillbench.runs.execute import run as runs

    options.check_names()
    limits = options.run_limits
    # A missing key or price is reported before an edition is built.
    models = runs.make_models(options.model_configs, options.called, limits)
    made = [ModelConfig(model, allowance=allowance_of(key)) for key, model in models.items()]
    if cluster is not None:  # each worker makes its own by their names
        require_cluster_extra()
        made = options.model_configs
    with Progress() as progress:
        edition = options.open_edition(progress)
    config = RunConfig(
        models=made,
        conditions=options.conditions,
        skills=options.folders,
        episodes=options.episodes(edition),
        limits=limits,
        options=options.called,
        harness=options.loop(),
        cluster=cluster,
        out=options.folder(edition),
    )
    with Display() as display:
        result = runs.execute(edition, config, progress=display)
    return result, edition
