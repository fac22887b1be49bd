"""Checks of the tables of facts, filings and segments: forms, durations, units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date, timedelta

import polars as pl

from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.domains.fundamental.checks.rows import add_rows, fail_rows, period_end
from finskillbench.domains.fundamental.rederive import definitions
from finskillbench.episode import Episode
from finskillbench.findings import Findings
from finskillbench.panels import Panels
from finskillbench.scoring.values import as_object

FLOWS = (
    "revenue",
    "cost_of_revenue",
    "gross_profit",
    "operating_income",
    "net_income",
    "sga",
    "rnd",
    "operating_expenses",
    "depreciation_amortization",
    "interest_expense",
    "income_tax",
    "operating_cash_flow",
    "investing_cash_flow",
    "financing_cash_flow",
    "cash_change",
    "exchange_rate_effect",
    "capex",
    "eps_diluted",
    "diluted_shares",
)
INSTANTS = (
    "total_assets",
    "total_liabilities",
    "stockholders_equity",
    "minority_interest",
    "current_assets",
    "current_liabilities",
    "receivables",
    "inventory",
    "ppe_net",
    "long_term_debt",
    "cash",
    "shares_outstanding",
)
UNITS = dict.fromkeys((*FLOWS, *INSTANTS), "USD") | {
    "eps_diluted": "USD/shares",
    "diluted_shares": "shares",
    "shares_outstanding": "shares",
}
PERIODIC = frozenset(form + suffix for form in (*definitions.FORMS, "10-QT", "10-KT") for suffix in ("", "/A"))
"""Reports whose figures may enter a label; proxy statements and 8-Ks are excluded."""

_LATE_DAYS = 5


def check_forms(subject: Subject, findings: Findings) -> None:
    """Check that facts come from listed periodic reports, and that an episode is of the first report of its period."""
    panels = subject.panels(findings)
    if panels is None:
        return
    facts, filings = panels.facts, panels.filings
    for name, frame in (("facts", facts), ("filings", filings)):
        other = ~pl.col("form").is_in(PERIODIC).fill_null(value=False)
        fail_rows(frame.filter(other), f"{name}: does not come from a periodic report", findings)
    twice = filings.filter(pl.struct("symbol", "accession").is_duplicated())
    fail_rows(twice, "filings: duplicate accession number", findings)
    fail_rows(
        filings.filter(pl.col("filed") < pl.col("period_end")), "filings: was filed before its period ended", findings
    )
    of_filing = filings.select("symbol", "accession", listed_form="form", listed_filed="filed")
    listed = of_filing.unique(["symbol", "accession"])
    joined = facts.join(listed, on=["symbol", "accession"], how="left")
    late = (pl.col("filed") - pl.col("listed_filed")).dt.total_days()
    fail_rows(
        joined.filter(pl.col("listed_form") != pl.col("form")),
        "facts: its form differs from that of its filing",
        findings,
    )
    other_day = joined.filter((late < 0) | (late > _LATE_DAYS))
    fail_rows(other_day, "facts: was not filed on the day of its filing", findings)
    # EDGAR's two services date filings accepted after hours differently; a later date causes no look-ahead.
    for symbol, accession in (
        joined.filter(late.is_between(1, _LATE_DAYS)).select("symbol", "accession").unique().rows()
    ):
        findings.warn(f"{symbol} {accession}", "its facts are dated some days after its filing")
    unlisted = joined.filter(
        pl.col("listed_form").is_null() & ~pl.col("derived") & (pl.col("metric") != "shares_outstanding")
    )
    fail_rows(unlisted, "facts: its filing is not among the filings", findings)
    segments = panels.segments.join(listed, on=["symbol", "accession"], how="left")
    fail_rows(
        segments.filter((pl.col("listed_filed") != pl.col("filed")).fill_null(value=True)),
        "segments: its filing is not among the filings, or was filed on another day",
        findings,
    )
    first: dict[tuple[str, date], tuple[str, date]] = {}
    about = filings.filter(pl.col("form").is_in(definitions.FORMS) & (pl.col("filed") > pl.col("period_end")))
    columns = about.sort("filed", "accession").select("symbol", "period_end", "form", "filed")
    for symbol, end, form, filed in columns.iter_rows():
        first.setdefault((symbol, end), (form, filed))
    for episode in subject.episodes:
        with examining(episode.task_id, findings):
            _check_report(episode, first, findings)
    findings.figures |= {
        "facts": dict(sorted(Counter(facts["form"]).items())),
        "filings": dict(sorted(Counter(filings["form"]).items())),
    }


def _check_report(episode: Episode, first: Mapping[tuple[str, date], tuple[str, date]], findings: Findings) -> None:
    form, end = episode.input["form_type"], period_end(episode)
    definitions.period_of(form)
    report = first.get((episode.input["symbol"], end))
    findings.expect(
        report is not None and report[0] == form,
        episode.task_id,
        f"is of a {form} to {end}, the filings have {'none' if report is None else f'a {report[0]}'}",
    )
    in_metadata = as_object(episode.metadata).get("form_type")
    findings.expect(
        in_metadata in (None, form), episode.task_id, f"form_type is {in_metadata} in the metadata, {form} in the input"
    )


def check_durations(subject: Subject, findings: Findings) -> None:
    """Check duration classes, that flows have a start and balances none, and that episode periods exist."""
    panels = subject.panels(findings)
    if panels is None:
        return
    for name, frame in (("facts", panels.facts), ("segments", panels.segments)):
        fail_rows(frame.filter(pl.col("end").is_null() | pl.col("filed").is_null()), f"{name}: lacks a date", findings)
        fail_rows(frame.filter(pl.col("start") > pl.col("end")), f"{name}: starts after it ends", findings)
        periods = frame.select("start", "end").unique().drop_nulls("end")
        kinds = pl.Series("kind", [definitions.kind_of(*row) for row in periods.iter_rows()], dtype=pl.String)
        classed = frame.join(periods.with_columns(kinds), on=["start", "end"], how="left", nulls_equal=True)
        wrong = classed.filter((pl.col("duration") != pl.col("kind")).fill_null(value=False))
        fail_rows(wrong, f"{name}: its duration does not match its dates", findings)
    instant = pl.col("start").is_null()
    facts = panels.facts
    fail_rows(facts.filter(pl.col("metric").is_in(FLOWS) & instant), "facts: a flow without a first day", findings)
    fail_rows(facts.filter(pl.col("metric").is_in(INSTANTS) & ~instant), "facts: a balance over a period", findings)
    fail_rows(
        panels.segments.filter(~pl.col("duration").is_in(list(definitions.LENGTHS))),
        "segments: not a reporting period",
        findings,
    )
    known = set(facts.select("symbol", "end", "duration").unique().iter_rows())
    for episode in subject.episodes:
        with examining(episode.task_id, findings):
            _check_periods(episode, known, findings)
    findings.figures |= {"facts": dict(sorted(Counter(facts["duration"]).items()))}


def _check_periods(episode: Episode, known: set[tuple[str, date, str]], findings: Findings) -> None:
    symbol, end = episode.input["symbol"], period_end(episode)
    kind = definitions.period_of(episode.input["form_type"]) if episode.sub_task == "normalization" else "quarterly"
    wanted = [(end, kind)]
    if episode.sub_task == "driver_decomposition":
        prior = date.fromisoformat(episode.input["prior_period_end"])
        least, most, _ = definitions.QUARTER_APART
        distance = (end - prior).days
        findings.expect(least <= distance <= most, episode.task_id, f"its quarters end {distance} days apart")
        wanted.append((prior, "quarterly"))
    for day, period in wanted:
        findings.expect(
            (symbol, day, period) in known, episode.task_id, f"no {period} figures of {symbol} end on {day}"
        )


def check_metric_units(subject: Subject, findings: Findings) -> None:
    """Check that each metric is known and in its unit, each value finite, and no figure in thousands or millions."""
    panels = subject.panels(findings)
    if panels is None:
        return
    facts = panels.facts
    wanted = pl.col("metric").replace_strict(UNITS, default=None, return_dtype=pl.String)
    fail_rows(facts.filter(wanted.is_null()), "facts: unknown metric", findings)
    fail_rows(
        facts.filter(pl.col("unit").fill_null("no unit") != wanted),
        "facts: its unit is not that of its metric",
        findings,
    )
    for name, frame in (("facts", facts), ("segments", panels.segments)):
        number = pl.col("value").is_finite().fill_null(value=False)
        fail_rows(frame.filter(~number), f"{name}: its value is not a finite number", findings)
    shares = (pl.col("unit") == "shares") & (pl.col("value") <= 0)
    fail_rows(facts.filter(shares), "facts: a count of shares that is not positive", findings)
    check_scale(panels, subject.episodes, findings)
    findings.figures |= {"metrics": facts["metric"].n_unique(), "units": dict(sorted(Counter(facts["unit"]).items()))}


_SCALES = (1e3, 1e6)
_SAME_FIGURE = 0.005
_SAME_PRODUCT = 0.2
"""Tolerance for few-digit earnings per share and preferred dividends."""
_LEAST_EPS = 0.05
_FEWER = ((300.0, 3e3), (3e5, 3e6))
"""Drops in share count that indicate thousands or millions; splits are smaller."""
_FILINGS_BEFORE = 8

_PERIOD = ["symbol", "metric", "start", "end"]
_FILING = ["symbol", "accession"]
_EARNED = ("net_income", "eps_diluted", "diluted_shares")


def check_scale(panels: Panels, episodes: Iterable[Episode], findings: Findings) -> None:
    """Report figures out of scale; a warning if the filer tagged them so and no episode uses them, else a failure."""
    facts = panels.facts.filter(pl.col("value").is_finite())
    products = _products(facts)
    shares = _of_fewer_shares(facts, products.filter((pl.col("ratio") - 1).abs() < _SAME_PRODUCT))
    of_product = facts.filter(pl.col("metric").is_in(_EARNED)).join(
        products.filter(_scaled(_SAME_PRODUCT)), on=_FILING, how="semi"
    )
    of_shares = facts.filter(pl.col("unit") == "shares").join(shares, on=[*_FILING, "metric"], how="semi")
    ever = pl.lit(date.max).alias("until")
    ends = _episode_periods(episodes, findings)
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
        judged = rows.with_columns(aside=_as_filed(rows, panels.filed) & ~_used_by_episode(rows, ends))
        wrong = judged.group_by(by).agg(pl.col("aside").all(), last_filed=pl.col("filed").max()).sort(by)
        wrong = wrong.rename({} if "filed" in by else {"last_filed": "filed"})
        add_rows(wrong.filter(~pl.col("aside")), message, findings.fail)
        aside = wrong.filter("aside")
        add_rows(aside, f"{message}, as its filer tagged it; no episode is about the period", findings.warn)
        findings.add("set_aside", aside.height)
    findings.figures["products_examined"] = products.height


def _shrunk(facts: pl.DataFrame) -> pl.DataFrame:
    """Return figures a thousandth or millionth of another of their period; `until` is that one's filing date."""
    size = pl.col("value").abs()
    ratio = (size.max() / size.min()).over(_PERIOD)
    scaled = facts.filter(size > 0).with_columns(size=size, ratio=ratio).filter(_scaled(_SAME_FIGURE))
    shrunk = pl.col("size") < pl.col("size").max().over(_PERIOD) / min(_SCALES) ** 0.5
    right = pl.col("filed").filter(~shrunk).min().over(_PERIOD)
    return scaled.with_columns(until=right).filter(shrunk)


