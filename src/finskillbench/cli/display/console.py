"""What the commands share: help for a group called alone, the log, and progress on standard error.

Plain aligned tables of figures.

What a run has come to, as it is printed at its end.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TextIO, TypeVar

import typer

from finskillbench.errors import InputError


def render_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, words: int) -> str:
    """Lines of a table under its header: the first `words` columns flush left, the figures flush right."""
    table = [header, *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        pairs = enumerate(zip(cells, widths, strict=True))
        return "  ".join(
            text.ljust(width) if place < words else text.rjust(width) for place, (text, width) in pairs
        ).rstrip()

    return "\n".join([line(header), "  ".join("-" * width for width in widths), *(line(row) for row in rows)])


Choice = TypeVar("Choice", bound=StrEnum)
LARGEST = 2**63 - 1
"""The largest whole number of an option: `finskillbench.edition.store.LARGEST`, which takes long to import."""


def out_path(text: str) -> Path:
    """The path of an `--out`; an empty text would silently mean the current folder."""
    if not text:
        raise InputError("--out is empty; name a path")
    return Path(text)


STANDARD_OUTPUT = "-"


def json_printed(target: str | None, report: Callable[[], object]) -> bool:
    """Write a report as JSON to the file of `--json [FILE]`; return True if it was printed in place of the text."""
    if target is None:
        return False
    import orjson

    from finskillbench.runs.store.version import write_atomic

    data = orjson.dumps(report(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    if target == STANDARD_OUTPUT:
        typer.echo(data.decode(), nl=False)
        return True
    write_atomic(Path(target), data)
    typer.echo(f"Report: {target}")
    return False


def one_of(kind: type[Choice], text: str, option: str) -> Choice:
    """The member of an enumeration that an option names."""
    try:
        return kind(text)
    except ValueError:
        raise InputError(f"{option} {text}: there is no such one; choose from {', '.join(kind)}") from None


def width() -> int:
    """Characters of a line: what COLUMNS says, else those of the terminal, else 100 for a file."""
    told = sys.stdout.isatty() or "COLUMNS" in os.environ
    return shutil.get_terminal_size((100, 24)).columns if told else 100


def help_when_alone(context: typer.Context) -> None:
    """Print a group's help, and end well, where no command follows it."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit


def log_to_stderr(verbosity: int) -> None:
    """Send the log of this package to standard error: warnings, at 1 what is done, from 2 on everything."""
    logger = logging.getLogger("finskillbench")
    for handler in logger.handlers[:]:
        logger.removeHandler(handler)
    handler = _ToStderr(sys.stderr)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logger.addHandler(handler)
    logger.setLevel((logging.WARNING, logging.INFO, logging.DEBUG)[min(verbosity, 2)])


class _ToStderr(logging.StreamHandler[TextIO]):
    """Passes over a line that cannot be written: what logging would print instead is not cleaned of secrets."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's own name
        """Nothing is left to be said where standard error is gone."""


class Progress:
    """Stages and counts on standard error: a bar on a terminal, one line per stage elsewhere.

    An instance is called with the stage's name and, where they are known, how much of it is done out of how much.
    """

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bars

        self._console = Console(stderr=True)
        self._bars = Bars(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
        )
        self._stage: str | None = None
        self._task = None

    def __enter__(self) -> Progress:
        if self._console.is_terminal:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._bars.stop()

    def __call__(self, stage: str, done: int = 0, total: int | None = None) -> None:
        """Show that `stage` has come to `done` of `total` (None: unknown)."""
        if not self._console.is_terminal:
            if stage != self._stage:
                self._console.print(stage, markup=False, highlight=False)
        elif self._task is None or stage != self._stage:
            if self._task is not None:
                self._bars.remove_task(self._task)
            self._task = self._bars.add_task(stage, completed=done, total=total)
        else:
            self._bars.update(self._task, completed=done, total=total)
        self._stage = stage


if TYPE_CHECKING:
    from finskillbench.edition import Edition
    from finskillbench.reports.report import Report
    from finskillbench.runs.execute.run import RunResult

INTERRUPTED = 130
PAGE = "report"
"""Folder of the page of a run, in the run's own."""
RUN_A_MODEL = "finskillbench run --model openai/gpt-5 --condition no_skill --condition curated --limit 2"
MESSAGE = 300
"""Characters of an error that the end of a run shows."""


