"""Command `finskillbench ladder`: how fast the portfolios of an edition can be sold."""

from pathlib import Path
from typing import Annotated

import typer

LADDER = typer.Typer()


@LADDER.command()
def ladder(edition: Annotated[Path, typer.Argument(help="Folder of the edition.")]) -> None:
    """Print for each portfolio what share of NAV is sold within 1, 5 and 20 days."""
    # Imported here, so that `finskillbench --help` stays fast.
    from finskillbench.edition import load_edition
    from liquidity_ladder.subtask import NAME, second

    loaded = load_edition(edition)
    for episode in loaded.episodes([NAME]):
        steps = second(loaded.full_input(episode))["ladder"]
        typer.echo(f"{episode.task_id}: {', '.join(f'{name} {share:.1%}' for name, share in steps.items())}")
