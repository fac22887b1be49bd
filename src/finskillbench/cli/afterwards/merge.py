"""`finskillbench merge`: run folders made one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = """\b
Example:
  finskillbench run --shard 1/2 --out runs/a        (on one machine)
  finskillbench run --shard 2/2 --out runs/b        (on another)
  finskillbench merge runs/all runs/a runs/b        (or any runs of one edition)"""


def merge(
    out: Annotated[Path, typer.Argument(help="Run folder to make.")],
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders of one edition and one scorer.")],
) -> None:
    """Merge run folders: shards, or other models, conditions, repeats or episodes of the same edition.

    Exit code 1 if an episode that was asked for is in none of them: the command that asked for it, with --out OUT and
    without --shard, goes on from there.
    """
    from finskillbench.runs.afterwards.merge import merge as merge_folders
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
