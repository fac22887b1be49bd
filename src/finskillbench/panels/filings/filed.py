"""What filers said, tag by tag: every figure of a primary statement as a periodic report gave it, chosen by nobody.

One row per (symbol, tag, unit, period, filing date) at which a figure was new; a figure that a later filing repeats as
a comparative is not. Quarters, halves, nine months and years stand side by side, and so do a total and its parts. What
they make of each metric is the facts panel's business.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from finskillbench.panels.columns import ACCESSION, DURATION, END, FILED, FORM, START, SYMBOL, Column, schema_of
from finskillbench.panels.filings import facts
from finskillbench.sources.edgar.companyfacts import PERIODIC_FORMS, CompanyFacts

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