def _products(facts: pl.DataFrame) -> pl.DataFrame:
    """Return by filing the `ratio` of net income to earnings per share times shares."""
    key = [*_FILING, "start", "end"]
    income, per_share, shares = (
        facts.filter(pl.col("metric") == name).select(*key, pl.col("value").alias(name)) for name in _EARNED
    )
    product = income.join(per_share.filter(pl.col("eps_diluted").abs() >= _LEAST_EPS), on=key).join(shares, on=key)
    ratio = pl.col("net_income") / (pl.col("eps_diluted") * pl.col("diluted_shares"))
    return product.group_by(_FILING).agg(ratio=ratio.abs().median())


def _of_fewer_shares(facts: pl.DataFrame, borne_out: pl.DataFrame) -> pl.DataFrame:
    """Return symbol, metric, filed, accession with share counts out of scale with earlier filings.

    borne_out : filings whose earnings per share agree with their diluted shares.
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
    """Match a `ratio` near a power of a thousand or its inverse."""
    scales = [scale for size in _SCALES for scale in (size, 1 / size)]
    return pl.any_horizontal([(pl.col("ratio") / scale - 1).abs() < within for scale in scales])


def _as_filed(rows: pl.DataFrame, filed: pl.DataFrame) -> pl.Series:
    """Mark figures that the filer tagged so, or that are derived, and that precede the period's correct figure."""
    figure = ["symbol", "tag", "start", "end", "unit", "value"]
    first = filed.group_by(figure).agg(tagged=pl.col("filed").min())
    joined = rows.join(first, on=figure, how="left", nulls_equal=True, maintain_order="left")
    tagged = pl.col("derived") | (pl.col("tagged") <= pl.col("filed")).fill_null(value=False)
    return joined.select((tagged & (pl.col("filed") < pl.col("until"))).fill_null(value=False)).to_series()


