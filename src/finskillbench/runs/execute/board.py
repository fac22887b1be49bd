"""How far a run has come: counts by model, for whoever shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from finskillbench.episode import Status
from finskillbench.runs.store.rows import Row


@dataclass(slots=True)
class Counts:
    """Of one model, or of all: episodes planned, finished before and now, failed; tokens and US dollars of all rows.

    `cost_usd` is None as soon as the price of one row is not known.
    """

    planned: int = 0
    kept: int = 0
    ran: int = 0
    errors: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0

    @property
    def done(self) -> int:
        """Episodes that need not be run any more."""
        return self.kept + self.ran

    def add(self, row: Row) -> None:
        """Count the tokens, the price and the failure of a row."""
        self.errors += row.status is Status.ERROR
        self.input_tokens += row.total_input_tokens
        self.output_tokens += row.total_output_tokens
        known = self.cost_usd is not None and row.cost_usd is not None
        self.cost_usd = (self.cost_usd or 0.0) + (row.cost_usd or 0.0) if known else None


@dataclass(slots=True)
class Board:
    """Counts by model, in the order of the plan; `notice` is the latest thing a user should be told, if any."""

    models: dict[str, Counts] = field(default_factory=dict[str, Counts])
    notice: str = ""

    @property
    def done(self) -> int:
        """Episodes that need not be run any more."""
        return sum(counts.done for counts in self.models.values())

    @property
    def planned(self) -> int:
        """Episodes of the run, or of its shard."""
        return sum(counts.planned for counts in self.models.values())


Progress = Callable[[Board, Row | None], None]
"""Called with the board, and the row that has just come in: after each episode, and with no row at the start and with
each new notice."""


def silent(board: Board, row: Row | None) -> None:
    """Report nothing."""


def make_board(planned: Iterable[str], kept: Iterable[Row]) -> Board:
    """A board at the start: the model of each planned episode, and the rows of those finished before."""
    board = Board()
    for model in planned:
        board.models.setdefault(model, Counts()).planned += 1
    for row in kept:
        counts = board.models[row.model]
        counts.kept += 1
        counts.add(row)
    return board
