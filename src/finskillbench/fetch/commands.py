"""Command `data fetch`: download raw files, and optionally build an edition from them."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from finskillbench.cli.data.info import describe
from finskillbench.cli.display import console
from finskillbench.errors import InputError

FETCH = typer.Typer()
EXAMPLE = (
    "Example: finskillbench data fetch --from 2026-07 --to 2026-09 --universe sp500 --out downloads/raw "
    '--user-agent "Your Name you@example.com" --build editions/third-quarter'
)
AGENT, CONFIGURATION = "FINSKILLBENCH_USER_AGENT", "FINSKILLBENCH_SOURCES"
"""Environment variables with the defaults of options."""


# Longer than a screen: each option is a parameter with its help text.
@FETCH.command(epilog=EXAMPLE)
def fetch(
    start: Annotated[str, typer.Option("--from", metavar="YYYY-MM", help="First month of filings to evaluate.")],
    end: Annotated[str, typer.Option("--to", metavar="YYYY-MM", help="Last month; it must be over.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out", parser=console.out_path, metavar="RAW", help="Folder of raw files to create or complete."
        ),
    ],
    universe: Annotated[
        str,
        typer.Option(
            help="sp500-30 (the published names), sp500, or a file: one ticker per line, or CSV with sectors."
        ),
    ] = "sp500-30",
    prices: Annotated[
        str,
        typer.Option(
            help="yahoo, tiingo (with TIINGO_API_KEY), csv (your files), or one that another package registers."
        ),
    ] = "yahoo",
    prices_dir: Annotated[Path | None, typer.Option(help="Your price files TICKER.csv, for --prices csv.")] = None,
    user_agent: Annotated[
        str | None, typer.Option(help=f"Your name and email address, for the SEC (or {AGENT}).")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="TOML", help=f"Addresses, rates and time-outs (or {CONFIGURATION}).")
    ] = None,
    refresh: Annotated[bool, typer.Option("--refresh", help="Check every file for changes.")] = False,
    edition: Annotated[
        Path | None,
        typer.Option(
            "--build", parser=console.out_path, metavar="EDITION", help="Build an edition from the files as well."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(max=console.LARGEST, help="Seed of --build; 1 by default.")] = None,
) -> None:
    """Download filings, factors, rates and prices from their public sources into a folder of raw files.

    The same command resumes an interrupted fetch. `provenance.jsonl` records the origin of each file; a build refuses
    files that were altered later. docs/fetching.md describes the sources.
    """
    if seed is not None and edition is None:
        raise InputError("--seed needs --build EDITION; add it or remove --seed")
    if prices_dir is not None and prices != "csv":
        raise InputError("--prices-dir needs --prices csv; add it or remove --prices-dir")

    from finskillbench.fetch.collect import FetchOptions, fetch_collection
    from finskillbench.fetch.configuration import read_configuration, window_of

    named = os.environ.get(CONFIGURATION)
    options = FetchOptions(
        window=window_of(start, end, datetime.now(UTC).date()),
        universe=universe,
        prices=prices,
        prices_dir=prices_dir,
        agent=user_agent or os.environ.get(AGENT, ""),
        refresh=refresh,
        configuration=read_configuration(config or (Path(named) if named else None)),
    )
    with console.Progress() as progress:
        done = fetch_collection(out, options, progress)
    for message in done.notes:
        typer.echo(f"note: {message}")
    typer.echo(f"{done.files} files of {done.names} names, {done.bytes / 1e6:,.1f} MB: {out}")
    if edition is None:
        typer.echo(f"Next: finskillbench data build --source raw-dir --raw-dir {out} --out EDITION")
        return

    from finskillbench.edition.build import DEFAULT_SEED, build_edition

    with console.Progress() as progress:
        built = build_edition(
            source="raw-dir", raw_dir=out, seed=DEFAULT_SEED if seed is None else seed, out=edition, progress=progress
        )
    describe(built)