def _episode_periods(episodes: Iterable[Episode], findings: Findings) -> pl.DataFrame:
    """Return symbol, day, and first and last possible period end of each episode's label."""
    found: list[tuple[str, date, date, date]] = []
    for episode in episodes:
        with examining(episode.task_id, findings):
            symbol, end = episode.input["symbol"], period_end(episode)
            spans = [(end, end)]
            if episode.sub_task == "driver_decomposition":
                prior = date.fromisoformat(episode.input["prior_period_end"])
                spans.append((prior, prior))
            elif episode.sub_task == "earnings_quality":
                least, most, _ = definitions.YEAR_APART
                spans.append((end - timedelta(days=most), end - timedelta(days=least)))
            found += [(symbol, episode.as_of_date, first, last) for first, last in spans]
    schema = {"symbol": pl.String, "day": pl.Date, "first": pl.Date, "last": pl.Date}
    return pl.DataFrame(found, schema=schema, orient="row")


def _used_by_episode(rows: pl.DataFrame, ends: pl.DataFrame) -> pl.Series:
    """Mark figures whose period an episode uses on a day when they are current."""
    numbered = rows.with_row_index("row")
    used = numbered.join(ends, on="symbol").filter(
        pl.col("end").is_between("first", "last")
        & (pl.col("filed") <= pl.col("day"))
        & (pl.col("day") < pl.col("until"))
    )
    return numbered["row"].is_in(used["row"].unique().implode())
