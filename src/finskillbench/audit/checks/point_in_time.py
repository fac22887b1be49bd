"""No tool returns anything from after the day of the episode, and that day is one on which somebody works."""

from __future__ import annotations

import re
from datetime import date
from functools import cache

from finskillbench.audit.seen import Seen
from finskillbench.findings import Findings

_DAY = re.compile(r'"(\d{4}-\d{2}-\d{2})"', re.ASCII)
"""A date that is a value or a key of its own; dates inside sentences are words."""
_FILINGS = "query_xbrl"


def point_in_time(seen: Seen, findings: Findings) -> None:
    """Every date in what a tool returns lies on or before `as_of_date`, which is a trading day.

    A day of filing need not be one on which the exchange is open, only one on which filings are taken.
    """
    as_of = seen.episode.as_of_date
    filings = seen.domain is not None and _FILINGS in seen.domain.tools
    if not (_weekday(as_of) if filings else _session(as_of)):
        findings.fail(seen.task_id, f"{as_of} is no {'working' if filings else 'trading'} day", "as_of_date")
    _ = seen.fields
    limit = as_of.isoformat()
    latest = {asked: _latest(text) for asked, text in seen.returned.items()}
    latest |= seen.bench.once(("queried", seen.episode.input.get("symbol"), as_of), lambda: _of_queries(seen))
    for asked, day in latest.items():
        if day > limit:
            findings.fail(seen.task_id, f"returns {day}, after {limit}", asked)
    findings.add("queries", len(latest))


def _of_queries(seen: Seen) -> dict[str, str]:
    """The latest day in each answer to what can be asked of a company on a day, the same in all its episodes."""
    return {asked: _latest(text) for asked, text in seen.queried().items()}


def _latest(text: str) -> str:
    return max(_DAY.findall(text), default="")  # ISO dates order as texts


def _weekday(day: date) -> bool:
    return day.weekday() < 5


@cache
def _sessions(decade: int) -> frozenset[date]:
    """The days of ten years on which the exchange was open."""
    import exchange_calendars

    calendar = exchange_calendars.get_calendar("XNYS", start=f"{decade}-01-01", end=f"{decade + 9}-12-31")
    return frozenset(calendar.sessions.date)


def _session(day: date) -> bool:
    return day in _sessions(day.year // 10 * 10)
