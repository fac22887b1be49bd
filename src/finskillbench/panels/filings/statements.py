"""Statement figures known on a day, figures as filed by tag, and the build of all filing panels.

Market statements have no filing dates: figures count as known `REPORTING_LAG_DAYS` after their period, the longest 10-K
deadline (90 days, non-accelerated filers; 10-Q 45). The `filed` panel has one row per new figure and filing date, with
all periods, totals and parts.
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
from finskillbench.panels.columns import ACCESSION, DURATION, END, FILED, FORM, START, SYMBOL, PanelColumn, table_schema
from finskillbench.panels.filings import facts
from finskillbench.panels.filings.facts import PANEL_SCHEMA, build_facts
from finskillbench.panels.filings.quarters import FILINGS_SCHEMA, REPORT_FORMS, build_filings, reports_with_figures
from finskillbench.panels.filings.segments.revenue import SEGMENTS_SCHEMA, build_segments
from finskillbench.panels.tables import Tables
from finskillbench.sources.edgar.collection import FilingsData
from finskillbench.sources.edgar.companyfacts import PERIODIC_FORMS, EdgarFacts
from finskillbench.sums import exact_sum

COLUMNS: Mapping[str, PanelColumn] = {
    "symbol": SYMBOL,
    "tag": PanelColumn("identifier", "the period", "XBRL tag", pl.String),
    "taxonomy": facts.COLUMNS["taxonomy"],
    "start": START,
    "end": END,
    "unit": facts.COLUMNS["unit"],
    "filed": FILED,
    "value": PanelColumn("as in the column unit", "start to end", "the figure as filed"),
    "form": FORM,
    "accession": ACCESSION,
    "fiscal_year": facts.COLUMNS["fiscal_year"],
    "fiscal_period": facts.COLUMNS["fiscal_period"],
    "duration": DURATION,
}
FILED_SCHEMA = table_schema(COLUMNS)

FIGURE = ("symbol", "tag", "end", "start", "unit")


def build_filed(companies: Mapping[str, EdgarFacts]) -> pl.DataFrame:
    """Return the figures of all companies (FILED_SCHEMA), sorted by company, tag, period and filing."""
    frames = [one.facts.with_columns(symbol=pl.lit(symbol)) for symbol, one in sorted(companies.items())]
    if not frames:
        return pl.DataFrame(schema=FILED_SCHEMA)
    rows = (
        pl.concat(frames)
        .filter(pl.col("form").is_in(PERIODIC_FORMS))
        .with_columns(duration=facts.duration_class(pl.col("start"), pl.col("end")))
    )
    rows = rows.sort(*FIGURE, "filed", "accession").select(
        pl.col(name).cast(kind) for name, kind in FILED_SCHEMA.items()
    )
    keys = rows.select(pl.struct(*FIGURE, "value")).to_series()
    return rows.filter(~(keys == keys.shift(1)).fill_null(False))


REPORTING_LAG_DAYS = 90

_QUARTER_DAYS = (75, 110)
"""Length of fiscal quarters, 12 to 14 weeks; years with a 16-week quarter (112 days) use annual figures."""
_NINE_MONTHS = (60, 300)
"""Days before the end of a year within which its first three quarters end."""


class Fact(NamedTuple):
    """Figure and the end of its period."""

    end: date
    value: float

    def age(self, as_of: date) -> int:
        return (as_of - self.end).days


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Figures by end of period: `ends` (N,) days since 1970, increasing; `values` (N,)."""

    ends: NDArray[np.int64]
    values: Floats

    @classmethod
    def of(cls, table: pl.DataFrame) -> Self:
        """Read a statement table with `end` and `value`; rows without a value are dropped."""
        ends = table["end"].cast(pl.Date).to_physical().to_numpy().astype(np.int64)
        values = table["value"].cast(pl.Float64).to_numpy()
        order = np.argsort(ends, kind="stable")
        order = order[~np.isnan(values[order])]
        return cls(ends[order], values[order])

    def known(self, as_of: date) -> Fact | None:
        """Return the latest figure known on a day, or None."""
        place = int(np.searchsorted(self.ends + REPORTING_LAG_DAYS, _day(as_of), side="right")) - 1
        if place < 0:
            return None
        return Fact(_EPOCH.fromordinal(_EPOCH.toordinal() + int(self.ends[place])), float(self.values[place]))


def trailing_year(quarterly: Series, annual: Series) -> Series:
    """Return a flow over the four quarters up to each period end.

    The fourth quarter is the year less the three others. A fiscal year uses its reported figure.
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
_COMPANIES_PER_PART = 60
"""Companies processed together. Every step copies its table: 3,000 at once would take several times the memory."""


@dataclass(frozen=True, slots=True, eq=False)
class FundamentalPanels:
    """Long tables by symbol, those of `SCHEMAS`; empty without company facts. `unusable` has reasons and remedies."""

    tables: Tables
    notes: tuple[str, ...] = ()
    unusable: tuple[str, ...] = ()

    @classmethod
    def empty(cls, notes: tuple[str, ...] = (), unusable: tuple[str, ...] = ()) -> Self:
        return cls(Tables({name: pl.DataFrame(schema=schema) for name, schema in SCHEMAS.items()}), notes, unusable)


def build_fundamentals(data: FilingsData) -> FundamentalPanels:
    """Build the panels of EDGAR files; SourceError names company, tag and accession of unusable data."""
    if not data.companies:
        return FundamentalPanels.empty(data.notes, data.unusable)
    parts = list(fundamentals_in_parts(data))
    whole = {name: pl.concat([part.tables[name] for part in parts]) for name in SCHEMAS}
    notes = (*data.notes, *(message for part in parts for message in part.notes))
    return FundamentalPanels(
        Tables(whole), notes, (*data.unusable, *(reason for part in parts for reason in part.unusable))
    )


def fundamentals_in_parts(data: FilingsData) -> Iterator[FundamentalPanels]:
    """Yield the panels of groups of companies; concatenated in order they form those of all."""
    symbols = sorted(data.companies)
    for start in range(0, len(symbols), _COMPANIES_PER_PART):
        yield _build_part(data.of(symbols[start : start + _COMPANIES_PER_PART]))
        gc.collect()  # builds raise the collector's thresholds, and parsed documents hold reference cycles


def _build_part(data: FilingsData) -> FundamentalPanels:
    companies = dict(data.companies)
    facts = build_facts(companies)
    filings = build_filings(data.submissions, facts.frame)
    segments = build_segments(data.instances, facts.frame, filings)
    made = {"facts": facts.frame, "filings": filings, "segments": segments.frame, "filed": build_filed(companies)}
    usable = set(reports_with_figures(filings, facts.frame)["symbol"])
    return FundamentalPanels(Tables(made), (*facts.notes, *segments.notes), tuple(_unusable(companies, usable)))


def _unusable(companies: Mapping[str, EdgarFacts], usable: set[str]) -> Iterator[str]:
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
