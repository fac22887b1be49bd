"""Which tag speaks for a metric in a filing: one for all its periods, chosen by the statement's own arithmetic.

Filers tag a total and its parts beside each other, under names that mean one thing in one filing and another in the
next. What ties (revenue less cost is gross profit, gross profit less operating expenses is operating income) is the
total; where nothing can tie, what no other tag exceeds; then the order of the table of metrics. Every choice rests on
the filing and on those before it.
"""

import polars as pl

from finskillbench.sources.edgar.metrics import METRICS, tag_of

PERIOD = ("symbol", "metric", "start", "end")
"""What a figure is a figure of."""
EXPENSES = (
    *("cost_of_revenue", "sga", "rnd", "depreciation_amortization", "interest_expense", "capex"),
    *("operating_expenses", "costs_and_expenses"),
)
"""Metrics that are never negative: a figure that is has its sign, or its tag, wrong."""

_ANCHOR = "total_assets"
"""Its last day is the day that a report is about."""
_CASH = "operating_cash_flow"
_DEPRECIATION = "depreciation_amortization"
_WHOLE, _PART, _AMORTIZATION = "DepreciationDepletionAndAmortization", "Depreciation", "AmortizationOfIntangibleAssets"
_FILING = ("symbol", "accession")
_SPAN = (*_FILING, "start", "end")


def rounding(value: pl.Expr, units: float = 2.5) -> pl.Expr:
    """By how much sums of rounded figures may miss: some units of the last place, at most 0.2 % of the figure."""
    return pl.max_horizontal(1.0, pl.min_horizontal(units * _last_place(value), 0.002 * value.abs()))


def restated(value: pl.Expr, before: pl.Expr) -> pl.Expr:
    """Whether a figure differs from what was filed before by more than its rounding."""
    unit = pl.min_horizontal(_last_place(value), 0.01 * before.abs())
    return (value - before).abs() > pl.max_horizontal(1.0, 5e-4 * before.abs(), unit)


def _last_place(value: pl.Expr) -> pl.Expr:
    """The unit a figure was rounded to: a million, a tenth of one, a thousand or one."""
    place = pl.lit(1.0)
    for unit in (1e3, 1e5, 1e6):
        place = pl.when((value % unit) == 0).then(pl.lit(unit)).otherwise(place)
    return place


def one_tag_per_filing(raw: pl.DataFrame, notes: list[str]) -> pl.DataFrame:
    """Of each metric in each filing the figures under one tag.

    raw : figures by metric, tag and filing, with `rank`, `weak` and `duration`.
    """
    raw = _without_negative(raw, notes)
    raw = _whole_again(raw)
    raw = _only_lines(raw.join(_exceeded(raw), on=[*_FILING, "tag"], how="anti", maintain_order="left"))
    by_tag = [*_FILING, "metric", "tag"]
    anchor = raw.filter(pl.col("metric") == _ANCHOR).group_by(_FILING).agg(report=pl.col("end").max())
    rows = raw.select(*by_tag, "rank", "start", "end").join(anchor, on=_FILING, how="left")
    at_report = pl.col("end") == pl.col("report")
    about = pl.when(pl.col("start").is_not_null() & at_report.any().over(*_FILING, "metric")).then("report")
    rows = rows.with_columns(about=about.otherwise(pl.col("end").max().over(*_FILING, "metric")))
    tags = rows.group_by(by_tag).agg(pl.col("rank").first(), covers=(pl.col("end") == pl.col("about")).any())
    of_two = tags.filter(pl.len().over(*_FILING, "metric") > 1)
    # Most metrics have one tag in a filing: only of those that have more is anything to choose.
    judged = (
        tags.join(_ties(raw).with_columns(ties=pl.lit(True)), on=by_tag, how="left")
        .join(_parts(raw, of_two, "below").with_columns(below=pl.lit(True)), on=by_tag, how="left")
        .join(_parts(raw, of_two, "unless").with_columns(apart=pl.lit(True)), on=by_tag, how="left")
        .with_columns(pl.col("ties", "below", "apart").fill_null(False))
    )
    chosen = (
        judged.sort("covers", "ties", "below", "rank", descending=[True, True, False, False])
        .unique([*_FILING, "metric"], keep="first", maintain_order=True)
        .filter(~pl.col("apart") | pl.col("ties"))
    )
    return raw.join(chosen.select(by_tag), on=by_tag, how="semi", maintain_order="left")


