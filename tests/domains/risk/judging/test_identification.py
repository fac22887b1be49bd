"""How a list of exposures is judged: what is material, how large it is, and in which order."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest
from tests.domains.risk.judging.cases import TICKERS, Case, Json, identification, judged

from finskillbench.domains import subtask_named
from finskillbench.domains.examples import Label

RI = "risk_identification"


def identified(change: Callable[[list[Json]], list[Json]], case: Case | None = None) -> float:
    truth, task_input = case or identification()
    answer = copy.deepcopy(truth.expected_output["top_risk_exposures"])
    return judged(RI, {"top_risk_exposures": change(answer)}, truth, task_input).value


def _discounts(count: int) -> list[float]:
    return [1.0 / math.log2(rank + 1) for rank in range(1, count + 1)]


def _beyond_half(part: float) -> float:
    return max(0.0, 2 * part - 1)


def test_the_list_worked_by_hand() -> None:
    """Active AAA 0.2833, BBB -0.0167, CCC 0.0333, DDD and FFF -0.1667, EEE -0.0167; every name at 22.4 %.

    Technology: 0.04 (0.2833^2 + 0.0167^2) + 0.01 x 0.2667^2 = 0.003933. Unsold: 0.25 of AAA, 0.25 x 0.2236.
    """
    listed = identification()[0].expected_output["top_risk_exposures"]
    assert [(row["type"], row["subject"]) for row in listed] == [
        ("concentration", "portfolio"),
        ("single_name", "AAA"),
        ("sector_concentration", "Technology"),
        ("liquidity_risk", "portfolio"),
        ("single_name", "DDD"),
    ][: len(listed)]
    assert [row["magnitude"] for row in listed[:4]] == pytest.approx([0.08292, 0.06336, 0.06271, 0.0559], abs=2e-5)
    assert [row["evidence"] for row in listed[:4]] == pytest.approx([0.2875, 0.45, 0.6, 0.25])


def test_names_without_a_right_figure_earn_nothing() -> None:
    assert identified(lambda rows: [{"type": row["type"], "subject": row["subject"]} for row in rows]) == 0.0
    off = identified(lambda rows: [row | {key: row[key] * 1.06 for key in ("magnitude", "evidence")} for row in rows])
    assert off == 0.0


@pytest.mark.parametrize(
    ("error", "credit"), [(0.0049, 1.0), (-0.0049, 1.0), (0.0075, 0.5), (0.0099, 0.02), (0.06, 0.0)]
)
def test_a_magnitude_earns_by_its_relative_error(error: float, credit: float) -> None:
    off = identified(lambda rows: [row | {"magnitude": row["magnitude"] * (1 + error)} for row in rows])
    assert off == pytest.approx(_beyond_half(0.25 + 0.75 * credit), abs=6e-3)


def test_half_of_a_list_is_worth_nothing() -> None:
    assert identified(lambda rows: [row | {"magnitude": row["evidence"]} for row in rows]) == 0.0
    assert identified(lambda rows: rows[:1]) == 0.0


def test_another_subject_is_another_exposure_and_the_detail_may_name_it() -> None:
    def renamed(rows: list[Json]) -> list[Json]:
        return [row | {"subject": "BBB"} if row["type"] == "single_name" else row for row in rows]

    count = len(identification()[0].expected_output["top_risk_exposures"])
    discounts = _discounts(count)
    right, all_of = sum(discounts) - discounts[1], sum(_discounts(count + 1))
    assert identified(renamed) == pytest.approx(_beyond_half(right / all_of))
    assert identified(lambda rows: [{k: v for k, v in row.items() if k != "subject"} for row in rows]) == 1.0


def test_repeats_and_padding_only_lower_the_score() -> None:
    unranked = [row | {"rank": None} for row in identification()[0].expected_output["top_risk_exposures"]]
    count, discounts = len(unranked), _discounts(len(unranked))
    doubled = sum(discounts) / sum(_discounts(2 * count))
    assert identified(lambda rows: unranked + unranked[:1]) == (
        pytest.approx(_beyond_half(sum(discounts) / sum(_discounts(count + 1))))
    )
    assert identified(lambda rows: unranked + unranked) == pytest.approx(_beyond_half(doubled))
    assert identified(lambda rows: rows + [{"type": "single_name"}] * 100) == 0.0


def test_order_and_the_largest_risk_matter() -> None:
    unranked = [row | {"rank": None} for row in identification()[0].expected_output["top_risk_exposures"]]
    discounts = _discounts(len(unranked))
    assert identified(lambda rows: unranked[::-1]) == pytest.approx(0.3 * 0.65)
    missed = _beyond_half(1 - discounts[0] / sum(discounts))
    assert identified(lambda rows: unranked[1:]) == pytest.approx(0.65 * missed)
    # The name and the sector are within 5 % of each other: which of them comes first does not matter.
    swapped = [unranked[0], unranked[2], unranked[1], *unranked[3:]]
    assert identified(lambda rows: swapped) == 1.0


@pytest.mark.parametrize("ranks", [(2, 1, 3, 4), (1, 1, 1, 1), (0, 1, 2, 3), (1, 2, 3, "4"), (7, None, None, None)])
def test_a_rank_that_is_not_the_place_costs_a_fifth(ranks: tuple[Any, ...]) -> None:
    assert len(identification()[0].expected_output["top_risk_exposures"]) == len(ranks)
    assert identified(lambda rows: [row | {"rank": rank} for row, rank in zip(rows, ranks, strict=True)]) == (
        pytest.approx(0.8)
    )
    assert identified(lambda rows: [{k: v for k, v in row.items() if k != "rank"} for row in rows]) == 1.0


def test_a_list_of_every_name_in_one_entry_names_nothing() -> None:
    def every_name(rows: list[Json]) -> list[Json]:
        return [{**row, "subject": " ".join(TICKERS)} for row in rows]

    assert identified(every_name) == 0.0


def test_the_ladder_falls_and_every_rung_is_in_its_band() -> None:
    truth, task_input = identification()
    ladder = subtask_named(RI).examples.graded
    assert ladder is not None
    episode: Any = None
    scores = [
        (rung, judged(RI, rung.answer, truth, task_input).value)
        for rung in ladder(Label(episode, task_input, truth, {}))
    ]
    assert all(rung.least - 1e-9 <= score <= rung.most + 1e-9 for rung, score in scores)
    assert [score for _, score in scores] == sorted((score for _, score in scores), reverse=True)
