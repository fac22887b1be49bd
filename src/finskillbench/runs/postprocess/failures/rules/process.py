"""How the episode went: failures of the harness, loops, no submission, questions about the future."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date

import orjson

from finskillbench.episode import Status
from finskillbench.harness.trace import Ended
from finskillbench.runs.postprocess.failures.attempt import Attempt, Call
from finskillbench.runs.postprocess.failures.counts import FailureCause
from finskillbench.runs.postprocess.failures.rules.matching import Found, Rule, shown

LOOP = 3
"""So many equal failing calls are a loop: the second may be an honest second try."""
MOST_YEARS = 20
"""A date further ahead than this stands for "no end", as in a filter, and asks for nothing."""
_ENDED: Mapping[Ended, tuple[FailureCause, str]] = {
    "max_turns": (FailureCause.OUT_OF_TURNS, "all turns were used"),
    "out_of_calls": (FailureCause.OUT_OF_TURNS, "all tool calls were used"),
    "budget_exhausted": (FailureCause.OUT_OF_BUDGET, "all tokens were used"),
    "out_of_time": (FailureCause.OUT_OF_BUDGET, "the time was over"),
    "context_overflow": (FailureCause.OUT_OF_BUDGET, "the conversation outgrew the model"),
    "no_answer": (FailureCause.STOPPED_EARLY, "the agent ended"),
    "adapter_failed": (FailureCause.STOPPED_EARLY, "the agent failed"),
}
_DATE = re.compile(r"(?<!\d)((?:19|20)\d\d)-(\d\d)-(\d\d)(?!\d)")
_PERIOD = re.compile(r"(\d{4})(?:-(\d{2}))?(?:-(\d{2}))?", re.ASCII)
_ASKING = ("query_xbrl", "run_skill_script", "run_python")


def harness_error(attempt: Attempt, before: Sequence[Found]) -> Iterator[Found]:
    """The episode has the status `error`."""
    del before
    trace = attempt.trajectory.trace
    if attempt.status is Status.ERROR:
        yield Found(FailureCause.HARNESS_ERROR, f"{trace.error_cause or 'error'}: {trace.error or 'no words of it'}")


def loop(attempt: Attempt, before: Sequence[Found]) -> Iterator[Found]:
    """One call, by its tool and its arguments whatever their order, failed `LOOP` times or more."""
    del before
    failed = Counter((call.name, _canonical(call)) for call in attempt.calls if not call.ok)
    for (name, arguments), times in failed.most_common(1):
        if times >= LOOP:
            yield Found(FailureCause.TOOL_ERROR_LOOP, f"{name} failed {times} times with {shown(arguments)}")


def never_submitted(attempt: Attempt, before: Sequence[Found]) -> Iterator[Found]:
    """The episode ended in another way than by a submission."""
    del before
    trace = attempt.trajectory.trace
    if attempt.status is not Status.ERROR and trace.ended in _ENDED:
        cause, words = _ENDED[trace.ended]
        yield Found(cause, f"{words} after {trace.turns} turns and {len(trace.tool_calls)} tool calls")


def look_ahead(attempt: Attempt, before: Sequence[Found]) -> Iterator[Found]:
    """A tool that gives data was asked for a period, or named a day, wholly after the task's date."""
    del before
    today = attempt.trajectory.as_of_date
    for call in attempt.calls:
        if call.name in _ASKING and (days := [day for day in _asked(call) if today < day]):
            nearest = min(days)
            if nearest.year - today.year <= MOST_YEARS:
                yield Found(FailureCause.LOOK_AHEAD, f"{call.name} was asked for {nearest}; the task is as of {today}")
                return


def _asked(call: Call) -> Iterator[date]:
    """The first day of a period that was asked for, and every day that the arguments name."""
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


def _canonical(call: Call) -> str:
    if call.arguments:
        return orjson.dumps(call.arguments, option=orjson.OPT_SORT_KEYS).decode()
    return call.record.arguments


RULES = (
    Rule((FailureCause.HARNESS_ERROR,), harness_error),
    Rule((FailureCause.TOOL_ERROR_LOOP,), loop),
    Rule((FailureCause.OUT_OF_TURNS, FailureCause.OUT_OF_BUDGET, FailureCause.STOPPED_EARLY), never_submitted),
    Rule((FailureCause.LOOK_AHEAD,), look_ahead),
)