def _without_negative(raw: pl.DataFrame, notes: list[str]) -> pl.DataFrame:
    """The figures without expenses below zero, which are named."""
    wrong = pl.col("metric").is_in(EXPENSES) & (pl.col("value") < 0)
    counted = raw.filter(wrong).group_by("symbol", "metric").len().sort("symbol", "metric")
    for symbol, metric, count in counted.iter_rows():
        notes.append(f"{symbol}: {count} figures of {metric} are negative: left out.")
    return raw.filter(~wrong)


def _ties(raw: pl.DataFrame) -> pl.DataFrame:
    """symbol, accession, metric, tag of the revenues and costs with which a statement of the filing adds up."""

    def of(*names: str) -> pl.DataFrame:
        found = raw.filter(pl.col("metric").is_in(names))
        return found.select(*_SPAN, pl.col("tag").alias(f"{names[0]}_tag"), pl.col("value").alias(names[0]))

    span = list(_SPAN)
    revenue, cost = of("revenue"), of("cost_of_revenue")
    margin = revenue.join(cost, on=span)
    gross = margin.join(of("gross_profit"), on=span)
    gross = gross.with_columns(left=pl.col("revenue") - pl.col("cost_of_revenue") - pl.col("gross_profit"))
    operating = margin.join(of("operating_expenses"), on=span).join(of("operating_income"), on=span)
    operating = operating.with_columns(
        left=pl.col("revenue") - pl.col("cost_of_revenue") - pl.col("operating_expenses") - pl.col("operating_income")
    )
    # Without a gross profit some file all costs as operating expenses.
    everything = of("costs_and_expenses", "operating_expenses")
    total = revenue.join(everything, on=span).join(of("operating_income", "pretax_income"), on=span)
    total = total.with_columns(left=pl.col("revenue") - pl.col("costs_and_expenses") - pl.col("operating_income"))
    tied = [one.filter(pl.col("left").abs() <= rounding(pl.col("revenue"))) for one in (gross, operating, total)]
    names = [
        (one, metric) for one in tied for metric in ("revenue", "cost_of_revenue") if f"{metric}_tag" in one.columns
    ]
    return pl.concat(
        one.select(*_FILING, pl.lit(metric).alias("metric"), pl.col(f"{metric}_tag").alias("tag"))
        for one, metric in names
    ).unique()


def _parts(raw: pl.DataFrame, of_two: pl.DataFrame, relation: str) -> pl.DataFrame:
    """symbol, accession, metric, tag that are only a part: below a greater figure, or beside another part (unless)."""
    by_tag = [*_FILING, "metric", "tag"]
    named = [
        (tag_of(alias.concept), tag_of(other))
        for metric in METRICS.values()
        for alias in metric.aliases
        for other in (alias.below if relation == "below" else alias.unless)
    ]
    table = pl.DataFrame(named, schema=["tag", "other"], orient="row")
    rows = raw.join(of_two, on=by_tag, how="semi").select(*by_tag, "start", "end", "value")
    others = rows.select(*_FILING, "start", "end", other="tag", total="value")
    if relation == "unless":
        return rows.join(table, on="tag").join(others, on=[*_FILING, "other"], how="semi").select(by_tag).unique()
    pairs = rows.join(table, on="tag").join(others, on=[*_SPAN, "other"])
    return pairs.filter(pl.col("total") > pl.col("value")).select(by_tag).unique()


