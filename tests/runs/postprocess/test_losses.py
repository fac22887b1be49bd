"""Points that each part of an answer loses: planted mistakes in right answers, and nothing where nothing is lost."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.scoring.examples import EXPECTED, truth

from finskillbench.domains import suite_of
from finskillbench.domains.checks.agreement import leaf_by_leaf
from finskillbench.episode import PAPER_SUITE
from finskillbench.runs.postprocess.failures import LabelledTask
from finskillbench.runs.postprocess.losses import points_lost

PAPER = [name for name in EXPECTED if suite_of(name) == PAPER_SUITE]


def known(sub_task: str) -> LabelledTask:
    return LabelledTask(truth(sub_task), {})


def altered(sub_task: str, *path: Any, **to: Any) -> dict[str, Any]:
    """The right answer with another value at a path, or without it."""
    answer = copy.deepcopy(EXPECTED[sub_task])
    node: Any = answer
    for key in path[:-1]:
        node = node[key]
    if to:
        node[path[-1]] = to["value"]
    else:
        del node[path[-1]]
    return answer


@pytest.mark.parametrize("sub_task", PAPER)
def test_a_right_answer_loses_nothing(sub_task: str) -> None:
    assert points_lost(known(sub_task), EXPECTED[sub_task]) == []


@pytest.mark.parametrize(
    ("sub_task", "answer", "part"),
    [
        (
            "tool_use_parameterization",
            altered("tool_use_parameterization", "optimizer_call", "constraints", "max_weight_per_name", value=0.07),
            "optimizer_call.constraints.max_weight_per_name",
        ),
        (
            "tool_use_parameterization",
            altered("tool_use_parameterization", "optimizer_call", "constraints", "min_names"),
            "optimizer_call.constraints.min_names",
        ),
        (
            "constraint_monitoring",
            altered("constraint_monitoring", "constraints", 0, "status", value="PASS"),
            "constraints[].status",
        ),
        ("black_litterman", altered("black_litterman", "posterior_returns", "AAA", value=0.2), "posterior_returns"),
    ],
)
def test_the_part_with_the_mistake_loses_the_points(sub_task: str, answer: dict[str, Any], part: str) -> None:
    task = known(sub_task)
    (loss,) = points_lost(task, answer)
    assert loss.part == part
    assert loss.points == pytest.approx(task.points(EXPECTED[sub_task]) - task.points(answer))
    differing = [leaf for leaf in leaf_by_leaf(EXPECTED[sub_task], answer) if not leaf.agrees]
    assert differing
    assert all(loss.covers(leaf) for leaf in differing)


def test_what_is_optional_or_costs_nothing_is_no_loss() -> None:
    sub_task = "constraint_monitoring"
    answer = altered(sub_task, "constraints", 0, "limit")
    assert points_lost(known(sub_task), answer) == []
