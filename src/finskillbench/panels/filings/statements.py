"""Which figures of a company's statements were known on a day.

The statements carry the end of their period but no filing date, so a figure counts as known `REPORTING_LAG_DAYS` after
its period ended: the longest deadline of a 10-K (90 days, non-accelerated filers; 10-Q 45), so never too early for a
timely filer. A restated figure stands under its first date; that much of the future the source does not let us remove.

The fundamental panels as one step: facts by metric and by tag, the filings they come from, segments.

What filers said, tag by tag: every figure of a primary statement as a periodic report gave it, chosen by nobody.

One row per (symbol, tag, unit, period, filing date) at which a figure was new; a figure that a later filing repeats as
a comparative is not. Quarters, halves, nine months and years stand side by side, and so do a total and its parts. What
they make of each metric is the facts panel's business.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finskillbench.arrays import Floats
from finskillbench.panels.columns import ACCESSION, DURATION, END, FILED, FORM, START, SYMBOL, Column, schema_of
from finskillbench.panels.filings import facts
from finskillbench.panels.filings.facts import PANEL_SCHEMA, build_facts
from finskillbench.panels.filings.quarters import FILINGS_SCHEMA, REPORT_FORMS, build_filings, reports_with_figures
from finskillbench.panels.filings.segments.revenue import SEGMENTS_SCHEMA, build_segments
from finskillbench.panels.tables import Tables
from finskillbench.sources.edgar.collection import FilingsData
from finskillbench.sources.edgar.companyfacts import PERIODIC_FORMS, CompanyFacts
from finskillbench.sums import exact_sum

COLUMNS: Mapping[str, Column] = {
    "symbol": SYMBOL,
    "tag": Column("identifier", "the period", "XBRL tag", pl.String),
    "taxonomy": facts.COLUMNS["taxonomy"],
    "start": START,
    "end": END,
    "unit": facts.COLUMNS["unit"],
    "filed": FILED,
    "value": Column("as in the column unit", "start to end", "the figure as filed"),
    "form": FORM,
    "accession": ACCESSION,
    "fiscal_year": facts.COLUMNS["fiscal_year"],
    "fiscal_period": facts.COLUMNS["fiscal_period"],
    "duration": DURATION,
}
FILED_SCHEMA = schema_of(COLUMNS)

FIGURE = ("symbol", "tag", "end", "start", "unit")
"""What a figure is a figure of."""


def build_filed(companies: Mapping[str, CompanyFacts]) -> pl.DataFrame:
    """The figures of all companies (FILED_SCHEMA), sorted by company, tag, period and filing."""
    frames = [one.facts.with_columns(symbol=pl.lit(symbol)) for symbol, one in sorted(companies.items())]
    if not frames:
        return pl.DataFrame(schema=FILED_SCHEMA)
    rows = (
        pl.concat(frames)
        .filter(pl.col("form").is_in(PERIODIC_FORMS))
        .with_columns(duration=facts.classify(pl.col("start"), pl.col("end")))
    )
    rows = rows.sort(*FIGURE, "filed", "accession").select(
        pl.col(name).cast(kind) for name, kind in FILED_SCHEMA.items()
    )
    said = rows.select(pl.struct(*FIGURE, "value")).to_series()
    return rows.filter(~(said == said.shift(1)).fill_null(False))


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
            quarters[end] = value - exact_sum(quarters[quarter] for quarter in earlier)
    ends = sorted(quarters)
    shortest, longest = _QUARTER_DAYS
    trailing: dict[int, float] = {}
    for last in range(3, len(ends)):
        four = ends[last - 3 : last + 1]
        if all(shortest <= after - before <= longest for before, after in pairwise(four)):
            trailing[four[-1]] = exact_sum(quarters[quarter] for quarter in four)
    trailing.update(years)
    chosen = sorted(trailing)
    return Series(np.array(chosen, dtype=np.int64), np.array([trailing[end] for end in chosen], dtype=np.float64))


_EPOCH = date(1970, 1, 1)


def _day(day: date) -> int:
    return day.toordinal() - _EPOCH.toordinal()


SCHEMAS = {"facts": PANEL_SCHEMA, "filings": FILINGS_SCHEMA, "segments": SEGMENTS_SCHEMA, "filed": FILED_SCHEMA}
"""The tables of filings, see `COLUMNS` where each is built."""
_AT_ONCE = 60
"""Companies that are worked through together. Every step copies its table, so that 3,000 companies at once would take
several times the memory of what comes of them."""


@dataclass(frozen=True, slots=True, eq=False)
class FundamentalPanels:
    """Long tables by symbol, those of `SCHEMAS`; all empty where a collection has no company facts.

    notes : one sentence each. unusable : which companies' facts cannot be used, with the reason and the remedy.
    """

    tables: Tables
    notes: tuple[str, ...] = ()
    unusable: tuple[str, ...] = ()

    @classmethod
    def empty(cls, notes: tuple[str, ...] = (), unusable: tuple[str, ...] = ()) -> Self:
        """Tables without rows."""
        return cls(Tables({name: pl.DataFrame(schema=schema) for name, schema in SCHEMAS.items()}), notes, unusable)


def build_fundamentals(data: FilingsData) -> FundamentalPanels:
    """Build the panels of a collection's EDGAR files.

    Raises
    ------
    SourceError : naming company, tag and accession, where the files cannot carry a panel.
    """
    if not data.companies:
        return FundamentalPanels.empty(data.notes, data.unusable)
    parts = list(fundamentals_in_parts(data))
    whole = {name: pl.concat([part.tables[name] for part in parts]) for name in SCHEMAS}
    notes = (*data.notes, *(note for part in parts for note in part.notes))
    return FundamentalPanels(
        Tables(whole), notes, (*data.unusable, *(reason for part in parts for reason in part.unusable))
    )


def fundamentals_in_parts(data: FilingsData) -> Iterator[FundamentalPanels]:
    """The panels of some companies after those of others; one below the other they are those of all, in order."""
    symbols = sorted(data.companies)
    for start in range(0, len(symbols), _AT_ONCE):
        yield _of_some(data.of(symbols[start : start + _AT_ONCE]))
        gc.collect()  # a build looks for cyclic garbage seldom, and documents that were read are full of it


def _of_some(data: FilingsData) -> FundamentalPanels:
    companies = dict(data.companies)
    facts = build_facts(companies)
    filings = build_filings(data.submissions, facts.frame)
    segments = build_segments(data.instances, facts.frame, filings)
    made = {"facts": facts.frame, "filings": filings, "segments": segments.frame, "filed": build_filed(companies)}
    usable = set(reports_with_figures(filings, facts.frame)["symbol"])
    return FundamentalPanels(Tables(made), (*facts.notes, *segments.notes), tuple(_unusable(companies, usable)))


def _unusable(companies: Mapping[str, CompanyFacts], usable: set[str]) -> Iterator[str]:
    """Why none of the reports of the other companies can be used."""
    forms = f"{', '.join(REPORT_FORMS[:-1])} or {REPORT_FORMS[-1]}"
    for symbol, one in companies.items():
        if symbol in usable:
            continue
        units = one.facts["unit"].unique().sort().to_list()
        if not units:
            lacks = f"no figure of a primary statement from a {forms}; add the facts of its periodic reports"
        elif "USD" not in units:
            lacks = f"figures in {', '.join(units)} where USD is needed; convert them"
        else:
            lacks = f"no figure of a metric in USD for the period of a {forms}; add the facts of its periodic reports"
        yield f"{symbol} cannot be used: {one.file.name} has {lacks}, or remove the file."
