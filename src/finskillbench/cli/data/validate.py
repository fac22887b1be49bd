"""`finskillbench data validate`: every check of an edition, and every label against its proof."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from finskillbench.cli.data.arguments import EditionArgument, PartOfEdition
from finskillbench.cli.display import console

EXAMPLE = "Example: finskillbench data validate editions/seven"


def validate(
    edition: EditionArgument,
    suite: PartOfEdition = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the whole report as JSON, with every finding.")
    ] = False,
) -> None:
    """Check an edition: its panels, and every label against its proof. Exit code 1 if a check fails.

    The verdict is kept in your state folder, by the digest of the edition: `run` and `score` state it.
    """
    import orjson

    from finskillbench.edition import load_edition
    from finskillbench.edition.checks.engine import validate_edition
    from finskillbench.errors import InputError
    from finskillbench.runs.store.version import keep_validation

    with console.Progress() as progress:
        loaded = load_edition(edition, suite)
        report = validate_edition(loaded, progress)
    if as_json:
        typer.echo(orjson.dumps(report.to_json(), option=orjson.OPT_INDENT_2).decode())
    else:
        typer.echo(report)
    try:
        keep_validation(loaded, passed=report.passed)
    except InputError as error:
        print(f"note: the verdict is not kept: {error}", file=sys.stderr)
    if not report.passed:
        raise typer.Exit(1)
