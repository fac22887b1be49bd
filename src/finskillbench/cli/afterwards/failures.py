"""`finskillbench failures`: why episodes of a run did not earn full marks."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from finskillbench.cli.display import console

if TYPE_CHECKING:
    import polars as pl

EXAMPLE = """\b
Examples:
  finskillbench failures runs/mine
  finskillbench failures runs/mine --condition curated --examples 3 --json failures.json"""


def failures(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    model: Annotated[list[str] | None, typer.Option(help="Model; repeatable. Default: all of the run.")] = None,
    condition: Annotated[list[str] | None, typer.Option(help="Condition; repeatable. Default: all of the run.")] = None,
    examples: Annotated[int, typer.Option(min=0, help="Examples of each cause.")] = 1,
    edition: Annotated[
        Path | None, typer.Option(help="Edition with the truth; by default the one that the run was made from.")
    ] = None,
    as_json: Annotated[
        Path | None,
        typer.Option("--json", parser=console.out_path, metavar="FILE", help="Write every failure with its evidence."),
    ] = None,
) -> None:
    """Say by rule why episodes of a run did not earn full marks: causes by condition, and examples of each."""
    import orjson

    from finskillbench.runs.afterwards.failures import counts, failures_of, meaning, rows_of
    from finskillbench.runs.afterwards.show import printable
    from finskillbench.runs.store.files import write_beside

    with console.Progress() as progress:
        progress("Reading the run")
        rows = rows_of(run)
        known = {"model": {row.model for row in rows}, "condition": {str(row.condition) for row in rows}}
        _check("model", model or [], known["model"], run)
        _check("condition", condition or [], known["condition"], run)
        progress("Looking for causes")
        found = counts.chosen(failures_of(run, edition), model or [], condition or [])
    if as_json is not None:
        write_beside(as_json, orjson.dumps(found.to_dicts(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    played = sum((not model or row.model in model) and (not condition or row.condition in condition) for row in rows)
    for text in _tables(found):
        typer.echo(text + "\n")
    typer.echo(f"Without full marks: {found.height:,} of {played:,}")
    if found.height:
        typer.echo("Each cell: episodes of which it is the cause to mend first, and of which it applies at all")
    not_tried = dict.fromkeys(cause for causes in found["not_tried"] for cause in causes)
    if not_tried:
        typer.echo(f"Not tried without the edition's truth (--edition): {', '.join(not_tried)}")
    cause = ""
    for example in counts.examples(run, found, examples):
        if example.cause != cause:
            cause = example.cause
            typer.echo(f"\n{cause}: {meaning(cause)}")
        evidence = printable(f"{example.task_id}, {example.model}, {example.condition}: {example.evidence}")
        wrapped = textwrap.wrap(evidence, 100, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
        typer.echo("\n".join(wrapped))
        typer.echo(f"    {example.command}")


def _tables(found: pl.DataFrame) -> list[str]:
    """Of each entry a table of causes by condition."""
    from finskillbench.cli.display.tables import render_table
    from finskillbench.harness.models import Entry, labels
    from finskillbench.runs.afterwards.failures.counts import count_causes
    from finskillbench.runs.plan.items import place_of_condition

    counted: dict[Entry, dict[str, dict[str, str]]] = {}
    for model, arguments, cause, condition, primary, applies in count_causes(found).iter_rows():
        cells = counted.setdefault(Entry(model, arguments), {}).setdefault(cause, {})
        cells[condition] = f"{primary:,} / {applies:,}"
    names, conditions = labels(counted), sorted(found["condition"].unique(), key=place_of_condition)
    return [
        render_table(
            (names[entry], *conditions),
            [(cause, *(cells.get(each, "-") for each in conditions)) for cause, cells in causes.items()],
            words=1,
        )
        for entry, causes in counted.items()
    ]


def _check(what: str, named: list[str], known: set[str], run: Path) -> None:
    from finskillbench.errors import InputError

    if unknown := sorted(set(named) - known):
        raise InputError(f"{run}: has no {what} {unknown[0]!r}; there are {', '.join(sorted(known))}")
