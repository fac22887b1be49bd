"""`finskillbench handout`: episodes as folders, for agents that read and write files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from finskillbench.cli.display import console

EXAMPLE = """\b
Examples:
  finskillbench handout editions/seven out/plain --limit 5
  finskillbench handout editions/seven out/skills --limit 5 --condition curated
  finskillbench score editions/seven out/plain --model mine --out rows.parquet"""


def handout(
    edition: Annotated[Path, typer.Argument(help="Folder of the edition.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to make, with one folder for each episode.")],
    condition: Annotated[
        str, typer.Option(metavar="NAME", help="no_skill, curated, docs_only or placebo: the skills that go along.")
    ] = "no_skill",
    subtask: Annotated[list[str] | None, typer.Option(help="Subtask; repeatable. Default: all of the edition.")] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=console.LARGEST,
            help="First episodes of each subtask. Default: as many as the full-run protocol takes of its domain.",
        ),
    ] = None,
) -> None:
    """Write each episode into a folder of its own: prompt, schema, data as of its day, skills.

    An agent leaves `answer.json` in it, and `finskillbench score EDITION OUT` takes the answers back.
    """
    from finskillbench.edition import load_edition
    from finskillbench.runs.handout.write import ANSWER, hand_out

    with console.Progress() as progress:
        progress("reading the edition")
        loaded = load_edition(edition)
        record = hand_out(
            loaded,
            out,
            condition,
            subtask or None,
            limit=limit,
            progress=lambda done, total: progress("writing episodes", done, total),
        )
    typer.echo(f"{len(record.tasks)} episodes under {condition}: {out}/*/prompt.md")
    typer.echo(f"Answers go to {out}/*/{ANSWER}; then: finskillbench score {edition} {out} --model NAME --out ROWS")
