"""Two answers held against each other: what counts as the same, and how a difference is named."""

from __future__ import annotations

from typing import Any

import pytest

from finskillbench.domains.agreement import compare, leaf_by_leaf
from finskillbench.findings import Findings

FIRST: dict[str, Any] = {
    "a": 1e9,
    "drivers": [{"driver": "x", "size": 2.0}, {"driver": "y", "size": -1.0}],
    "none": None,
    "flags": ["low", "high"],
}


def defects(second: dict[str, Any]) -> list[str]:
    findings = Findings()
    compare(FIRST, second, "task", findings)
    return [finding.message for finding in findings.found]


def test_rounding_and_the_order_of_named_entries_do_not_count() -> None:
    findings = Findings()
    compare(FIRST, FIRST | {"a": 1e9 + 1e-3, "drivers": FIRST["drivers"][::-1]}, "task", findings)
    assert findings.found == []
    assert findings.figures["greatest_difference"] == pytest.approx(1e-12)


@pytest.mark.parametrize(
    ("change", "messages"),
    [
        ({"a": 1e9 + 2}, ["a is 1000000000 in the label and 1000000002 derived again"]),
        ({"a": float("nan")}, ["a is 1000000000 in the label and nan derived again"]),
        ({"none": 0.0}, ["none is None in the label and 0 derived again"]),
        ({"flags": ["high", "low"]}, ["flags[0] is 'low' in the label", "flags[1] is 'high' in the label"]),
        (
            {"drivers": [FIRST["drivers"][0], {"driver": "y", "size": 1.0}]},
            ["drivers[y].size is -1 in the label and 1 derived again"],
        ),
    ],
)
def test_a_difference_is_named(change: dict[str, Any], messages: list[str]) -> None:
    found = defects(FIRST | change)
    assert len(found) == len(messages)
    assert all(one.startswith(message) for one, message in zip(found, messages, strict=True))


def test_a_leaf_of_one_answer_only_is_named_first() -> None:
    found = defects(FIRST | {"a": 0, "drivers": [FIRST["drivers"][0]], "more": []})
    assert found == [
        "drivers[y].driver is in the label only",
        "drivers[y].size is in the label only",
        "more is in the second derivation only",
        "a is 1000000000 in the label and 0 derived again",
    ]


def test_a_name_that_is_there_twice_is_no_name() -> None:
    twice = {"drivers": [{"driver": "x", "size": 2.0}] * 2}
    assert [leaf.path for leaf in leaf_by_leaf(twice, twice)] == [
        "drivers[0].driver",
        "drivers[0].size",
        "drivers[1].driver",
        "drivers[1].size",
    ]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"found": [{"name": "x", "size": 1.0}]}, {"found": {"x": {"name": "x", "size": 1.0}}}),
        ({"found": [1.0]}, {"found[0]": 1.0}),
        ({"a.b": 1.0}, {"a": {"b": 1.0}}),
        ({"a": {"b.c": 1.0}}, {"a.b": {"c": 1.0}}),
        ({'"a.b"': 1.0}, {"a.b": 1.0}),
        ({"": {"a": 1.0}}, {"a": 1.0}),
        ({"found": []}, {"found": {}}),
    ],
)
def test_answers_of_another_shape_differ(first: dict[str, Any], second: dict[str, Any]) -> None:
    for pair in ((first, second), (second, first)):
        assert not all(leaf.agrees for leaf in leaf_by_leaf(*pair))
    assert all(leaf.agrees for one in (first, second) for leaf in leaf_by_leaf(one, one))


def test_a_key_that_a_path_cannot_hold_is_quoted() -> None:
    answer = {"weights": {"BRK.B": 1.0}, "drivers": [{"name": "x.y"}]}
    assert [leaf.path for leaf in leaf_by_leaf(answer, answer)] == ['weights."BRK.B"', 'drivers["x.y"].name']


def test_a_verdict_is_no_number() -> None:
    assert not leaf_by_leaf({"flag": True}, {"flag": 1})[0].agrees
