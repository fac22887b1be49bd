"""Checks of the tables of facts, filings and segments: forms, durations, units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import date

import polars as pl

from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.domains.fundamental.checks.reporting import fail_rows, period_end
from finskillbench.domains.fundamental.checks.scale import check_scale
from finskillbench.domains.fundamental.second.definitions import FORMS, LENGTHS, QUARTER_APART, kind_of, period_of
from finskillbench.episode import Episode
from finskillbench.findings import Findings
from finskillbench.scoring.values import mapping

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
"""Metrics over a period."""
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
"""Metrics at a date."""
UNITS = dict.fromkeys((*FLOWS, *INSTANTS), "USD") | {
    "eps_diluted": "USD/shares",
    "diluted_shares": "shares",
    "shares_outstanding": "shares",
}
PERIODIC = frozenset(form + suffix for form in (*FORMS, "10-QT", "10-KT") for suffix in ("", "/A"))
"""Reports whose figures may enter a label; a proxy statement or an 8-K repeats some."""

_LATE_DAYS = 5


def forms(subject: Subject, findings: Findings) -> None:
    """Facts come from periodic reports that the filings list; an episode is of the first report of its period."""
    panels = subject.panels(findings)
    if panels is None:
        return
    facts, filings = panels.facts, panels.filings
    for name, frame in (("facts", facts), ("filings", filings)):
        other = ~pl.col("form").is_in(PERIODIC).fill_null(value=False)
        fail_rows(frame.filter(other), f"{name}: is of no periodic report", findings)
    twice = filings.filter(pl.struct("symbol", "accession").is_duplicated())
    fail_rows(twice, "filings: its accession number is there twice", findings)
    fail_rows(
        filings.filter(pl.col("filed") < pl.col("period_end")), "filings: was filed before its period ended", findings
    )
    of_filing = filings.select("symbol", "accession", listed_form="form", listed_filed="filed")
    listed = of_filing.unique(["symbol", "accession"])
    joined = facts.join(listed, on=["symbol", "accession"], how="left")
    late = (pl.col("filed") - pl.col("listed_filed")).dt.total_days()
    fail_rows(
        joined.filter(pl.col("listed_form") != pl.col("form")), "facts: is of another form than its filing", findings
    )
    other_day = joined.filter((late < 0) | (late > _LATE_DAYS))
    fail_rows(other_day, "facts: was not filed on the day of its filing", findings)
    # EDGAR dates what was accepted after hours differently in its two services; known later is no look-ahead.
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
    about = filings.filter(pl.col("form").is_in(FORMS) & (pl.col("filed") > pl.col("period_end")))
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
    period_of(form)
    report = first.get((episode.input["symbol"], end))
    findings.expect(
        report is not None and report[0] == form,
        episode.task_id,
        f"is of a {form} to {end}, the filings have {'none' if report is None else f'a {report[0]}'}",
    )
    in_metadata = mapping(episode.metadata).get("form_type")
    findings.expect(in_metadata in (None, form), episode.task_id, f"metadata says {in_metadata}, the input {form}")


def durations(subject: Subject, findings: Findings) -> None:
    """Periods are classified by their dates; flows have a first day, balances none; episodes are of whole periods."""
    panels = subject.panels(findings)
    if panels is None:
        return
    for name, frame in (("facts", panels.facts), ("segments", panels.segments)):
        fail_rows(frame.filter(pl.col("end").is_null() | pl.col("filed").is_null()), f"{name}: lacks a date", findings)
        fail_rows(frame.filter(pl.col("start") > pl.col("end")), f"{name}: starts after it ends", findings)
        periods = frame.select("start", "end").unique().drop_nulls("end")
        kinds = pl.Series("kind", [kind_of(*row) for row in periods.iter_rows()], dtype=pl.String)
        classed = frame.join(periods.with_columns(kinds), on=["start", "end"], how="left", nulls_equal=True)
        wrong = classed.filter((pl.col("duration") != pl.col("kind")).fill_null(value=False))
        fail_rows(wrong, f"{name}: its duration is not that of its dates", findings)
    instant = pl.col("start").is_null()
    facts = panels.facts
    fail_rows(facts.filter(pl.col("metric").is_in(FLOWS) & instant), "facts: a flow without a first day", findings)
    fail_rows(facts.filter(pl.col("metric").is_in(INSTANTS) & ~instant), "facts: a balance over a period", findings)
    fail_rows(
        panels.segments.filter(~pl.col("duration").is_in(list(LENGTHS))), "segments: over no reporting period", findings
    )
    known = set(facts.select("symbol", "end", "duration").unique().iter_rows())
    for episode in subject.episodes:
        with examining(episode.task_id, findings):
            _check_periods(episode, known, findings)
    findings.figures |= {"facts": dict(sorted(Counter(facts["duration"]).items()))}


def _check_periods(episode: Episode, known: set[tuple[str, date, str]], findings: Findings) -> None:
    symbol, end = episode.input["symbol"], period_end(episode)
    kind = period_of(episode.input["form_type"]) if episode.sub_task == "normalization" else "quarterly"
    wanted = [(end, kind)]
    if episode.sub_task == "driver_decomposition":
        prior = date.fromisoformat(episode.input["prior_period_end"])
        least, most, _ = QUARTER_APART
        distance = (end - prior).days
        findings.expect(least <= distance <= most, episode.task_id, f"its quarters end {distance} days apart")
        wanted.append((prior, "quarterly"))
    for day, period in wanted:
        findings.expect(
            (symbol, day, period) in known, episode.task_id, f"no {period} figures of {symbol} end on {day}"
        )


def units(subject: Subject, findings: Findings) -> None:
    """Every metric is known and in its unit, every value a number; nothing is in thousands or millions."""
    panels = subject.panels(findings)
    if panels is None:
        return
    facts = panels.facts
    wanted = pl.col("metric").replace_strict(UNITS, default=None, return_dtype=pl.String)
    fail_rows(facts.filter(wanted.is_null()), "facts: a metric that nobody knows", findings)
    fail_rows(
        facts.filter(pl.col("unit").fill_null("no unit") != wanted), "facts: in another unit than its metric", findings
    )
    for name, frame in (("facts", facts), ("segments", panels.segments)):
        number = pl.col("value").is_finite().fill_null(value=False)
        fail_rows(frame.filter(~number), f"{name}: its value is no number", findings)
    shares = (pl.col("unit") == "shares") & (pl.col("value") <= 0)
    fail_rows(facts.filter(shares), "facts: a count of shares that is not positive", findings)
    check_scale(panels, subject.episodes, findings)
    findings.figures |= {"metrics": facts["metric"].n_unique(), "units": dict(sorted(Counter(facts["unit"]).items()))}
