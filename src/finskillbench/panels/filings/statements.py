"""Which figures of a company's statements were known on a day.

The statements carry the end of their period but no filing date, so a figure counts as known `REPORTING_LAG_DAYS` after
its period ended: the longest deadline of a 10-K (90 days, non-accelerated filers; 10-Q 45), so never too early for a
timely filer. A restated figure stands under its first date; that much of the future the source does not let us remove.
"""

from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finskillbench.arrays import Floats
from finskillbench.sums import summed

REPORTING_LAG_DAYS = 90

_QUARTER_DAYS = (75, 110)
"""Fiscal quarters are 12 to 14 weeks long, a 16-week one being the exception (112 days) that falls back to annual."""
_NINE_MONTHS = (60, 300)
"""The first three quarters of a year end between so many days before it does."""


class Fact(NamedTuple):
    """A figure and the end of the period it belongs to."""

    end: date
    value: float

    def age(self, as_of: date) -> int:
        """Days from the end of the period."""
        return (as_of - self.end).days


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Figures by end of period: `ends` (N,) days since 1970, increasing; `values` (N,)."""

    ends: NDArray[np.int64]
    values: Floats

    @classmethod
    def of(cls, table: pl.DataFrame) -> Self:
        """From a statement table with `end` and `value`; rows without a value are left out."""
        ends = table["end"].cast(pl.Date).to_physical().to_numpy().astype(np.int64)
        values = table["value"].cast(pl.Float64).to_numpy()
        order = np.argsort(ends, kind="stable")
        order = order[~np.isnan(values[order])]
        return cls(ends[order], values[order])

    def known(self, as_of: date) -> Fact | None:
        """The latest figure known on a day; None says that none was."""
        place = int(np.searchsorted(self.ends + REPORTING_LAG_DAYS, _day(as_of), side="right")) - 1
        if place < 0:
            return None
        return Fact(_EPOCH.fromordinal(_EPOCH.toordinal() + int(self.ends[place])), float(self.values[place]))


def trailing_year(quarterly: Series, annual: Series) -> Series:
    """A flow over the four quarters up to each period end.

    Quarters as reported, the fourth (which no company reports) as the year less the three others; four of them count if
    they follow each other. A fiscal year's own figure stands for itself, and alone where quarters are short.
    """
    quarters = dict(zip(quarterly.ends.tolist(), quarterly.values.tolist(), strict=True))
    years = dict(zip(annual.ends.tolist(), annual.values.tolist(), strict=True))
    for end, value in years.items():
        near, far = _NINE_MONTHS
        earlier = [quarter for quarter in quarterly.ends.tolist() if near < end - quarter < far]
        if end not in quarters and len(earlier) == 3:
            quarters[end] = value - summed(quarters[quarter] for quarter in earlier)
    ends = sorted(quarters)
    shortest, longest = _QUARTER_DAYS
    trailing: dict[int, float] = {}
    for last in range(3, len(ends)):
        four = ends[last - 3 : last + 1]
        if all(shortest <= after - before <= longest for before, after in pairwise(four)):
            trailing[four[-1]] = summed(quarters[quarter] for quarter in four)
    trailing.update(years)
    chosen = sorted(trailing)
    return Series(np.array(chosen, dtype=np.int64), np.array([trailing[end] for end in chosen], dtype=np.float64))


_EPOCH = date(1970, 1, 1)


def _day(day: date) -> int:
    return day.toordinal() - _EPOCH.toordinal()
