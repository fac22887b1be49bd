"""The live view of a run on standard error: a table by model on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.table import Table

if TYPE_CHECKING:
    from finskillbench.runs.execute.board import Board, Counts
    from finskillbench.runs.store.rows import Row

SECONDS_BETWEEN_LINES = 10.0
_COLUMNS = ("Model", "Done", "Errors", "Tokens in", "Tokens out", "Cost USD", "Time left")


class Display:
    """Shows a `finskillbench.runs.execute.board.Board` each time it is called with one; a context that ends the view.

    Parameters
    ----------
    console : where to; None takes standard error.
    clock : seconds, for time left and for the pace of lines.
    """

    def __init__(self, console: Console | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console or Console(stderr=True)
        self._clock = clock
        self._board: Board | None = None
        self._started = self._told = clock()
        self._notice = ""
        self._live = Live(
            console=self._console,
            get_renderable=self._render,
            refresh_per_second=4,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Display:
        self._started = self._told = self._clock()
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def __call__(self, board: Board, row: Row | None) -> None:
        """Show the board."""
        first = self._board is None
        self._board = board
        if board.notice != self._notice:
            self._notice = board.notice
            self._print(board.notice)
        if not self._console.is_terminal:
            now = self._clock()
            if first:
                self._print(f"Running {board.planned - board.done} of {board.planned} episodes")
            elif now - self._told >= SECONDS_BETWEEN_LINES:
                self._told = now
                self._print("; ".join(self._line(name, counts) for name, counts in board.models.items()))

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _render(self) -> Table:
        table = Table(box=None, pad_edge=False)
        for name in _COLUMNS:
            table.add_column(name, justify="left" if name == "Model" else "right")
        for name, counts in (self._board.models if self._board else {}).items():
            table.add_row(name, *self._cells(counts))
        return table

    def _cells(self, counts: Counts) -> tuple[str, ...]:
        cost = "unknown" if counts.cost_usd is None else f"{counts.cost_usd:.2f}"
        return (
            f"{counts.done}/{counts.planned}",
            str(counts.errors),
            f"{counts.input_tokens:,}",
            f"{counts.output_tokens:,}",
            cost,
            self._left(counts),
        )

    def _line(self, name: str, counts: Counts) -> str:
        done, errors, read, written, cost, left = self._cells(counts)
        price = f"{cost} USD" if counts.cost_usd is not None else "cost unknown"
        return f"{name} {done} done, {errors} errors, {read} tokens in, {written} out, {price}, {left} left"

    def _left(self, counts: Counts) -> str:
        """The time that the missing episodes take at the pace so far."""
        missing = counts.planned - counts.done
        if not missing:
            return "0:00:00"
        if not counts.ran:
            return "?"
        return str(timedelta(seconds=round((self._clock() - self._started) / counts.ran * missing)))
