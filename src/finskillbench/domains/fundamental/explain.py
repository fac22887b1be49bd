"""Explain the figures of a fundamental label, and derive the answers for wrong periods."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any, cast

import polars as pl

from finskillbench.domains.examples import Misreading
from finskillbench.domains.fundamental.checks.filings import label_periods
from finskillbench.domains.fundamental.inputs import FilingInput, FundamentalInput, QuartersInput, filing_facts
from finskillbench.domains.fundamental.objects.pools import METRICS_OF
from finskillbench.domains.fundamental.rederive.answers import decomposed, normalised, quality
from finskillbench.domains.fundamental.rederive.definitions import (
    LENGTHS,
    QUARTER_APART,
    YEAR_APART,
    Kind,
    VisibleFacts,
    a_year_apart,
    comparable_quarters,
    period_of,
    segment_changes,
)
from finskillbench.domains.fundamental.rederive.filed import AsFiled, FiledRow
from finskillbench.domains.fundamental.rederive.witness import WitnessComparison, Witnesses
from finskillbench.engines.fields import listed
from finskillbench.episode import Episode, JsonObject
from finskillbench.errors import InputError
from finskillbench.panels.filings.concepts import judge_tags
from finskillbench.panels.filings.facts import canonical_facts
from finskillbench.sources.edgar.companyfacts import FACTS_SCHEMA, EdgarFacts
from finskillbench.sources.edgar.numerals import METRICS

_WHY = {
    "covers": "covers the day of the report",
    "ties": "adds up with its statement",
    "rounded": "another figure is it, unrounded",
    "below": "a greater total is filed",
    "apart": "the other part of the total is filed",
}


def explain_metric(episode: Episode, task_input: Mapping[str, Any], filed: pl.DataFrame, metric: str) -> Iterator[str]:
    """Yield lines of text about one metric in each period of a label.

    task_input : with the facts it refers to. filed : the `filed` panel. Raises InputError if the episode is not
        fundamental
    or its label does not use the metric.
    """
    if episode.sub_task not in METRICS_OF:
        raise InputError(f"{episode.task_id} belongs to {episode.sub_task}, whose labels use no filings")
    if metric not in METRICS_OF[episode.sub_task]:
        known = listed(sorted(METRICS_OF[episode.sub_task]))
        raise InputError(f"{metric} is not a metric of {episode.sub_task}; choose one of {known}")
    rows = filed.filter((pl.col("symbol") == task_input["symbol"]) & (pl.col("filed") <= episode.as_of_date))
    facts = VisibleFacts(filing_facts(cast("FundamentalInput", task_input))[0])
    witnesses = Witnesses(AsFiled(rows.select(FiledRow._fields).iter_rows()), episode.as_of_date)
    for end, kind in label_periods(episode, facts):
        yield from _period(facts, witnesses, rows, metric, end, kind)


def _period(
    facts: VisibleFacts, witnesses: Witnesses, rows: pl.DataFrame, metric: str, end: date, kind: Kind
) -> Iterator[str]:
    row = facts.row(metric, end, kind)
    instant = METRICS[metric].kind == "instant"
    yield f"{metric}, {'on' if instant else kind + ' to'} {end}:"
    if row is None:
        yield "  null: no fact that may stand for it is public by then, or the conventions exclude it"
    else:
        yield f"  {row['value']:.12g} {row['unit']} ({row['form']} {row['accession']}, filed {row['filed']})"
    yield f"  rule: {_rule(metric, None if row is None else row['tag'], derived=bool(row and row['derived']))}"
    considered = rows.filter(pl.col("tag").is_in(_candidates(metric)) & (pl.col("end") == end))
    yield "  facts of that day as filed:" if considered.height else "  no fact of that day is filed"
    for tag, start, value, form, accession, day in (
        considered.select("tag", "start", "value", "form", "accession", "filed").sort("filed", "tag").iter_rows()
    ):
        yield f"    {tag} {start or 'instant'}..{end}: {value:.12g} ({form} {accession}, filed {day})"
    yield from _judged(rows, metric, considered)
    yield from _excluded(rows, metric, end)
    if row is None:
        figures, tags, compared = {}, {}, list[WitnessComparison]()
    else:
        figures, tags = {metric: float(row["value"])}, {metric: row["tag"]}
        compared = list(witnesses.compare(metric, figures[metric], row["tag"], end, kind))
    for one in compared:
        yield f"  witness: {one.name}, {one.value:.12g}: {'agrees' if one.agrees else 'differs'}"
    if not compared:
        yield "  witness: no identity has all its terms on file"
    for fault in witnesses.faults(figures, tags, [metric], end, kind):
        yield f"  refuted: {fault.message}"


def _candidates(metric: str) -> set[str]:
    names = {metric, *(term for fallback in METRICS[metric].fallbacks for term in fallback.terms)}
    return {alias.tag for name in names for alias in METRICS[name].aliases}


def _rule(metric: str, tag: str | None, *, derived: bool) -> str:
    if tag is None:
        return "what cannot be computed from figures that are known is null"
    aliases = {alias.tag: alias.reason for alias in reversed(METRICS[metric].aliases)}  # us-gaap before IFRS
    if tag in aliases:
        source = f"filed under {tag}: {aliases[tag]}"
        return f"the year to date less the shorter one, both {source}" if derived else source
    tags = set(re.findall(r"\w+", tag))
    for fallback in METRICS[metric].fallbacks:
        needed = [METRICS[term].aliases for term in fallback.terms if term not in fallback.optional]
        if all(any(alias.tag in tags for alias in aliases) for aliases in needed):
            return f"the sum {tag} ({fallback.reason})"
    return f"the sum {tag} (the total leaves amortization out, or a term is a sum itself)"


def _judged(rows: pl.DataFrame, metric: str, considered: pl.DataFrame) -> Iterator[str]:
    """Yield the verdict on each tag in filings that state the metric under several."""
    wanted = rows.with_columns(frame=pl.lit(None, pl.String)).select(list(FACTS_SCHEMA))
    company = EdgarFacts(0, "", None, Path(), wanted, ())
    _, judged = judge_tags(canonical_facts({"": company}, []), [])
    filed = judged.filter((pl.col("metric") == metric) & pl.col("accession").is_in(considered["accession"].unique()))
    filed = filed.filter(pl.len().over("accession") > 1)
    filed = filed.with_columns(chosen=pl.col("accession").is_first_distinct() & (~pl.col("apart") | pl.col("ties")))
    for row in filed.sort("accession", maintain_order=True).iter_rows(named=True):
        why = [text for name, text in _WHY.items() if row[name]]
        verdict = "chosen" if row["chosen"] else "set aside"
        yield f"  in {row['accession']} {row['tag']}: {verdict} ({', '.join([*why, 'rank ' + str(row['rank'])])})"


def _excluded(rows: pl.DataFrame, metric: str, end: date) -> Iterator[str]:
    there = set(rows.filter(pl.col("end") == end)["tag"])
    for some in METRICS[metric].excluded:
        for tag in there.intersection(some.tags):
            yield f"  not considered: {tag}: {some.reason}"


CAUSE = "wrong_period"


def normalization_misreadings(task_input: FilingInput) -> Iterator[Misreading]:
    """Yield the metrics of other period lengths, such as the year to date, and of other period ends."""
    facts = VisibleFacts(filing_facts(task_input)[0])
    requested = date.fromisoformat(task_input["period_end"]), period_of(task_input["form_type"])
    for end in _ends(task_input):
        for kind in LENGTHS:
            figures = facts.figures(end, kind)
            if (end, kind) != requested and any(value is not None for value in figures.values()):
                yield _misreading(f"the {_period_name(kind)} to {end}", {"metrics": normalised(figures)})


def earnings_quality_misreadings(task_input: FilingInput) -> Iterator[Misreading]:
    """Yield the scores of other quarters, of other comparisons and of longer periods."""
    facts = VisibleFacts(filing_facts(task_input)[0])
    requested = date.fromisoformat(task_input["period_end"])
    for end in _ends(task_input):
        if end != requested:
            now, before, _ = a_year_apart(facts, end)
            yield _misreading(f"the quarter to {end}", quality(now, before).answer)
    previous, year_before = facts.preceding(requested, QUARTER_APART), facts.preceding(requested, YEAR_APART)
    yield _misreading(
        "the quarter before for a year before", quality(*comparable_quarters(facts, requested, previous)).answer
    )
    if year_before is not None:
        for kind in _longer():
            now, before = facts.figures(requested, kind), facts.figures(year_before, kind)
            yield _misreading(f"the {_period_name(kind)} to {requested}", quality(now, before).answer)


def driver_decomposition_misreadings(task_input: QuartersInput) -> Iterator[Misreading]:
    """Yield the drivers of other pairs of quarters, of the reversed pair and of longer periods."""
    rows, segments = filing_facts(task_input)
    facts = VisibleFacts(rows)
    end, prior_end = (date.fromisoformat(task_input[f]) for f in ("current_period_end", "prior_period_end"))
    ends = _ends(task_input)
    pairs = {(end, other) for other in ends if other < end} | {
        (other, before) for other in ends if (before := facts.preceding(other, QUARTER_APART)) is not None
    }
    for now, before in sorted((pairs | {(prior_end, end)}) - {(end, prior_end)}, reverse=True):
        changes = segment_changes(segments, facts, now, before)
        answer = decomposed(*comparable_quarters(facts, now, before), changes)
        yield _misreading(f"the quarter to {now} against the one to {before}", answer)
    for kind in _longer():
        figures = facts.figures(end, kind), facts.figures(prior_end, kind)
        yield _misreading(f"the {_period_name(kind)} to {end}", decomposed(*figures, []))


def _misreading(description: str, answer: JsonObject) -> Misreading:
    return Misreading(CAUSE, description, answer)


def _ends(task_input: FilingInput | QuartersInput) -> list[date]:
    rows = filing_facts(task_input)[0]
    return sorted({date.fromisoformat(row["end"]) for row in rows if row["start"] is not None}, reverse=True)


def _longer() -> list[Kind]:
    return [kind for kind in LENGTHS if kind != "quarterly"]


def _period_name(kind: Kind) -> str:
    return {"quarterly": "quarter", "half": "half", "nine_months": "nine months", "annual": "year"}[kind]