def print_result(result: RunResult, edition: Edition, *, page: bool = False) -> None:
    """Print the short table of a run, with `page` where its page is, which is written first, then its end."""
    from finskillbench.reports.report import report

    if not edition.has_truth:
        typer.echo("No scores: the edition was handed out without its truth; finskillbench submit makes a bundle for")
        typer.echo("whoever holds it.")
    elif not (result.rows["status"] == "error").all():  # else the end of the run says all there is
        found = report(result.rows)
        typer.echo(found)
        if page:
            typer.echo(f"Page:         {_write_page(result, found)}")
    print_end(result, edition)


def _write_page(result: RunResult, found: Report) -> Path:
    from finskillbench.reports.page import write_page
    from finskillbench.reports.read import RunRows
    from finskillbench.runs.store.record import read_record

    with Progress() as progress:
        progress("Writing the page")
        run = RunRows(result.folder, result.rows, read_record(result.folder))
        return write_page(found.results, result.folder / PAGE, [run]).index


def print_end(result: RunResult, edition: Edition, command: str = RUN_A_MODEL) -> None:
    """Print where a run lies and what became of its episodes; leave with its exit code.

    After baseline programs alone `command` is printed as the one that takes a model.
    """
    from finskillbench.runs.store.rows import ROWS
    from finskillbench.runs.store.version import validation_text

    typer.echo(f"Edition:      {edition.path}")
    typer.echo(f"Validated:    {validation_text(edition)}")
    typer.echo(f"Rows:         {result.folder / ROWS}")
    typer.echo(f"Trajectories: {result.folder / 'trajectories'}")
    for line in (*_closing(result), *_next_step(result, command)):
        typer.echo(line)
    exit_with(result)


def exit_with(result: RunResult) -> None:
    """Leave with the exit code of a run, unless it is 0."""
    if result.interrupted:
        raise typer.Exit(INTERRUPTED)
    if result.errors or result.dropped or result.not_run:
        raise typer.Exit(1)


def _closing(result: RunResult) -> list[str]:
    """What became of every episode, and why some were not run."""
    others = {
        "kept from before": result.kept,
        "ended in an error": result.errors,
        "dropped in flight": result.dropped,
        "not run": result.not_run,
        "of other calls in the folder": result.other_rows,
    }
    counts = [f"{result.ran} run", *(f"{count} {what}" for what, count in others.items() if count)]
    lines = [f"Episodes:     {', '.join(counts)}"]
    lines += _errors(result)
    for what, why in result.stopped.items():
        lines.append(f"Stopped:      {why if what == 'run' else f'{what}: {why}'}")
    if result.errors or result.dropped or result.not_run:
        lines.append("              the same command runs the missing ones")
    return lines


def _errors(result: RunResult) -> list[str]:
    """The first message of each cause for which episodes ended in an error, unless a stop states it."""
    import polars as pl

    from finskillbench.runs.postprocess.show import printable

    if not result.errors or result.stopped:
        return []
    failed = result.rows.filter(pl.col("status") == "error")
    first = failed.group_by("error_cause", maintain_order=True).agg(pl.col("error").first())
    return [
        f"Error:        {cause}: {printable(' '.join((error or '').split())[:MESSAGE])}"
        for cause, error in first.iter_rows()
    ]


def _next_step(result: RunResult, command: str) -> list[str]:
    """After a run of baseline programs alone: what was run, and the commands that run a model."""
    from finskillbench.harness.providers.prices import PROGRAMS

    models, conditions, episodes = (result.rows[name].n_unique() for name in ("model", "condition", "task_id"))
    if not result.rows.height or not all(name.startswith(PROGRAMS) for name in result.rows["model"].unique()):
        return []
    return [
        "",
        f"{_count(models, 'baseline program')} answered {_count(episodes, 'episode')} under "
        f"{_count(conditions, 'condition')}; no language model took part. To run yours:",
        "  make llm",
        "  export OPENAI_API_KEY=...",
        f"  .venv/bin/{command}",
    ]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
