"""`certified` on the risk subtasks over whole editions, against answers that know less than they claim."""

from __future__ import annotations

import copy

import pytest
from tests.domains.shared.attacks import Json, right_answer, scored

from finskillbench.edition import Edition


def test_a_report_padded_with_every_type_earns_no_more(edition: Edition) -> None:
    for episode in edition.episodes(["constraint_monitoring"]):
        answer = right_answer(edition, episode)
        rows = answer["constraints"]
        flipped = [{**row, "status": "PASS" if row["status"] == "FAIL" else "FAIL"} for row in rows]
        for padded in (rows + flipped, flipped + rows):
            assert scored(edition, episode, answer | {"constraints": padded}).value < 1.0, episode.task_id


@pytest.mark.parametrize(
    ("invented", "most"),
    [
        ({"limit": 99.0}, 0.0),
        ({"violation_magnitude": -123.0}, 0.5),
        ({"violation_magnitude": 1e9}, 0.5),
        ({"worst_symbol": "NOBODY"}, 0.5),
        ({"worst_sector": "NOWHERE"}, 0.5),
        ({"violation_magnitude": -123.0, "worst_symbol": "NOBODY"}, 0.25),
    ],
)
def test_a_report_with_invented_limits_earns_nothing_and_with_excesses_or_names_half(
    edition: Edition, invented: Json, most: float
) -> None:
    """Of a limit that is kept as of one that is broken: a field that may be left out is not free to be made up."""
    for episode in edition.episodes(["constraint_monitoring"]):
        answer = right_answer(edition, episode)
        answer["constraints"] = [row | invented for row in answer["constraints"]]
        assert scored(edition, episode, answer).value <= most + 1e-12, episode.task_id


def test_leaving_small_contributions_out_never_pays(edition: Edition) -> None:
    for episode in edition.episodes(["stress_testing"]):
        answer = right_answer(edition, episode)
        for rows in answer["attribution"].values():
            rows.remove(min(rows, key=lambda row: abs(row["contribution_pct"])))
        assert scored(edition, episode, answer).value < 1.0, episode.task_id


def test_ranks_that_are_no_places_earn_less(edition: Edition) -> None:
    for episode in edition.episodes(["risk_identification"]):
        rows = right_answer(edition, episode)["top_risk_exposures"]
        same = [row | {"rank": 1} for row in rows]
        assert scored(edition, episode, {"top_risk_exposures": same}).value <= 0.8, episode.task_id
        guessed = [row | {"magnitude": row["magnitude"] * 1.0275} for row in rows]
        assert scored(edition, episode, {"top_risk_exposures": guessed}).value <= 0.51, episode.task_id


def test_exposures_repeated_or_padded_earn_no_more(edition: Edition) -> None:
    for episode in edition.episodes(["risk_identification"]):
        rows = right_answer(edition, episode)["top_risk_exposures"]
        whole = scored(edition, episode, {"top_risk_exposures": rows}).value
        first = scored(edition, episode, {"top_risk_exposures": rows[:1]}).value
        repeated = scored(edition, episode, {"top_risk_exposures": rows[:1] * 5}).value
        assert first < whole
        assert repeated <= first + 1e-9, episode.task_id


def test_a_pnl_without_attributions_that_add_up_is_no_full_answer(edition: Edition) -> None:
    for episode in edition.episodes(["stress_testing"]):
        answer = right_answer(edition, episode)
        bare = {"estimated_pnl_pct": answer["estimated_pnl_pct"]}
        assert scored(edition, episode, bare).value <= 0.75, episode.task_id
        doubled = copy.deepcopy(answer)
        for rows in doubled["attribution"].values():
            for row in rows:
                row["contribution_pct"] *= 2
        assert scored(edition, episode, doubled).value <= 0.75, episode.task_id


def test_the_word_of_the_agent_is_not_taken(edition: Edition) -> None:
    """Right trades with a wrong verdict, and a right verdict without trades."""
    for episode in edition.episodes(["risk_remediation"]):
        answer = right_answer(edition, episode)
        lie = answer | {"post_trade_compliant": not answer["post_trade_compliant"]}
        assert scored(edition, episode, lie).value < 1.0, episode.task_id
        assert scored(edition, episode, answer | {"trades": []}).value < 1.0, episode.task_id
        cheaper = answer | {"total_turnover": answer["total_turnover"] / 2}
        assert scored(edition, episode, cheaper).value < 1.0, episode.task_id
