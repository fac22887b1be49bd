"""Programs through the scripts that an agent has: what care, a textbook and credulity earn."""

import re
from functools import cache
from itertools import combinations
from statistics import fmean

import pytest
from desk_tests.allocate.cases import played, script
from tests.sampling import THOROUGH, thorough

from finskillbench.episode import Score
from finskillbench.harness.tools.contracts import MAX_RESULT_CHARS
from finskillbench_desk.allocate import SUBTASK
from finskillbench_desk.allocate.procedures import PROCEDURES, chances_of_starts

COUNT = 9 if THOROUGH else 2


@cache
def earned(number: int, name: str) -> Score:
    """What a procedure earns in a case."""
    return played(number).baseline(name)


@thorough
@pytest.mark.slow
def test_care_is_worth_more_than_a_textbook_or_credulity() -> None:
    means = {name: fmean(earned(number, name).value for number in range(COUNT)) for name in PROCEDURES}
    assert means["reference"] > 0.7
    assert means["textbook"] < 0.25
    assert means["trapped"] < 0.3


@pytest.mark.slow
def test_the_reference_sees_the_traps_and_the_credulous_falls_for_them() -> None:
    told: dict[str, list[str]] = {"reference": [], "trapped": []}
    for number in range(COUNT):
        for name, verdicts in told.items():
            found = earned(number, name).details["traps"]
            verdicts += [verdict for place, verdict in found.items() if not place.startswith("control")]
    assert told["reference"].count("avoided") > 0.8 * len(told["reference"])
    assert told["trapped"].count("fallen") > 0.4 * len(told["trapped"])


def test_a_procedure_keeps_to_the_budget() -> None:
    calls, one = [], played(0)
    playing = PROCEDURES["reference"]()
    asks = next(playing)
    while True:
        calls.append(asks)
        results = [one.serve(ask) for ask in asks]
        assert all(len(str(result)) < MAX_RESULT_CHARS for result in results)
        try:
            asks = playing.send(results)
        except StopIteration:
            break
    assert SUBTASK.interactive is not None
    assert len(calls) < SUBTASK.interactive.budget.turns
    reads = [ask for turn in calls for ask in turn if ask.tool in ("get_task_data", "read_table")]
    assert len(reads) <= SUBTASK.interactive.budget.data_calls


def test_without_evidence_the_present_regime_began_as_the_memo_says() -> None:
    """No change in 21 half-years; and the last of them, which the last start stands for together with four others."""
    spans = list(combinations(range(7), 2))
    begun = chances_of_starts(dict.fromkeys(spans, 1.0), 0.1)
    assert sum(begun) == pytest.approx(1.0)
    assert begun[0] == pytest.approx(0.9**21)
    assert begun[-1] == pytest.approx(1 - 0.9**5)


def test_what_ended_moves_the_start_of_the_present_regime_behind_it() -> None:
    """A source that explained quarters 1 to 24 and nothing since, against one window that would hold it for good."""
    spans = list(combinations(range(7), 2))
    begun = chances_of_starts({span: 1e6 if span == (0, 3) else 1.0 for span in spans}, 0.1)
    assert sum(begun[:3]) < 1e-4


def test_the_memo_names_every_number_that_the_family_states() -> None:
    one = played(1)
    text, family = one.data["documents"]["memo"], one.data["family"]
    for name in ("nothing", "change", "analyst_share"):
        assert f"{family[name]:.0%}" in text
    assert family["signal_deviation"] == family["analyst_deviation"]
    for name in ("signal_mean", "analyst_mean", "signal_deviation"):
        assert f"{family[name]:.4f}" in text


def test_the_log_names_no_number_of_the_truth() -> None:
    for number in range(6):
        log = played(number).data["documents"]["notes"]
        assert all(int(each) <= 45 for each in re.findall(r"\b\d+\b", log))
        assert not re.search(r"trap|hindsight|effect", log)


def test_shrink_is_bayes_rule() -> None:
    row = {"group": "g", "estimate": 0.02, "standard_error": 0.005, "probability": 0.004, "mean": 0, "deviation": 0.02}
    found = script("signal-trading/scripts/shrink.py")({"hypotheses": [{**row, "name": "P"}]})["groups"]["g"]
    # exp(t²/2 · k) sqrt(1 − k) with k = 0.02²/(0.02² + 0.005²), by hand
    kept = 0.0004 / 0.000425
    odds = 0.004 / 0.996 * 2.718281828459045 ** (8 * kept) * (1 - kept) ** 0.5
    assert found["hypotheses"][0]["chance"] == pytest.approx(odds / (1 + odds), rel=1e-8)
    assert found["hypotheses"][0]["effect"] == pytest.approx(0.02 * kept)
    assert found["none"] == pytest.approx(1 / (1 + odds), rel=1e-8)
