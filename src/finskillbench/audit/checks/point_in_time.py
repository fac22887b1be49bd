"""No tool returns anything from after the day of the episode, and that day is one on which somebody works."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, timedelta
from functools import cache

import orjson

from finskillbench.audit.seen import Seen
from finskillbench.findings import Findings

_DAY = re.compile(r'"(\d{4}-\d{2}-\d{2})"', re.ASCII)
"""A date that is a value or a key of its own; dates inside sentences are words."""
_FILINGS = "query_xbrl"
_PAGE = re.compile(r"read_table\((\w+)")
Appointed = Mapping[str, Mapping[str, int]]
"""Table to column to the calendar days by which its dates may lie ahead: see `InteractiveCase.appointed`."""


def point_in_time(seen: Seen, findings: Findings) -> None:
    """Every date in what a tool returns lies on or before `as_of_date`, which is a trading day.

    A day of filing need not be one on which the exchange is open, only one on which filings are taken. A day that was
    appointed by `as_of_date` is known on it, so that columns of appointed days are held to how far they may lie ahead.
    """
    as_of = seen.episode.as_of_date
    filings = seen.domain is not None and _FILINGS in seen.domain.tools
    if not (_weekday(as_of) if filings else _session(as_of)):
        findings.fail(seen.task_id, f"{as_of} is no {'working' if filings else 'trading'} day", "as_of_date")
    _ = seen.fields
    limit = as_of.isoformat()
    interactive = None if seen.subtask is None else seen.subtask.interactive
    appointed: Appointed = {} if interactive is None else interactive.appointed
    latest = {asked: _latest(without_appointed(asked, text, appointed, as_of)) for asked, text in seen.returned.items()}
    latest |= seen.bench.once(("queried", seen.episode.input.get("symbol"), as_of), lambda: _of_queries(seen))
    for asked, day in latest.items():
        if day > limit:
            findings.fail(seen.task_id, f"returns {day}, after {limit}", asked)
    findings.add("queries", len(latest))


def _of_queries(seen: Seen) -> dict[str, str]:
    """The latest day in each answer to what can be asked of a company on a day, the same in all its episodes."""
    return {asked: _latest(text) for asked, text in seen.queried().items()}


def without_appointed(asked: str, text: str, appointed: Appointed, as_of: date) -> str:
    """What a tool returned, of a page of a table without the appointed days that lie no further ahead than they may."""
    table = _PAGE.match(asked)
    if table is None or table[1] not in appointed:
        return text
    page = orjson.loads(text)
    ahead = {
        page["columns"].index(name): (as_of + timedelta(days=days)).isoformat()
        for name, days in appointed[table[1]].items()
        if name in page["columns"]
    }
    kept = [
        [value for place, value in enumerate(row) if place not in ahead or value is None or value > ahead[place]]
        for row in page["rows"]
    ]
    return orjson.dumps(kept).decode()


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
