"""The shared measures and typed values: known numbers, and no overflow into NaN."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.scoring.strategies import JSON_VALUES, nested

from finskillbench.scoring import values

FINITE = st.floats(allow_nan=False, allow_infinity=False)
VECTORS = st.dictionaries(st.sampled_from("ABCD"), FINITE)


def test_l2_runs_over_the_union_with_absent_as_zero() -> None:
    assert values.l2({"A": 0.3, "B": 1.0}, {"A": 0.3, "B": 1.0}) == 0
    assert values.l2({"A": 3.0}, {"B": 4.0}) == 5.0
    assert values.l2({"A": 1e308}, {}) == 1e308  # squared it would overflow
    assert values.l2({"A": 1e308}, {"A": -1e308}) == math.inf


def test_mean_absolute_error_divides_by_the_union() -> None:
    assert values.mean_absolute_error({"A": 0.1, "B": 0.2}, {"B": 0.1, "C": 0.1}) == pytest.approx(0.1)
    assert values.mean_absolute_error({}, {}) == 0.0


def test_ramp_is_linear_and_floored() -> None:
    assert values.ramp(1.0, 1.0, tolerance=0.05) == 1.0
    assert values.ramp(1.025, 1.0, tolerance=0.05) == pytest.approx(0.5)
    assert values.ramp(-1.0, 1.0) == 0.0
    assert values.ramp(None, 1.0) == 0.0
    assert values.ramp(0.5e-8, 0.0) == pytest.approx(0.5)


def test_closeness_is_full_then_linear_then_nothing() -> None:
    def at(error: float, expected: float = 1.0) -> float:
        return values.closeness(expected + error, expected, full=0.002, full_floor=5e-5, zero=0.02, zero_floor=5e-4)

    assert at(0.0) == at(0.0019) == at(-0.0019) == 1.0
    assert at(0.011) == pytest.approx(0.5)
    assert at(0.0201) == at(-5.0) == at(math.inf) == 0.0
    assert at(4e-5, expected=0.0) == 1.0  # the floors rule near zero
    assert at(5.1e-4, expected=0.0) == 0.0
    assert values.closeness(None, 0.0, full=0.002, full_floor=5e-5, zero=0.02, zero_floor=5e-4) == 0.0


def test_overlaps_and_f1() -> None:
    assert values.overlap("aab", "aac") == 2
    assert values.overlap("aa", "a") == 1
    assert values.multiset_f1("aab", "ab") == pytest.approx(2 * (2 / 3) * 1 / (2 / 3 + 1))
    assert values.set_f1({1, 2}, {2, 3}) == 0.5
    assert values.multiset_f1([], []) == values.set_f1(set(), set()) == 1.0
    assert values.set_f1(set(), {1}) == 0.0


def test_dcg_discounts_by_place() -> None:
    assert values.dcg([1.0, 1.0, 1.0]) == pytest.approx(1 + 1 / math.log2(3) + 0.5)


@given(VECTORS, VECTORS)
def test_distances_never_become_nan(p: dict[str, float], e: dict[str, float]) -> None:
    assert 0 <= values.l2(p, e) <= math.inf
    assert 0 <= values.mean_absolute_error(p, e) <= math.inf


@given(FINITE, FINITE, st.floats(1e-6, 10))
def test_ramps_stay_in_the_unit_interval(p: float, e: float, tolerance: float) -> None:
    assert 0 <= values.ramp(p, e, tolerance=tolerance) <= 1
    assert values.ramp(e, e, tolerance=tolerance) == 1


@pytest.mark.parametrize("value", [True, False, None, "1", [], {}, math.nan, math.inf, 10**400])
def test_what_is_no_finite_number_is_absent(value: object) -> None:
    assert values.as_number(value) is None


def test_aliases_skip_what_holds_no_number() -> None:
    assert values.first_numbers({"a": {"X": "1"}, "b": {"X": 1, "Y": True}}, "a", "b") == {"X": 1.0}
    assert values.first_numbers({"a": []}, "a", "b") == {}


def test_keyed_numbers_take_the_last_and_skip_the_malformed() -> None:
    rows = [{"k": "X", "v": 1}, {"k": "X", "v": 2}, {"k": "X", "v": "3"}, {"k": 1, "v": 1}, "X", {"v": 9}]
    assert values.keyed_numbers(rows, "k", "v") == {"X": 2.0}


def test_parameters_fall_back_on_the_specification() -> None:
    assert values.parameter({"t": 2}, "t", 5.0) == 2.0
    for unusable in ({}, {"t": None}, {"t": True}, {"t": "2"}, {"t": -1}, {"t": 0}):
        assert values.parameter(unusable, "t", 5.0) == 5.0
    assert values.parameter({"t": 0}, "t", 5.0, positive=False) == 0.0


def test_json_equality_tells_true_from_one() -> None:
    assert values.json_equal({"a": [1, True, None]}, {"a": [1.0, True, None]})
    for left, right in ((1, True), (0, False), ("1", 1), ([1], [1, 1]), ({"a": 1}, {"b": 1}), ([], {}), (None, 0)):
        assert not values.json_equal(left, right)


def test_json_equality_survives_any_depth() -> None:
    assert values.json_equal(nested(50_000), nested(50_000))
    assert not values.json_equal(nested(50_000), nested(50_001))


@given(JSON_VALUES)
def test_json_equality_is_reflexive(value: object) -> None:
    assert values.json_equal(value, value)
