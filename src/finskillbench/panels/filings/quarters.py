"""Derive unreported quarters from year-to-date figures, and list the periodic reports of every company."""

from collections.abc import Mapping
from datetime import date

import polars as pl

from finskillbench.engines.accounting.periods import QUARTER_APART, YEAR_APART
from finskillbench.panels.columns import ACCESSION, END, FILED, FORM, SYMBOL, PanelColumn, table_schema
from finskillbench.panels.filings.concepts import EXPENSES, PERIOD, restated
from finskillbench.sources.edgar.companyfacts import PERIODIC_FORMS
from finskillbench.sources.edgar.numerals import CANONICAL, METRICS
from finskillbench.sources.edgar.submissions import Submissions

_LONGER = {"half": "quarterly", "nine_months": "half", "annual": "nine_months"}
"""Year-to-date period -> the one that ends a quarter earlier."""
_NOT_BELOW_ZERO = (*EXPENSES, "revenue")
"""Metrics for which a negative difference proves figures on two bases."""
_OF_FILING = ("accession", "form", "fiscal_year", "fiscal_period")


def versions_of(reported: pl.DataFrame) -> pl.DataFrame:
    """Return the rows where a period's figure or tag changed, one per filing date; weak aliases do not restate.

    `since` is the first date of the figure under any tag.
    """
    daily = (
        reported.sort("rank", "accession", descending=[False, True])
        .unique([*PERIOD, "filed"], keep="first", maintain_order=True)
        .sort(*PERIOD, "filed")
        .with_columns(period=pl.struct(PERIOD).rle_id())
        .with_columns(best=pl.col("rank").cum_min().over("period"))
    )
    again = pl.col("period") == pl.col("period").shift(1)
    # The first row of a period has its best rank so far, so values never fill into another period.
    best_value = pl.when(pl.col("rank") <= pl.col("best")).then("value").forward_fill().shift(1)
    daily = daily.with_columns(
        best_before=pl.when(again).then(pl.col("best").shift(1)), best_value=pl.when(again).then(best_value)
    )
    renamed = ~pl.col("derived") & (pl.col("value") == pl.col("best_value"))
    lesser = (pl.col("rank") > pl.col("best_before")) & pl.col("weak") & ~renamed
    counted = daily.filter(~lesser.fill_null(False)).with_columns(
        figure=pl.struct(*PERIOD, "value").rle_id(), version=pl.struct(*PERIOD, "value", "tag").rle_id()
    )
    return (
        counted.with_columns(since=pl.col("filed").first().over("figure"))
        .filter(pl.col("version").is_first_distinct())
        .drop("period", "best", "best_before", "best_value", "figure", "version")
    )


def with_recasts(versions: pl.DataFrame) -> pl.DataFrame:
    """Add `recast`: the filing restates the same period of the year before, so the year is on another basis than its
    parts.
    """
    key = ["symbol", "metric", "accession", "duration"]
    flows = versions.filter(pl.col("duration").is_in(list(_LONGER)))
    before = pl.col("value").shift(1).over(PERIOD)
    changed = flows.filter(restated(pl.col("value"), before)).select(*key, end_before="end")
    apart = (pl.col("end") - pl.col("end_before")).dt.total_days().is_between(*YEAR_APART)
    period = [*key, "start", "end"]
    recast = flows.select(period).join(changed, on=key).filter(apart).select(period).unique()
    return versions.join(
        recast.with_columns(recast=pl.lit(True)), on=period, how="left", maintain_order="left"
    ).with_columns(pl.col("recast").fill_null(False))


def derive_quarters(versions: pl.DataFrame) -> pl.DataFrame:
    """Derive quarters as differences of year-to-date figures under one tag, renewed once both parents are restated.

    A single restated parent would put the restatement of a year into one quarter. Negative expenses and revenue are
    dropped, and derived rows end on the day the quarter itself is reported.
    """
    rows = _unreported(_subtracted(_known_together(versions)), versions)
    rows = rows.filter(_both_parents_new(rows)).sort(*PERIOD, "filed", "first")
    rows = rows.unique([*PERIOD, "filed"], keep="first", maintain_order=True)
    keys = rows.select(pl.struct(*PERIOD, "value", "tag")).to_series()
    return rows.filter(~(keys == keys.shift(1)).fill_null(False))


def _known_together(versions: pl.DataFrame) -> pl.DataFrame:
    """Return the filing dates of either year-to-date period, with the known figures of both: `_long`, `_short`."""
    additive = [name for name in CANONICAL if METRICS[name].additive]
    flows = versions.filter(pl.col("metric").is_in(additive) & (pl.col("duration") != "other"))
    pairs = _year_to_date_pairs(flows)
    key = [*PERIOD, "earlier"]
    sides = {
        "long": pairs.join(flows, on=PERIOD),
        "short": pairs.join(flows.rename({"end": "earlier"}), on=["symbol", "metric", "start", "earlier"]),
    }
    events = pl.concat([side.select(*key, "filed") for side in sides.values()]).unique().sort("filed")
    for name, side in sides.items():
        known = side.select(
            *key,
            "filed",
            pl.col("filed").alias(f"filed_{name}"),
            *(pl.col(one).alias(f"{one}_{name}") for one in ("value", "tag", "unit", "since", "recast", *_OF_FILING)),
        )
        events = events.join_asof(known.sort("filed"), on="filed", by=key, check_sortedness=False)
    return events


