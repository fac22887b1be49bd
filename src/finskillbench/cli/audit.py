"""`finskillbench audit`: what an outside examiner would ask of an edition."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from finskillbench.cli.data.arguments import PartOfEdition
from finskillbench.cli.display import console
from finskillbench.cli.options.kinds import JsonOutput

EXAMPLE = "Example: finskillbench audit editions/seven --json audit.json"


def audit(
    edition: Annotated[Path, typer.Argument(metavar="EDITION", help="Folder of the edition, built or imported.")],
    suite: PartOfEdition = None,
    check: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Run this check only; may be given several times.")
    ] = None,
    as_json: JsonOutput = None,
    other: Annotated[
        Path | None,
        typer.Option(metavar="EDITION", help="Edition of another seed, on which `signature` tries what it learned."),
    ] = None,
    raw_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Raw files with company facts, which `rederived` holds published labels to."),
    ] = None,
) -> None:
    """Audit an edition: can every truth be reached, in no shorter way, and do scores fall as they should.

    Exit code 0: nothing was found; 1: something was; 2: the audit could not run.
    """
    from finskillbench.edition import load_edition
    from finskillbench.edition.checks.catalog import refuse_unknown_audits
    from finskillbench.edition.checks.engine import audit_edition

    refuse_unknown_audits(check or ())
    with console.Progress() as progress:
        progress("reading the edition")
        loaded = load_edition(edition, suite)
        beside = None if other is None else load_edition(other)
        report = audit_edition(loaded, check, other=beside, raw_dir=raw_dir, progress=progress)
    if not console.json_printed(as_json, report.to_json):
        typer.echo(report)
    if not report.passed:
        raise typer.Exit(1)
