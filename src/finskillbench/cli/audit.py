"""`finskillbench audit`: independent audit of an edition."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from finskillbench.cli.data.arguments import PartOfEdition
from finskillbench.cli.display import console
from finskillbench.cli.options.kinds import JsonOutput

EXAMPLE = "Example: finskillbench audit editions/seven --json audit.json"


def audit(
    edition: Annotated[Path, Argument(metavar="EDITION", help="Folder of the edition, built or imported.")],
    suite: PartOfEdition = None,
    check: Annotated[list[str] | None, Option(metavar="NAME", help="Run only this check; repeatable.")] = None,
    as_json: JsonOutput = None,
    other: Annotated[
        Path | None,
        Option(metavar="EDITION", help="Edition of another seed, on which the `signature` check tests its model."),
    ] = None,
    raw_dir: Annotated[
        Path | None,
        Option(metavar="DIR", help="Raw files with company facts, to which the `rederived` check compares labels."),
    ] = None,
) -> None:
    """Audit an edition: truths are reachable, shortcuts do not reach them, and scores fall with worse answers.

    Exit code 0: no findings; 1: findings; 2: the audit could not run.
    """
    from finskillbench.edition import load_edition
    from finskillbench.edition.checks.catalog import refuse_unknown_audits
    from finskillbench.edition.checks.engine import audit_edition

    refuse_unknown_audits(check or ())
    with console.Progress() as progress:
        progress("Reading the edition")
        loaded = load_edition(edition, suite)
        other_edition = None if other is None else load_edition(other)
        report = audit_edition(loaded, check, other=other_edition, raw_dir=raw_dir, progress=progress)
    if not console.json_printed(as_json, report.to_json):
        typer.echo(report)
    if not report.passed:
        raise typer.Exit(1)
