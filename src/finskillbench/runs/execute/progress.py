"""Progress of a run: counts by model, for displays."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta

from finskillbench.episode import Status
from finskillbench.notebook import Bar
from finskillbench.runs.store.rows import Row
from finskillbench.sums import exact_sum


@dataclass(slots=True)
class _Counts:
    """Counts of episodes of one model or of all; their cost in US dollars is None if any price is unknown."""

    planned: int = 0
    kept: int = 0
    ran: int = 0
    errors: int = 0
    cost_usd: float | None = 0.0

    @property
    def done(self) -> int:
        """Episodes that need not run any more."""
        return self.kept + self.ran

    def add(self, row: Row) -> None:
        """Count the cost and the failure of a row."""
        self.errors += row.status is Status.ERROR
        known = self.cost_usd is not None and row.cost_usd is not None
        self.cost_usd = (self.cost_usd or 0.0) + (row.cost_usd or 0.0) if known else None

    def summary(self, seconds: float) -> str:
        """Return one line: done of planned, errors, cost if any, remaining time at the pace of `seconds`."""
        parts = [f"{self.done:,} of {self.planned:,} episodes", f"{self.errors:,} error{'s' * (self.errors != 1)}"]
        if self.cost_usd is None:
            parts.append("cost unknown")
        elif self.cost_usd:
            parts.append(f"USD {self.cost_usd:.2f}")
        if self.ran and self.planned > self.done:
            parts.append(f"{timedelta(seconds=round(seconds / self.ran * (self.planned - self.done)))} left")
        return ", ".join(parts)


@dataclass(slots=True)
class RunProgress:
    """Counts by model, in the order of the plan; `notice` is the latest message for the user."""

    models: dict[str, _Counts] = field(default_factory=dict[str, _Counts])
    notice: str = ""

    @property
    def done(self) -> int:
        """Episodes that need not run any more."""
        return sum(counts.done for counts in self.models.values())

    @property
    def planned(self) -> int:
        """Episodes of the run, or of its shard."""
        return sum(counts.planned for counts in self.models.values())

    @property
    def total(self) -> _Counts:
        """Counts of all models together."""
        every = list(self.models.values())
        costs = [counts.cost_usd for counts in every]
        known = [cost for cost in costs if cost is not None]
        return _Counts(
            self.planned,
            sum(counts.kept for counts in every),
            sum(counts.ran for counts in every),
            sum(counts.errors for counts in every),
            exact_sum(known) if len(known) == len(costs) else None,
        )


_SECONDS_BETWEEN_UPDATES = 0.5
Progress = Callable[[RunProgress, Row | None], None]
"""Called with the progress and the new row after each episode; without a row at the start and with each notice."""


class NotebookProgress:
    """Progress bar in a notebook cell; none elsewhere."""

    def __init__(self) -> None:
        self._bar, self._started = Bar(), time.monotonic()
        self._shown = -_SECONDS_BETWEEN_UPDATES  # show the first call at once

    def __call__(self, progress: RunProgress, row: Row | None) -> None:
        """Update the bar, at most twice a second and at the end."""
        seconds = time.monotonic() - self._started
        if seconds - self._shown >= _SECONDS_BETWEEN_UPDATES or progress.done == progress.planned:
            self._shown = seconds
            self._bar.show(progress.total.summary(seconds), progress.done, progress.planned)


def start_progress(planned: Iterable[str], kept: Iterable[Row]) -> RunProgress:
    """Return the initial progress from the model of each planned episode and the rows finished before."""
    progress = RunProgress()
    for model in planned:
        progress.models.setdefault(model, _Counts()).planned += 1
    for row in kept:
        counts = progress.models[row.model]
        counts.kept += 1
        counts.add(row)
    return progress
