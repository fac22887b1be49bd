"""Commands `finskillbench show`, `failures`, `merge` and `rescore`."""

from __future__ import annotations

import os
import sys
import textwrap
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from finskillbench.cli.display import console
from finskillbench.cli.options.kinds import JsonOutput

if TYPE_CHECKING:
    import polars as pl

FAILURES_EXAMPLE = """\b
Examples:
  finskillbench failures runs/mine
  finskillbench failures runs/mine --condition curated --examples 3 --json failures.json"""


def failures(
    run: Annotated[Path, Argument(help="Run folder.")],
    model: Annotated[list[str] | None, Option(help="Model; repeatable. Default: all of the run.")] = None,
    condition: Annotated[list[str] | None, Option(help="Condition; repeatable. Default: all of the run.")] = None,
    examples: Annotated[int, Option(min=0, help="Examples of each cause.")] = 1,
    edition: Annotated[Path | None, Option(help="Edition with the truth. Default: the edition of the run.")] = None,
    as_json: JsonOutput = None,
) -> None:
    """Explain why episodes of a run did not earn full marks: causes by condition, and examples of each."""
    from finskillbench.runs.postprocess.failures import counts, failures_of, meaning, rows_of
    from finskillbench.runs.postprocess.show import printable

    with console.Progress() as progress:
        progress("Reading the run")
        rows = rows_of(run)
        known = {"model": {row.model for row in rows}, "condition": {str(row.condition) for row in rows}}
        _check_known("model", model or [], known["model"], run)
        _check_known("condition", condition or [], known["condition"], run)
        progress("Looking for causes")
        found = counts.select_failures(failures_of(run, edition), model or [], condition or [])
    if console.json_printed(as_json, found.to_dicts):
        return
    played = sum((not model or row.model in model) and (not condition or row.condition in condition) for row in rows)
    for text in _tables(found):
        typer.echo(text + "\n")
    typer.echo(f"Without full marks: {found.height:,} of {played:,}")
    if found.height:
        typer.echo("Each cell: episodes with this as first cause to fix / episodes with this among their causes")
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
    """Return a table of causes by condition for each model."""
    from finskillbench.cli.display.console import render_table
    from finskillbench.harness.models import ModelKey, labels
    from finskillbench.runs.plan.items import condition_rank
    from finskillbench.runs.postprocess.failures.counts import count_causes

    counted: dict[ModelKey, dict[str, dict[str, str]]] = {}
    for model, arguments, cause, condition, primary, applies in count_causes(found).iter_rows():
        cells = counted.setdefault(ModelKey(model, arguments), {}).setdefault(cause, {})
        cells[condition] = f"{primary:,} / {applies:,}"
    names, conditions = labels(counted), sorted(found["condition"].unique(), key=condition_rank)
    return [
        render_table(
            (names[entry], *conditions),
            [(cause, *(cells.get(each, "-") for each in conditions)) for cause, cells in causes.items()],
            text_columns=1,
        )
        for entry, causes in counted.items()
    ]


def _check_known(what: str, named: list[str], known: set[str], run: Path) -> None:
    from finskillbench.errors import InputError

    if unknown := sorted(set(named) - known):
        raise InputError(f"{run}: has no {what} {unknown[0]!r}; choose from: {', '.join(sorted(known))}")


MERGE_EXAMPLE = """\b
Example:
  finskillbench run --shard 1/2 --out runs/a        (on one machine)
  finskillbench run --shard 2/2 --out runs/b        (on another)
  finskillbench merge runs/all runs/a runs/b        (or any runs of one edition)"""


def merge(
    out: Annotated[Path, Argument(help="Run folder to create.")],
    runs: Annotated[list[Path], Argument(metavar="RUN...", help="Run folders with the same edition and scorer.")],
) -> None:
    """Merge run folders: shards, or other models, conditions, repeats or episodes of the same edition.

    Exit code 1 if planned episodes are in none of the folders. Rerun their command with --out OUT and without --shard
    to complete them.
    """
    from finskillbench.runs.postprocess.merge import merge_runs as merge_folders
    from finskillbench.runs.store.rows import ROWS

    merged = merge_folders(out, runs)
    typer.echo(f"Rows:         {out / ROWS}")
    typer.echo(f"Episodes:     {merged.rows.height} of {merged.rows.height + len(merged.missing)}")
    if merged.missing:
        first = merged.missing[0]
        typer.echo(
            f"Missing:      {len(merged.missing)}, the first is {first.task_id} of {first.model} under "
            f"{first.condition}, run {first.run_idx}"
        )
        raise typer.Exit(1)


if TYPE_CHECKING:
    from finskillbench.runs.postprocess.rescore import Change, Group

RESCORE_EXAMPLE = """\b
Examples:
  finskillbench rescore runs/mine --dry-run --list
  finskillbench rescore runs/mine"""


