"""`finskillbench run`: run models under conditions on episodes and print the results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from typer import Option

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
class RunCommandOptions(RunOptions):
    """Options of the `run` command."""

    cluster: Annotated[
        str | None,
        Option(metavar="ADDRESS", help="Scheduler of a Dask cluster that runs the episodes, such as tcp://host:8786."),
    ] = None
    page: Annotated[bool, Option("--page", help="Also write the report page, into the run folder's report/.")] = False


def run(options: RunCommandOptions) -> None:
    """Run models under conditions on an edition and print the table. The same command resumes.

    Ctrl-C finishes the episodes in flight; a second Ctrl-C drops them. Exit code 1 if an episode ended in an error, was
    dropped or was not run; the same command runs it again.
    """
    print_result(*execute_run(options, options.cluster), page=options.page)


def execute_run(options: RunOptions, cluster: str | None = None) -> tuple[RunResult, Edition]:
    """Run what the options select, locally or on a cluster, and return the result with its edition."""
    from finskillbench.cli.display.progress import Display
    from finskillbench.cluster.connection import require_cluster_extra
    from finskillbench.harness.models import ModelConfig, allowance_of
    from finskillbench.runs.config import RunConfig
    from finskillbench.runs.execute.run import execute, make_models
    from finskillbench.runs.store.rows import SHORT_FORM
    from finskillbench.runs.store.version import write_atomic

    options.check_names()
    limits = options.run_limits
    # Report a missing key or price before an edition is built.
    models = make_models(options.model_configs, options.model_options, limits)
    model_configs = [ModelConfig(model, allowance=allowance_of(key)) for key, model in models.items()]
    if cluster is not None:  # each worker makes its own models from their names
        require_cluster_extra()
        model_configs = options.model_configs
    with Progress() as progress:
        edition = options.open_edition(progress)
    config = RunConfig(
        models=model_configs,
        conditions=options.conditions,
        skills=options.skill_folders,
        library=options.library,
        episodes=options.episodes(edition),
        limits=limits,
        options=options.model_options,
        harness=options.make_harness(),
        cluster=cluster,
        out=options.folder(edition),
    )
    with Display() as display:
        result = execute(edition, config, progress=display)
    if options.short is not None:
        write_atomic(result.folder / SHORT_FORM, options.short.read_bytes())
    return result, edition
