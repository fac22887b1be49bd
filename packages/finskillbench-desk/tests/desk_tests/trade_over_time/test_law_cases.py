"""Cases whose law is not disclosed: merit, proof, episode, procedures and examples; nothing tells the law."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import orjson
import pytest
from desk_tests.trade_over_time.cases import MARKET, case, full_input, judged, law_case, play

from finskillbench.domains.building import BuiltTask
from finskillbench.domains.examples import Label
from finskillbench.domains.tables import EpisodeTable
from finskillbench.findings import Findings
from finskillbench_desk.trade_over_time.examples import exploits, graded_examples
from finskillbench_desk.trade_over_time.interactive import as_orders, certified, open_state, unpacked_future
from finskillbench_desk.trade_over_time.law_optimum import LEAST_GAIN, draw_law_case, foreseen_gain, law_textbooks
from finskillbench_desk.trade_over_time.law_posterior import evidence_of, law_aims
from finskillbench_desk.trade_over_time.laws import STRUCTURES, draw_law, law_from_json, law_json
from finskillbench_desk.trade_over_time.optimum import TradingSetup, from_json, losses, optimal_path
from finskillbench_desk.trade_over_time.proof import proof
from finskillbench_desk.trade_over_time.world import DECISIONS, OUTAGE, WEEKS, Draws

QUICK = "volatility_trend_ends"
"""The structure with the fastest posterior; it has backfilled values."""
SOME = [each for each in STRUCTURES if each != QUICK][::2]
"""The others are proved in the edition of a thorough run."""


def label_of(task: BuiltTask) -> Label[Any]:
    return Label(task.episode, full_input(task), task.truth, task.certificate, True, task.hidden or {})


def proved(task: BuiltTask, **changes: Any) -> list[str]:
    findings = Findings()
    truth = replace(task.truth, verification={**task.truth.verification, **changes})
    proof(replace(label_of(task), truth=truth), findings)
    return [each.message for each in findings.found]


@pytest.mark.parametrize("structure", [QUICK, *(pytest.param(each, marks=pytest.mark.slow) for each in SOME)])
def test_a_structure_builds_and_is_proved(structure: str) -> None:
    task = law_case(structure, 1)
    assert proved(task) == []
    assert judged(task, task.truth.expected_output["record"]).value == pytest.approx(1, abs=1e-9)
    still = certified({"decisions": 0}, task.truth, {})
    assert still.value == 0
    assert set(still.details["traps"].values()) <= {"untested"}
    for example in graded_examples(label_of(task)):
        assert example.least - 1e-9 <= certified(example.answer, task.truth, {}).value <= example.most + 1e-9


def test_a_law_is_restored_from_json() -> None:
    for structure in STRUCTURES:
        law = draw_law(np.random.default_rng(3), structure)
        assert law_from_json(orjson.loads(orjson.dumps(law_json(law)))) == law


def test_neither_the_structure_nor_a_parameter_is_visible() -> None:
    task, law = law_case(QUICK, 1), law_from_json(law_case(QUICK, 1).truth.verification["law"])
    episode = task.episode
    visible = {**episode.input, "names": None, "prompt": str(episode.prompt), "metadata": episode.metadata}
    text = orjson.dumps(visible | {"id": episode.task_id}).decode()
    assert episode.task_id.endswith("_01_described")
    assert not any(word in text for word in (*STRUCTURES, "half_life", "half-life", "backfill"))
    numbers = {getattr(law, each.name) for each in fields(law)} - {np.inf, 0.0}
    assert not [each for each in numbers if isinstance(each, float) and f"{each:g}" in text]
    assert "law" not in str(episode.input.keys())
    assert set(episode.input["signals"]["s01"]) == {"vendor", "since"}
    assert not {"law", "half_lives", "structure"} & (task.hidden or {}).keys()


@pytest.mark.parametrize(
    ("key", "change", "found"),
    [
        ("law", lambda law: law | {"strength": law["strength"] * 1.01}, "law differs"),
        ("law", lambda law: law | {"copies": law["copies"] + 1}, "law differs"),
        ("textbook_losses", lambda stated: stated[::-1], "textbook_losses differ"),
        ("aims", lambda aims: [[each + 0.01 for each in aims[0]], *aims[1:]], "book differs"),
        ("traps", lambda traps: traps[1:], "traps, and"),
        ("traps", lambda traps: [traps[0] | {"cost": traps[0]["cost"] * 1.1}, *traps[1:]], "costs"),
    ],
)
def test_a_truth_that_was_altered_is_noticed(key: str, change: Any, found: str) -> None:
    task = law_case(QUICK, 1)
    assert any(found in each for each in proved(task, **{key: change(task.truth.verification[key])}))


def test_a_law_altered_with_its_certificate_is_noticed_by_its_books() -> None:
    task = law_case(QUICK, 1)
    law = task.truth.verification["law"] | {"strength": task.truth.verification["law"]["strength"] * 1.01}
    altered = replace(task, certificate={**task.certificate, "law": law})
    assert any("book differs" in each for each in proved(altered, law=law))


def test_what_a_decision_lost_depends_neither_on_later_weeks_nor_on_the_state() -> None:
    rng = np.random.default_rng(4)
    drawn, _ = draw_law_case(rng, MARKET, QUICK, "easy")
    world, known = replace(drawn.world, outage=None), WEEKS + 5
    signals, returns = world.draws.signals.copy(), world.draws.returns.copy()
    signals[known + 1 :], returns[known:] = 77, -900
    of = replace(drawn, world=world)
    other = replace(of, world=replace(world, draws=Draws(signals, returns)), effects=-drawn.effects)
    assert foreseen_gain(of, evidence_of(of)) == pytest.approx(foreseen_gain(other, evidence_of(other)), rel=1e-12)
    assert foreseen_gain(of, evidence_of(of)) >= LEAST_GAIN
    setup, one, two = TradingSetup.of(world), law_aims(of, evidence_of(of)), law_aims(other, evidence_of(other))
    books = [setup.settled(place, book + rng.normal(0, 9, 120)) for place, book in enumerate(optimal_path(setup, one))]
    np.testing.assert_allclose(losses(setup, one, books)[:6], losses(setup, two, books)[:6], rtol=1e-9)
    oracle = np.array(
        [
            setup.policy(place).aim(place, drawn.effects[WEEKS + place :] * world.risk.specific)
            for place in range(DECISIONS)
        ]
    )
    lost = losses(setup, one, optimal_path(setup, oracle))
    assert lost.sum() > 0.01 * min(each.sum() for each in law_textbooks(setup, one).values())


def test_an_episode_serves_returns_of_factors_with_the_news() -> None:
    task = next(each for each in (law_case(QUICK, seed) for seed in range(9)) if each.certificate["outage"] is not None)
    setup, outage = from_json(task.truth.verification["desk"]), task.certificate["outage"]
    _, _, factors = unpacked_future(task.certificate, setup)
    assert factors is not None
    state = open_state(full_input(task), orjson.loads(orjson.dumps(task.hidden)))
    for place, order in enumerate(task.truth.expected_output["record"]["decisions"][:-1], 1):
        state.call("advance", order)
        shown = state.fields
        assert isinstance(shown["news_factors"], EpisodeTable)
        frame, first = shown["news_factors"].frame, place - 1
        assert list(frame.columns) == list(task.tables["factor_returns"].columns)
        if outage <= place < outage + OUTAGE:
            assert frame.height == shown["news"].rows == 0
            continue
        first = outage - 1 if place == outage + OUTAGE else place - 1
        assert frame["week"].to_list() == list(range(WEEKS + 1 + first, WEEKS + 1 + place))
        np.testing.assert_array_equal(frame.drop("week").to_numpy(), factors[first:place])
    assert set(state.fields) == {"state", "current", "news", "news_factors", "notices"}


def test_returns_of_factors_explain_returns() -> None:
    task = law_case(QUICK, 1)
    names, history, setup = task.tables["names"], task.tables["history"], from_json(task.truth.verification["desk"])
    explained = task.tables["factor_returns"].drop("week").to_numpy() @ setup.risk.exposures.T
    left = history["next_return"].to_numpy().reshape(WEEKS, -1) / 1e5 - explained
    np.testing.assert_allclose((left / names["specific_volatility"].to_numpy()).std(), 1.0, atol=0.03)


def test_verdicts_follow_from_trades() -> None:
    task = case("easy", 0)
    known = task.truth.verification
    setup, aims = from_json(known["desk"]), np.array(known["aims"])
    path, kinds = optimal_path(setup, aims), judged(task, task.truth.expected_output["record"]).details["traps"]
    assert set(kinds.values()) == {"avoided"}
    far = [setup.settled(place, book + 500.0 * (-1.0) ** np.arange(120)) for place, book in enumerate(path)]
    assert set(judged(task, as_orders(setup, far)).details["traps"].values()) == {"untested"}
    empty = {"decisions": [{"trades": {}}] * known["traps"][0]["decision"] + [{"trades": {}}]}
    assert next(iter(judged(task, empty).details["traps"].values())) == "untested"


@pytest.mark.slow
@pytest.mark.parametrize("procedure", ["reference", "textbook", "trapped"])
def test_procedures_and_exploits_run_without_the_law(procedure: str) -> None:
    task = law_case(QUICK, 1)
    score, turns = play(task, procedure)
    assert (score.details["decisions"], turns <= 24) == (DECISIONS, True)
    assert score.value < (1.0 if procedure == "reference" else 0.2)
    for answer in exploits(full_input(task)).values():
        found = certified(answer, task.truth, {})
        assert found.details["decisions"] == DECISIONS
        assert found.value < 0.4