def _subtracted(events: pl.DataFrame) -> pl.DataFrame:
    """Subtract pairs on one basis; the result is filed with the later one."""
    later = pl.col("filed_long") >= pl.col("filed_short")
    two_bases = pl.col("recast_long") & (pl.col("since_short") < pl.col("since_long"))
    return (
        events.filter((pl.col("tag_long") == pl.col("tag_short")) & ~two_bases)
        .with_columns(
            pl.when(later).then(f"{column}_long").otherwise(f"{column}_short").alias(column) for column in _OF_FILING
        )
        .with_columns(
            value=pl.col("value_long") - pl.col("value_short"),
            parents=pl.format(
                "{} {} {}..{} - {} {} {}..{}",
                *("accession_long", "metric", "start", "end"),
                *("accession_short", "metric", "start", "earlier"),
            ),
            first="start",
            start=pl.col("earlier") + pl.duration(days=1),
            unit="unit_long",
            tag="tag_long",
            taxonomy=pl.lit(""),
            duration=pl.lit("quarterly"),
            derived=pl.lit(True),
        )
        .filter((pl.col("value") >= 0) | ~pl.col("metric").is_in(_NOT_BELOW_ZERO))
    )


def _unreported(rows: pl.DataFrame, versions: pl.DataFrame) -> pl.DataFrame:
    """Drop differences filed once their quarter was reported; sort the longer chain to a day first."""
    reported = (
        versions.filter(pl.col("duration") == "quarterly")
        .group_by("symbol", "metric", "end")
        .agg(reported=pl.col("filed").min())
    )
    # Where two year-to-date chains end on one day, the longer one is the fiscal year's.
    return (
        rows.join(reported, on=["symbol", "metric", "end"], how="left")
        .filter(pl.col("reported").is_null() | (pl.col("filed") < pl.col("reported")))
        .sort(*PERIOD, "first", "filed")
    )


def _year_to_date_pairs(flows: pl.DataFrame) -> pl.DataFrame:
    """Return PERIOD and `earlier`: year-to-date periods with the end of the one that is a quarter shorter."""
    periods = flows.select(*PERIOD, "duration").unique()
    return (
        periods.filter(pl.col("duration").is_in(list(_LONGER)))
        .with_columns(before=pl.col("duration").replace_strict(_LONGER))
        .join(
            periods.select("symbol", "metric", "start", earlier="end", before="duration"),
            on=["symbol", "metric", "start", "before"],
        )
        .filter((pl.col("end") - pl.col("earlier")).dt.total_days().is_between(*QUARTER_APART))
        .select(*PERIOD, "earlier")
    )


def _both_parents_new(rows: pl.DataFrame) -> pl.Series:
    """Mark differences (sorted by chain and filing) that are first of their chain or have two newer parents.

    An equal difference under another tag means that both parents were refiled under it.
    """
    retained: list[bool] = []
    last: date | None = None
    last_version: tuple[float, str] | None = None
    chains = rows.select(pl.struct(*PERIOD, "first").rle_id()).to_series().to_list()
    before = -1
    filings = rows.select("filed", pl.min_horizontal("since_long", "since_short"), "value", "tag").iter_rows()
    for chain, (filed, older, value, tag) in zip(chains, filings, strict=True):
        renamed = last_version is not None and last_version[0] == value and last_version[1] != tag
        retained.append(chain != before or last is None or older > last or renamed)
        if retained[-1]:
            last, last_version = filed, (value, tag)
        before = chain
    return pl.Series(retained, dtype=pl.Boolean)


COLUMNS: Mapping[str, PanelColumn] = {
    "symbol": SYMBOL,
    "accession": ACCESSION._replace(meaning="accession number of the filing"),
    "form": FORM,
    "period_end": END._replace(meaning="last day of the period reported on"),
    "filed": FILED,
}
FILINGS_SCHEMA = table_schema(COLUMNS)
REPORT_FORMS = ("10-Q", "10-K", "20-F", "40-F")
"""Forms of reports for episodes; amendments only add facts."""


def build_filings(submissions: Mapping[str, Submissions], facts: pl.DataFrame) -> pl.DataFrame:
    """Return one row per periodic report (FILINGS_SCHEMA), sorted by symbol, filed and accession.

    Reports missing in the submissions (about a filer's last thousand) come from `facts`, with the latest period
    reported.
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
    """Return the reports of REPORT_FORMS for whose period the facts panel has a figure in USD."""
    known = facts.filter(pl.col("unit") == "USD").select("symbol", period_end="end").unique()
    reports = filings.filter(pl.col("form").is_in(REPORT_FORMS))
    return reports.join(known, on=["symbol", "period_end"], how="semi")
