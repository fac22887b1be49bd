"""`finskillbench show`: one episode as a conversation."""

from __future__ import annotations

import os
import sys
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from finskillbench.cli.display import console

EXAMPLE = """\b
Examples:
  finskillbench show runs/mine TASK_ID --model baseline/reference --condition curated
  finskillbench show runs/mine/trajectories/baseline-reference__curated/TASK_ID__0.json.gz --full"""


def show(
    run: Annotated[Path, typer.Argument(help="Run folder, or the file of a trajectory.")],
    task_id: Annotated[str | None, typer.Argument(help="Task of the episode; left out for a file.")] = None,
    model: Annotated[str | None, typer.Option(help="Model, where several ran the task.")] = None,
    condition: Annotated[str | None, typer.Option(help="Condition, where the task was run under several.")] = None,
    run_idx: Annotated[int | None, typer.Option(min=0, help="Repeat, where there are several.")] = None,
    lines: Annotated[int, typer.Option(min=1, help="Lines of a prompt, of arguments or of a result to show.")] = 12,
    full: Annotated[bool, typer.Option("--full", help="Show every text in full.")] = False,
    edition: Annotated[
        Path | None, typer.Option(help="Edition with the truth; by default the one that the run was made from.")
    ] = None,
) -> None:
    """Print one episode: its messages and tool calls, the verdict, the points that each part lost, and both answers."""
    from finskillbench.errors import InputError
    from finskillbench.runs.afterwards.show import (
        Line,
        comparison,
        conversation,
        find_trajectory,
        name_a_task,
        row_of,
        truth_of,
    )
    from finskillbench.runs.store.trajectories import read_trajectory

    if run.is_file():
        if not (task_id is None and model is None and condition is None and run_idx is None):
            raise InputError(f"{run}: is one trajectory; leave the task and the options out")
        path = run
    elif not run.is_dir():
        raise InputError(f"{run}: is not there; name a run folder, or a trajectory's own file")
    elif task_id is None:
        raise name_a_task(run)
    else:
        path = find_trajectory(run, task_id, model=model, condition=condition, run_idx=run_idx)
    trajectory = read_trajectory(path)
    row, truth = row_of(path, trajectory), truth_of(path, trajectory, edition)
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
            typer.echo("\nLines are left out; --full shows them.")
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
