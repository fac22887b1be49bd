"""Canonical metrics of every company as filed, bitemporal: one row per period and filing date with a new figure.

"As of d" is the latest row of a period with `filed` <= d. Quarters not reported are differences of year-to-date
figures, filed with the later parent and renewed once both parents are restated.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from finskillbench.engines.accounting.periods import DAYS
from finskillbench.panels.columns import (
    ACCESSION,
    DERIVED,
    DURATION,
    END,
    FILED,
    FORM,
    START,
    SYMBOL,
    PanelColumn,
    table_schema,
)
from finskillbench.panels.filings.concepts import EXPENSES, PERIOD, one_tag_per_filing
from finskillbench.panels.filings.quarters import derive_quarters, versions_of, with_recasts
from finskillbench.panels.filings.rows import without_misscaled
from finskillbench.sources.edgar.companyfacts import PERIODIC_FORMS, EdgarFacts
from finskillbench.sources.edgar.numerals import METRICS, Fallback, local_name

COLUMNS: Mapping[str, PanelColumn] = {
    "symbol": SYMBOL,
    "metric": PanelColumn("identifier", "the period", "canonical metric, see catalog/metrics.json", pl.String),
    "start": START,
    "end": END,
    "filed": FILED,
    "value": PanelColumn("as in the column unit", "start to end", "the figure as filed or derived"),
    "unit": PanelColumn("identifier", "the period", "unit of the value: USD, USD/shares or shares", pl.String),
    "tag": PanelColumn("identifier", "the period", "XBRL tag; of a derived row those of its parents", pl.String),
    "taxonomy": PanelColumn("identifier", "the period", "taxonomy of the tag; empty where derived", pl.String),
    "form": FORM,
    "accession": ACCESSION,
    "fiscal_year": PanelColumn("year", "the filing", "fiscal year of the filing, as its filer says", pl.Int32),
    "fiscal_period": PanelColumn(
        "identifier", "the filing", "fiscal period of the filing, as its filer says", pl.String
    ),
    "duration": DURATION,
    "derived": DERIVED,
    "parents": PanelColumn(
        "text", "the period", "the figures a derived row was computed from; empty where reported", pl.String
    ),
}
PANEL_SCHEMA = table_schema(COLUMNS)

_FALLBACK_RANK = 1000
_POSITIVE = ("total_assets",)
"""Metrics other than share counts whose zeros are empty cells."""


@dataclass(frozen=True, slots=True)
class FactsPanel:
    """Facts panel with notes on excluded figures.

    frame : PANEL_SCHEMA, sorted by symbol, metric, end, start, filed. Derived rows have an empty taxonomy, tags of
        their parents or terms, and parents as "accession metric start..end - accession metric start..end"; filing
        columns describe the parent filed last. notes : one sentence each.
    """

    frame: pl.DataFrame
    notes: tuple[str, ...]


def duration_class(start: pl.Expr, end: pl.Expr) -> pl.Expr:
    """Classify periods by their dates: a value of `Duration`."""
    days = (end - start).dt.total_days() + 1
    kind = pl.when(start.is_null()).then(pl.lit("instant"))
    for name, (shortest, longest) in DAYS.items():
        kind = kind.when(days.is_between(shortest, longest)).then(pl.lit(name.value))
    return kind.otherwise(pl.lit("other"))


def build_facts(companies: Mapping[str, EdgarFacts]) -> FactsPanel:
    """Build the panel of all companies; companies without a usable figure are dropped with a note."""
    notes = [f"{symbol}: {message}" for symbol in sorted(companies) for message in companies[symbol].notes]
    raw = canonical_facts(companies, notes)
    reported = without_misscaled(_one_per_period(one_tag_per_filing(raw, notes)), notes)
    versions = with_recasts(versions_of(_with_sums(reported)))
    columns = [pl.col(name).cast(kind) for name, kind in PANEL_SCHEMA.items()]
    frame = pl.concat([part.select(columns) for part in (versions, derive_quarters(versions))])
    frame = frame.sort("symbol", "metric", "end", "start", "filed")
    # An identity in a later filing may repeat a subtracted quarter: drop the repetition.
    keys = frame.select(pl.struct(*PERIOD, "value", "tag")).to_series()
    frame = frame.filter(~(pl.col("derived") & (keys == keys.shift(1)).fill_null(False)))
    present = set(frame["symbol"].unique())
    notes += [
        f"{symbol}: no usable fact of {len(METRICS)} metrics in {companies[symbol].file.name}: left out."
        for symbol in sorted(companies)
        if symbol not in present
    ]
    return FactsPanel(frame, tuple(notes))


def canonical_facts(companies: Mapping[str, EdgarFacts], notes: list[str]) -> pl.DataFrame:
    """Return rows of the metrics' tags from periodic reports, in the metrics' units and of their kind."""
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
    raw = pl.concat(frames).filter(pl.col("form").is_in(PERIODIC_FORMS)).join(aliases, on=["taxonomy", "tag"])
    foreign = raw.filter(pl.col("unit") != pl.col("wanted")).group_by("symbol", "wanted", "unit").len()
    for symbol, wanted, unit, count in foreign.sort("symbol", "wanted", "unit").iter_rows():
        notes.append(f"{symbol}: {count} figures in {unit} where {wanted} is expected: left out.")
    raw = raw.filter(pl.col("unit") == pl.col("wanted"))
    kindred = pl.col("start").is_null() == pl.col("instant")
    left_out = raw.filter(~kindred).group_by("symbol", "metric").len().sort("symbol", "metric")
    for symbol, metric, count in left_out.iter_rows():
        notes.append(f"{symbol}: {count} figures of {metric} over the wrong kind of period: left out.")
    raw = raw.filter(kindred)
    none = ((pl.col("wanted") == "shares") | pl.col("metric").is_in(_POSITIVE)) & (pl.col("value") <= 0)
    for symbol, tag, accession, count in (
        raw.filter(none).group_by("symbol", "tag", "accession").len().sort("symbol", "accession", "tag").iter_rows()
    ):
        notes.append(f"{symbol}: {count} figures of {tag} in {accession} are not positive: left out.")
    raw = raw.filter(~none)
    return raw.with_columns(
        duration=duration_class(pl.col("start"), pl.col("end")), derived=pl.lit(False), parents=pl.lit("")
    ).select(*PANEL_SCHEMA, "rank", "weak")


def _one_per_period(raw: pl.DataFrame) -> pl.DataFrame:
    """Keep one figure per period and filing: two taxonomies may share a tag name."""
    return raw.sort("rank").unique([*PERIOD, "accession"], keep="first", maintain_order=True)


def _with_sums(reported: pl.DataFrame) -> pl.DataFrame:
    """Add metrics computed from their terms where filings do not state them."""
    of = {str(name): rows for (name,), rows in reported.partition_by("metric", as_dict=True).items()}
    none = reported.clear()
    for name in sorted(METRICS, key=lambda name: not METRICS[name].part):  # a term may be a sum itself
        for place, fallback in enumerate(METRICS[name].fallbacks):
            operand_rows = {term: of.get(term, none) for term in fallback.terms}
            operand_rows = {
                term: rows if METRICS[term].part else rows.filter(~pl.col("derived"))
                for term, rows in operand_rows.items()
            }
            present = of.get(name, none)
            of[name] = pl.concat([present, _sums(present, operand_rows, name, fallback, _FALLBACK_RANK + place)])
    return pl.concat([rows for name, rows in of.items() if not METRICS[name].part] or [none])


def _sums(
    present: pl.DataFrame, of: Mapping[str, pl.DataFrame], name: str, fallback: Fallback, rank: int
) -> pl.DataFrame:
    """Return a metric as a sum of terms of the same filing and period, where it is not in `present`."""
    key = ["symbol", "start", "end", "accession"]
    text = pl.format("{} {} {}", "accession", "metric", _period())
    (first, sign), *remaining = fallback.terms.items()
    rows = of[first].with_columns(value=sign * pl.col("value"), parents=text)
    for term, sign in remaining:
        part = of[term]
        optional = term in fallback.optional
        right = part.select(*key, other=sign * pl.col("value"), also=text, neighbour="weak", other_tag="tag")
        rows = rows.join(right, on=key, how="left" if optional else "inner", nulls_equal=True)
        if covering := [local_name(concept) for concept in fallback.covered.get(term, ())]:
            rows = rows.with_columns(pl.when(~pl.col("tag").str.contains_any(covering)).then("other").alias("other"))
        joint = "+" if sign > 0 else "-"
        absent = pl.col("other").is_null()
        rows = rows.with_columns(
            value=pl.col("value") + pl.col("other").fill_null(0.0),
            parents=pl.when(absent).then("parents").otherwise(pl.concat_str("parents", pl.lit(f" {joint} "), "also")),
            tag=pl.when(absent).then("tag").otherwise(pl.concat_str("tag", pl.lit(joint), "other_tag")),
            weak=pl.col("weak") | pl.col("neighbour").fill_null(False),
        ).drop("other", "also", "neighbour", "other_tag")
    if fallback.instead:
        rows = rows.join(present.filter(~pl.col("derived")), on=["symbol", "accession"], how="anti")
    return (
        rows.join(present, on=key, how="anti", nulls_equal=True)
        .with_columns(
            metric=pl.lit(name),
            taxonomy=pl.lit(""),
            derived=pl.lit(True),
            rank=pl.lit(rank, dtype=pl.Int32),
            weak=pl.lit(True),
        )
        .filter((pl.col("value") >= 0) | ~pl.col("metric").is_in(EXPENSES))
        .select(present.columns)
    )


def _period() -> pl.Expr:
    start = pl.col("start").cast(pl.String)
    return pl.when(start.is_null()).then("end").otherwise(pl.concat_str(start, pl.lit(".."), pl.col("end")))
