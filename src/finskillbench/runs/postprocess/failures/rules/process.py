"""Rules on the course of an episode: harness failures, loops, no submission, queries of the future."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date

import orjson

from finskillbench.episode import Status
from finskillbench.harness.trace import Ended
from finskillbench.runs.postprocess.failures.attempt import ExecutedCall, FinishedAttempt
from finskillbench.runs.postprocess.failures.counts import FailureCause
from finskillbench.runs.postprocess.failures.rules.matching import DetectedCause, FailureRule, shown

LOOP_LENGTH = 3
"""Number of equal failing calls that counts as a loop; a second one may be a deliberate retry."""
MAX_YEARS_AHEAD = 20
"""Later dates mean "no end", as in a filter."""
_ENDED: Mapping[Ended, tuple[FailureCause, str]] = {
    "max_turns": (FailureCause.OUT_OF_TURNS, "all turns were used"),
    "out_of_calls": (FailureCause.OUT_OF_TURNS, "all tool calls were used"),
    "budget_exhausted": (FailureCause.OUT_OF_BUDGET, "all tokens were used"),
    "out_of_time": (FailureCause.OUT_OF_BUDGET, "the time limit was reached"),
    "context_overflow": (FailureCause.OUT_OF_BUDGET, "the conversation outgrew the model"),
    "no_answer": (FailureCause.STOPPED_EARLY, "the agent ended"),
    "adapter_failed": (FailureCause.STOPPED_EARLY, "the agent failed"),
}
_DATE = re.compile(r"(?<!\d)((?:19|20)\d\d)-(\d\d)-(\d\d)(?!\d)")
_PERIOD = re.compile(r"(\d{4})(?:-(\d{2}))?(?:-(\d{2}))?", re.ASCII)
_DATA_TOOLS = ("query_xbrl", "run_skill_script", "run_python")


def harness_error(attempt: FinishedAttempt, before: Sequence[DetectedCause]) -> Iterator[DetectedCause]:
    """Detect the status `error`."""
    del before
    trace = attempt.trajectory.trace
    if attempt.status is Status.ERROR:
        yield DetectedCause(
            FailureCause.HARNESS_ERROR, f"{trace.error_cause or 'error'}: {trace.error or 'no message'}"
        )


def loop(attempt: FinishedAttempt, before: Sequence[DetectedCause]) -> Iterator[DetectedCause]:
    """Detect a call, by tool and arguments in any order, that failed `LOOP_LENGTH` times or more."""
    del before
    failed = Counter((call.name, _canonical(call)) for call in attempt.calls if not call.ok)
    for (name, arguments), times in failed.most_common(1):
        if times >= LOOP_LENGTH:
            yield DetectedCause(FailureCause.TOOL_ERROR_LOOP, f"{name} failed {times} times with {shown(arguments)}")


def never_submitted(attempt: FinishedAttempt, before: Sequence[DetectedCause]) -> Iterator[DetectedCause]:
    """Detect an end without submission."""
    del before
    trace = attempt.trajectory.trace
    if attempt.status is not Status.ERROR and trace.ended in _ENDED:
        cause, reason = _ENDED[trace.ended]
        yield DetectedCause(cause, f"{reason} after {trace.turns} turns and {len(trace.tool_calls)} tool calls")


def look_ahead(attempt: FinishedAttempt, before: Sequence[DetectedCause]) -> Iterator[DetectedCause]:
    """Detect a data tool called for a period, or with a date, after the task's date."""
    del before
    today = attempt.trajectory.as_of_date
    for call in attempt.calls:
        if call.name in _DATA_TOOLS and (days := [day for day in _requested_dates(call) if today < day]):
            nearest = min(days)
            if nearest.year - today.year <= MAX_YEARS_AHEAD:
                yield DetectedCause(
                    FailureCause.LOOK_AHEAD, f"{call.name} was queried for {nearest}; the task is as of {today}"
                )
                return


def _requested_dates(call: ExecutedCall) -> Iterator[date]:
    """Yield the first day of the requested period, and all dates in the arguments."""
    period = call.arguments.get("period")
    if call.name == "query_xbrl":
        if isinstance(period, str) and (found := _PERIOD.fullmatch(period.strip())):
            year, month, day = found.groups()
            yield from _day(year, month or "01", day or "01")
        return
    for year, month, day in _DATE.findall(call.record.arguments):
        yield from _day(year, month, day)


def _day(year: str, month: str, day: str) -> Iterator[date]:
    try:
        yield date(int(year), int(month), int(day))
    except ValueError:
        return


def _canonical(call: ExecutedCall) -> str:
    if call.arguments:
        return orjson.dumps(call.arguments, option=orjson.OPT_SORT_KEYS).decode()
    return call.record.arguments


RULES = (
    FailureRule((FailureCause.HARNESS_ERROR,), harness_error),
    FailureRule((FailureCause.TOOL_ERROR_LOOP,), loop),
    FailureRule((FailureCause.OUT_OF_TURNS, FailureCause.OUT_OF_BUDGET, FailureCause.STOPPED_EARLY), never_submitted),
    FailureRule((FailureCause.LOOK_AHEAD,), look_ahead),
)
