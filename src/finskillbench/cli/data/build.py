"""`finskillbench data build`: an edition from a seed or from raw files."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from finskillbench.cli.data.arguments import NewFolder
from finskillbench.cli.data.info import describe
from finskillbench.cli.display import console
from finskillbench.episode import PAPER_SUITE
from finskillbench.errors import InputError

EXAMPLE = "Example: finskillbench data build --seed 7 --out editions/seven"


class Source(StrEnum):
    """Where raw files come from."""

    SYNTHETIC = "synthetic"
    RAW_DIR = "raw-dir"


def build(
    out: NewFolder,
    source: Annotated[Source, typer.Option(help="Fictional companies from a seed, or files you have.")] = (
        Source.SYNTHETIC
    ),
    raw_dir: Annotated[Path | None, typer.Option(help="Collection of raw files, for --source raw-dir.")] = None,
    seed: Annotated[
        int | None, typer.Option(max=console.LARGEST, help="Seed of the market and of the draws; 1 by default.")
    ] = None,
    names: Annotated[
        int | None, typer.Option(help="Companies, 15 to 3,000; by default 30, or what the raw files name.")
    ] = None,
    suite: Annotated[
        str, typer.Option(metavar="NAME", help="Suite to build: paper, one of another distribution, or all.")
    ] = PAPER_SUITE,
    catalog: Annotated[
        Path | None,
        typer.Option(help="Folder of your own mandates, books, scenarios; `data catalog` writes an example."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Scheduler of a Dask cluster whose workers build the labels, such as tcp://host:8786.",
        ),
    ] = None,
) -> None:
    """Build an edition: panels, episodes, truth and the proof of every label."""
    if source is Source.RAW_DIR and raw_dir is None:
        raise InputError("--source raw-dir needs --raw-dir DIR, the folder of the raw files")
    if source is Source.SYNTHETIC and raw_dir is not None:
        raise InputError("--raw-dir is only read with --source raw-dir; add it or leave --raw-dir out")

    from finskillbench.edition.build import DEFAULT_SEED, build_edition

    with console.Progress() as progress:
        edition = build_edition(
            source=source.value,
            raw_dir=raw_dir,
            seed=DEFAULT_SEED if seed is None else seed,
            names=names,
            suite=suite,
            catalog=catalog,
            cluster=cluster,
            out=out,
            progress=progress,
        )
    describe(edition)
