"""Checks of single episodes: solvability, point in time, proofs and definitions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, timedelta
from functools import cache
from typing import Any, NotRequired, get_origin, get_type_hints

import orjson

from finskillbench.edition.checks.agent_view import REFERENCE, EpisodeView, unresolved
from finskillbench.findings import Findings
from finskillbench.harness.conditions import Condition
from finskillbench.scoring.values import as_object

_RIGHT = 0.999
"""Minimum certified score of a correct answer, with a margin for rounding."""


def check_solvable(view: EpisodeView, findings: Findings) -> None:
    """Check that the truth follows from the prompt's fields as `get_task_data` returns them.

    Facts of filings are those given to skill scripts; `EpisodeView.fields` compares them with the as-filed facts. With
    an independent derivation, it runs on tool results only and must match every leaf of the truth. Without one, the
    reference program must earn full marks with the skills' scripts through the real loop. If full marks are not
    attainable, `check_floor_and_ceiling` tests its mean.
    """
    if not _complete(view, findings):
        return
    if view.subtask is None:
        findings.fail(view.task_id, f"{view.episode.sub_task} is not a registered subtask", "sub_task")
        return
    findings.add("labels")
    if view.subtask.rederive is not None:
        _rederived(view, findings)
    elif view.label.truth.proof and view.subtask.baselines.ceiling is None:
        score = view.earned(REFERENCE, Condition.CURATED)
        message = f"the reference program reaches {score:.3f} with the skill's scripts"
        findings.expect(score >= _RIGHT, view.task_id, message)


def _complete(view: EpisodeView, findings: Findings) -> bool:
    before = len(findings.found)
    task_input = view.full_input
    filled = view.subtask.interactive.filled if view.subtask and view.subtask.interactive else ()
    for name, value in task_input.items():
        if (ref := unresolved(value)) is not None:
            findings.fail(view.task_id, f"refers to {ref}, which no tool serves", name)
    for name in sorted(needed(view)):
        if name not in task_input:
            findings.fail(view.task_id, "the answer depends on it, but it is missing", name)
        elif (task_input[name] is None or task_input[name] in ({}, [], "")) and name not in filled:
            findings.fail(view.task_id, "the answer depends on it, but it is empty", name)
    for name in sorted(task_input.keys() - view.printed.keys()):
        findings.fail(view.task_id, "no prompt names this field", name)
    return len(findings.found) == before


def needed(view: EpisodeView) -> set[str]:
    """Return the input fields that the answer depends on, by the subtask's input type or the release's requirements."""
    released = view.domain.released.get(view.subtask.name) if view.domain and view.subtask else None
    if not view.context.shared.built:
        return set(released.required(view.episode.input)) if released is not None else set()
    return _required(view.subtask.input) if view.subtask is not None and view.subtask.input is not None else set()


@cache
def _required(kind: type) -> set[str]:
    """Return the keys that an input type requires; `__required_keys__` is wrong for string annotations."""
    hints: Mapping[str, Any] = get_type_hints(kind, include_extras=True)
    return {name for name, hint in hints.items() if get_origin(hint) is not NotRequired}


def _rederived(view: EpisodeView, findings: Findings) -> None:
    assert view.subtask is not None
    for leaf in view.subtask.derived_again(view.label.truth.expected_output, view.fields):
        if not leaf.agrees:
            message = f"is {leaf.left!r} in the truth and {leaf.right!r} derived from what tools return or inject"
            findings.fail(view.task_id, message, leaf.path)


_DAY = re.compile(r'"(\d{4}-\d{2}-\d{2})"', re.ASCII)
"""A date as a whole value or key; dates inside sentences are ignored."""
_FILINGS = "query_xbrl"
_PAGE = re.compile(r"read_table\((\w+)")
Appointed = Mapping[str, Mapping[str, int]]
"""Table to column to days by which its dates may exceed `as_of_date`: see `InteractiveCase.appointed`."""


def check_point_in_time(view: EpisodeView, findings: Findings) -> None:
    """Check that tools return no date after `as_of_date`, and that `as_of_date` is a trading day.

    With filings, a weekday is enough. Columns of appointed days may exceed `as_of_date` by their stated number of days.
    """
    as_of = view.episode.as_of_date
    filings = view.domain is not None and _FILINGS in view.domain.tools
    if not (as_of.weekday() < 5 if filings else _session(as_of)):
        findings.fail(view.task_id, f"{as_of} is no {'working' if filings else 'trading'} day", "as_of_date")
    _ = view.fields
    limit = as_of.isoformat()
    interactive = None if view.subtask is None else view.subtask.interactive
    appointed: Appointed = {} if interactive is None else interactive.appointed
    latest = {query: _latest(without_appointed(query, text, appointed, as_of)) for query, text in view.returned.items()}
    latest |= view.context.cached(("queried", view.episode.input.get("symbol"), as_of), lambda: _of_queries(view))
    for query, day in latest.items():
        if day > limit:
            findings.fail(view.task_id, f"returns {day}, after {limit}", query)
    findings.add("queries", len(latest))


def _of_queries(view: EpisodeView) -> dict[str, str]:
    """Return the latest day in each query result of a company, shared by its episodes of a day."""
    return {query: _latest(text) for query, text in view.queried().items()}


def without_appointed(query: str, text: str, appointed: Appointed, as_of: date) -> str:
    """Remove appointed days within their limit from a table page; return other results unchanged."""
    table = _PAGE.match(query)
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
    return max(_DAY.findall(text), default="")  # ISO dates sort as text


@cache
def _sessions(decade: int) -> frozenset[date]:
    import exchange_calendars

    calendar = exchange_calendars.get_calendar("XNYS", start=f"{decade}-01-01", end=f"{decade + 9}-12-31")
    return frozenset(calendar.sessions.date)


def _session(day: date) -> bool:
    return day in _sessions(day.year // 10 * 10)


_OPTIMAL = "optimal"
_NOT_REQUIRED = "not asked"
"""Prefix of the engine's status for an optimum whose value alone is scored, so that uniqueness is not required."""


