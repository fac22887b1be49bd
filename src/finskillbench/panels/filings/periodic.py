"""The periodic reports of every company: form, period, and the day on which they were filed."""

from collections.abc import Mapping

import polars as pl

from finskillbench.panels.columns import ACCESSION, END, FILED, FORM, SYMBOL, Column, schema_of
from finskillbench.sources.edgar.companyfacts import PERIODIC_FORMS
from finskillbench.sources.edgar.submissions import Submissions

COLUMNS: Mapping[str, Column] = {
    "symbol": SYMBOL,
    "accession": ACCESSION._replace(meaning="accession number of the filing"),
    "form": FORM,
    "period_end": END._replace(meaning="last day of the period reported on"),
    "filed": FILED,
}
FILINGS_SCHEMA = schema_of(COLUMNS)
REPORT_FORMS = ("10-Q", "10-K", "20-F", "40-F")
"""Forms of the reports that episodes can be about: an amendment only adds to what is known of one."""


def build_filings(submissions: Mapping[str, Submissions], facts: pl.DataFrame) -> pl.DataFrame:
    """One row per periodic report (FILINGS_SCHEMA), sorted by symbol, filed and accession.

    facts : the facts panel. Reports that the submissions do not list (they hold about a filer's last thousand filings,
        and some collections have none) are taken from it: their period is the latest one that they report, cover-page
        share counts aside. Companies without facts are left out.
    """
    symbols = sorted(set(facts["symbol"].unique()))
    listed = [
        submissions[symbol].filings.with_columns(symbol=pl.lit(symbol)).select(list(FILINGS_SCHEMA))
        for symbol in symbols
        if symbol in submissions
    ]
    reports = pl.concat([pl.DataFrame(schema=FILINGS_SCHEMA), *listed]).filter(
        pl.col("form").is_in(PERIODIC_FORMS) & pl.col("period_end").is_not_null()
    )
    reported = (
        facts.filter(~pl.col("derived") & (pl.col("metric") != "shares_outstanding"))
        .group_by("symbol", "accession")
        .agg(pl.col("form").first(), period_end=pl.col("end").max(), filed=pl.col("filed").first())
        .select(list(FILINGS_SCHEMA))
    )
    unlisted = reported.join(reports, on=["symbol", "accession"], how="anti")
    return pl.concat([reports, unlisted]).sort("symbol", "filed", "accession")


def reports_with_figures(filings: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
    """The reports of REPORT_FORMS for whose period the facts panel has a figure in USD."""
    known = facts.filter(pl.col("unit") == "USD").select("symbol", period_end="end").unique()
    reports = filings.filter(pl.col("form").is_in(REPORT_FORMS))
    return reports.join(known, on=["symbol", "period_end"], how="semi")
