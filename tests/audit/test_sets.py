"""Episodes that repeat, and labels that the look of an input gives away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.audit import toy
from tests.editions import write_edition

from finskillbench.edition import load_edition
from finskillbench.edition.checks.catalog import CheckReport
from finskillbench.edition.checks.engine import audit_edition
from finskillbench.edition.checks.samples import _effective_markets, _repeats  # pyright: ignore[reportPrivateUsage]

Audited = Callable[..., CheckReport]


def found(report: CheckReport) -> list[tuple[str, str, str]]:
    return [(check.name, one.where, one.field) for check in report.checks for one in check.findings]


def test_a_label_that_repeats_is_named(audited: Audited) -> None:
    tasks = toy.tasks()
    episode, truth = tasks[3]
    tasks[3] = episode, replace(truth, expected_output=dict(tasks[1][1].expected_output))
    assert found(audited(tasks, "distinct")) == [("distinct", "bk_val_3", "expected_output")]


def test_a_few_repeats_in_many_are_no_finding(audited: Audited) -> None:
    tasks = toy.tasks(24)
    tasks[3] = tasks[3][0], replace(tasks[3][1], expected_output=dict(tasks[1][1].expected_output))
    report = audited(tasks, "distinct")
    assert found(report) == []
    assert report.checks[0].figures["distinct"] == {"valuation": "23 of 24"}


def test_weights_that_a_manager_would_not_tell_apart_repeat() -> None:
    labels = [{"weights": {"A": share, "B": 1 - share}} for share in (0.5, 0.52, 0.7)]
    assert list(_repeats(labels)) == [(1, 0)]  # 0.02 * sqrt(2) apart, then 0.2 * sqrt(2)


def test_months_whose_returns_correlate_are_hardly_more_than_one_market() -> None:
    base = {"A": 0.01, "B": 0.05, "C": 0.03, "D": 0.08}
    months = [{name: value * (1 + 0.01 * month) for name, value in base.items()} for month in range(6)]
    episodes: list[Any] = [
        replace(episode, as_of_date=toy.DAY.replace(day=place + 1), input={"expected_returns": months[place]})
        for place, (episode, _) in enumerate(toy.tasks())
    ]
    assert _effective_markets(episodes) == (6, pytest.approx(1.0))


@pytest.mark.parametrize(("numbers", "told"), [(1, [("difficulty", "valuation", "difficulty")]), (9, [])])
def test_a_harder_level_that_is_less_work_is_named(numbers: int, told: Any, audited: Audited) -> None:
    tasks = toy.tasks()
    for place in (1, 4):
        episode, truth = tasks[place]
        proof = {**truth.proof, "numbers": numbers}
        tasks[place] = replace(episode, difficulty="hard"), replace(truth, proof=proof)
    report = audited(tasks, "difficulty")
    assert found(report) == told
    assert report.passed  # it makes no label wrong
    assert report.checks[0].figures["steps"] == {"valuation": {"easy": 4.0, "hard": 2.0 + numbers}}


def marked(count: int, mark: Callable[[str], dict[str, Any]]) -> list[Any]:
    """Tasks whose larger holding alternates without a pattern, each with what `mark` makes of it."""
    made: list[Any] = []
    for place, (episode, truth) in enumerate(toy.tasks(count)):
        larger = "AB"[place * place % 7 % 2]
        prices = {"A": 50.0 + place, "B": 1.0} if larger == "A" else {"A": 1.0, "B": 50.0 + place}
        task_input = {
            "quantities": {"A": 10.0, "B": 10.0},
            "prices": prices,
            "portfolio": {"portfolio_id": f"P{place}"},
        }
        made.append(
            (replace(episode, input=task_input | mark(larger)), replace(truth, expected_output=toy.second(task_input)))
        )
    return made


def test_a_mark_that_tells_the_label_is_a_signature(audited: Audited) -> None:
    tasks = marked(60, lambda larger: {"note": "first" if larger == "A" else "second"})
    assert found(audited(tasks, "signature")) == [("signature", "valuation", "largest")]


@pytest.mark.parametrize(("other", "told"), [("second", [("signature", "valuation", "largest")]), ("first", [])])
def test_what_one_edition_teaches_is_tried_on_another(other: str, told: Any, register: Any, tmp_path: Path) -> None:
    """In the other edition the mark goes with the label again, or stands on every episode and tells nothing."""
    learned = marked(60, lambda larger: {"note": "first" if larger == "A" else "second"})
    tried = marked(60, lambda larger: {"note": "first" if larger == "A" else other})
    one, two = (
        load_edition(write_edition(tmp_path / name, tasks, {"kind": "rederived"}))
        for name, tasks in (("one", learned), ("two", tried))
    )
    assert found(audit_edition(one, ["signature"], other=two)) == told


def test_numbers_are_not_read(audited: Audited) -> None:
    report = audited(marked(60, lambda larger: {}), "signature")
    assert found(report) == []
    assert report.checks[0].figures["targets"] == 1