def check_certified(view: EpisodeView, findings: Findings) -> None:
    """Check that every label has a proof and, if certificates are present, its certificate."""
    proof = view.label.truth.proof
    findings.expect(proof, view.task_id, "carries no proof", "proof")
    if proof and view.context.edition.has_certificates:
        findings.expect(view.label.certificate, view.task_id, "has no certificate", "certificate")


def check_unique(view: EpisodeView, findings: Findings) -> None:
    """Check that an optimum is proved unique, unless its value alone is the answer."""
    proof = view.label.truth.proof
    if not proof:
        findings.fail(view.task_id, "carries no proof of uniqueness", "proof.unique")
    elif proof.get("kind") == _OPTIMAL:
        why = str(proof.get("uniqueness"))
        settled = proof.get("unique") is True or why.startswith(_NOT_REQUIRED)
        findings.expect(settled, view.task_id, f"its optimum is {why}", "proof.unique")


def check_definitions(view: EpisodeView, findings: Findings) -> None:
    """Check that an episode states the definitions behind its truth verbatim."""
    if view.subtask is None or view.subtask.definitions is None:
        return
    definitions = view.subtask.definitions
    wanted = definitions(view.episode.input) if callable(definitions) else definitions
    stated = as_object(view.episode.input.get("conventions"))
    absent = sorted(wanted.keys() - stated.keys())
    altered = sorted(name for name in wanted.keys() & stated.keys() if stated[name] != wanted[name])
    message = f"does not state {', '.join(absent)}; the prompt alone describes the task"
    findings.expect(not absent, view.task_id, message, "conventions")
    message = f"does not state {', '.join(altered)} as the truth defines it"
    findings.expect(not altered, view.task_id, message, "conventions")
