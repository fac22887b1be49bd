"""Fundamental episodes are solved from the facts that scripts are given, and these from what tools show as filed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from finskillbench.domains import domain
from finskillbench.edition.checks.agent_view import CheckContext, EpisodeView
from finskillbench.edition.checks.episodes import check_point_in_time, check_solvable
from finskillbench.edition.checks.leak import check_leak
from finskillbench.errors import InputError
from finskillbench.findings import Findings

SUBTASKS = [subtask.name for subtask in domain("fundamental_analysis").subtasks]


def _seen(bench: CheckContext, name: str) -> EpisodeView:
    return EpisodeView(bench, bench.edition.episodes([name])[0], {})


@pytest.mark.parametrize("check", [check_solvable, check_leak, check_point_in_time])
@pytest.mark.parametrize("name", SUBTASKS)
def test_nothing_is_found_in_an_episode_that_is_in_order(
    name: str, check: Callable[[EpisodeView, Findings], None], bench: CheckContext
) -> None:
    findings = Findings()
    check(_seen(bench, name), findings)
    assert findings.found == []


@pytest.mark.parametrize("changed", [{"value": 1.5}, {"tag": "NoTag"}, {"end": "2019-01-01"}])
def test_a_figure_that_no_tool_shows_is_named(changed: dict[str, object], bench: CheckContext) -> None:
    seen = _seen(bench, "normalization")
    given = seen.full_input["filing_facts"]
    place = next(place for place, row in enumerate(given["facts"]) if not row["derived"])
    facts = [row | changed if place == number else row for number, row in enumerate(given["facts"])]
    seen.full_input = {**seen.full_input, "filing_facts": {**given, "facts": facts}}
    with pytest.raises(InputError, match=f"filing_facts: no tool shows the {facts[place]['metric']} of "):
        check_solvable(seen, Findings())


def test_an_answer_that_does_not_follow_is_found(bench: CheckContext) -> None:
    """A flow that no filing states but that is derived from two that do: the answer changes with it."""
    seen = _seen(bench, "earnings_quality")
    given = seen.full_input["filing_facts"]
    facts = [row | {"value": -row["value"]} if row["derived"] else row for row in given["facts"]]
    seen.full_input = {**seen.full_input, "filing_facts": {**given, "facts": facts}}
    findings = Findings()
    check_solvable(seen, findings)
    assert findings.found
