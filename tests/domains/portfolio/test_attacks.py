"""`certified` over whole editions of portfolio tasks, against answers that know less than they claim."""

from __future__ import annotations

import copy
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from tests.domains.portfolio.attacks import (
    ATTACKS,
    EVERYTHING,
    NEEDS_AN_OPTIMISER,
    named,
    other_questions,
    rebalancing_answer,
    stretched,
)
from tests.domains.shared.attacks import FLOOR, right_answer, scored
from tests.sampling import sampled

from finskillbench.domains import subtask_named
from finskillbench.domains.portfolio.black_litterman import NEARLY_RIGHT
from finskillbench.domains.portfolio.examples import black_litterman
from finskillbench.domains.portfolio.worth import judge_rebalancing
from finskillbench.edition import Edition
from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.measures import FEASIBILITY_TOLERANCE
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.rebalance import RebalancingRules
from finskillbench.episode import Episode, Profile

Json = dict[str, Any]
WEIGHTS = {
    "unconstrained_optimization": "weights",
    "constrained_optimization": "weights",
    "rebalancing": "new_weights",
    "black_litterman": "optimal_weights",
}


@pytest.fixture(scope="module")
def tried(edition: Edition) -> dict[str, list[tuple[Episode, str, Any, float]]]:
    """By subtask: episodes under every attack, what was answered and what it earned under `certified`."""
    found: dict[str, list[tuple[Episode, str, Any, float]]] = defaultdict(list)
    for sub_task, attacks in ATTACKS.items():
        for episode in sampled(edition.episodes([sub_task]), 2):
            for name, answer in attacks(edition.full_input(episode)).items():
                found[sub_task].append((episode, name, answer, scored(edition, episode, answer).value))
    return found


