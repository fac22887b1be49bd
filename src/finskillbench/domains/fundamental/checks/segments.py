"""The check of the segments panel: breakdowns that add up to revenue."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from itertools import product
from typing import Any

import polars as pl

from finskillbench.domains.checks.examination import Subject
from finskillbench.domains.fundamental.checks.rows import companies, current, fail_rows
from finskillbench.domains.fundamental.second.definitions import AXES, SEGMENT_GAP
from finskillbench.findings import Findings

_SAME = 1e-9
_Filed = tuple[date, date, date, dict[str, float]]
"""A breakdown as filed: its first and last day, the day of filing, and revenue by member."""


def segments(subject: Subject, findings: Findings) -> None:
    """Each breakdown has members of one axis that add up to the revenue of its period, as it was known by then."""
    panels = subject.panels(findings)
    if panels is None:
        return
    table = panels.segments
    fail_rows(table.filter(~pl.col("axis").is_in(AXES)), "segments: of an unknown axis", findings)
    fail_rows(table.filter(pl.col("segment").fill_null("").str.strip_chars() == ""), "segments: has no name", findings)
    key = ["symbol", "axis", "start", "end", "accession"]
    twice = table.filter(pl.struct(*key, "segment").is_duplicated())
    fail_rows(twice, "segments: a member is there twice", findings)
    by_symbol = {company.symbol: company for company in companies(panels.facts, Findings())}
    for symbol, axis, start, end, accession, filed, members, total in (
        table.group_by(*key, maintain_order=True)
        .agg(pl.col("filed").first(), members=pl.len(), total=pl.col("value").sum())
        .select(*key, "filed", "members", "total")
        .iter_rows()
    ):
        where = f"{symbol} {axis} {start}..{end} {accession}"
        findings.expect(members > 1, where, "has one member only")
        company = by_symbol.get(symbol)
        period = ("revenue", start, end)
        known = None if company is None else company.on(period, filed)
        if company is not None and known is None:
            known = current(company.differences.get(period, ()), filed)
        if known is None:
            findings.add("without_total")
            continue
        gap = abs(total - known.value)
        findings.expect(
            gap <= SEGMENT_GAP * abs(known.value) + _SAME,
            where,
            f"its {members} members make {total:.12g}, revenue is {known.value:.12g}",
        )
        findings.add("breakdowns")
        findings.add("to_rounding", int(gap <= 1e-5 * abs(known.value)))
    _check_derived(table, findings)
    findings.figures["axes"] = dict(sorted(Counter(table["axis"]).items()))


def _check_derived(table: pl.DataFrame, findings: Findings) -> None:
    """A derived breakdown against the two that it is the difference of, where the panel has both."""
    by_company: dict[tuple[str, str], list[_Filed]] = defaultdict(list)
    derived: list[tuple[str, str, date, date, date, dict[str, float]]] = []
    grouped: Mapping[tuple[Any, ...], dict[str, float]] = defaultdict(dict)
    columns = ("symbol", "axis", "start", "end", "filed", "accession", "derived", "segment", "value")
    for *source, name, value in table.select(columns).drop_nulls().iter_rows():
        grouped[tuple(source)][name] = value
    for (symbol, axis, start, end, filed, _, computed), members in grouped.items():
        if computed:
            derived.append((symbol, axis, start, end, filed, members))
        else:
            by_company[symbol, axis].append((start, end, filed, members))
    for symbol, axis, start, end, filed, members in derived:
        left = [
            {name: whole[name] - less[name] for name in members}
            for whole, less in _parents(by_company[symbol, axis], start, end, filed)
            if members.keys() <= whole.keys() and members.keys() <= less.keys()
        ]
        if not left:  # a parent did not add up by itself, or names its members otherwise
            findings.add("derived_without_parents")
            continue
        agrees = any(
            all(abs(parts[name] - value) <= _SAME * max(1.0, abs(value)) + 0.5 for name, value in members.items())
            for parts in left
        )
        findings.expect(agrees, f"{symbol} {axis} {start}..{end} {filed}", "is not the difference of its parents")
        findings.add("derived")


def _parents(
    filed: list[_Filed], start: date, end: date, day: date
) -> Iterator[tuple[dict[str, float], dict[str, float]]]:
    """Pairs of breakdowns public on a day that leave a quarter: years to date, or a half and its second quarter."""
    known = [one for one in filed if one[2] <= day]
    for (first, stop, on, whole), (begin, until, since, less) in product(known, repeat=2):
        years_to_date = first == begin and stop == end and until == start - timedelta(days=1)
        half = first == start and stop == until and begin == end + timedelta(days=1) and on == since
        if years_to_date or half:
            yield whole, less
