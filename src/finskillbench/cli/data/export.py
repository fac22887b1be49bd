"""`finskillbench data export`: an edition to hand out, as a folder to play from or as a data set for a hub."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from finskillbench.cli.data.arguments import EditionArgument
from finskillbench.cli.data.info import describe
from finskillbench.cli.display import console
from finskillbench.errors import InputError

if TYPE_CHECKING:
    from finskillbench.edition import Edition

EXAMPLE = """\b
Examples:
  finskillbench data export editions/seven --public --out handed-out/seven
  finskillbench data export editions/seven --hub hub/seven"""
_GUESSED = 2**48
"""Seeds below are found by trying: some 1,000 builds a second on a large cluster take 9,000 years for this many, and
people choose small ones."""


def export(
    edition: EditionArgument,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", parser=console.out_path, metavar="PATH", help="Folder of the copy; new or empty. Needs --public."
        ),
    ] = None,
    public: Annotated[
        bool,
        typer.Option("--public", help="Without truth, certificates and seed, and with a canary; required by --out."),
    ] = False,
    hub: Annotated[
        Path | None,
        typer.Option(
            "--hub",
            parser=console.out_path,
            metavar="PATH",
            help="Folder of a data set instead: Parquet, a card, Croissant metadata, the copy; new or empty.",
        ),
    ] = None,
    with_truth: Annotated[
        bool, typer.Option("--with-truth", help="The labels too, in a configuration of their own; needs --hub.")
    ] = False,
) -> None:
    """Copy an edition to hand out: agents find all they need in it, and nobody can score with it.

    --hub writes a folder that can be uploaded to a data set hub as it is. Labels are in it only with --with-truth.
    """
    from finskillbench.edition import load_edition
    from finskillbench.edition.publish import export_public

    if (out is None) == (hub is None):
        raise InputError("name where to export to: either --public --out PATH, or --hub PATH")
    if hub is not None:
        if public:
            raise InputError("--public is for --out; what --hub writes is public unless --with-truth says otherwise")
        _to_hub(load_edition(edition), hub, truth=with_truth)
        return
    if with_truth:
        raise InputError("--with-truth is for --hub; copy the folder to keep its truth")
    if not public or out is None:
        raise InputError("--out makes public copies only: add --public, or copy the folder to keep its truth")
    loaded = load_edition(edition)
    describe(export_public(loaded, out))
    _warn_of_seed(loaded)


def _to_hub(edition: Edition, out: Path, *, truth: bool) -> None:
    from datetime import date

    from finskillbench.publish.hub import CARD, CROISSANT, export_hub

    with console.Progress() as progress:
        progress("Writing the data set")
        shards = export_hub(edition, out, today=date.today(), truth=truth)
    typer.echo(f"{out}: {len(shards)} shards, {sum(each.rows for each in shards):,} rows, {CARD}, {CROISSANT}")
    if truth:
        print(f"warning: {out / 'truth'} holds the expected answers; do not publish it", file=sys.stderr)
    _warn_of_seed(edition)


def _warn_of_seed(edition: Edition) -> None:
    seed = edition.manifest["seed"]
    if edition.manifest["source"]["kind"] == "synthetic" and seed is not None and seed < _GUESSED:
        print(
            "warning: the seed of this edition is small enough to be found by trying, and with it the truth; for a "
            "leaderboard draw one at random (docs/publishing.md)",
            file=sys.stderr,
        )