@pytest.fixture(scope="module")
def table(tried: Any) -> dict[str, dict[str, list[float]]]:
    """`certified` scores by subtask and attack over these episodes."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for sub_task, rows in tried.items():
        for _, name, _, value in rows:
            found[sub_task][name].append(value)
    return found


@pytest.mark.parametrize("sub_task", ATTACKS)
def test_what_needs_no_optimiser_stays_at_the_floor(table: Any, sub_task: str) -> None:
    cheap = {
        name: np.sum(values) / len(sampled(range(40), 2))
        for name, values in table[sub_task].items()
        if not any(part in name for part in NEEDS_AN_OPTIMISER)
    }
    assert max(cheap.values()) <= FLOOR, max(cheap, key=lambda name: cheap[name])
    # The one name of highest return is the right answer to a quarter of the unconstrained questions.
    cheap.pop("highest expected return only", None)
    assert np.mean(list(cheap.values())) <= 0.1


@pytest.mark.parametrize("sub_task", ["unconstrained_optimization", "constrained_optimization", "rebalancing"])
def test_equal_weights_benchmark_and_current_portfolio_score_nothing(table: Any, sub_task: str) -> None:
    for name in ("equal weights", "nearest feasible to equal weights", "benchmark", "current portfolio", "all in cash"):
        assert max(table[sub_task].get(name, [0.0])) <= 1e-9, name


@pytest.mark.parametrize("sub_task", ATTACKS)
def test_nothing_earns_from_absence(table: Any, sub_task: str) -> None:
    for name in ("empty", "no weights", "no call", "posterior only", "feasible", "infeasible"):
        assert max(table[sub_task].get(name, [0.0])) == 0.0, name


@pytest.mark.parametrize("sub_task", ATTACKS)
def test_only_right_answers_reach_one(edition: Edition, tried: Any, sub_task: str) -> None:
    """What scores 1 is within rounding of the label, or is the label's own quantity.

    The feasible portfolio nearest to inverse variance answers risk parity in another metric: it may come as near as
    twice that.
    """
    for episode, name, answer, value in tried[sub_task]:
        if value < 1.0:
            continue
        expected = right_answer(edition, episode)
        if sub_task == "infeasibility_detection":
            assert answer["least_attainable"] == pytest.approx(expected["least_attainable"], rel=2e-3), name
            continue
        given, wanted = answer[WEIGHTS[sub_task]], expected[WEIGHTS[sub_task]]
        twin = name == "nearest feasible to inverse variance" and episode.input.get("objective") == "risk_parity"
        apart = np.linalg.norm([given.get(ticker, 0.0) - wanted[ticker] for ticker in wanted])
        assert apart < (1e-2 if twin else 5e-3), (episode.task_id, name)


@pytest.mark.parametrize("sub_task", ["unconstrained_optimization", "constrained_optimization"])
def test_another_objective_s_optimum_earns_part_at_most(edition: Edition, sub_task: str) -> None:
    earned: list[float] = []
    for episode in edition.episodes([sub_task]):
        problem = problem_from(edition.full_input(episode))
        for weights in other_questions(problem).values():
            answer = right_answer(edition, episode) | {"weights": named(problem, weights)}
            earned.append(scored(edition, episode, answer).value)
    assert max(earned) < 1.0
    assert np.mean(earned) < 0.5


@pytest.mark.parametrize("sub_task", WEIGHTS)
def test_another_episode_s_truth_earns_little(edition: Edition, sub_task: str) -> None:
    """The answer to the same question at the next date, or the next of the list, is stale."""
    episodes = edition.episodes([sub_task])
    kind = [(episode.difficulty, episode.input.get("objective")) for episode in episodes]
    slow: list[float] = []
    earned: list[float] = []
    for place, episode in enumerate(episodes):
        same = [other for other in range(len(episodes)) if kind[other] == kind[place] and other != place]
        # Without a limit that moves with the date the answer moves slowly: risk estimates share 11 of 12 months, and
        # the best names often stay the best.
        still = sub_task == "unconstrained_optimization" or (
            sub_task == "constrained_optimization" and episode.difficulty == "easy"
        )
        if same:
            (slow if still else earned).append(
                scored(edition, episode, right_answer(edition, episodes[min(same)])).value
            )
    assert np.mean(earned or [0.0]) <= FLOOR
    assert np.mean(slow or [0.0]) <= 0.9


@pytest.mark.parametrize("sub_task", WEIGHTS)
def test_a_ticker_outside_the_universe_or_a_negative_weight_voids_the_answer(edition: Edition, sub_task: str) -> None:
    field = WEIGHTS[sub_task]
    for episode in edition.episodes([sub_task])[:6]:
        for extra in ({"CASH": 0.0}, {"ZZZZ": 0.1}):
            answer = right_answer(edition, episode)
            answer[field] |= extra
            assert scored(edition, episode, answer).value == 0.0, extra
        short = right_answer(edition, episode)
        least, most = min(short[field], key=short[field].get), max(short[field], key=short[field].get)
        moved = short[field][least] + 2 * FEASIBILITY_TOLERANCE
        short[field][least] -= moved
        short[field][most] += moved
        assert scored(edition, episode, short).value == pytest.approx(0.0, abs=1e-12)


def test_using_all_of_the_tolerance_gains_nothing_on_an_honest_answer(edition: Edition) -> None:
    for episode in edition.episodes(["constrained_optimization", "rebalancing"]):
        problem = problem_from(edition.full_input(episode))
        weights = stretched(problem, 0.99 * FEASIBILITY_TOLERANCE)
        if weights is None:
            continue
        answer = right_answer(edition, episode)
        answer |= (
            rebalancing_answer(problem, weights)
            if episode.sub_task == "rebalancing"
            else {"weights": named(problem, weights)}
        )
        assert scored(edition, episode, answer).value <= 1.0


@pytest.mark.parametrize("total", [1 - 9e-4, 1 - 4e-4, 1 + 4e-4, 1 + 9e-4])
def test_under_or_over_investing_moves_no_score(edition: Edition, total: float) -> None:
    """Scaling within the rounding of a list is divided out: it neither helps a poor answer nor hurts a good one."""
    for episode in edition.episodes(["unconstrained_optimization"]):
        answer = right_answer(edition, episode)
        inverse = problem_from(edition.full_input(episode)).inverse_variance
        for weights in (answer["weights"], dict(zip(answer["weights"], inverse, strict=True))):
            scaled = {ticker: weight * total for ticker, weight in weights.items()}
            honest = scored(edition, episode, {"weights": weights}).value
            assert scored(edition, episode, {"weights": scaled}).value == pytest.approx(honest, abs=1e-9)
            cash = {ticker: 0.98 * weight for ticker, weight in weights.items()}
            assert scored(edition, episode, {"weights": cash}).value == 0.0


def test_flags_say_nothing_that_the_weights_do_not_and_have_no_weight(edition: Edition) -> None:
    for episode in edition.episodes(["constrained_optimization"]):
        answer = right_answer(edition, episode)
        flags = answer["constraint_satisfaction"]
        assert set(flags.values()) == {True}
        for other in ({}, dict.fromkeys(flags, False), dict.fromkeys(flags, 1), None):
            assert scored(edition, episode, answer | {"constraint_satisfaction": other}).value == 1.0
        assert scored(edition, episode, {"constraint_satisfaction": flags}).value == 0.0


def test_a_limit_costs_in_proportion_to_how_far_it_is_exceeded(edition: Edition) -> None:
    """Five basis points are free, a twentieth of the limit beyond them is worth nothing, half of it half."""
    seen = 0
    for episode in edition.episodes(["constrained_optimization"]):
        answer = right_answer(edition, episode)
        weights, cap = answer["weights"], episode.input["constraints"]["max_weight"]
        sectors = episode.input["sector_mapping"]
        largest = max(weights, key=weights.get)
        others = [name for name in weights if sectors[name] == sectors[largest] and 0.02 < weights[name] < cap - 0.01]
        if episode.difficulty != "easy" or weights[largest] < cap - 1e-9 or not others:
            continue
        seen += 1
        for over, least, most in (
            (0.0004, 0.9, 1.0),
            (0.0005 + 0.025 * cap, 0.4, 0.5 + 1e-9),
            (0.0006 + 0.05 * cap, 0.0, 0.0),
        ):
            moved = weights | {largest: weights[largest] + over, others[0]: weights[others[0]] - over}
            assert least <= scored(edition, episode, answer | {"weights": moved}).value <= most, over
    assert seen >= 1


def test_trades_and_turnover_that_contradict_the_weights_cost_half_each(edition: Edition) -> None:
    for episode in edition.episodes(["rebalancing"]):
        answer = right_answer(edition, episode)
        away = {ticker: 0.005 - change for ticker, change in answer["trade_list"].items()}
        lies: list[Json] = [
            {"turnover": answer["turnover"] + 0.011},
            {"turnover": 2 * answer["turnover"]},
            {"turnover": None},
            {"trade_list": {}},
            {"trade_list": away},
            {"trade_list": {ticker: -change for ticker, change in answer["trade_list"].items()}},
            {"trade_list": answer["trade_list"] | {"CASH": 0.0}},
        ]
        for lie in lies:
            assert scored(edition, episode, answer | lie).value == pytest.approx(0.5), lie
        assert scored(edition, episode, answer | lies[0] | lies[3]).value == 0.0
        near = {ticker: change + 0.0009 for ticker, change in answer["trade_list"].items()}
        assert scored(edition, episode, answer | {"trade_list": near}).value == 1.0
        assert scored(edition, episode, answer | {"turnover": answer["turnover"] + 0.0024}).value == 1.0


def test_cost_and_size_of_trades_count(edition: Edition) -> None:
    """A tenth more cost than needed costs two thirds, the first stage's optimum and half a trade everything."""
    for episode in edition.episodes(["rebalancing"]):
        task_input, truth = edition.full_input(episode), edition.truth(episode.task_id)
        problem = problem_from(task_input)
        terms, current = RebalancingRules.of(task_input, problem), problem.current
        assert current is not None
        answer = truth.expected_output
        known = truth.verification

        def value(least: float, of: Json, problem: Any = problem, terms: Any = terms, known: Any = known) -> float:
            return judge_rebalancing(problem, terms, of, known["required_value"], least).value

        assert value(known["least_cost_bps"], answer) == 1.0
        assert value(known["least_cost_bps"] / 1.1, answer) == pytest.approx(0.05 / 0.145, abs=1e-6)
        first = optimise(problem, unique=False).weights
        assert terms.cost(first, current) > 1.3 * known["least_cost_bps"]
        assert value(known["least_cost_bps"], rebalancing_answer(problem, first)) == 0.0
        small = min((change for change in answer["trade_list"].values() if change > 0), default=0.0)
        bought = next(ticker for ticker, change in answer["trade_list"].items() if change == small)
        weights = dict(answer["new_weights"])
        weights[bought] -= small - 0.5 * task_input["min_trade"]
        array = np.array([weights[ticker] for ticker in problem.tickers])
        assert value(known["least_cost_bps"], rebalancing_answer(problem, array)) == 0.0


