"""The fundamental panels as one step: facts by metric and by tag, the filings they come from, segments."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

import polars as pl

from finskillbench.panels.filings.facts import PANEL_SCHEMA, build_facts
from finskillbench.panels.filings.filed import FILED_SCHEMA, build_filed
from finskillbench.panels.filings.periodic import FILINGS_SCHEMA, REPORT_FORMS, build_filings, reports_with_figures
from finskillbench.panels.filings.segments.revenue import SEGMENTS_SCHEMA, build_segments
from finskillbench.panels.tables import Tables
from finskillbench.sources.edgar.collection import FilingsData
from finskillbench.sources.edgar.companyfacts import CompanyFacts

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
