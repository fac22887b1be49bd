"""Facts as filed: the canonical metrics of every company, bitemporal.

One row per (symbol, metric, period, filing date) at which a figure was new: "as of d" means the latest row of a period
with `filed` <= d. Restatements and amendments are rows of their own; a figure that a later filing repeats as a
comparative is not. Quarters that nobody reported are year-to-date figures subtracted on their actual dates, and a
derived row is filed when the last of its parents was. It is made again only once both of them have been restated.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

import polars as pl

from finskillbench.engines.accounting.periods import DAYS, QUARTER_APART
from finskillbench.panels.columns import (
    ACCESSION,
    DERIVED,
    DURATION,
    END,
    FILED,
    FORM,
    START,
    SYMBOL,
    Column,
    schema_of,
)
from finskillbench.panels.filings.scale import PERIOD, without_misscaled
from finskillbench.sources.edgar.companyfacts import CompanyFacts
from finskillbench.sources.edgar.metrics import CANONICAL, METRICS, Metric, tag_of

COLUMNS: Mapping[str, Column] = {
    "symbol": SYMBOL,
    "metric": Column("identifier", "the period", "canonical metric, see catalog/metrics.json", pl.String),
    "start": START,
    "end": END,
    "filed": FILED,
    "value": Column("as in the column unit", "start to end", "the figure as filed or derived"),
    "unit": Column("identifier", "the period", "unit of the value: USD, USD/shares or shares", pl.String),
    "tag": Column("identifier", "the period", "XBRL tag; empty where derived", pl.String),
    "taxonomy": Column("identifier", "the period", "taxonomy of the tag", pl.String),
    "form": FORM,
    "accession": ACCESSION,
    "fiscal_year": Column("year", "the filing", "fiscal year of the filing, as its filer says", pl.Int32),
    "fiscal_period": Column("identifier", "the filing", "fiscal period of the filing, as its filer says", pl.String),
    "duration": DURATION,
    "derived": DERIVED,
    "parents": Column(
        "text", "the period", "the figures a derived row was computed from; empty where reported", pl.String
    ),
}
PANEL_SCHEMA = schema_of(COLUMNS)

PERIODIC_FORMS = tuple(
    form + suffix for form in ("10-Q", "10-K", "10-QT", "10-KT", "20-F", "40-F") for suffix in ("", "/A")
)
"""Reports whose figures may enter a label; a proxy statement repeats net income, an 8-K recasts years."""

_LONGER = {"half": "quarterly", "nine_months": "half", "annual": "nine_months"}
"""Year-to-date period -> the one that ends a quarter earlier."""

_FALLBACK_RANK = 1000
"""Behind every alias."""
_POSITIVE = ("total_assets",)
"""Metrics that cannot be zero, besides numbers of shares: an empty cell was tagged."""


@dataclass(frozen=True, slots=True)
class FactsPanel:
    """The facts and what was left out of them.

    frame : PANEL_SCHEMA, sorted by symbol, metric, end, start, filed. start is null for instants; tag and taxonomy are
        empty for derived rows, whose parents read "accession metric start..end - accession metric start..end"; form,
        accession, fiscal_year and fiscal_period describe the filing (of the parent filed last), not the period.
    notes : one sentence each.
    """

    frame: pl.DataFrame
    notes: tuple[str, ...]


def classify(start: pl.Expr, end: pl.Expr) -> pl.Expr:
    """Class of a period from its dates: a value of `Duration`."""
    days = (end - start).dt.total_days() + 1
    kind = pl.when(start.is_null()).then(pl.lit("instant"))
    for name, (shortest, longest) in DAYS.items():
        kind = kind.when(days.is_between(shortest, longest)).then(pl.lit(name.value))
    return kind.otherwise(pl.lit("other"))


def build_facts(companies: Mapping[str, CompanyFacts]) -> FactsPanel:
    """The panel of all companies; a company without one usable figure is left out and noted."""
    notes = [f"{symbol}: {note}" for symbol in sorted(companies) for note in companies[symbol].notes]
    raw = _canonical(companies, notes)
    reported = _one_per_filing(raw)
    reported = without_misscaled(reported, notes)
    for name, metric in METRICS.items():
        reported = pl.concat([reported, _fallback_rows(reported, name, metric)])
    versions = _versions(reported)
    parts = [name for name, metric in METRICS.items() if metric.part]
    versions = versions.filter(~pl.col("metric").is_in(parts))
    new = versions.filter(pl.col("since") == pl.col("filed"))
    columns = [pl.col(name).cast(kind) for name, kind in PANEL_SCHEMA.items()]
    frame = pl.concat([part.select(columns) for part in (new, _differences(versions))])
    frame = frame.sort("symbol", "metric", "end", "start", "filed")
    # A quarter that was first subtracted and then follows from an identity of a later filing says nothing new.
    frame = frame.filter(~(pl.col("derived") & _same_as_before(frame, (*PERIOD, "value"))))
    present = set(frame["symbol"].unique())
    notes += [
        f"{symbol}: no usable fact of {len(METRICS)} metrics in {companies[symbol].file.name}: left out."
        for symbol in sorted(companies)
        if symbol not in present
    ]
    return FactsPanel(frame, tuple(notes))


def _same_as_before(rows: pl.DataFrame, columns: tuple[str, ...]) -> pl.Series:
    """Whether a row (of a sorted table) equals the row above it in some columns."""
    keys = rows.select(pl.struct(columns)).to_series()
    return (keys == keys.shift(1)).fill_null(False)


def _canonical(companies: Mapping[str, CompanyFacts], notes: list[str]) -> pl.DataFrame:
    """Rows of the metrics' tags from periodic reports, in the metrics' units and of their kind."""
    aliases = pl.DataFrame(
        [
            (alias.taxonomy, alias.tag, name, rank, alias.weak, metric.unit, metric.kind == "instant")
            for name, metric in METRICS.items()
            for rank, alias in enumerate(metric.aliases)
        ],
        schema={
            "taxonomy": pl.String,
            "tag": pl.String,
            "metric": pl.String,
            "rank": pl.Int32,
            "weak": pl.Boolean,
            "wanted": pl.String,
            "instant": pl.Boolean,
        },
        orient="row",
    )
    frames = [one.facts.with_columns(symbol=pl.lit(symbol)) for symbol, one in sorted(companies.items())]
    if not frames:
        return pl.DataFrame(schema=PANEL_SCHEMA | {"rank": pl.Int32, "weak": pl.Boolean})
    everything = pl.concat(frames).filter(pl.col("form").is_in(PERIODIC_FORMS))
    raw = everything.join(aliases, on=["taxonomy", "tag"])
    foreign = raw.filter(pl.col("unit") != pl.col("wanted")).group_by("symbol", "wanted", "unit").len()
    for symbol, wanted, unit, count in foreign.sort("symbol", "wanted", "unit").iter_rows():
        notes.append(f"{symbol}: {count} figures in {unit} where {wanted} is expected: left out.")
    raw = raw.filter(pl.col("unit") == pl.col("wanted"))
    kindred = pl.col("start").is_null() == pl.col("instant")
    for symbol, metric, count in (
        raw.filter(~kindred).group_by("symbol", "metric").len().sort("symbol", "metric").iter_rows()
    ):
        notes.append(f"{symbol}: {count} figures of {metric} over the wrong kind of period: left out.")
    raw = raw.filter(kindred)
    none = ((pl.col("wanted") == "shares") | pl.col("metric").is_in(_POSITIVE)) & (pl.col("value") <= 0)
    for symbol, tag, accession, count in (
        raw.filter(none).group_by("symbol", "tag", "accession").len().sort("symbol", "accession", "tag").iter_rows()
    ):
        notes.append(f"{symbol}: {count} figures of {tag} in {accession} are not positive: left out.")
    raw = raw.filter(~none)
    raw = raw.join(_parts_of_totals(everything), on=["symbol", "accession", "taxonomy", "tag"], how="anti")
    return raw.with_columns(
        duration=classify(pl.col("start"), pl.col("end")), derived=pl.lit(False), parents=pl.lit("")
    ).select(*PANEL_SCHEMA, "rank", "weak")


def _parts_of_totals(everything: pl.DataFrame) -> pl.DataFrame:
    """symbol, accession, taxonomy, tag of the aliases that are only a part of the metric in a filing."""
    found = [pl.DataFrame(schema=dict.fromkeys(("symbol", "accession", "taxonomy", "tag"), pl.String))]
    filing = ["symbol", "accession"]
    period = ["symbol", "accession", "unit", "start", "end"]
    for metric in METRICS.values():
        for alias in metric.aliases:
            if not (alias.unless or alias.below):
                continue
            figures = everything.filter((pl.col("taxonomy") == alias.taxonomy) & (pl.col("tag") == alias.tag))
            others = everything.filter(pl.col("tag").is_in(list(map(tag_of, alias.unless))))
            found.append(figures.join(others, on=filing, how="semi").select(found[0].columns))
            totals = everything.filter(pl.col("tag").is_in(list(map(tag_of, alias.below)))).select(
                *period, total="value"
            )
            less = pl.col("total") > pl.col("value")  # no tolerance: filings would change tags as they pass it
            found.append(figures.join(totals, on=period, nulls_equal=True).filter(less).select(found[0].columns))
    return pl.concat(found).unique()


def _one_per_filing(raw: pl.DataFrame) -> pl.DataFrame:
    """Per period and filing the figure of the first alias."""
    return raw.sort("rank").unique([*PERIOD, "accession"], keep="first", maintain_order=True)


def _fallback_rows(reported: pl.DataFrame, name: str, metric: Metric) -> pl.DataFrame:
    """The metric as a sum of terms of the same filing and period, where the filing does not state it."""
    fallback = metric.fallback
    if fallback is None:
        return reported.clear()
    of = reported.filter(~pl.col("derived"))
    key = ["symbol", "start", "end", "accession"]
    text = pl.format("{} {} {}", "accession", "metric", _period())
    (first, sign), *others = fallback.terms.items()
    rows = of.filter(pl.col("metric") == first).with_columns(value=sign * pl.col("value"), parents=text)
    for term, sign in others:
        part = of.filter(pl.col("metric") == term)
        optional = term in fallback.optional
        right = part.select(*key, other=sign * pl.col("value"), also=text, neighbour="weak")
        rows = rows.join(right, on=key, how="left" if optional else "inner", nulls_equal=True)
        if term in fallback.inside_weak:
            rows = rows.with_columns(pl.when(~pl.col("weak")).then("other").alias("other"))
        glue = pl.concat_str("parents", pl.lit(" + " if sign > 0 else " - "), "also")
        rows = rows.with_columns(
            value=pl.col("value") + pl.col("other").fill_null(0.0),
            parents=pl.when(pl.col("other").is_null()).then(pl.col("parents")).otherwise(glue),
            weak=pl.col("weak") | pl.col("neighbour").fill_null(False),
        ).drop("other", "also", "neighbour")
    present = of.filter(pl.col("metric") == name).select(key)
    return (
        rows.join(present, on=key, how="anti", nulls_equal=True)
        .with_columns(
            metric=pl.lit(name),
            tag=pl.lit(""),
            taxonomy=pl.lit(""),
            derived=pl.lit(True),
            rank=pl.lit(_FALLBACK_RANK, dtype=pl.Int32),
            weak=pl.lit(True),
        )
        .select(reported.columns)
    )


def _period() -> pl.Expr:
    start = pl.col("start").cast(pl.String)
    return pl.when(start.is_null()).then("end").otherwise(pl.concat_str(start, pl.lit(".."), pl.col("end")))


def _versions(reported: pl.DataFrame) -> pl.DataFrame:
    """The rows at which a period's figure was new (since = filed) or told under a better alias, one per filing date.

    A figure under a lesser alias is no restatement of one under a better alias if it is weak, or if its filing gives
    any period under a better alias than that: it is then another concept. A figure that a filing repeats under a
    better alias counts under that one from then on; `since` is the day on which it was new.
    """
    daily = (
        reported.with_columns(best_in_filing=pl.col("rank").min().over("symbol", "metric", "accession"))
        .sort("rank", "accession", descending=[False, True])
        .unique([*PERIOD, "filed"], keep="first", maintain_order=True)
        .sort(*PERIOD, "filed")
        .with_columns(period=pl.struct(PERIOD).rle_id())
        .with_columns(best_before=pl.col("rank").cum_min().shift(1).over("period"))
    )
    lesser = (pl.col("rank") > pl.col("best_before")) & (pl.col("weak") | (pl.col("best_in_filing") < pl.col("rank")))
    comparable = daily.filter(~lesser.fill_null(False)).with_columns(figure=pl.struct(*PERIOD, "value").rle_id())
    rank_before = pl.col("rank").cum_min().shift(1).over("figure")
    return (
        comparable.with_columns(since=pl.col("filed").first().over("figure"))
        .filter(rank_before.is_null() | (pl.col("rank") < rank_before))
        .drop("period", "best_before", "best_in_filing", "figure")
    )


def _differences(versions: pl.DataFrame) -> pl.DataFrame:
    """Quarters as year-to-date figures subtracted, remade once both parents have been restated.

    One restated parent less one that is not would put a year's restatement into one quarter. Parents under different
    tags may be different concepts and are not subtracted before a filing repeats one under the tag of the other; that
    filing is then its parent. Where the quarter itself is reported, derived rows filed on that day or later give way
    to it, whichever day it is said to start on.
    """
    # One chain of joins, of which no part means anything by itself.
    additive = [name for name in CANONICAL if METRICS[name].additive]
    flows = versions.filter(pl.col("metric").is_in(additive) & (pl.col("duration") != "other"))
    pairs = _year_to_date_pairs(flows)
    key = [*PERIOD, "earlier"]
    sides = {
        "long": pairs.join(flows, on=PERIOD),
        "short": pairs.join(flows.rename({"end": "earlier"}), on=["symbol", "metric", "start", "earlier"]),
    }
    events = pl.concat([side.select(*key, "filed") for side in sides.values()]).unique().sort("filed")
    of_filing = ["accession", "form", "fiscal_year", "fiscal_period"]
    for name, side in sides.items():
        known = side.select(
            *key,
            "filed",
            pl.col("filed").alias(f"filed_{name}"),
            *(pl.col(column).alias(f"{column}_{name}") for column in ("value", "tag", "unit", "since", *of_filing)),
        )
        events = events.join_asof(known.sort("filed"), on="filed", by=key, check_sortedness=False)
    later = pl.col("filed_long") >= pl.col("filed_short")
    rows = (
        events.filter(pl.col("tag_long") == pl.col("tag_short"))
        .with_columns(
            pl.when(later).then(f"{column}_long").otherwise(f"{column}_short").alias(column) for column in of_filing
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
            tag=pl.lit(""),
            taxonomy=pl.lit(""),
            duration=pl.lit("quarterly"),
            derived=pl.lit(True),
        )
    )
    reported = (
        versions.filter(pl.col("duration") == "quarterly")
        .group_by("symbol", "metric", "end")
        .agg(reported=pl.col("filed").min())
    )
    # Where two year-to-date chains end on one day, the longer one is the fiscal year's.
    rows = (
        rows.join(reported, on=["symbol", "metric", "end"], how="left")
        .filter(pl.col("reported").is_null() | (pl.col("filed") < pl.col("reported")))
        .sort(*PERIOD, "first", "filed")
    )
    rows = rows.filter(_of_one_vintage(rows)).sort(*PERIOD, "filed", "first")
    rows = rows.unique([*PERIOD, "filed"], keep="first", maintain_order=True)
    return rows.filter(~_same_as_before(rows, (*PERIOD, "value")))


def _year_to_date_pairs(flows: pl.DataFrame) -> pl.DataFrame:
    """PERIOD and `earlier`: year-to-date periods with the end of the one that is a quarter shorter."""
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


def _of_one_vintage(rows: pl.DataFrame) -> pl.Series:
    """Whether a difference (sorted by chain and filing) is its chain's first, or both parents are newer than the last.

    A chain is the differences of one pair of periods.
    """
    retained: list[bool] = []
    last: date | None = None
    chains = rows.select(pl.struct(*PERIOD, "first").rle_id()).to_series().to_list()
    before = -1
    filings = rows.select("filed", pl.min_horizontal("since_long", "since_short")).iter_rows()
    for chain, (filed, older) in zip(chains, filings, strict=True):
        retained.append(chain != before or last is None or older > last)
        if retained[-1]:
            last = filed
        before = chain
    return pl.Series(retained, dtype=pl.Boolean)