def test_half_an_answer_to_black_litterman_is_worth_nothing(edition: Edition) -> None:
    for episode in edition.episodes(["black_litterman"]):
        answer = right_answer(edition, episode)
        for field in answer:
            assert scored(edition, episode, {field: answer[field]}).value == 0.0


def test_no_standard_mistake_with_black_litterman_is_nearly_right(edition: Edition) -> None:
    for episode in sampled(edition.episodes(["black_litterman"]), 2):
        for name, answer in black_litterman.shortcuts(edition.full_input(episode)).items():
            assert scored(edition, episode, answer).value <= NEARLY_RIGHT + 1e-9, (episode.task_id, name)


def test_every_parameter_at_once_is_no_reading(edition: Edition) -> None:
    earned = [
        scored(edition, episode, {"optimizer_call": EVERYTHING}).value
        for episode in edition.episodes(["tool_use_parameterization"])
    ]
    assert np.mean(earned) <= 0.1


def test_the_best_constant_call_stays_at_the_floor(edition: Edition) -> None:
    """Each episode's right call, submitted to all the others."""
    episodes = edition.episodes(["tool_use_parameterization"])
    for source in episodes:
        answer = right_answer(edition, source)
        others = [episode for episode in episodes if episode.task_id != source.task_id]
        assert np.mean([scored(edition, episode, answer).value for episode in others]) <= 0.1, source.task_id


