"""`finskillbench data import`: the published release as an edition."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from finskillbench.cli.data.arguments import NewFolder
from finskillbench.cli.data.info import describe
from finskillbench.cli.display import console

EXAMPLE = "Example: finskillbench data import downloads/release --out editions/published"


def import_release(
    release: Annotated[Path, typer.Argument(metavar="RELEASE_DIR", help="Folder of the published release.")],
    out: NewFolder,
) -> None:
    """Import the published release as an edition; report the episodes whose inputs do not resolve."""
    from finskillbench.edition import load_edition
    from finskillbench.edition import release as releases

    with console.Progress() as progress:
        progress("Importing the release")
        report = releases.import_release(release, out)
    describe(load_edition(out))
    for task_id, reason in report.unresolved.items():
        typer.echo(f"unresolved: {task_id}: {reason}")
