"""Choose one tag per metric and filing by the arithmetic of the statement.

Prefer a tag whose figures tie, such as revenue less cost is gross profit. Then prefer one that no other exceeds, then
the order of the metrics table. Only past filings are used.
"""

import polars as pl

from finskillbench.sources.edgar.numerals import METRICS, local_name

PERIOD = ("symbol", "metric", "start", "end")
EXPENSES = (
    *("cost_of_revenue", "sga", "rnd", "depreciation_amortization", "interest_expense", "capex"),
    *("operating_expenses", "costs_and_expenses"),
)
"""Metrics that are never negative; a negative figure has a wrong sign or tag."""

_ANCHOR = "total_assets"
"""Metric whose last day is the report date."""
_CASH = "operating_cash_flow"
_DEPRECIATION = "depreciation_amortization"
_ADJUSTMENT = "AdjustmentForAmortization"
"""Line of the cash flow statement by definition."""
_OUTSIDE = "DepreciationNonproduction"
_PARTS = ("depreciation", "depreciation_elsewhere")
_SMALL = 0.02
"""Share of depreciation and amortisation below which amortisation is too small to show what a total includes."""
_FILING = ("symbol", "accession")
_SPAN = (*_FILING, "start", "end")


def _rounding(*figures: pl.Expr) -> pl.Expr:
    """Return the tolerance of a sum of rounded figures: 2.5 units of the last place common to all."""
    return 2.5 * pl.min_horizontal(_last_place(term) for term in figures)


def restated(value: pl.Expr, before: pl.Expr) -> pl.Expr:
    """Test if a figure differs from the one filed before by more than rounding."""
    unit = pl.min_horizontal(_last_place(value), 0.01 * before.abs())
    return (value - before).abs() > pl.max_horizontal(1.0, 5e-4 * before.abs(), unit)


def _last_place(value: pl.Expr) -> pl.Expr:
    """Return the unit a figure was rounded to: a million, a tenth of one, a thousand or one."""
    place = pl.lit(1.0)
    for unit in (1e3, 1e5, 1e6):
        place = pl.when((value % unit) == 0).then(pl.lit(unit)).otherwise(place)
    return place


def one_tag_per_filing(raw: pl.DataFrame, notes: list[str]) -> pl.DataFrame:
    """Keep the figures under one tag per metric and filing; `raw` has `rank`, `weak` and `duration`."""
    raw, judged = judge_tags(raw, notes)
    first = judged.unique([*_FILING, "metric"], keep="first", maintain_order=True)
    chosen = first.filter(~pl.col("apart") | pl.col("ties"))
    return raw.join(chosen, on=[*_FILING, "metric", "tag"], how="semi", maintain_order="left")


