"""Two ingredients: every contrast by hand, their identities, and what is absent."""

import numpy as np
import pytest
from scipy import stats
from tests.analysis.scenes import results, row

from finskillbench.analysis.intervals import DOCUMENTS_AND_SCRIPTS, SKILLS_AND_CODE, crossed, effects, estimate_means
from finskillbench.analysis.results import Comparison, pairs

ARMS = [each.value for each in DOCUMENTS_AND_SCRIPTS.conditions]


def scene(count: int = 12, seed: int = 0):
    rng = np.random.default_rng(seed)
    tasks = [f"{'abcdef'[i % 6]}{i}" for i in range(count)]
    return results(*(row(arm, task, float(rng.uniform())) for arm in ARMS for task in tasks))


def test_contrasts_by_hand() -> None:
    scores = dict(zip(ARMS, (0.1, 0.3, 0.4, 1.0), strict=True))
    found = crossed(results(*(row(arm, "a", score) for arm, score in scores.items())), DOCUMENTS_AND_SCRIPTS)
    said = {name: found[name][0] for name in DOCUMENTS_AND_SCRIPTS.contrasts}
    assert said == pytest.approx(
        {
            "documents": (0.2 + 0.6) / 2,
            "scripts": (0.3 + 0.7) / 2,
            "interaction": 0.6 - 0.2,
            "documents alone": 0.2,
            "scripts alone": 0.3,
            "documents given scripts": 0.6,
            "scripts given documents": 0.7,
            "together": 0.9,
        }
    )
    assert [each.value for each in SKILLS_AND_CODE.conditions] == ["no_skill", "curated", "code", "code_curated"]


def test_effects_add_up_and_are_the_differences_of_pairs() -> None:
    scene_ = scene()
    lines = {line["effect"]: line for line in effects(scene_, DOCUMENTS_AND_SCRIPTS).iter_rows(named=True)}
    mean = {name: line["mean"] for name, line in lines.items()}
    assert mean["documents"] + mean["scripts"] == pytest.approx(mean["together"])
    assert mean["interaction"] == pytest.approx(mean["documents given scripts"] - mean["documents alone"])
    assert mean["interaction"] == pytest.approx(mean["scripts given documents"] - mean["scripts alone"])
    for name, pair in (("together", ("curated", "no_skill")), ("documents alone", ("docs_only", "no_skill"))):
        usual = estimate_means(pairs(scene_, Comparison(*pair)), by=["model", "harness"]).row(0, named=True)
        assert {key: lines[name][key] for key in usual} == pytest.approx(usual)


def test_an_interaction_may_be_larger_than_a_score() -> None:
    rng = np.random.default_rng(1)
    tasks = "abcdefgh"
    near = {"no_skill": 0.6, "docs_only": 0.15, "scripts_only": 0.15, "curated": 0.6}
    rows = [row(arm, task, level + float(rng.uniform(-0.15, 0.15))) for arm, level in near.items() for task in tasks]
    line = effects(results(*rows), DOCUMENTS_AND_SCRIPTS).row(2, named=True)
    assert line["effect"] == "interaction"
    values = crossed(results(*rows), DOCUMENTS_AND_SCRIPTS)["interaction"].to_numpy()
    usual = stats.ttest_1samp(values, 0).confidence_interval()
    assert (line["low"], line["high"]) == pytest.approx((usual.low, usual.high))
    assert line["mean"] < 1.0 < line["high"]


def test_only_episodes_with_all_four_count_and_without_an_arm_there_is_no_line() -> None:
    whole = [row(arm, task, 0.5) for arm in ARMS for task in "ab"]
    assert crossed(results(*whole[:-1], row("curated", "b", None)), DOCUMENTS_AND_SCRIPTS)["episode"].to_list() == ["a"]
    assert effects(results(*whole[:-2]), DOCUMENTS_AND_SCRIPTS).is_empty()
