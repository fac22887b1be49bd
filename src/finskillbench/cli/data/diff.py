"""`finskillbench data diff`: what two editions differ in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from finskillbench.cli.data.arguments import EditionArgument
from finskillbench.cli.display import console

EXAMPLE = "Example: finskillbench data diff editions/seven editions/seven-again"


def diff(
    first: EditionArgument,
    second: Annotated[Path, typer.Argument(metavar="OTHER", help="Folder of the edition to compare it with.")],
) -> None:
    """Say what differs between two editions, and where scores are comparable. Exit code 1 if they are not."""
    from finskillbench.edition import load_edition
    from finskillbench.edition.difference import PARTS, compare_editions

    with console.Progress() as progress:
        found = compare_editions(load_edition(first), load_edition(second), progress)
    for field, (one, other) in found.fields.items():
        typer.echo(f"{field}: {_shortened(one)} -> {_shortened(other)}")
    columns = ("episodes", "removed", "added", *PARTS)
    typer.echo(f"{'':<28}" + "".join(f"{name:>{len(name) + 2}}" for name in columns) + "  scores comparable")
    for each in found.subtasks:
        changed = (len(each.changed[part]) for part in PARTS)
        counts = (each.common, len(each.only_first), len(each.only_second), *changed)
        texts = (f"{count:>{len(name) + 2}}" for name, count in zip(columns, counts, strict=True))
        typer.echo(f"{each.name:<28}" + "".join(texts) + f"  {'yes' if each.same_scores else 'no'}")
    if not found.compared_truth:
        typer.echo("One of them was handed out without truth: whether scores are comparable cannot be said.")
    if not found.same_scores:
        raise typer.Exit(1)


def _shortened(value: object, most: int = 60) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= most else f"{text[:most]}..."