def judge_tags(raw: pl.DataFrame, notes: list[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the eligible figures, and the verdict on every tag by metric and filing.

    The second table has symbol, accession, metric, tag, rank and flags: `covers` the report date; `rounded`, another
    figure is this one unrounded; `ties` with the statement; `below` a greater total; `apart` from the other part of the
    total, allowed only for tags that tie. It is sorted by these and by rank, and the first tag is chosen.
    """
    raw = _with_amortization(_without_components(_without_negative(raw, notes)))
    raw = _only_lines(raw.join(_exceeded(raw), on=[*_FILING, "tag"], how="anti", maintain_order="left"))
    by_tag = [*_FILING, "metric", "tag"]
    anchor = raw.filter(pl.col("metric") == _ANCHOR).group_by(_FILING).agg(report=pl.col("end").max())
    rows = raw.select(*by_tag, "rank", "start", "end").join(anchor, on=_FILING, how="left")
    at_report = pl.col("end") == pl.col("report")
    about = pl.when(pl.col("start").is_not_null() & at_report.any().over(*_FILING, "metric")).then("report")
    rows = rows.with_columns(about=about.otherwise(pl.col("end").max().over(*_FILING, "metric")))
    tags = rows.group_by(by_tag).agg(pl.col("rank").first(), covers=(pl.col("end") == pl.col("about")).any())
    of_two = tags.filter(pl.len().over(*_FILING, "metric") > 1)
    # Most metrics have one tag per filing; only the others need a choice.
    found = {
        "ties": _ties(raw),
        "rounded": _rounded(raw, of_two),
        "below": _parts(raw, of_two, "below"),
        "apart": _parts(raw, of_two, "unless"),
    }
    judged = tags
    for name, some in found.items():
        judged = judged.join(some.with_columns(pl.lit(True).alias(name)), on=by_tag, how="left")
    judged = judged.with_columns(pl.col(*found).fill_null(False))
    order = ("covers", "rounded", "ties", "below", "rank")
    return raw, judged.sort(order, descending=[True, False, True, False, False])


def _without_negative(raw: pl.DataFrame, notes: list[str]) -> pl.DataFrame:
    wrong = pl.col("metric").is_in(EXPENSES) & (pl.col("value") < 0)
    counted = raw.filter(wrong).group_by("symbol", "metric").len().sort("symbol", "metric")
    for symbol, metric, count in counted.iter_rows():
        notes.append(f"{symbol}: {count} figures of {metric} are negative: left out.")
    return raw.filter(~wrong)


def _without_components(raw: pl.DataFrame) -> pl.DataFrame:
    """Drop figures of all equity smaller than the parent's share, which are components of it."""
    key = [*_FILING, "end"]
    whole = raw.filter(pl.col("metric") == "all_equity")
    parent_equity = raw.filter(pl.col("metric") == "stockholders_equity").join(whole, on=key, how="semi")
    whole = whole.join(parent_equity.group_by(key).agg(parent=pl.col("value").max()), on=key)
    parts = whole.filter((pl.col("parent") > 0) & (pl.col("value") < 0.9 * pl.col("parent"))).select(*key, "tag")
    return raw if parts.is_empty() else raw.join(parts, on=[*key, "tag"], how="anti", maintain_order="left")


def _ties(raw: pl.DataFrame) -> pl.DataFrame:
    """Return symbol, accession, metric, tag of revenues and costs with which a statement adds up."""

    def of(*names: str) -> pl.DataFrame:
        found = raw.filter(pl.col("metric").is_in(names))
        return found.select(*_SPAN, pl.col("tag").alias(f"{names[0]}_tag"), pl.col("value").alias(names[0]))

    def adding_up(statement: pl.DataFrame, *less: str) -> pl.DataFrame:
        deductions = [pl.col(name).fill_null(0.0) for name in less]
        left = pl.col("revenue") - pl.sum_horizontal(deductions)
        return statement.filter(left.abs() <= _rounding(pl.col("revenue"), *(pl.col(name) for name in less)))

    span = list(_SPAN)
    revenue, cost, income = of("revenue"), of("cost_of_revenue"), of("operating_income")
    margin = revenue.join(cost, on=span)
    itemised = margin.join(income, on=span).join(of("sga"), on=span).join(of("rnd"), on=span, how="left")
    # Without a gross profit, some file all costs as operating expenses.
    everything = of("costs_and_expenses", "operating_expenses")
    total = revenue.join(everything, on=span).join(of("operating_income", "pretax_income"), on=span)
    tied = [
        adding_up(margin.join(of("gross_profit"), on=span), "cost_of_revenue", "gross_profit"),
        adding_up(
            margin.join(of("operating_expenses"), on=span).join(income, on=span),
            *("cost_of_revenue", "operating_expenses", "operating_income"),
        ),
        adding_up(itemised, "cost_of_revenue", "sga", "rnd", "operating_income"),
        adding_up(total, "costs_and_expenses", "operating_income"),
    ]
    names = [(one, key) for one in tied for key in ("revenue", "cost_of_revenue") if f"{key}_tag" in one.columns]
    return pl.concat(
        one.select(*_FILING, pl.lit(metric).alias("metric"), pl.col(f"{metric}_tag").alias("tag"))
        for one, metric in names
    ).unique()


def _rounded(raw: pl.DataFrame, of_two: pl.DataFrame) -> pl.DataFrame:
    """Return symbol, accession, metric, tag of figures that round another one of the metric to a greater unit."""
    by_tag = [*_FILING, "metric", "tag"]
    rows = raw.join(of_two, on=by_tag, how="semi").select(*by_tag, "start", "end", "value", "weak")
    finer_figures = rows.filter(~pl.col("weak")).select(*_FILING, "metric", "start", "end", finer="value")
    pairs = rows.join(finer_figures, on=[*_FILING, "metric", "start", "end"], nulls_equal=True)
    is_rounding = pl.any_horizontal(
        (pl.col("value") % unit == 0)
        & (pl.col("finer") % unit != 0)
        & ((pl.col("value") - pl.col("finer")).abs() <= pl.min_horizontal(unit / 2, 0.01 * pl.col("value").abs()))
        for unit in (1e6, 1e7, 1e8, 1e9)
    )
    return pairs.filter(is_rounding).select(by_tag).unique()


def _parts(raw: pl.DataFrame, of_two: pl.DataFrame, relation: str) -> pl.DataFrame:
    """Return symbol, accession, metric, tag of parts: below a greater figure, or filed with another part (unless)."""
    by_tag = [*_FILING, "metric", "tag"]
    named = [
        (local_name(alias.concept), local_name(other))
        for metric in METRICS.values()
        for alias in metric.aliases
        for other in (alias.below if relation == "below" else alias.unless)
    ]
    table = pl.DataFrame(named, schema=["tag", "other"], orient="row")
    rows = raw.join(of_two, on=by_tag, how="semi").select(*by_tag, "start", "end", "value")
    other_tags = rows.select(*_FILING, "start", "end", other="tag", total="value")
    if relation == "unless":
        return rows.join(table, on="tag").join(other_tags, on=[*_FILING, "other"], how="semi").select(by_tag).unique()
    pairs = rows.join(table, on="tag").join(other_tags, on=[*_SPAN, "other"])
    return pairs.filter(pl.col("total") > pl.col("value")).select(by_tag).unique()


def _only_lines(raw: pl.DataFrame) -> pl.DataFrame:
    """Keep figures of depreciation and amortisation that belong to the cash flow statement.

    Notes give the quarter with the year to date; the statement usually gives the year to date alone. A tag is a line of
    the statement if most interim reports so far show that. Terms of sums must be such lines, or in any interim report
    where the metrics table allows it. A quarter in a note does not count for a total that is a line: it may be a part.
    """
    aliases = [alias for metric in METRICS.values() for alias in metric.aliases]
    component_tags = [alias.tag for alias in aliases if alias.line or alias.interim]
    enough = pl.col("tag").is_in([alias.tag for alias in aliases if alias.interim])
    total = pl.col("metric") == _DEPRECIATION
    rows = raw.filter(pl.col("tag").is_in(component_tags) | total)
    longer = rows.filter(pl.col("duration").is_in(["half", "nine_months", "annual"]))
    whole = raw.filter((pl.col("duration") == "quarterly") & (pl.col("metric") == _CASH)).select(_SPAN)
    key = [*_FILING, "tag"]
    ending = longer.select(*key, "end").unique()
    quarter = rows.filter(pl.col("duration") == "quarterly").join(whole, on=list(_SPAN), how="anti")
    inner = quarter.select(*key, "end", inner=pl.lit(True)).unique()
    interim = longer.filter(pl.col("duration") != "annual")
    shown = interim.join(inner, on=[*key, "end"], how="left").group_by(*key, "filed")
    shown = shown.agg(line=pl.col("inner").is_null().all()).sort("filed", "accession")
    score = pl.when("line").then(1).otherwise(-1).cum_sum().over("symbol", "tag")
    known = shown.with_columns(score=score).select("symbol", "tag", "filed", "score").sort("filed")
    filings = rows.select(*key, "filed").unique().sort("filed")
    judged = filings.join_asof(known, on="filed", by=["symbol", "tag"], check_sortedness=False)
    lines = judged.filter((pl.col("score") > 0) | (enough & pl.col("score").is_not_null())).select(key)
    noted = quarter.filter(total).join(ending, on=[*key, "end"], how="semi").join(lines, on=key, how="semi")
    kept = rows.join(noted.select(*key, "start", "end"), on=[*key, "start", "end"], how="anti")
    is_component = pl.col("tag").is_in(component_tags)
    kept = pl.concat([kept.filter(~is_component), kept.filter(is_component).join(lines, on=key, how="semi")])
    return pl.concat([raw.filter(~(pl.col("tag").is_in(component_tags) | total)), kept])


def _exceeded(raw: pl.DataFrame) -> pl.DataFrame:
    """Return symbol, accession, tag of totals below another total or depreciation, or equal to nonproduction
    depreciation.
    """
    totals = raw.filter(pl.col("metric") == _DEPRECIATION)
    candidates = raw.filter(pl.col("metric").is_in([_DEPRECIATION, *_PARTS]))
    pairs = totals.join(candidates.select(*_SPAN, of="metric", by="tag", greater="value"), on=list(_SPAN))
    slack = pl.when(pl.col("of") == _DEPRECIATION).then(1.0).otherwise(1.001)
    outside = (pl.col("by") == _OUTSIDE) & (pl.col("greater") == pl.col("value"))
    return pairs.filter(outside | (pl.col("greater") > slack * pl.col("value"))).select(*_FILING, "tag").unique()


def _with_amortization(raw: pl.DataFrame) -> pl.DataFrame:
    """Add the amortisation that a tag of depreciation and amortisation leaves out.

    A total leaves it out if it lowers an earlier figure by just its amortisation (Home Depot and AMD in 2024), or
    equals the depreciation in a note, or amortisation is a separate line. This holds until a later total includes
    both. The sum carries both tags; periods without amortisation are dropped.
    """
    key, span = ["symbol", "start", "end"], list(_SPAN)
    totals = raw.filter(pl.col("metric") == _DEPRECIATION)
    amortization = (
        raw.filter(pl.col("metric") == "amortization").sort("rank").unique(span, keep="first", maintain_order=True)
    )
    both = totals.join(amortization.select(*span, part="value", part_tag="tag"), on=span)
    noted = raw.filter(pl.col("metric") == "depreciation").select(*span, depreciation="value")
    both = both.join(noted, on=span, how="left").filter(pl.col("part") > _SMALL * pl.col("value"))
    earlier = totals.select(*key, "tag", before="filed", earlier="value")
    lowered = both.join(earlier, on=[*key, "tag"]).filter(pl.col("before") < pl.col("filed"))
    near = _rounding(pl.col("value"), pl.col("earlier")) + _last_place(pl.col("part")) / 2
    lowered = lowered.filter((pl.col("earlier") - pl.col("value") - pl.col("part")).abs() <= near)
    tolerance = _last_place(pl.col("depreciation")) + 0.001 * pl.col("value")
    holds = pl.col("value") >= pl.col("depreciation") + pl.col("part") - tolerance
    alone = (pl.col("value") >= pl.col("depreciation") - tolerance) & (
        pl.col("value") < pl.col("depreciation") + pl.col("part") / 2
    )
    separate_line = (pl.col("part_tag") == _ADJUSTMENT) & pl.col("depreciation").is_null()
    event = ["symbol", "tag", "filed"]
    latest = both.sort("end", pl.col("end") - pl.col("start")).unique([*_FILING, "tag"], keep="last")
    shown = pl.concat(
        [
            latest.filter(holds).select(*event, out=pl.lit(0)),
            latest.filter(~holds.fill_null(False) & (alone | separate_line).fill_null(False)).select(
                *event, out=pl.lit(1)
            ),
            lowered.select(*event, out=pl.lit(1)),
        ]
    )
    shown = shown.group_by(event).agg(pl.col("out").max()).sort("filed")
    if not shown["out"].sum():
        return raw
    judged = totals.sort("filed").join_asof(shown, on="filed", by=["symbol", "tag"], check_sortedness=False)
    out = judged.filter(pl.col("out") == 1).join(
        amortization.select(*span, part="value", part_tag="tag"), on=span, how="inner"
    )
    out = out.with_columns(
        value=pl.col("value") + pl.col("part"), tag=pl.concat_str("tag", pl.lit("+"), "part_tag")
    ).select(raw.columns)
    other_metrics = raw.filter(pl.col("metric") != _DEPRECIATION)
    return pl.concat([other_metrics, judged.filter(pl.col("out").fill_null(0) == 0).select(raw.columns), out])
