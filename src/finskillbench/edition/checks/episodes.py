"""Checks of single episodes: whether the truth can be reached, point in time, and what a label says of itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, timedelta
from functools import cache
from typing import Any, NotRequired, get_origin, get_type_hints

import orjson

from finskillbench.edition.checks.agent_view import REFERENCE, Seen, unresolved
from finskillbench.findings import Findings
from finskillbench.harness.conditions import Condition
from finskillbench.scoring.values import mapping

_RIGHT = 0.999
"""The certified score from which on an answer counts as the truth: what rounding may cost."""


def solvable(seen: Seen, findings: Findings) -> None:
    """The truth follows from the fields that the prompt names, as `get_task_data` returns them.

    Facts of filings are those that scripts of skills are given; `Seen.fields` holds them to the facts as filed.
    Where the subtask has a second derivation, it is run on nothing but what the tools returned and must give every leaf
    of the truth. Where it has none, since an optimum is proved instead, the reference program must reach full marks
    with the scripts that the skill documents name, through the real loop; where nobody can be sure of full marks,
    `floor_and_ceiling` holds its mean.
    """
    if not _complete(seen, findings):
        return
    if seen.subtask is None:
        findings.fail(seen.task_id, f"{seen.episode.sub_task} is not registered: nothing can solve it", "sub_task")
        return
    findings.add("labels")
    if seen.subtask.rederive is not None:
        _rederived(seen, findings)
    elif seen.label.truth.proof and seen.subtask.baselines.ceiling is None:
        score = seen.earned(REFERENCE, Condition.CURATED)
        message = f"the reference program reaches {score:.3f} with the skill's scripts"
        findings.expect(score >= _RIGHT, seen.task_id, message)


def _complete(seen: Seen, findings: Findings) -> bool:
    """Whether every input that the answer depends on is there."""
    before = len(findings.found)
    task_input = seen.full_input
    filled = seen.subtask.interactive.filled if seen.subtask and seen.subtask.interactive else ()
    for name, value in task_input.items():
        if (ref := unresolved(value)) is not None:
            findings.fail(seen.task_id, f"refers to {ref}, which no tool serves", name)
    for name in sorted(needed(seen)):
        if name not in task_input:
            findings.fail(seen.task_id, "the answer depends on it and it is not given", name)
        elif (task_input[name] is None or task_input[name] in ({}, [], "")) and name not in filled:
            findings.fail(seen.task_id, "the answer depends on it and it is empty", name)
    for name in sorted(task_input.keys() - seen.printed.keys()):
        findings.fail(seen.task_id, "no prompt names this field", name)
    return len(findings.found) == before


def needed(seen: Seen) -> set[str]:
    """The input fields that the answer depends on: those of the subtask's input type, or what the release needs."""
    released = seen.domain.released.get(seen.subtask.name) if seen.domain and seen.subtask else None
    if not seen.bench.shared.built:
        return set(released.required(seen.episode.input)) if released is not None else set()
    return _required(seen.subtask.input) if seen.subtask is not None and seen.subtask.input is not None else set()


@cache
def _required(kind: type) -> set[str]:
    """The keys that an input type requires; `__required_keys__` is wrong where annotations are kept as text."""
    hints: Mapping[str, Any] = get_type_hints(kind, include_extras=True)
    return {name for name, hint in hints.items() if get_origin(hint) is not NotRequired}


def _rederived(seen: Seen, findings: Findings) -> None:
    assert seen.subtask is not None
    for leaf in seen.subtask.derived_again(seen.label.truth.expected_output, seen.fields):
        if not leaf.agrees:
            message = f"is {leaf.first!r} in the truth and {leaf.second!r} derived from what tools return or inject"
            findings.fail(seen.task_id, message, leaf.path)


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


_OPTIMAL = "optimal"
_NOT_ASKED = "not asked"
"""How the engine says that any optimum is a right answer, since its value alone is judged."""


def certified(seen: Seen, findings: Findings) -> None:
    """Every label carries a proof, and where certificates are handed out, the one that the proof sums up."""
    proof = seen.label.truth.proof
    findings.expect(proof, seen.task_id, "carries no proof: nothing shows that its answer is right", "proof")
    if proof and seen.bench.edition.has_certificates:
        findings.expect(seen.label.certificate, seen.task_id, "has no certificate", "certificate")


def unique(seen: Seen, findings: Findings) -> None:
    """The answer of an optimum is proved to be the only one, or its value alone is the answer."""
    proof = seen.label.truth.proof
    if not proof:
        findings.fail(seen.task_id, "nothing shows that no other answer is as good", "proof.unique")
    elif proof.get("kind") == _OPTIMAL:
        why = str(proof.get("uniqueness"))
        settled = proof.get("unique") is True or why.startswith(_NOT_ASKED)
        findings.expect(settled, seen.task_id, f"its optimum is {why}", "proof.unique")


def spec_agrees(seen: Seen, findings: Findings) -> None:
    """An episode states the definitions by which its truth was made, in the words of the one place that has them."""
    if seen.subtask is None or seen.subtask.definitions is None:
        return
    definitions = seen.subtask.definitions
    wanted = definitions(seen.episode.input) if callable(definitions) else definitions
    given = mapping(seen.episode.input.get("conventions"))
    absent = sorted(wanted.keys() - given.keys())
    altered = sorted(name for name in wanted.keys() & given.keys() if given[name] != wanted[name])
    message = f"does not state {', '.join(absent)}: the prompt's words are all there is"
    findings.expect(not absent, seen.task_id, message, "conventions")
    message = f"does not state {', '.join(altered)} as the truth was made"
    findings.expect(not altered, seen.task_id, message, "conventions")
