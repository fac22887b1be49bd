"""The figures of the panels as the independent derivation reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Self

from finskillbench.domains.fundamental.second.answers import Figures
from finskillbench.domains.fundamental.second.definitions import LATELY, Kind, nearest_first
from finskillbench.domains.fundamental.second.identities import PATTERN
from finskillbench.engines.accounting.periods import Duration
from finskillbench.engines.accounting.statements import Ledger, Statement


@dataclass(frozen=True, slots=True)
class LedgerSource:
    """One company's figures as they were public on one day, of the periods that a label may be of; a `Source`.

    statements : by kind and last day. ends : of all quarters. lately : metric to its quarters in the year before, where
    these have a pattern.
    """

    statements: Mapping[tuple[str, date], Statement]
    ends: tuple[date, ...]
    lately: Mapping[str, list[float]]

    @classmethod
    def of(cls, ledger: Ledger, end: date, others: Iterable[date], years: Iterable[date] = ()) -> Self:
        """From all rows of the company, of a period, of other quarters and of other years."""
        least, most = LATELY
        ends = ledger.ends(Duration.QUARTERLY)
        lately: dict[str, list[float]] = {}
        for day in (day for day in ends if least <= (end - day).days <= most):
            rows = ledger.rows[Duration.QUARTERLY, day]
            for metric in PATTERN & rows.keys():
                lately.setdefault(metric, []).append(float(rows[metric]["value"]))
        wanted = [
            *((Duration.QUARTERLY, day) for day in (end, *others)),
            *((Duration.ANNUAL, day) for day in (end, *years)),
        ]
        statements = {(str(kind), day): ledger.statement(day, kind) for kind, day in wanted}
        return cls(statements, ends, lately)

    def figures(self, end: date, kind: Kind) -> Figures:
        """Flows of the period of a kind that ends on a day, and the balance sheet of that day."""
        return self.statements[kind, end].values

    def tags(self, end: date, kind: Kind) -> Mapping[str, str]:
        """The tag of each of those figures."""
        return self.statements[kind, end].tags

    def quarters_before(self, metric: str, end: date) -> list[float]:
        """A flow in the quarters that end up to a year before a day, that of the period."""
        del end
        return self.lately.get(metric, [])

    def preceding(self, end: date, distance: tuple[int, int, int]) -> date | None:
        """The nearest of the days, so many days before, with which a quarter ends of which anything is known."""
        return next(iter(nearest_first(end, self.ends, distance)), None)
