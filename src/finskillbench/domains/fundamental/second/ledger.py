"""The figures of the panels as the independent derivation reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from finskillbench.domains.fundamental.second.answers import Figures
from finskillbench.domains.fundamental.second.definitions import LATELY, Kind, nearest_first
from finskillbench.engines.accounting.periods import Duration
from finskillbench.engines.accounting.statements import Ledger


@dataclass(frozen=True, slots=True)
class LedgerSource:
    """One company's figures as they were public on one day; a `Source`."""

    ledger: Ledger

    def figures(self, end: date, kind: Kind) -> Figures:
        """Flows of the period of a kind that ends on a day, and the balance sheet of that day."""
        return self.ledger.statement(end, Duration(kind)).values

    def tags(self, end: date, kind: Kind) -> Mapping[str, str]:
        """The tag of each of those figures."""
        return self.ledger.statement(end, Duration(kind)).tags

    def quarters_before(self, metric: str, end: date) -> list[float]:
        """A flow in the quarters that end up to a year before a day."""
        least, most = LATELY
        ends = [day for day in self.ledger.ends(Duration.QUARTERLY) if least <= (end - day).days <= most]
        known = (self.ledger.rows[Duration.QUARTERLY, day].get(metric) for day in ends)
        return [float(row["value"]) for row in known if row is not None]

    def preceding(self, end: date, distance: tuple[int, int, int]) -> date | None:
        """The nearest of the days, so many days before, with which a quarter ends of which anything is known."""
        return next(iter(nearest_first(end, self.ledger.ends(Duration.QUARTERLY), distance)), None)
