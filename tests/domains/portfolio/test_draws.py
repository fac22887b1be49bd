"""How episodes are drawn and shown: counts by stratum, legacy portfolios, units, and nothing of the truth in sight."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, cast

import numpy as np
import pytest

from finskillbench.domains import domain
from finskillbench.domains.portfolio import rederive
from finskillbench.domains.portfolio.definitions import OBJECTIVE_TEXT, WAIVABLE, family, printed
from finskillbench.domains.portfolio.objects.settings import read_settings
from finskillbench.domains.portfolio.rebalancing import TRADING_DEFINITIONS
from finskillbench.domains.portfolio.worth import count_distinct
from finskillbench.edition import Edition
from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.measures import check_limits, one_way_turnover, violations
from finskillbench.engines.portfolio.problem import Objective
from finskillbench.episode import Episode
from finskillbench.scoring.values import as_object

SETTINGS = read_settings()
PORTFOLIO = tuple(subtask.name for subtask in domain("portfolio_construction").subtasks)


def _counts(edition: Edition, sub_task: str, *keys: str) -> Counter[tuple[Any, ...]]:
    def key(episode: Episode) -> tuple[Any, ...]:
        return tuple(episode.difficulty if name == "tier" else episode.input[name] for name in keys)

    return Counter(key(episode) for episode in edition.episodes([sub_task]))


@pytest.mark.parametrize("sub_task", PORTFOLIO)
def test_forty_episodes_each_with_an_id_of_its_own(edition: Edition, sub_task: str) -> None:
    episodes = edition.episodes([sub_task])
    assert len({episode.task_id for episode in episodes}) == len(episodes) == 40


def test_objectives_and_tiers_are_drawn_evenly(edition: Edition) -> None:
    apart = 3 if edition.manifest["source"]["kind"] == "synthetic" else 4  # real prices leave fewer of one objective
    assert min(_counts(edition, "unconstrained_optimization", "objective").values()) == 2
    for sub_task in ("constrained_optimization", "rebalancing"):
        assert set(_counts(edition, sub_task, "tier")) == {("easy",), ("medium",), ("hard",)}
        for keys in (("tier",), ("objective",)):
            counts = _counts(edition, sub_task, *keys).values()
            assert max(counts) - min(counts) <= apart, (sub_task, keys)
        assert len(_counts(edition, sub_task, "tier", "objective")) == 12
    assert set(_counts(edition, "black_litterman", "tier")) == {("easy",), ("medium",), ("hard",)}
    mandates = edition.episodes(["tool_use_parameterization"])
    assert len({edition.truth(e.task_id).proof["template"] for e in mandates}) == len(mandates) == 40


def test_month_ends_are_all_used(edition: Edition) -> None:
    for sub_task in PORTFOLIO:
        months = Counter(episode.as_of_date for episode in edition.episodes([sub_task]))
        assert len(months) >= 10, sub_task
        assert max(months.values()) <= 10, sub_task


def test_constrained_mandates_are_spread_evenly_over_the_month_ends(edition: Edition) -> None:
    months = Counter(episode.as_of_date for episode in edition.episodes(["constrained_optimization"]))
    assert len(months) == 12
    assert max(months.values()) - min(months.values()) <= 2


def test_no_minimum_variance_mandate_has_a_scale_narrower_than_fifty_basis_points(edition: Edition) -> None:
    for episode in edition.episodes(["constrained_optimization"]):
        if episode.input["objective"] == Objective.MIN_VARIANCE:
            known = edition.truth(episode.task_id).verification
            assert np.sqrt(known["trivial_value"]) - np.sqrt(known["optimal_value"]) >= 0.005, episode.task_id


def test_each_tier_of_infeasibility_is_half_and_half_and_clear_of_the_limit(edition: Edition) -> None:
    episodes = edition.episodes(["infeasibility_detection"])
    truths = [edition.truth(episode.task_id).expected_output for episode in episodes]
    tiers = Counter((episode.difficulty, truth["feasible"]) for episode, truth in zip(episodes, truths, strict=True))
    assert {tier: tiers[tier, True] for tier in ("easy", "medium", "hard")} == {"easy": 7, "medium": 7, "hard": 6}
    assert {tier: tiers[tier, False] for tier in ("easy", "medium", "hard")} == {"easy": 7, "medium": 7, "hard": 6}
    least_gap, _ = SETTINGS["infeasibility"]["gap"]
    for episode, truth in zip(episodes, truths, strict=True):
        limit, least = printed(episode.input, episode.input["limit_to_relax"]), truth["least_attainable"]
        assert truth["feasible"] is (least <= limit)
        assert max(limit / least, least / limit) >= 1 + least_gap - 1e-9, episode.task_id


def test_causes_of_infeasibility_are_several_and_the_tier_is_the_size_of_the_conflict(edition: Edition) -> None:
    sizes = {"easy": {2}, "medium": {3}, "hard": {4, 5}}
    episodes = edition.episodes(["infeasibility_detection"])
    conflicts: set[tuple[str, ...]] = set()
    for episode in episodes:
        named = edition.truth(episode.task_id).expected_output["conflicting_limits"]
        assert not named or len(named) in sizes[episode.difficulty], episode.task_id
        conflicts.add(tuple(named))
    assert len(conflicts) >= 7
    assert {name for named in conflicts for name in named} >= {*WAIVABLE} - {"max_weight"}
    relaxed = Counter(family(episode.input["limit_to_relax"]) for episode in episodes)
    assert len(relaxed) >= 4
    assert max(relaxed.values()) <= 20
    assert len({json.dumps(episode.input["constraints"], sort_keys=True) for episode in episodes}) == 40


def test_the_benchmark_keeps_every_limit_but_the_restricted_names(edition: Edition) -> None:
    for episode in edition.episodes(["infeasibility_detection"]):
        task_input = edition.full_input(episode)
        tickers, sigma = rederive.input_covariance(task_input)
        over = rederive.excesses(task_input, sigma, rederive.vector(task_input["benchmark_weights"], tickers))
        assert {name for name, excess in over.items() if excess > 1e-9} <= {"restricted_names", "max_turnover"}


def test_labels_differ(edition: Edition) -> None:
    for sub_task, field in (
        ("unconstrained_optimization", "weights"),
        ("constrained_optimization", "weights"),
        ("rebalancing", "new_weights"),
        ("black_litterman", "optimal_weights"),
    ):
        labels = [edition.truth(episode.task_id).expected_output[field] for episode in edition.episodes([sub_task])]
        assert count_distinct(labels) >= 35, sub_task


def test_legacy_portfolios_are_portfolios_and_must_trade_where_trading_is_limited(edition: Edition) -> None:
    for episode in edition.episodes(["constrained_optimization", "infeasibility_detection"]):
        weights = np.array(list(episode.input["current_portfolio"].values()))
        assert weights.sum() == pytest.approx(1.0, abs=1e-12)
        assert weights.min() >= 0.0
        problem = problem_from(edition.full_input(episode))
        if problem.limits.max_turnover is None:
            continue
        assert problem.current is not None
        if episode.sub_task == "infeasibility_detection":
            assert violations(problem, problem.current, 1e-6), episode.task_id
            continue
        best = np.array(list(edition.truth(episode.task_id).expected_output["weights"].values()))
        assert one_way_turnover(best, problem.current) == pytest.approx(problem.limits.max_turnover, abs=1e-6)


def test_current_portfolios_keep_the_caps_or_miss_them_by_little(edition: Edition) -> None:
    kept: list[bool] = []
    for episode in edition.episodes(["constrained_optimization"]):
        problem = problem_from(edition.full_input(episode))
        assert problem.current is not None
        checks = check_limits(problem, problem.current)
        over = [checks[name].excess / checks[name].limit for name in ("max_weight", "sector_limits")]
        assert max(over) < 0.101, episode.task_id
        kept.append(max(over) <= 1e-6)
    assert 0.25 < np.mean(kept) < 0.75


def test_units_are_annual_and_objectives_mean_what_the_text_says(edition: Edition) -> None:
    for episode in edition.episodes(["unconstrained_optimization", "constrained_optimization", "rebalancing"]):
        task_input = edition.full_input(episode)
        problem = problem_from(task_input)
        _, sigma = rederive.input_covariance(task_input)
        volatility = np.sqrt(np.diag(sigma))
        assert 0.08 < volatility.min() < volatility.max() < 1.2, episode.task_id
        assert np.abs(problem.mean).max() < 0.5
        assert 0.0 <= task_input["risk_free_rate"] < 0.12
        assert task_input["conventions"]["objective"] == OBJECTIVE_TEXT[Objective(task_input["objective"])]
        truth = edition.truth(episode.task_id)
        expected = truth.expected_output
        weights = np.array(list((expected.get("weights") or expected["new_weights"]).values()))
        value, rebalanced = rederive.objective(task_input, sigma, weights), episode.sub_task == "rebalancing"
        least = truth.verification["required_value"] if rebalanced else truth.proof["objective"]
        assert value == pytest.approx(least, abs=1e-9) or (rebalanced and value < least), episode.task_id
        if rebalanced:
            assert task_input["conventions"].items() >= TRADING_DEFINITIONS.items()
            assert 2.0 <= min(task_input["trading_costs_bps"].values()) < 20.0
            assert task_input["current_portfolio_date"] == str(episode.as_of_date)


def _numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [number for item in cast("dict[str, Any]", value).values() for number in _numbers(item)]
    if isinstance(value, list):
        return [number for item in cast("list[Any]", value) for number in _numbers(item)]
    return [float(value)] if isinstance(value, int | float) and not isinstance(value, bool) else []


def test_no_value_of_the_truth_stands_in_input_or_prompt(edition: Edition) -> None:
    """By the exact numbers, and by vectors to three digits: a map of the truth must not come near one of the input."""
    for episode in edition.episodes([name for name in PORTFOLIO if name != "tool_use_parameterization"]):
        expected = edition.truth(episode.task_id).expected_output
        prompt = f"{episode.prompt.task_description} {episode.prompt.output_instructions}"
        shown = {f"{float(text):.3g}" for text in re.findall(r"\d+\.\d{3,}", prompt)}
        exact = {f"{number:.9g}" for number in _numbers(dict(episode.input))}
        for field, value in expected.items():
            for number in _numbers(value):
                if field in ("turnover", "least_attainable"):
                    assert f"{number:.9g}" not in exact, (episode.task_id, field)
                if number > 0.001:
                    assert f"{number:.3g}" not in shown, (episode.task_id, field)
            wanted = as_object(value)
            if wanted and field not in ("constraint_satisfaction", "trade_list"):
                for name, given in episode.input.items():
                    shown_map = as_object(given)
                    if set(shown_map) == set(wanted) and len(_numbers(given)) == len(shown_map):
                        apart = np.abs([shown_map[ticker] - wanted[ticker] for ticker in wanted]).max()
                        assert apart > 1e-3, (episode.task_id, field, name)


def test_no_wording_tells_the_verdict(edition: Edition) -> None:
    """What is shown of two infeasibility episodes of a date differs in the numbers only, whatever their verdicts."""
    wording: Counter[str] = Counter()
    keys: Counter[str] = Counter()
    for episode in edition.episodes(["infeasibility_detection"]):
        text = json.dumps([episode.prompt.task_description, episode.prompt.output_instructions])
        limit = episode.input["limit_to_relax"]
        sector = f"the {limit.removeprefix('sector_limits.')} sector cap"
        named = {"factor_neutrality": "neutrality_tolerance"}.get(limit, sector if "." in limit else limit)
        wording[text.replace(str(episode.as_of_date), "DATE").replace(named, "LIMIT")] += 1
        keys[json.dumps([sorted(episode.input), sorted(episode.input["constraints"]), dict(episode.metadata)])] += 1
        assert re.fullmatch(r"pc_infeas_\d{4}-\d{2}-\d{2}_\d{2}", episode.task_id)
        assert not re.search(r"\binfeasible\b|\bviolat", text)
    assert len(wording) == len(keys) == 1


def test_neither_order_nor_number_tells_the_verdict(edition: Edition) -> None:
    feasible = np.array(
        [edition.truth(e.task_id).expected_output["feasible"] for e in edition.episodes(["infeasibility_detection"])]
    )
    runs = 1 + int((feasible[1:] != feasible[:-1]).sum())
    assert 12 <= runs <= 30  # 21 are expected of a random order of 20 and 20, standard deviation 3.1
    for rule in (np.arange(40) % 2 == 0, np.arange(40) < 20):
        assert 8 <= (rule == feasible).sum() <= 32


@pytest.mark.slow
def test_verdicts_do_not_carry_over_between_editions_of_one_seed(
    synthetic_edition: Edition, real_edition: Edition
) -> None:
    verdicts = [
        [edition.truth(e.task_id).expected_output["feasible"] for e in edition.episodes(["infeasibility_detection"])]
        for edition in (synthetic_edition, real_edition)
    ]
    assert 8 <= sum(a == b for a, b in zip(*verdicts, strict=True)) <= 32


def test_the_tool_use_call_is_nowhere_but_in_the_words(edition: Edition) -> None:
    for episode in edition.episodes(["tool_use_parameterization"]):
        assert set(episode.input) == {"scenario_description", "tool_documentation", "sectors", "universe_size"}
        assert "optimizer_call" not in json.dumps(dict(episode.input))
