"""`finskillbench data validate`: every check of an edition, and every label against its proof."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from finskillbench.cli.data.arguments import EditionArgument, PartOfEdition
from finskillbench.cli.display import console

if TYPE_CHECKING:
    from finskillbench.edition.validation import Check

EXAMPLE = "Example: finskillbench data validate editions/seven"
_SHOWN_FINDINGS = 5


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
    from finskillbench.edition.validation import validate_edition
    from finskillbench.errors import InputError
    from finskillbench.runs.store.version import keep_validation

    with console.Progress() as progress:
        loaded = load_edition(edition, suite)
        report = validate_edition(loaded, progress)
    if as_json:
        typer.echo(orjson.dumps(report.to_json(), option=orjson.OPT_INDENT_2).decode())
    else:
        for domain, checks in groupby(report.checks, key=lambda check: check.domain):
            typer.echo(domain.replace("_", " "))
            _show_checks(list(checks))
        typer.echo(", ".join(f"{count} {state}" for state, count in report.counts.items() if count))
    try:
        keep_validation(loaded, passed=report.passed)
    except InputError as error:
        print(f"note: the verdict is not kept: {error}", file=sys.stderr)
    if not report.passed:
        raise typer.Exit(1)


def _show_checks(checks: Sequence[Check]) -> None:
    """The checks of one domain, a line each; one line for all if the edition has nothing for any of them."""
    reasons = {check.reason for check in checks if not check.findings}
    if len(checks) > 1 and len(reasons) == 1 and all(check.state == "SKIP" for check in checks):
        typer.echo(f"{checks[0].state:<5} {f'all {len(checks)}':<14} {reasons.pop()}")
        return
    for check in checks:
        typer.echo(f"{check.state:<5} {check.name:<14} {check.reason or _in_words(check.figures)}")
        for finding in check.findings[:_SHOWN_FINDINGS]:
            typer.echo(f"      {finding.state} {finding.where}: {finding.message}")
        if (hidden := len(check.findings) - _SHOWN_FINDINGS) > 0:
            typer.echo(f"      and {hidden} more; --json prints all")


def _in_words(figures: Mapping[str, Any]) -> str:
    """Figures on one line; nested ones are left to the JSON report."""
    plain = {name: value for name, value in figures.items() if not isinstance(value, Mapping)}
    return ", ".join(
        f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}" for name, value in plain.items()
    )
