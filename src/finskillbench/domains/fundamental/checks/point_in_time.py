"""The check that a fundamental episode is given what was current on the day of its filing, and nothing later."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from typing import Any

import polars as pl

from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.domains.fundamental.checks.reporting import fail_rows, period_end
from finskillbench.domains.fundamental.second.definitions import YEAR_APART
from finskillbench.episode import Episode
from finskillbench.findings import Findings
from finskillbench.panels import Panels

REFERENCE = "panels/facts.parquet"

Visible = Mapping[tuple[Any, ...], object]


def point_in_time(subject: Subject, findings: Findings) -> None:
    """Nothing is filed before it ends; an episode is given what was current on the day of its filing."""
    panels = subject.panels(findings)
    if panels is not None:
        for name, frame in (("facts", panels.facts), ("segments", panels.segments)):
            fail_rows(frame.filter(pl.col("filed") < pl.col("end")), f"{name}: filed before its period ended", findings)
    seen = None if panels is None else _Seen(panels)
    for episode in subject.episodes:
        with examining(episode.task_id, findings, fatal=subject.built):
            _check_seen(subject, episode, seen, findings)


def _check_seen(subject: Subject, episode: Episode, seen: _Seen | None, findings: Findings) -> None:
    where, reference = episode.task_id, episode.input["filing_facts"]
    symbol, as_of, end = episode.input["symbol"], episode.as_of_date, period_end(episode)
    since = date.fromisoformat(reference["since"])
    findings.expect(reference.get("ref") == REFERENCE, where, f"filing_facts refers to {reference.get('ref')}")
    findings.expect(
        reference["symbol"] == symbol, where, f"filing_facts are of {reference['symbol']}, the task of {symbol}"
    )
    findings.expect(
        reference["as_of"] == str(as_of), where, f"filing_facts are as of {reference['as_of']}, not of {as_of}"
    )
    # The quarter a year before, and the nine months and the year that its figures may be differences of.
    enough = (end - since).days >= YEAR_APART[1]
    findings.expect(enough, where, f"filing_facts begin with {since}, too late for the quarter a year before {end}")
    given = subject.input_of(episode)["filing_facts"]
    days = {row["filed"] for table in ("facts", "segments") for row in given[table]}
    late = sorted(day for day in days if day > str(as_of))
    findings.expect(not late, where, f"is given what was filed on {', '.join(late[:3])}, after {as_of}")
    if seen is None:
        return
    findings.expect(as_of in seen.filed(symbol, end), where, f"no report to {end} was filed on {as_of}")
    facts: Visible = {
        (row["metric"], row["start"], row["end"]): (row["value"], row["filed"], row["derived"])
        for row in given["facts"]
    }
    segments: Visible = {
        (row["axis"], row["start"], row["end"], row["segment"]): (row["value"], row["filed"])
        for row in given["segments"]
    }
    known = (
        seen.facts(symbol, reference["as_of"], reference["since"]),
        seen.segments(symbol, reference["as_of"], reference["since"]),
    )
    for name, expected, actual in (("facts", known[0], facts), ("segments", known[1], segments)):
        wrong = sorted(str(key) for key in {*expected, *actual} if expected.get(key) != actual.get(key))
        message = f"{name} are not what was current on {as_of}: {len(wrong)} differ, first {''.join(wrong[:1])}"
        findings.expect(not wrong, where, message)
    findings.add("episodes")
    findings.add("facts", len(facts))
    findings.add("segments", len(segments))


class _Seen:
    """What the panels held on a day, found by going through all rows of a company."""

    def __init__(self, panels: Panels) -> None:
        self._facts = _by_company(
            panels.facts, ("metric", "start", "end", "filed", "derived", "value"), lambda row: (not row[4], row[3])
        )
        self._segments = _by_company(
            panels.segments, ("axis", "start", "end", "filed", "accession", "segment", "value"), lambda row: row[3:5]
        )
        self._filed: dict[tuple[str, date], set[date]] = defaultdict(set)
        for symbol, end, filed in panels.filings.select("symbol", "period_end", "filed").iter_rows():
            self._filed[symbol, end].add(filed)

    def filed(self, symbol: str, end: date) -> set[date]:
        """Days on which reports to a day were filed."""
        return self._filed.get((symbol, end), set())

    def facts(self, symbol: str, as_of: str, since: str) -> Visible:
        """(metric, start, end) to value, day of filing and whether it is derived: reported first, then the last."""
        found: dict[tuple[Any, ...], object] = {}
        for metric, start, end, filed, derived, value in self._facts.get(symbol, ()):
            if filed <= as_of and end >= since:
                found[metric, start, end] = value, filed, derived
        return found

    def segments(self, symbol: str, as_of: str, since: str) -> Visible:
        """(axis, start, end, segment) to value and day: of a period only the last filing's."""
        last: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        found: dict[tuple[Any, ...], dict[str, object]] = {}
        for axis, start, end, filed, accession, segment, value in self._segments.get(symbol, ()):
            if filed <= as_of and end >= since:
                period, source = (axis, start, end), (filed, accession)
                if last.get(period) != source:
                    last[period], found[period] = source, {}
                found[period][segment] = value, filed
        return {(*period, name): value for period, parts in found.items() for name, value in parts.items()}


def _by_company(
    frame: pl.DataFrame, fields: Iterable[str], order: Callable[[tuple[Any, ...]], Any]
) -> dict[str, list[tuple[Any, ...]]]:
    """Rows of each company, dates as ISO texts, in an order of which the last row of a subject is current."""
    days = [pl.col(name).cast(pl.String) for name in ("start", "end", "filed")]
    found: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for symbol, *row in frame.with_columns(days).select("symbol", *fields).iter_rows():
        found[symbol].append(tuple(row))
    return {symbol: sorted(rows, key=order) for symbol, rows in found.items()}
