"""The sectors that a task names are those of its month-end's names, of which a small universe may lack some."""

from __future__ import annotations

from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest

from finskillbench.domains.portfolio.checks.tasks import check_portfolio_taxonomy
from finskillbench.episode import Episode, Prompt
from finskillbench.findings import CheckState, Findings

SECTORS = {"AAA": "Technology", "BBB": "Energy", "CCC": "Utilities"}
EARLY, LATE = date(2017, 1, 31), date(2020, 1, 31)
MEMBERS = {EARLY: ("AAA", "BBB"), LATE: ("AAA", "BBB", "CCC")}


def _found(day: date, sectors: list[str]) -> list[str]:
    panels = SimpleNamespace(
        symbols=tuple(SECTORS), sectors=SECTORS, covariance=MEMBERS, symbols_at=lambda day: MEMBERS[day]
    )
    task = Episode(
        "one", "portfolio_construction", "tool_use", day, "easy", {"sectors": sectors}, Prompt("do", "so"), {}
    )
    subject: Any = SimpleNamespace(panels=lambda _: panels, episodes=(task,), edition=SimpleNamespace(has_truth=False))
    findings = Findings()
    check_portfolio_taxonomy(subject, findings)
    return [one.where for one in findings.found if one.state is CheckState.FAIL]


@pytest.mark.parametrize(
    ("day", "sectors", "right"),
    [
        (EARLY, ["Technology", "Energy"], True),
        (EARLY, ["Technology", "Energy", "Utilities"], False),
        (LATE, ["Technology", "Energy", "Utilities"], True),
        (LATE, ["Technology", "Energy"], False),
    ],
)
def test_they_are_held_to_the_names_of_the_day(day: date, sectors: list[str], right: bool) -> None:
    assert _found(day, sectors) == ([] if right else ["one"])
