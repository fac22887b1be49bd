"""The part of the check of units that finds figures in thousands or millions."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta

import polars as pl

from finskillbench.domains.checks.examination import examining
from finskillbench.domains.fundamental.checks.reporting import add_rows, period_end
from finskillbench.domains.fundamental.second.definitions import YEAR_APART
from finskillbench.episode import Episode
from finskillbench.findings import Findings
from finskillbench.panels import Panels

_SCALES = (1e3, 1e6)
_SAME_FIGURE = 0.005
_SAME_PRODUCT = 0.2
"""Earnings per share have few digits, and preferred dividends come off net income."""
_LEAST_EPS = 0.05
_FEWER = ((300.0, 3e3), (3e5, 3e6))
"""How many times fewer shares than before speak of thousands or millions: no split is so large."""
_FILINGS_BEFORE = 8

_PERIOD = ["symbol", "metric", "start", "end"]
_FILING = ["symbol", "accession"]
_EARNED = ("net_income", "eps_diluted", "diluted_shares")


def check_scale(panels: Panels, episodes: Iterable[Episode], findings: Findings) -> None:
    """Add figures that are out of scale with others of their period or filing, or with filings before.

    A warning where the filer tagged them so and no episode is about their period while they are current: its user
    cannot mend a filing, and no label rests on it.
    """
    facts = panels.facts.filter(pl.col("value").is_finite())
    products = _products(facts)
    shares = _of_fewer_shares(facts, products.filter((pl.col("ratio") - 1).abs() < _SAME_PRODUCT))
    of_product = facts.filter(pl.col("metric").is_in(_EARNED)).join(
        products.filter(_scaled(_SAME_PRODUCT)), on=_FILING, how="semi"
    )
    of_shares = facts.filter(pl.col("unit") == "shares").join(shares, on=[*_FILING, "metric"], how="semi")
    ever = pl.lit(date.max).alias("until")
    ends = _ends(episodes, findings)
    for message, by, rows in (
        ("facts: one filing's figure is a power of ten of another's", _PERIOD, _shrunk(facts)),
        (
            "facts: net income is not earnings per share times shares, by thousands",
            _FILING,
            of_product.with_columns(ever),
        ),
        (
            "facts: its shares are fewer by thousands than in the filings before",
            [*_FILING, "metric", "filed"],
            of_shares.with_columns(ever),
        ),
    ):
        judged = rows.with_columns(aside=_as_filed(rows, panels.filed) & ~_asked(rows, ends))
        wrong = judged.group_by(by).agg(pl.col("aside").all(), last_filed=pl.col("filed").max()).sort(by)
        wrong = wrong.rename({} if "filed" in by else {"last_filed": "filed"})
        add_rows(wrong.filter(~pl.col("aside")), message, findings.fail)
        aside = wrong.filter("aside")
        add_rows(aside, f"{message}, as its filer tagged it; no episode is about the period", findings.warn)
        findings.add("set_aside", aside.height)
    findings.figures["products_examined"] = products.height


def _shrunk(facts: pl.DataFrame) -> pl.DataFrame:
    """The figures that are a thousandth or a millionth of another of their period, `until` that one was filed."""
    size = pl.col("value").abs()
    ratio = (size.max() / size.min()).over(_PERIOD)
    scaled = facts.filter(size > 0).with_columns(size=size, ratio=ratio).filter(_scaled(_SAME_FIGURE))
    shrunk = pl.col("size") < pl.col("size").max().over(_PERIOD) / min(_SCALES) ** 0.5
    right = pl.col("filed").filter(~shrunk).min().over(_PERIOD)
    return scaled.with_columns(until=right).filter(shrunk)


def _products(facts: pl.DataFrame) -> pl.DataFrame:
    """By filing the `ratio` of net income to earnings per share times shares."""
    key = [*_FILING, "start", "end"]
    income, per_share, shares = (
        facts.filter(pl.col("metric") == name).select(*key, pl.col("value").alias(name)) for name in _EARNED
    )
    product = income.join(per_share.filter(pl.col("eps_diluted").abs() >= _LEAST_EPS), on=key).join(shares, on=key)
    ratio = pl.col("net_income") / (pl.col("eps_diluted") * pl.col("diluted_shares"))
    return product.group_by(_FILING).agg(ratio=ratio.abs().median())


def _of_fewer_shares(facts: pl.DataFrame, borne_out: pl.DataFrame) -> pl.DataFrame:
    """symbol, metric, filed, accession whose least number of shares is out of scale with the filings before.

    borne_out : symbol, accession of filings whose earnings per share agree with their diluted shares.
    """
    key = ["symbol", "metric", "filed", "accession"]
    filings = (
        facts.filter((pl.col("unit") == "shares") & (pl.col("value") > 0))
        .group_by(key)
        .agg(least=pl.col("value").min(), usual=pl.col("value").median())
        .sort(key)
        .with_columns(
            times=pl.col("usual").shift(1).rolling_median(_FILINGS_BEFORE, min_samples=1).over("symbol", "metric")
            / pl.col("least")
        )
    )
    fewer = filings.filter(pl.any_horizontal([pl.col("times").is_between(*span) for span in _FEWER]))
    agrees = borne_out.select("symbol", "accession", metric=pl.lit("diluted_shares"))
    return fewer.join(agrees, on=["symbol", "metric", "accession"], how="anti")


def _scaled(within: float) -> pl.Expr:
    """Whether `ratio` is a power of a thousand, or its inverse."""
    scales = [scale for size in _SCALES for scale in (size, 1 / size)]
    return pl.any_horizontal([(pl.col("ratio") / scale - 1).abs() < within for scale in scales])


def _as_filed(rows: pl.DataFrame, filed: pl.DataFrame) -> pl.Series:
    """Whether the filer tagged each figure so, and later figures do not contradict an earlier right one.

    Derived figures count as tagged: other checks compute them again from the figures that they name.
    """
    figure = ["symbol", "tag", "start", "end", "unit", "value"]
    first = filed.group_by(figure).agg(tagged=pl.col("filed").min())
    joined = rows.join(first, on=figure, how="left", nulls_equal=True, maintain_order="left")
    tagged = pl.col("derived") | (pl.col("tagged") <= pl.col("filed")).fill_null(value=False)
    return joined.select((tagged & (pl.col("filed") < pl.col("until"))).fill_null(value=False)).to_series()


def _ends(episodes: Iterable[Episode], findings: Findings) -> pl.DataFrame:
    """What episodes are about: symbol, day, and the first and last day on which a period of the label may end."""
    found: list[tuple[str, date, date, date]] = []
    for episode in episodes:
        with examining(episode.task_id, findings):
            symbol, end = episode.input["symbol"], period_end(episode)
            spans = [(end, end)]
            if episode.sub_task == "driver_decomposition":
                prior = date.fromisoformat(episode.input["prior_period_end"])
                spans.append((prior, prior))
            elif episode.sub_task == "earnings_quality":
                least, most, _ = YEAR_APART
                spans.append((end - timedelta(days=most), end - timedelta(days=least)))
            found += [(symbol, episode.as_of_date, first, last) for first, last in spans]
    schema = {"symbol": pl.String, "day": pl.Date, "first": pl.Date, "last": pl.Date}
    return pl.DataFrame(found, schema=schema, orient="row")


def _asked(rows: pl.DataFrame, ends: pl.DataFrame) -> pl.Series:
    """Whether an episode is about the period of each figure on a day on which the figure is current."""
    numbered = rows.with_row_index("row")
    asked = numbered.join(ends, on="symbol").filter(
        pl.col("end").is_between("first", "last")
        & (pl.col("filed") <= pl.col("day"))
        & (pl.col("day") < pl.col("until"))
    )
    return numbered["row"].is_in(asked["row"].unique().implode())
