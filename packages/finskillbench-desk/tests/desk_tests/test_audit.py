"""Cases of the desk suite are neither unsolvable nor told by what they hold, as the audit sees it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from finskillbench.domains import domain
from finskillbench.edition.checks.agent_view import CheckContext, EpisodeView
from finskillbench.edition.checks.episodes import check_solvable
from finskillbench.edition.checks.leak import check_leak
from finskillbench.episode import Episode
from finskillbench.findings import Findings


def _seen(bench: CheckContext, name: str) -> EpisodeView:
    """A case of a subtask: of a screening, the one with the largest probability below 1."""

    def largest(episode: Episode) -> float:
        assessments = bench.edition.truth(episode.task_id).expected_output.get("assessments", [])
        return max((each["probability"] for each in assessments if each["probability"] < 1), default=0.0)

    return EpisodeView(bench, max(bench.edition.episodes([name]), key=largest), {})


@pytest.mark.parametrize("check", [check_solvable, check_leak], ids=["solvable", "leak"])
@pytest.mark.parametrize("name", [subtask.name for subtask in domain("desk").subtasks])
def test_nothing_is_found_in_a_case_that_is_in_order(
    name: str, check: Callable[[EpisodeView, Findings], None], bench: CheckContext
) -> None:
    findings = Findings()
    check(_seen(bench, name), findings)
    assert findings.found == []


def test_a_field_that_no_stage_fills_may_not_be_empty(bench: CheckContext) -> None:
    seen = _seen(bench, "trade_over_time")
    seen.full_input = {**seen.full_input, "factors": {}, "notices": []}
    findings = Findings()
    check_solvable(seen, findings)
    assert [finding.field for finding in findings.found] == ["factors"]
