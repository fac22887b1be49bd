"""Live view of a run on standard error: one bar per model on a terminal, periodic lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from finskillbench.cli.display.console import LiveBars

if TYPE_CHECKING:
    from finskillbench.runs.execute.progress import RunProgress
    from finskillbench.runs.store.rows import Row

SECONDS_BETWEEN_LINES = 10.0


class Display(LiveBars):
    """Context manager that shows a `finskillbench.runs.execute.progress.RunProgress` on each call.

    `clock` returns seconds, for the time left and the interval between lines.
    """

    def __init__(self, console: Console | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console or Console(stderr=True)
        self._clock = clock
        self._started = self._printed = clock()
        self._notice, self._announced = "", False
        self._tasks: dict[str, TaskID] = {}
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[summary]}"))
        self._bars = Progress(
            *columns, console=self._console, transient=True, redirect_stdout=False, redirect_stderr=False
        )

    def __enter__(self) -> Self:
        self._started = self._printed = self._clock()
        return super().__enter__()

    def __call__(self, progress: RunProgress, row: Row | None) -> None:
        """Show the current progress."""
        now = self._clock()
        if progress.notice != self._notice:
            self._notice = progress.notice
            self._print(progress.notice)
        if self._console.is_terminal:
            self._update(progress, now - self._started)
        elif not self._announced:
            self._announced = True
            self._print(f"Running {progress.planned - progress.done} of {progress.planned} episodes")
        elif now - self._printed >= SECONDS_BETWEEN_LINES:
            self._printed = now
            self._print(progress.total.summary(now - self._started))

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _update(self, progress: RunProgress, seconds: float) -> None:
        for name, counts in progress.models.items():
            if name not in self._tasks:
                self._tasks[name] = self._bars.add_task(name, total=counts.planned, summary="")
            self._bars.update(self._tasks[name], completed=counts.done, summary=counts.summary(seconds))
