"""Two answers held against each other: what counts as the same, and how a difference is named."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from finskillbench.domains import subtask_named
from finskillbench.domains.checks.agreement import leaf_by_leaf, record_differences, with_leaves
from finskillbench.domains.checks.proofs import rederivation_proof
from finskillbench.errors import InternalError
from finskillbench.findings import Findings

FIRST: dict[str, Any] = {
    "a": 1e9,
    "drivers": [{"driver": "x", "size": 2.0}, {"driver": "y", "size": -1.0}],
    "none": None,
    "flags": ["low", "high"],
}


def defects(second: dict[str, Any]) -> list[str]:
    findings = Findings()
    record_differences(leaf_by_leaf(FIRST, second), "task", findings)
    return [finding.message for finding in findings.found]


def test_rounding_and_the_order_of_named_entries_do_not_count() -> None:
    findings = Findings()
    second = FIRST | {"a": 1e9 + 1e-3, "drivers": FIRST["drivers"][::-1]}
    record_differences(leaf_by_leaf(FIRST, second), "task", findings)
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
        "more is in the independent derivation only",
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


def test_the_proof_of_a_label_states_the_widest_difference_and_how_many_numbers_agreed() -> None:
    label = {"rows": [{"type": "x", "value": 2.0, "limit": None}], "compliant": True, "total": 100.0}
    again = {"rows": [{"type": "x", "value": 2.0 + 2e-10, "limit": None}], "compliant": True, "total": 100.0 + 5e-8}
    proof = rederivation_proof("t", leaf_by_leaf(label, again))
    assert proof["kind"] == "rederived"
    assert proof["difference"] == pytest.approx(5e-10)
    assert proof["numbers"] == 3


@pytest.mark.parametrize(
    ("first", "again", "message"),
    [
        (2.0, 2.00000001, r"t: a is 2\.0 in the label and 2\.00000001 derived again"),
        (1.0, math.nan, "nan"),
        ("PASS", "FAIL", "t: a is 'PASS' in the label and 'FAIL' derived again"),
        ([1.0], [], r"t: a is None in the label and \[\] derived again"),
    ],
)
def test_a_label_that_is_derived_differently_has_no_proof(first: Any, again: Any, message: str) -> None:
    with pytest.raises(InternalError, match=message):
        rederivation_proof("t", leaf_by_leaf({"a": first}, {"a": again}))


def test_what_a_label_says_in_words_is_not_derived_again() -> None:
    subtask = replace(
        subtask_named("risk_identification"), rederive=lambda task_input: {"rows": [{"size": task_input["size"]}]}
    )
    label = {"rows": [{"size": 1.0, "detail": "100.0% of NAV"}]}
    assert [leaf.agrees for leaf in subtask.derived_again(label, {"size": 1.0})] == [True]
    assert [leaf.path for leaf in subtask.derived_again(label, {"size": 2.0}) if not leaf.agrees] == ["rows[0].size"]


def test_leaves_put_in_by_their_paths_are_found_there_again() -> None:
    second = {**FIRST, "a": 2e9, "drivers": [{"driver": "y", "size": 5.0}, {"driver": "x", "size": 2.0}]}
    wrong = {leaf.path: leaf.right for leaf in leaf_by_leaf(FIRST, second) if not leaf.agrees}
    assert wrong == {"a": 2e9, "drivers[y].size": 5.0}
    assert all(leaf.agrees for leaf in leaf_by_leaf(with_leaves(FIRST, wrong), second))
    assert with_leaves(FIRST, {"absent": 1.0}) == FIRST
