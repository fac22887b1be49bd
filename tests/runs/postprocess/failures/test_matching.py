"""Numbers that are others with fewer digits or in another unit: cases computed by hand."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from finskillbench.runs.postprocess.failures.attempt import WrongNumber
from finskillbench.runs.postprocess.failures.rules.matching import (
    find_factors,
    find_rounding,
    is_rounded,
    last_digit_unit,
    retyped,
)


def numbers(*pairs: tuple[float, float], group: str = "weights") -> list[WrongNumber]:
    """(expected, given) pairs of one kind."""
    return [WrongNumber(f"{group}.{i}", group, expected, got, False) for i, (expected, got) in enumerate(pairs)]


@pytest.mark.parametrize(
    ("value", "unit_of_last_digit"), [(0.14, 0.01), (26.2e9, 1e8), (3.0, 1.0), (-0.5, 0.1), (120.0, 10.0), (0.0, 0.0)]
)
def test_the_last_digit_of_a_number(value: float, unit_of_last_digit: float) -> None:
    assert last_digit_unit(value) == pytest.approx(unit_of_last_digit)


@pytest.mark.parametrize(
    ("submitted", "expected", "wanted"),
    [
        (0.14, 0.13981, True),
        (0.13, 0.13981, True),  # cut off
        (0.15, 0.13981, False),
        (26.2e9, 26194821000.0, True),
        (0.1398134, 0.1398134, False),  # nothing is lost
        (-0.14, 0.13981, False),
        (0.13981342, 0.1398, False),  # more digits, not fewer
    ],
)
def test_fewer_digits(submitted: float, expected: float, wanted: bool) -> None:
    assert is_rounded(submitted, expected) is wanted


@given(st.floats(1e-6, 1e12), st.integers(1, 6))
def test_what_is_formatted_with_fewer_digits_is_found(number: float, digits: int) -> None:
    short = float(f"{number:.{digits}g}")
    assume(len(Decimal(repr(number)).normalize().as_tuple().digits) > digits)
    assert is_rounded(short, number)


def test_a_constant_near_one_figure_is_no_rounding() -> None:
    beside = numbers((0.4173, 0.9), group="ratio")
    assert find_rounding(numbers((-2.567, -2.5), group="score") + beside) == []
    assert len(find_rounding(numbers((-2.567, -2.57), (1.2345, 1.23)))) == 1


def test_a_factor_of_most_is_believed_and_of_one_is_not() -> None:
    percent = numbers((0.1398, 13.98), (0.0231, 2.31), (0.5, 50.0), (0.25, 0.3))
    (match,) = find_factors(percent)
    assert [one.submitted for one in match.numbers] == [13.98, 2.31, 50.0]
    by_chance = numbers((0.0321567, 3.2), (0.1, 0.17), (0.2, 0.31), (0.3, 0.34))
    assert find_factors(by_chance) == []
    (exactly,) = find_factors(numbers((0.0321567, 3.21567), (0.1, 0.17), (0.2, 0.31), (0.3, 0.34)))
    assert len(exactly.numbers) == 1


@pytest.mark.parametrize("factor", [100.0, 1e4, 1e-3, 1e-6, 252.0, 1 / 252, math.sqrt(252), -1.0])
def test_each_factor_is_found_and_named(factor: float) -> None:
    right = [0.13981340, 0.0231177, 0.4471]
    (match,) = find_factors(numbers(*((one, one * factor) for one in right)))
    assert len(match.numbers) == 3


def test_a_field_typed_again() -> None:
    field = {"A": 0.123456, "B": 0.654321, "C": 0.25}
    cut = retyped("returns", field, {"A": 0.123, "B": 0.654, "C": 0.25})
    assert cut is not None
    assert cut.cause == "precision_lost"
    scaled = retyped("returns", field, {name: 100 * value for name, value in field.items()})
    assert scaled is not None
    assert scaled.cause == "wrong_unit"
    assert retyped("returns", field, {"A": 0.2, "B": 0.1, "C": 0.7}) is None
    assert retyped("returns", field, {"A": 0.123, "B": 0.654}) is None  # a name is gone: that is no rounding
    assert retyped("returns", field, field) is None
