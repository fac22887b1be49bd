"""`finskillbench merge`: the run folders of shards, made one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = """\b
Example:
  finskillbench run --shard 1/2 --out runs/a        (on one machine)
  finskillbench run --shard 2/2 --out runs/b        (on another)
  finskillbench merge runs/all runs/a runs/b"""


def merge(
    out: Annotated[Path, typer.Argument(help="Run folder to make.")],
    shards: Annotated[list[Path], typer.Argument(metavar="SHARD...", help="Run folders of the shards.")],
) -> None:
    """Merge the run folders of shards into the one that an unsharded run would have left.

    Exit code 1 if a planned episode is in none of them: the run's own command, with --out OUT and without --shard, goes
    on from there.
    """
    from finskillbench.runs.afterwards.merge import merge as merge_folders
    from finskillbench.runs.store.rows import ROWS

    merged = merge_folders(out, shards)
    typer.echo(f"Rows:         {out / ROWS}")
    typer.echo(f"Episodes:     {merged.rows.height} of {merged.rows.height + len(merged.missing)}")
    if merged.missing:
        first = merged.missing[0]
        typer.echo(
            f"Missing:      {len(merged.missing)}, the first is {first.task_id} of {first.model} under "
            f"{first.condition}, run {first.run_idx}"
        )
        raise typer.Exit(1)
