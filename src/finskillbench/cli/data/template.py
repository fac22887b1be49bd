"""`finskillbench data template`: a small file of every format that a raw collection may hold."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from finskillbench.cli.display import console

EXAMPLE = "Example: finskillbench data template downloads/raw"


def template(
    out: Annotated[
        Path, typer.Argument(metavar="OUT", parser=console.out_path, help="Folder to make, or an empty one.")
    ],
) -> None:
    """Write a small file of every format that `data build --raw-dir` reads, and a README that documents each field.

    The companies are fictional and too few to be built: put your own files in their place.
    """
    from finskillbench.sources.raw.doctor import write_template

    for name in write_template(out):
        typer.echo(name)
