"""`finskillbench rescore`: a run judged again after a scorer changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from finskillbench.cli.display import console

if TYPE_CHECKING:
    from finskillbench.runs.afterwards.rescore import Change, Group

EXAMPLE = """\b
Examples:
  finskillbench rescore runs/mine --dry-run --list
  finskillbench rescore runs/mine"""


def rescore(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    edition: Annotated[
        Path | None,
        typer.Option(help="Folder of the edition it was run on. Default: where it was, or the default one."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would move and write nothing.")] = False,
    list_moved: Annotated[bool, typer.Option("--list", help="Name every score that moved.")] = False,
) -> None:
    """Judge every finished episode of a run again with today's scorers, from its trajectories alone.

    Says which scores moved, appends what changed to the journal and writes the rows anew; no model is asked.
    """
    from finskillbench.cli.display.tables import render_table
    from finskillbench.edition import load_edition
    from finskillbench.harness.models import labels
    from finskillbench.runs.afterwards import rescore as rescoring
    from finskillbench.runs.plan.defaults import default_edition
    from finskillbench.runs.store.version import validation_text

    record = rescoring.read_run(run)
    with console.Progress() as progress:
        progress("Reading the edition")
        was = Path(record.edition_path)
        loaded = load_edition(edition or (was if was.is_dir() else default_edition(progress)))
        result = rescoring.rescore(
            run, loaded, dry_run=dry_run, progress=lambda done, total: progress("Judging", done, total)
        )
    header = ("subtask", "profile", "episodes", "moved", "mean before", "mean after")
    typer.echo(render_table(header, [_row(group) for group in result.groups()], words=2) + "\n")
    if list_moved:
        names = labels(change.item.entry for change in result.changes)
        for change in result.moved:
            typer.echo(_words(change, names[change.item.entry]))
    moved = len({change.item for change in result.moved})
    scored = len({change.item for change in result.changes})
    typer.echo(f"Moved:   {moved} of {scored} scored episodes")
    typer.echo(f"Scorers: {result.scorers_before} -> {result.scorers_after}")
    typer.echo(f"Edition: validated {validation_text(loaded)}")
    if dry_run:
        typer.echo("Nothing was written (--dry-run)")
    else:
        typer.echo(f"Rows:    {run / rescoring.ROWS}")


def _row(group: Group) -> tuple[str, ...]:
    means = (_number(group.before, 4), _number(group.after, 4))
    return (group.sub_task, group.profile.value, f"{group.episodes:,}", f"{group.moved:,}", *means)


def _words(change: Change, entry: str) -> str:
    item = change.item
    score = f"{_number(change.before, 6)} -> {_number(change.after, 6)}"
    same = change.status_before == change.status_after
    status = "" if same else f" ({change.status_before} -> {change.status_after})"
    return f"{entry} {item.condition} {item.task_id} {item.run_idx} {change.profile.value} {score}{status}"


def _number(score: float | None, places: int) -> str:
    return "-" if score is None else f"{score:.{places}f}"
