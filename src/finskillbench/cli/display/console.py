"""Shared terminal output: help, log, progress, aligned tables, and the summary at the end of a run."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Self, TextIO, TypeVar

import typer

from finskillbench.errors import InputError


def render_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, text_columns: int) -> str:
    """Return an aligned table: the first `text_columns` columns flush left, the others flush right."""
    table = [header, *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        pairs = enumerate(zip(cells, widths, strict=True))
        return "  ".join(
            text.ljust(width) if place < text_columns else text.rjust(width) for place, (text, width) in pairs
        ).rstrip()

    return "\n".join([line(header), "  ".join("-" * width for width in widths), *(line(row) for row in rows)])


Choice = TypeVar("Choice", bound=StrEnum)
LARGEST = 2**63 - 1
"""Largest integer of an option; equals `finskillbench.edition.store.LARGEST`, whose import is slow."""


def out_path(text: str) -> Path:
    """Parse a value of `--out`; refuse an empty text, which would mean the current folder."""
    if not text:
        raise InputError("--out is empty; name a path")
    return Path(text)


STANDARD_OUTPUT = "-"


def json_printed(target: str | None, report: Callable[[], object]) -> bool:
    """Write a report as JSON to the target of `--json [FILE]`; return True if it was printed instead of the text."""
    if target is None:
        return False
    import orjson

    from finskillbench.runs.store.version import write_atomic

    data = orjson.dumps(report(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    if target == STANDARD_OUTPUT:
        typer.echo(data.decode(), nl=False)
        return True
    write_atomic(Path(target), data)
    typer.echo(f"Report: {target}", err=True)
    return False


def one_of(kind: type[Choice], text: str, option: str) -> Choice:
    """Return the member of an enumeration that an option names."""
    try:
        return kind(text)
    except ValueError:
        raise InputError(f"{option} {text!r} is unknown; choose from: {', '.join(kind)}") from None


def width() -> int:
    """Return the line width: COLUMNS, else that of the terminal, else 100."""
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return shutil.get_terminal_size((100, 24)).columns if known else 100


def help_when_alone(context: typer.Context) -> None:
    """Print a group's help and exit with 0 if no command follows it."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit


def log_to_stderr(verbosity: int) -> None:
    """Log to standard error: warnings at verbosity 0, progress at 1, everything from 2."""
    logger = logging.getLogger("finskillbench")
    for handler in logger.handlers[:]:
        logger.removeHandler(handler)
    handler = _ToStderr(sys.stderr)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logger.addHandler(handler)
    logger.setLevel((logging.WARNING, logging.INFO, logging.DEBUG)[min(verbosity, 2)])


class _ToStderr(logging.StreamHandler[TextIO]):
    """Handler that drops lines it cannot write, because logging's fallback output is not redacted."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's own name
        """Ignore the error: standard error is closed."""


if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bars


class LiveBars:
    """Context manager that shows `_bars` while it is open, on a terminal only."""

    _console: Console
    _bars: Bars

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._bars.stop()


class Progress(LiveBars):
    """Progress on standard error: a bar on a terminal, one line per step elsewhere.

    Call an instance with the name of the step and, where known, the units done and their total.
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
        self._step: str | None = None
        self._task = None

    def __call__(self, step: str, done: int = 0, total: int | None = None) -> None:
        """Show `done` of `total` units of a step; None: total unknown."""
        if not self._console.is_terminal:
            if step != self._step:
                self._console.print(step, markup=False, highlight=False)
        elif self._task is None or step != self._step:
            if self._task is not None:
                self._bars.remove_task(self._task)
            self._task = self._bars.add_task(step, completed=done, total=total)
        else:
            self._bars.update(self._task, completed=done, total=total)
        self._step = step


if TYPE_CHECKING:
    from finskillbench.edition import Edition
    from finskillbench.reports.report import Report
    from finskillbench.runs.execute.run import RunResult

INTERRUPTED = 130
PAGE = "report"
"""Folder of the report page inside a run folder."""
RUN_A_MODEL = "finskillbench run --model openai/gpt-5 --condition no_skill --condition curated --limit 2"
MAX_MESSAGE_LENGTH = 300
"""Characters shown of an error message at the end of a run."""


def print_result(result: RunResult, edition: Edition, *, page: bool = False) -> None:
    """Print the summary table of a run, write its page on request, and print the closing lines."""
    from finskillbench.reports.report import report

    if not edition.has_truth:
        typer.echo("No scores: the edition has no truth; finskillbench submit packs the answers for its maintainers,")
        typer.echo("who can score them.")
    elif not (result.rows["status"] == "error").all():  # otherwise print_end covers it
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
    """Print the files of a run and its episode counts, then leave with its exit code.

    After a run of baseline programs only, suggest `command` as the one to run a model with.
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
    """Leave with the exit code of a run unless it is 0."""
    if result.interrupted:
        raise typer.Exit(INTERRUPTED)
    if result.errors or result.dropped or result.not_run:
        raise typer.Exit(1)


def _closing(result: RunResult) -> list[str]:
    """Return lines with episode counts, errors, and reasons why the run stopped early."""
    optional_counts = {
        "kept from before": result.kept,
        "ended in an error": result.errors,
        "dropped in flight": result.dropped,
        "not run": result.not_run,
        "of other commands in the folder": result.other_rows,
    }
    counts = [f"{result.ran} run", *(f"{count} {what}" for what, count in optional_counts.items() if count)]
    lines = [f"Episodes:     {', '.join(counts)}"]
    lines += _errors(result)
    for what, why in result.stopped.items():
        lines.append(f"Stopped:      {why if what == 'run' else f'{what}: {why}'}")
    if result.errors or result.dropped or result.not_run:
        lines.append("              run the same command again to complete them")
    return lines


def _errors(result: RunResult) -> list[str]:
    """Return the first message of each error cause, unless the run stopped with its own reason."""
    import polars as pl

    from finskillbench.runs.postprocess.show import printable

    if not result.errors or result.stopped:
        return []
    failed = result.rows.filter(pl.col("status") == "error")
    first = failed.group_by("error_cause", maintain_order=True).agg(pl.col("error").first())
    return [
        f"Error:        {cause}: {printable(' '.join((error or '').split())[:MAX_MESSAGE_LENGTH])}"
        for cause, error in first.iter_rows()
    ]


def _next_step(result: RunResult, command: str) -> list[str]:
    """Return the suggested next command after a run of baseline programs only."""
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