def _only_lines(raw: pl.DataFrame) -> pl.DataFrame:
    """The figures without those of tags that count as lines of the cash flow statement but stand elsewhere too.

    An inner quarter filed with the year to date that ends with it shows that, unless the cash flow statement has the
    quarter too: once filed so, a tag is not trusted again. A term of a sum must have been filed for a part of a year;
    of an annual report alone nobody can tell.
    """
    lines = [alias.tag for metric in METRICS.values() for alias in metric.aliases if alias.line]
    terms = [alias.tag for metric in METRICS.values() for alias in metric.aliases if alias.line and metric.part]
    rows = raw.filter(pl.col("tag").is_in(lines))
    ending = [*_FILING, "tag", "end"]
    longer = pl.col("duration").is_in(["half", "nine_months", "annual"])
    quarter = pl.col("duration") == "quarterly"
    whole = raw.filter(quarter & (pl.col("metric") == _CASH)).select(_SPAN)
    inner = (
        rows.filter(longer)
        .select(ending)
        .unique()
        .join(rows.filter(quarter).join(whole, on=list(_SPAN), how="anti").select(*ending, "filed"), on=ending)
        .group_by("symbol", "tag")
        .agg(inner=pl.col("filed").min())
    )
    interim = rows.filter(longer & (pl.col("duration") != "annual")).group_by("symbol", "tag")
    seen = inner.join(interim.agg(interim=pl.col("filed").min()), on=["symbol", "tag"], how="full", coalesce=True)
    judged = raw.join(seen, on=["symbol", "tag"], how="left", maintain_order="left")
    never = pl.col("inner").is_null() | (pl.col("filed") < pl.col("inner"))
    shown = ~pl.col("tag").is_in(terms) | (pl.col("interim") <= pl.col("filed")).fill_null(False)
    return judged.filter(~pl.col("tag").is_in(lines) | (never & shown)).drop("inner", "interim")


def _exceeded(raw: pl.DataFrame) -> pl.DataFrame:
    """symbol, accession, tag of totals of depreciation and amortisation that another one, or depreciation, exceeds."""
    totals = raw.filter(pl.col("metric") == _DEPRECIATION)
    others = raw.filter((pl.col("metric") == _DEPRECIATION) | (pl.col("tag") == _PART))
    pairs = totals.join(others.select(*_SPAN, other="tag", greater="value"), on=list(_SPAN))
    slack = pl.when(pl.col("other") == _PART).then(1.001).otherwise(1.0)
    return pairs.filter(pl.col("greater") > slack * pl.col("value")).select(*_FILING, "tag").unique()


def _whole_again(raw: pl.DataFrame) -> pl.DataFrame:
    """Depreciation and amortisation of filers that took the amortisation of intangibles out of its tag.

    A filing that lowers the figure of a period by just its amortisation shows that (Home Depot and AMD in 2024). From
    its day on the two are added, under both tags' names; where a period has no amortisation nothing is known.
    """
    key = ["symbol", "start", "end"]
    whole = raw.filter(pl.col("tag") == _WHOLE)
    part = raw.filter(pl.col("tag") == _AMORTIZATION).select(*_SPAN, amortization="value")
    both = whole.join(part, on=list(_SPAN))
    earlier = whole.select(*key, before="filed", earlier="value")
    lowered = both.join(earlier, on=key).filter(pl.col("before") < pl.col("filed"))
    missing = pl.col("earlier") - pl.col("value")
    lowered = lowered.filter(
        (missing > 0.02 * pl.col("earlier")) & ((missing - pl.col("amortization")).abs() <= rounding(pl.col("value")))
    )
    since = lowered.group_by("symbol").agg(since=pl.col("filed").min())
    if since.is_empty():
        return raw
    judged = raw.join(since, on="symbol", how="left", maintain_order="left").join(
        part, on=list(_SPAN), how="left", maintain_order="left"
    )
    split = (pl.col("tag") == _WHOLE) & (pl.col("filed") >= pl.col("since")).fill_null(False)
    return (
        judged.filter(~split | pl.col("amortization").is_not_null())
        .with_columns(
            value=pl.when(split).then(pl.col("value") + pl.col("amortization")).otherwise("value"),
            tag=pl.when(split).then(pl.lit(f"{_WHOLE}+{_AMORTIZATION}")).otherwise("tag"),
        )
        .drop("since", "amortization")
    )
