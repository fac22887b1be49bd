"""`finskillbench short-form`: choose few episodes that estimate the overall score."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from finskillbench.cli.data.arguments import PartOfEdition
from finskillbench.cli.display import console

EXAMPLE = """\b
Examples:
  finskillbench short-form runs/* --out short_form.json
  finskillbench run --model openai/gpt-5 --short short_form.json"""


def short_form(
    runs: Annotated[list[Path], Argument(metavar="RUN...", help="Complete runs of at least ten models.")],
    out: Annotated[Path, Option(parser=console.out_path, metavar="FILE", help="File to write.")] = Path(
        "short_form.json"
    ),
    episodes: Annotated[int, Option(min=1, max=120, help="Number of episodes.")] = 120,
    suite: PartOfEdition = None,
    exclude: Annotated[
        list[str] | None, Option(metavar="MODEL", help="Model to leave out, such as a variant of another; repeatable.")
    ] = None,
) -> None:
    """Choose few episodes that estimate the overall score, for `run --short`, and print the error of the estimate.

    The error is that of models left out of the choice, in turn.
    """
    import msgspec

    from finskillbench.analysis.results import collect
    from finskillbench.analysis.short_form import make_short_form
    from finskillbench.reports.read import filter_run, join_runs, read_runs
    from finskillbench.runs.store.version import write_atomic

    rows = join_runs([filter_run(run, suite=suite) for run in read_runs(runs)])
    form = make_short_form(collect(rows, exclude=exclude or ()), episodes)
    write_atomic(out, msgspec.json.format(msgspec.json.encode(form)))
    typer.echo(f"Root mean square errors of {form.models} models, each left out of the choice in turn:")
    for name, each in form.accuracy.items():
        typer.echo(f"  {name}: {each.error:.3f} (scores {each.lowest_score:.3f} to {each.highest_score:.3f})")
    typer.echo(f"Short form: {out}, {len(form.weights)} episodes")
