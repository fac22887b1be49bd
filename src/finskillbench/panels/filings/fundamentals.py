"""The fundamental panels as one step: facts by metric and by tag, the filings they come from, segments."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

import polars as pl

from finskillbench.panels.filings.facts import PANEL_SCHEMA, build_facts
from finskillbench.panels.filings.filed import FILED_SCHEMA, build_filed
from finskillbench.panels.filings.periodic import FILINGS_SCHEMA, build_filings
from finskillbench.panels.filings.segments.revenue import SEGMENTS_SCHEMA, build_segments
from finskillbench.sources.edgar.collection import FilingsData
from finskillbench.sources.edgar.companyfacts import CompanyFacts

_AT_ONCE = 250
"""Companies whose figures are worked through together. Every step copies its table, so that 3,000 companies at once
would take several times the memory of what comes of them."""


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
    parts = [(build_facts(some), build_filed(some)) for some in _some_at_once(data.companies)]
    facts = pl.concat([part.frame for part, _ in parts])
    filed = pl.concat([frame for _, frame in parts])
    filings = build_filings(data.submissions, facts)
    segments = build_segments(data.instances, facts, filings)
    of_facts = (note for part, _ in parts for note in part.notes)
    notes = dict.fromkeys((*data.notes, *of_facts, *segments.notes))  # of a file, both who read it and who used it
    return FundamentalPanels(facts, filings, segments.frame, filed, tuple(notes))


def _some_at_once(companies: Mapping[str, CompanyFacts]) -> Iterator[dict[str, CompanyFacts]]:
    """The companies by symbol in runs of `_AT_ONCE`: what is sorted by symbol within each is sorted over all."""
    symbols = sorted(companies)
    for start in range(0, len(symbols), _AT_ONCE):
        yield {symbol: companies[symbol] for symbol in symbols[start : start + _AT_ONCE]}
