"""The fundamental panels as one step: facts by metric and by tag, the filings they come from, segments."""

from dataclasses import dataclass
from typing import Self

import polars as pl

from finskillbench.panels.filings.facts import PANEL_SCHEMA, build_facts
from finskillbench.panels.filings.filed import FILED_SCHEMA, build_filed
from finskillbench.panels.filings.periodic import FILINGS_SCHEMA, build_filings
from finskillbench.panels.filings.segments.revenue import SEGMENTS_SCHEMA, build_segments
from finskillbench.sources.edgar.collection import FilingsData


@dataclass(frozen=True, slots=True, eq=False)
class FundamentalPanels:
    """Long tables by symbol, see `COLUMNS` where each is built; all empty where a collection has no company facts."""

    facts: pl.DataFrame
    filings: pl.DataFrame
    segments: pl.DataFrame
    filed: pl.DataFrame
    notes: tuple[str, ...] = ()

    @classmethod
    def empty(cls, notes: tuple[str, ...] = ()) -> Self:
        """Tables without rows."""
        schemas = (PANEL_SCHEMA, FILINGS_SCHEMA, SEGMENTS_SCHEMA, FILED_SCHEMA)
        facts, filings, segments, filed = (pl.DataFrame(schema=schema) for schema in schemas)
        return cls(facts, filings, segments, filed, notes)


def build_fundamentals(data: FilingsData) -> FundamentalPanels:
    """Build the panels of a collection's EDGAR files.

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
    return FundamentalPanels(facts.frame, filings, segments.frame, build_filed(data.companies), tuple(notes))