def test_the_call_that_needs_no_reading_scores_nothing(table: Any) -> None:
    for name in ("max_sharpe, long-only", "limits that never bind"):
        assert max(table["tool_use_parameterization"][name]) == 0.0


def test_a_sector_cap_spelled_out_is_the_same_call(edition: Edition) -> None:
    seen = 0
    for episode in edition.episodes(["tool_use_parameterization"]):
        answer = right_answer(edition, episode)
        limits = answer["optimizer_call"]["constraints"]
        general = limits.pop("max_sector_weight", None)
        if general is None:
            continue
        seen += 1
        limits["sector_limits"] = dict.fromkeys(episode.input["sectors"], general) | limits.get("sector_limits", {})
        assert scored(edition, episode, answer).value == 1.0, episode.task_id
        excluded = limits.get("excluded_sectors", [])
        limits["sector_limits"].pop(next(name for name in episode.input["sectors"] if name not in excluded))
        assert scored(edition, episode, answer).value < 1.0
    assert seen >= 10


def test_a_bare_verdict_is_a_coin_toss_and_earns_nothing(edition: Edition) -> None:
    for episode in edition.episodes(["infeasibility_detection"]):
        answer = right_answer(edition, episode)
        assert scored(edition, episode, {"feasible": answer["feasible"]}).value == 0.0
        assert scored(edition, episode, answer | {"feasible": not answer["feasible"]}).value == 0.0
        assert scored(edition, episode, {"least_attainable": answer["least_attainable"]}).value == 0.0
        assert scored(edition, episode, {"feasible": answer["feasible"]}, Profile.PAPER).value == 1.0


def test_every_certified_scorer_survives_its_own_input_being_shared(edition: Edition) -> None:
    """Scoring must not change what it is given: the same answer twice gives the same score."""
    for sub_task in ATTACKS:
        episode = edition.episodes([sub_task])[0]
        task_input, answer = edition.full_input(episode), right_answer(edition, episode)
        before = copy.deepcopy((task_input, answer))
        scorer, truth = subtask_named(sub_task).scorers[Profile.CERTIFIED], edition.truth(episode.task_id)
        assert scorer(answer, truth, task_input) == scorer(answer, truth, task_input)
        assert (task_input, answer) == before
