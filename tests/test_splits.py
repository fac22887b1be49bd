"""Splits: disjoint by construction, and in what the generator draws."""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path

import pytest
from tests.registry import SUBTASKS
from tests.sampling import examples

from finskillbench.edition import Edition
from finskillbench.errors import InputError
from finskillbench.publish.leaderboard import gather_bundles
from finskillbench.sources.synthetic import calendar
from finskillbench.sources.synthetic.market.companies import invent_companies
from finskillbench.splits import FIRST_TRAINING_SEED, Split, is_reserved, seeds_of, split_of

TESTS = (Split.TEST_SEED, Split.TEST_TEMPLATE)


def test_every_seed_belongs_to_one_use() -> None:
    train, validation = (set(islice(seeds_of(split), 9_000)) for split in (Split.TRAIN, Split.VALIDATION))
    assert not train & validation
    assert min(train | validation) >= FIRST_TRAINING_SEED
    assert set(seeds_of(Split.TEST_SEED)) == set(range(FIRST_TRAINING_SEED))
    assert set(range(FIRST_TRAINING_SEED, FIRST_TRAINING_SEED + 10_000)) <= train | validation
    for split, seeds in ((Split.TRAIN, train), (Split.VALIDATION, validation)):
        assert {split_of(seed, template) for seed in seeds for template in ("risk_parity", "tactical")} == {split}
    assert {split_of(seed, "risk_parity") for seed in (None, 0, FIRST_TRAINING_SEED - 1)} == {Split.TEST_SEED}
    assert split_of(1, "tactical") is Split.TEST_TEMPLATE


def test_markets_of_training_seeds_hold_no_reserved_company() -> None:
    counts = {"Technology": 3, "Energy": 2, "Utilities": 2}
    found = dict.fromkeys((True, False), 0)
    for seed in random.Random(1).sample(range(FIRST_TRAINING_SEED, 10 * FIRST_TRAINING_SEED), examples(10_000)):
        for training in found:
            rng = calendar.generator(seed, calendar.SyntheticStream.NAMES)
            companies = invent_companies(counts, rng, training=training)
            found[training] += sum(is_reserved(each.security.symbol) for each in companies)
    assert found[True] == 0
    assert found[False] > 0


def test_a_test_edition_holds_both_test_splits_of_each_subtask(synthetic_edition: Edition) -> None:
    for name in synthetic_edition.sub_tasks:
        splits = list(synthetic_edition.splits(name).values())
        assert {*splits} == {*TESTS}, name
        assert 0.05 <= splits.count(Split.TEST_TEMPLATE) / len(splits) <= 0.35, name


def test_a_training_edition_holds_no_reserved_template(training_edition: Edition) -> None:
    from finskillbench.domains import subtask_named

    for name in training_edition.sub_tasks:
        assert {*training_edition.splits(name).values()} == {Split.TRAIN}
        certificates, subtask = training_edition.certificates(name), subtask_named(name)
        for one in training_edition.episodes([name]):
            assert not is_reserved(subtask.template(one, certificates[one.task_id])), one.task_id
            if "portfolio" in one.input:
                assert not any(is_reserved(each["symbol"]) for each in one.input["portfolio"]["holdings"])


@pytest.mark.parametrize("subtask", SUBTASKS, ids=lambda subtask: subtask.name)
def test_every_subtask_is_built_for_training(training_edition: Edition, subtask: object) -> None:
    assert getattr(subtask, "name") in training_edition.sub_tasks  # noqa: B009 - typed as any subtask


def test_a_leaderboard_refuses_an_edition_for_training(training_edition: Edition) -> None:
    with pytest.raises(InputError, match="seed 1,000,001 is for training; a leaderboard needs one below 1,000,000"):
        gather_bundles([Path("any.zip")], training_edition)
