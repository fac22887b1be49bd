"""`finskillbench export`: a run as Inspect logs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from finskillbench.cli.display import console

EXAMPLE = """\b
Examples:
  finskillbench export runs/mine --out logs
  inspect view --log-dir logs
  inspect view bundle --log-dir logs --output-dir site"""


def export(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    out: Annotated[
        Path,
        typer.Option("--out", parser=console.out_path, metavar="PATH", help="Folder of the logs; made if absent."),
    ],
    model: Annotated[list[str] | None, typer.Option(help="Model; repeatable. Default: all of the run.")] = None,
    condition: Annotated[list[str] | None, typer.Option(help="Condition; repeatable. Default: all of the run.")] = None,
) -> None:
    """Write a run as Inspect logs, one .eval file per model and condition; they hold nothing of the truth.

    Needs the extra for hosted models, which brings Inspect.
    """
    from finskillbench.interop import require_inspect

    require_inspect()
    with console.Progress() as progress:
        progress("Reading the run")
        from finskillbench.interop.export import export_run

        logs = export_run(run, out, model or None, condition or None, progress=progress)
    for log in logs:
        typer.echo(log)
