"""`finskillbench data canary`: which files hold episodes that must not become training data."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = """\b
Examples:
  finskillbench data canary corpus/part-00*.jsonl.gz
  some-program | finskillbench data canary -"""


def canary(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files or folders; - is standard input.")],
) -> None:
    """Print the files that hold the canary of FinSkillBench, which stands in every episode. Exit code 1 if any does.

    Files are looked at as they are, and unpacked where they are gzipped; of a folder, all files below it.
    """
    from finskillbench.publish.hub.canary import file_has_canary, has_canary

    found = 0
    for path in files:
        if str(path) == "-":
            marked = ["standard input"] if has_canary(sys.stdin.buffer.read()) else []
        else:
            below = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
            marked = [str(each) for each in below if file_has_canary(each)]
        for name in marked:
            typer.echo(name)
        found += len(marked)
    if found:
        raise typer.Exit(1)
