"""The fundamental panels as one step: facts as filed, the filings they come from, and revenue by segment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from finskillbench.panels.columns import SYMBOL, Column
from finskillbench.panels.filings.facts import PANEL_SCHEMA, build_facts
from finskillbench.panels.filings.periodic import FILINGS_SCHEMA, build_filings
from finskillbench.panels.filings.segments import SEGMENTS_SCHEMA, build_segments
from finskillbench.sources.edgar.collection import FilingsData

_START = Column("date", "point in time", "first day of the period; null for an instant")
_END = Column("date", "point in time", "last day of the period, or the instant")
_FILED = Column("date", "point in time", "day it was filed: known from then on")
_DURATION = Column("category", "the period", "instant, quarterly, half, nine_months, annual or other, from the dates")
_FORM = Column("identifier", "point in time", "form of the filing")
_ACCESSION = Column(
    "identifier", "point in time", "accession number of the filing; of a derived row, of its last parent"
)
_DERIVED = Column("boolean", "the period", "whether it was computed from filed figures")

FACTS_COLUMNS: Mapping[str, Column] = {
    "symbol": SYMBOL,
    "metric": Column("identifier", "the period", "canonical metric, see catalog/metrics.json"),
    "start": _START,
    "end": _END,
    "filed": _FILED,
    "value": Column("as in the column unit", "start to end", "the figure as filed or derived"),
    "unit": Column("identifier", "the period", "unit of the value: USD, USD/shares or shares"),
    "tag": Column("identifier", "the period", "XBRL tag; empty where derived"),
    "taxonomy": Column("identifier", "the period", "taxonomy of the tag"),
    "form": _FORM,
    "accession": _ACCESSION,
    "fiscal_year": Column("year", "the filing", "fiscal year of the filing, as its filer says"),
    "fiscal_period": Column("identifier", "the filing", "fiscal period of the filing, as its filer says"),
    "duration": _DURATION,
    "derived": _DERIVED,
    "parents": Column("text", "the period", "the figures a derived row was computed from; empty where reported"),
}
FILINGS_COLUMNS: Mapping[str, Column] = {
    "symbol": SYMBOL,
    "accession": _ACCESSION._replace(meaning="accession number of the filing"),
    "form": _FORM,
    "period_end": _END._replace(meaning="last day of the period reported on"),
    "filed": _FILED,
}
SEGMENTS_COLUMNS: Mapping[str, Column] = {
    "symbol": SYMBOL,
    "axis": Column("category", "the period", "product_segment or geographic_segment"),
    "segment": Column("identifier", "the period", "label of the member"),
    "start": _START,
    "end": _END,
    "duration": _DURATION,
    "value": Column("USD", "start to end", "revenue of the member"),
    "accession": _ACCESSION,
    "filed": _FILED,
    "derived": _DERIVED,
}


@dataclass(frozen=True, slots=True, eq=False)
class FundamentalPanels:
    """Long tables by symbol, see the columns above; all empty where a collection has no company facts."""

    facts: pl.DataFrame
    filings: pl.DataFrame
    segments: pl.DataFrame
    notes: tuple[str, ...] = ()

    @classmethod
    def empty(cls, notes: tuple[str, ...] = ()) -> FundamentalPanels:
        """Tables without rows."""
        facts, filings, segments = (
            pl.DataFrame(schema=schema) for schema in (PANEL_SCHEMA, FILINGS_SCHEMA, SEGMENTS_SCHEMA)
        )
        return cls(facts, filings, segments, notes)


def build_fundamentals(data: FilingsData) -> FundamentalPanels:
    """Build the three panels of a collection's EDGAR files.

    Raises
    ------
    SourceError : naming company, tag and accession, where the files cannot carry a panel.
    """
    if not data.companies:
        return FundamentalPanels.empty(data.notes)
    facts = build_facts(data.companies)
    filings = build_filings(data.submissions, facts.frame)
    segments = build_segments(data.instances, facts.frame, filings)
    notes = dict.fromkeys((*data.notes, *facts.notes, *segments.notes))  # of a file, both who read it and who used it
    return FundamentalPanels(facts.frame, filings, segments.frame, tuple(notes))
