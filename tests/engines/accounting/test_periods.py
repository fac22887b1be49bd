"""Classes of periods by their length, and which quarter precedes which."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finskillbench.engines.accounting.periods import (
    DAYS,
    QUARTER_APART,
    YEAR_APART,
    Duration,
    classify_period,
    duration_of,
    earlier,
)
from finskillbench.errors import InputError


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("2023-12-31", "2024-03-30", Duration.QUARTERLY),  # 13 weeks
        ("2022-09-25", "2022-12-31", Duration.QUARTERLY),  # 14 weeks
        ("2023-09-04", "2024-02-18", Duration.HALF),  # 12 + 12 weeks
        ("2023-09-04", "2023-11-26", Duration.QUARTERLY),  # 12 weeks
        ("2023-10-01", "2024-03-30", Duration.HALF),
        ("2023-10-01", "2024-06-29", Duration.NINE_MONTHS),
        ("2023-10-01", "2024-09-28", Duration.ANNUAL),  # 52 weeks
        ("2022-09-25", "2023-09-30", Duration.ANNUAL),  # 53 weeks
        ("2023-01-01", "2023-12-31", Duration.ANNUAL),
        ("2024-01-01", "2024-12-31", Duration.ANNUAL),
        ("2024-01-01", "2024-01-31", Duration.OTHER),  # a month of transition
        ("2023-01-01", "2024-12-31", Duration.OTHER),
    ],
)
def test_a_period_is_classed_by_its_days(start: str, end: str, expected: Duration) -> None:
    assert classify_period(date.fromisoformat(start), date.fromisoformat(end)) is expected


def test_without_a_start_it_is_an_instant() -> None:
    assert classify_period(None, date(2024, 3, 30)) is Duration.INSTANT


@given(st.dates(date(1990, 1, 1), date(2040, 1, 1)), st.integers(1, 900))
def test_bounds_are_included_and_do_not_overlap(start: date, days: int) -> None:
    found = classify_period(start, start + timedelta(days=days - 1))
    within = [name for name, (least, most) in DAYS.items() if least <= days <= most]
    assert [found] == (within or [Duration.OTHER])


def test_a_period_that_ends_before_it_starts_is_refused() -> None:
    with pytest.raises(InputError, match="2024-03-31"):
        classify_period(date(2024, 3, 31), date(2024, 3, 30))


def test_forms_have_their_periods() -> None:
    assert [duration_of(form) for form in ("10-Q", "10-Q/A")] == [Duration.QUARTERLY] * 2
    assert [duration_of(form) for form in ("10-K", "10-K/A", "20-F", "40-F")] == [Duration.ANNUAL] * 4
    for form in ("10-KT", "DEF 14A", ""):
        with pytest.raises(InputError, match="form_type"):
            duration_of(form)


def test_the_same_quarter_of_a_52_week_year_is_found() -> None:
    ends = [date(2023, 4, 1), date(2023, 7, 1), date(2023, 9, 30), date(2023, 12, 30)]
    assert earlier(date(2024, 3, 30), ends, YEAR_APART) == date(2023, 4, 1)
    assert earlier(date(2024, 3, 30), ends, QUARTER_APART) == date(2023, 12, 30)
    assert earlier(date(2024, 3, 30), ends[1:], YEAR_APART) is None


def test_of_two_ends_the_nearest_to_a_year_counts() -> None:
    end = date(2024, 12, 31)
    near = [end - timedelta(days=days) for days in (352, 364, 378)]
    assert earlier(end, near, YEAR_APART) == near[1]
    tied = [end - timedelta(days=days) for days in (366, 364)]
    assert earlier(end, tied, YEAR_APART) == tied[1]
    bounds = [end - timedelta(days=days) for days in (349, 381)]
    assert earlier(end, bounds, YEAR_APART) is None
