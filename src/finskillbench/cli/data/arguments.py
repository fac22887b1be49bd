"""Arguments shared by commands of `finskillbench data`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from finskillbench.cli.display import console
from finskillbench.cli.options.kinds import checked, find_suite

EditionArgument = Annotated[Path, Argument(metavar="EDITION", help="Folder of the edition.")]
PartOfEdition = Annotated[
    str | None,
    Option(
        "--suite",
        callback=checked(find_suite),
        metavar="NAME",
        help="Only this suite, such as paper. Default: all suites.",
    ),
]
NewFolder = Annotated[
    Path, Option("--out", parser=console.out_path, metavar="PATH", help="Folder to create; it must be new or empty.")
]
