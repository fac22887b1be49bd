"""Offering and using skills: rates, triggers, and the worth of use, by hand and against a simulated truth."""

import numpy as np
import polars as pl
import pytest
from scipy import stats
from tests.analysis.scenes import results, row

from finskillbench.analysis.intervals import estimate_means
from finskillbench.analysis.results import Comparison, collect, pairs
from finskillbench.analysis.skills import OUTPUT, trigger_rates, use_effects, use_rates

CURATED = Comparison("curated", "no_skill")
RISK, FILINGS = ["risk-management"], ["fundamental-analysis"]


def test_steps_are_counted_without_errors() -> None:
    scene = results(
        row("curated", "a", 1.0, skills_loaded=RISK, scripts_run=["risk-management/scripts/x.py"]),
        row("curated", "b", 1.0, skills_loaded=RISK),
        row("curated", "c", 0.0),
        row("curated", "d", None, skills_loaded=RISK),
    )
    found = {line["step"]: line for line in use_rates(scene).iter_rows(named=True)}
    assert [(step, line["successes"], line["trials"]) for step, line in found.items()] == [
        ("loaded", 2, 3),
        ("ran", 1, 3),
        ("used", 2, 3),
        ("unchanged", 0, 0),
        ("altered", 0, 0),
    ]
    assert found["loaded"]["share"] == pytest.approx(2 / 3)
    assert found["unchanged"]["share"] is None


def test_what_became_of_outputs_is_told_where_it_is_known() -> None:
    rows = [row("curated", task, 1.0, skills_loaded=RISK) for task in "abcd"]
    frame = results(*rows).rows.drop("score", "program", "headline", "failed", "episode")
    known = frame.with_columns(pl.Series(OUTPUT, ["unchanged", "unchanged", "altered", None]))
    found = {line["step"]: line for line in use_rates(collect(known)).iter_rows(named=True)}
    assert (found["unchanged"]["share"], found["altered"]["share"], found["altered"]["trials"]) == (0.5, 0.25, 4)


def test_triggers_are_told_by_the_domain() -> None:
    scene = results(
        row("curated", "a", 1.0, skills_loaded=RISK),
        row("curated", "b", 1.0, skills_loaded=[*RISK, *FILINGS]),
        row("curated", "c", 1.0),
        row("curated", "d", 1.0, domain="fundamental_analysis", skills_loaded=RISK),
        row("curated", "e", 1.0, skills_loaded=["working-notes"]),
        row("self_generated", "a", 1.0, skills_loaded=["of-its-own"]),  # written for this very episode
    )
    found = {line["kind"]: line for line in trigger_rates(scene).iter_rows(named=True)}
    assert (found["trigger"]["successes"], found["trigger"]["trials"]) == (2, 5)
    assert (found["false trigger"]["successes"], found["false trigger"]["trials"]) == (3, 5)
    mine = trigger_rates(scene, meant_for={"working-notes": ["risk_management"]})
    assert mine["successes"].to_list() == [1, 3]


def offered(size: int, seed: int, hidden: float = 0.3):
    """Agents use skills in the episodes that they find hard; use is worth 0.4, the hard score `hidden` less."""
    rng = np.random.default_rng(seed)
    rows = []
    for place in range(size):
        hard = rng.random() < 0.6
        level = 0.5 - hidden * hard + rng.normal(0, 0.05)
        name = f"{chr(0x4E00 + place)}"
        rows.append(row("no_skill", name, level + rng.normal(0, 0.05)))
        rows.append(row("curated", name, level + 0.4 * hard + rng.normal(0, 0.05), skills_loaded=RISK if hard else []))
    return results(*rows)


def test_the_worth_of_use_by_hand_and_its_identities() -> None:
    scene = offered(60, 0)
    lines = {line["effect"]: line for line in use_effects(scene, CURATED).iter_rows(named=True)}
    paired = pairs(scene, CURATED)
    usual = estimate_means(paired).row(0, named=True)
    assert {key: lines["offered"][key] for key in ("mean", "low", "high")} == pytest.approx(
        {key: usual[key] for key in ("mean", "low", "high")}
    )
    use = scene.rows.filter(condition="curated")["skills_loaded"].list.len().to_numpy().astype(float)
    gaps = paired["difference"].to_numpy()
    worth = gaps.mean() / use.mean()
    assert lines["used"]["mean"] == pytest.approx(worth)
    assert lines["used"]["rate"] == pytest.approx(use.mean())
    half = stats.t.ppf(0.975, 59) * stats.sem(gaps - worth * use) / use.mean()
    assert (lines["used"]["low"], lines["used"]["high"]) == pytest.approx((worth - half, worth + half))
    assert lines["where used"]["mean"] == pytest.approx(gaps[use > 0].mean())
    assert lines["where used"]["pairs"] == use.sum()


def test_where_everybody_uses_them_the_offer_and_the_use_are_the_same() -> None:
    rng = np.random.default_rng(1)
    rows = [
        row(arm, t, float(rng.uniform()), skills_loaded=RISK if arm == "curated" else [])
        for arm in CURATED
        for t in "abcdefgh"
    ]
    found = use_effects(results(*rows), CURATED).select("mean", "low", "high", "pairs", "clusters", "rate")
    assert found.row(0) == pytest.approx(found.row(1))
    # The interval of use is not cut off at what a difference can be: it is one of a ratio.
    assert found.row(0) == pytest.approx(found.row(2))


@pytest.mark.slow
def test_the_interval_of_use_covers_its_worth() -> None:
    held = 0
    for seed in range(50):
        line = use_effects(offered(40, seed), CURATED).row(2, named=True)
        held += line["low"] <= 0.4 <= line["high"]
    assert held >= 43


def test_without_use_its_worth_is_absent_and_with_little_it_has_no_interval() -> None:
    never = [row(arm, task, 0.1 * place) for arm in CURATED for place, task in enumerate("abcdefgh")]
    line = use_effects(results(*never), CURATED).row(2, named=True)
    assert (line["mean"], line["low"], line["rate"]) == (None, None, 0.0)
    where = use_effects(results(*never), CURATED).row(1, named=True)
    assert (where["effect"], where["mean"], where["pairs"]) == ("where used", None, 0)
    rng = np.random.default_rng(1)
    rows = [row(arm, task, float(rng.uniform())) for arm in CURATED for task in "abcdefgh"]
    rows[0]["skills_loaded"] = RISK
    little = use_effects(results(*rows), CURATED).row(2, named=True)
    assert little["mean"] is not None
    assert (little["low"], little["high"]) == (None, None)