def rescore(
    run: Annotated[Path, Argument(help="Run folder.")],
    edition: Annotated[
        Path | None, Option(help="Folder of the run's edition. Default: its recorded folder, or the default edition.")
    ] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Print what would change and write nothing.")] = False,
    list_moved: Annotated[bool, Option("--list", help="List every changed score.")] = False,
) -> None:
    """Score every finished episode of a run again with the current scorers, from its trajectories.

    Prints the scores that changed, appends the changes to the journal and rewrites the rows. No model is called.
    """
    from finskillbench.cli.display.console import render_table
    from finskillbench.edition import load_edition
    from finskillbench.harness.models import labels
    from finskillbench.runs.plan.streams import default_edition
    from finskillbench.runs.postprocess import rescore as rescoring
    from finskillbench.runs.store.version import validation_text

    record = rescoring.read_run(run)
    with console.Progress() as progress:
        progress("Reading the edition")
        original = Path(record.edition_path)
        loaded = load_edition(edition or (original if original.is_dir() else default_edition(progress)))
        result = rescoring.rescore_run(
            run, loaded, dry_run=dry_run, progress=lambda done, total: progress("Scoring", done, total)
        )
    header = ("subtask", "profile", "episodes", "moved", "mean before", "mean after")
    typer.echo(render_table(header, [_group_row(group) for group in result.groups()], text_columns=2) + "\n")
    if list_moved:
        names = labels(change.item.model_key for change in result.changes)
        for change in result.moved:
            typer.echo(_change_line(change, names[change.item.model_key]))
    moved = len({change.item for change in result.moved})
    scored = len({change.item for change in result.changes})
    typer.echo(f"Moved:   {moved} of {scored} scored episodes")
    typer.echo(f"Scorers: {result.scorers_before} -> {result.scorers_after}")
    typer.echo(f"Edition: validated {validation_text(loaded)}")
    if dry_run:
        typer.echo("Nothing was written (--dry-run)")
    else:
        typer.echo(f"Rows:    {run / rescoring.ROWS}")


def _group_row(group: Group) -> tuple[str, ...]:
    means = (_number(group.before, 4), _number(group.after, 4))
    return (group.sub_task, group.profile.value, f"{group.episodes:,}", f"{group.moved:,}", *means)


def _change_line(change: Change, entry: str) -> str:
    item = change.item
    score = f"{_number(change.before, 6)} -> {_number(change.after, 6)}"
    same = change.status_before == change.status_after
    status = "" if same else f" ({change.status_before} -> {change.status_after})"
    return f"{entry} {item.condition} {item.task_id} {item.run_idx} {change.profile.value} {score}{status}"


def _number(score: float | None, places: int) -> str:
    return "-" if score is None else f"{score:.{places}f}"


SHOW_EXAMPLE = """\b
Examples:
  finskillbench show runs/mine TASK_ID --model baseline/reference --condition curated
  finskillbench show runs/mine/trajectories/baseline-reference__curated/TASK_ID__0.json.gz --full"""


def show(
    run: Annotated[Path, Argument(help="Run folder, or the file of a trajectory.")],
    task_id: Annotated[str | None, Argument(help="Task id; left out for a trajectory file.")] = None,
    model: Annotated[str | None, Option(help="Model, if several ran the task.")] = None,
    condition: Annotated[str | None, Option(help="Condition, if the task was run under several.")] = None,
    run_idx: Annotated[int | None, Option(min=0, help="Repeat, if there are several.")] = None,
    lines: Annotated[int, Option(min=1, help="Maximum lines to show of a prompt, arguments or a result.")] = 12,
    full: Annotated[bool, Option("--full", help="Show every text in full.")] = False,
    edition: Annotated[Path | None, Option(help="Edition with the truth. Default: the edition of the run.")] = None,
) -> None:
    """Print one episode: messages, tool calls, verdict, points lost by part, and expected and submitted answers."""
    from finskillbench.errors import InputError
    from finskillbench.runs.postprocess.show import (
        Line,
        comparison,
        conversation,
        find_trajectory,
        labelled_task_of,
        row_of,
        task_required_error,
    )
    from finskillbench.runs.store.journal import read_trajectory

    if run.is_file():
        if not (task_id is None and model is None and condition is None and run_idx is None):
            raise InputError(f"{run}: is a trajectory file; leave out the task and the options")
        path = run
    elif not run.is_dir():
        raise InputError(f"{run}: does not exist; name a run folder or a trajectory file")
    elif task_id is None:
        raise task_required_error(run)
    else:
        path = find_trajectory(run, task_id, model=model, condition=condition, run_idx=run_idx)
    trajectory = read_trajectory(path)
    row, truth = row_of(path, trajectory), labelled_task_of(path, trajectory, edition)
    most = None if full else lines
    try:
        width = max(console.width(), 40)
        lines_shown = conversation(trajectory, row, width=width, most=most)
        if isinstance(truth, str):
            end = [Line(f"expected:  {truth}")]
        else:
            end = comparison(truth, trajectory.trace.submission, width=width, most=most)
        cut = False
        for line in chain(lines_shown, end):
            typer.secho(line.text, bold=line.heading or None)
            cut = cut or line.cut
        if cut:
            typer.echo("\nSome lines are omitted; --full shows them.")
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
