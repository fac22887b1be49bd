"""`finskillbench data export`: an edition to hand out."""

from __future__ import annotations

from typing import Annotated

import typer

from finskillbench.cli.data.arguments import EditionArgument, NewFolder
from finskillbench.cli.data.info import describe
from finskillbench.errors import InputError

EXAMPLE = "Example: finskillbench data export editions/seven --public --out handed-out/seven"


def export(
    edition: EditionArgument,
    out: NewFolder,
    public: Annotated[
        bool, typer.Option("--public", help="Without truth, certificates and seed, and with a canary; required.")
    ] = False,
) -> None:
    """Copy an edition to hand out: agents find all they need in it, and nobody can score with it."""
    from finskillbench.edition import load_edition
    from finskillbench.edition.publish import export_public

    if not public:
        raise InputError("data export makes public copies only: add --public, or copy the folder to keep its truth")
    describe(export_public(load_edition(edition), out))
