"""What the commands share: help for a group called alone, the log, and progress on standard error.

Plain aligned tables of figures.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import TextIO, TypeVar

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
