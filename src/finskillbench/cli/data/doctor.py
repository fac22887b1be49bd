"""`finskillbench data doctor`: everything that is missing or wrong in a folder of raw files, and what can be built."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from finskillbench.cli.display import console

if TYPE_CHECKING:
    from finskillbench.edition.diagnosis import Prospect
    from finskillbench.sources.raw.doctor import Examined

EXAMPLE = "Example: finskillbench data doctor downloads/raw --json findings.json"
_SHOWN = 10


def doctor(
    raw_dir: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of raw files, as for `data build --raw-dir`.")],
    as_json: Annotated[
        Path | None,
        typer.Option("--json", parser=console.out_path, metavar="FILE", help="Write the report, with every finding."),
    ] = None,
) -> None:
    """Say all that is missing or wrong in a folder of raw files, file by file, and what can be built from it.

    `finskillbench data template` shows the format of every file. Exit code 0: all is well; 1: something was found;
    2: it could not run.
    """
    from finskillbench.edition.diagnosis import diagnose

    with console.Progress() as progress:
        report = diagnose(raw_dir, progress)
    for one in report.diagnosis.examined:
        _show_files(one)
    _show_notes("company facts", report.unusable)
    _show_notes("note", report.notes)
    typer.echo("")
    for prospect in report.prospects:
        _show_prospect(prospect)
    if as_json is not None:
        import orjson

        as_json.write_bytes(orjson.dumps(report.to_json(), option=orjson.OPT_INDENT_2) + b"\n")
        typer.echo(f"Report: {as_json}")
    if not report.clean:
        raise typer.Exit(1)


def _show_files(one: Examined) -> None:
    """One kind of file: a line if nothing is wrong with it, else what is and the format."""
    worst = "FAIL" if any(finding.state == "FAIL" for finding in one.found) else "WARN"
    state = worst if one.found else "PASS" if one.files else "SKIP"
    typer.echo(f"{state:<5} {one.format.path}: {one.files} file{'' if one.files == 1 else 's'}")
    for finding in one.found[:_SHOWN]:
        typer.echo(f"      {finding.state} {finding.where}: {finding.message}")
    if (hidden := len(one.found) - _SHOWN) > 0:
        typer.echo(f"      and {hidden} more; --json FILE has all")
    if one.found:
        typer.echo(f"      format: {one.format.header}")


def _show_notes(title: str, notes: Sequence[str]) -> None:
    """The first of some sentences, a line each."""
    for note in notes[:_SHOWN]:
        typer.echo(f"{title}: {note}")
    if (hidden := len(notes) - _SHOWN) > 0:
        typer.echo(f"{title}: and {hidden} more; --json FILE has all")


def _show_prospect(prospect: Prospect) -> None:
    told = (
        f"{', '.join(prospect.subtasks)} (of {prospect.size})" if prospect.subtasks else f"not built: {prospect.reason}"
    )
    typer.echo(f"{prospect.domain.replace('_', ' ')}: {told}")
