"""Which row stands for a figure, and the ten normalised metrics."""

from datetime import date
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engines.accounting.cases import CURRENT, QUARTER, SYMBOL, fact, facts, statement

from finskillbench.engines.accounting.periods import Duration
from finskillbench.engines.accounting.statements import (
    NORMALISED,
    company_facts,
    difference_or_none,
    normalise,
    ratio,
    sum_or_none,
)
from finskillbench.errors import InputError

NUMBERS = st.floats(-1e18, 1e18)


def revenue_of(*rows: dict[str, Any]) -> float | None:
    """What the rows say that the quarter's revenue is, in whatever order they come."""
    found = {
        company_facts(order, SYMBOL).statement(QUARTER, Duration.QUARTERLY).get("revenue")
        for order in permutations(rows)
    }
    (value,) = found
    return value


def test_a_statement_holds_the_flows_of_its_period_and_the_instants_of_its_last_day() -> None:
    rows = [
        *facts(),
        fact("revenue", 1900.0, start="2023-10-01"),
        fact("revenue", 3900.0, start="2023-04-02"),
        fact("total_assets", 3900.0, date(2023, 12, 30)),
        fact("revenue", 7.0, symbol="OTH"),
    ]
    found = company_facts(rows, SYMBOL).statement(QUARTER, Duration.QUARTERLY)
    assert dict(found.values) == dict(CURRENT)
    half = company_facts(rows, SYMBOL).statement(QUARTER, Duration.HALF)
    assert (half.get("revenue"), half.get("net_income"), half.get("total_assets")) == (1900.0, None, 4000.0)
    assert company_facts(rows, SYMBOL).statement(QUARTER, Duration.ANNUAL).get("revenue") == 3900.0


def test_the_latest_filing_counts() -> None:
    first, restated = fact("revenue", 1000.0), fact("revenue", 990.0, filed="2025-05-02")
    assert revenue_of(first, restated) == 990.0


def test_a_reported_figure_goes_before_a_derived_one() -> None:
    reported, derived = fact("revenue", 1000.0), fact("revenue", 990.0, filed="2025-05-02", derived=True)
    assert revenue_of(reported, derived) == 1000.0
    later = fact("revenue", 980.0, filed="2025-11-02", derived=True)
    assert revenue_of(derived, later) == 980.0


def test_of_one_day_the_greater_accession_and_then_the_later_start_count() -> None:
    one, two = fact("revenue", 1000.0), fact("revenue", 1001.0, accession="0000000001-24-000002")
    assert revenue_of(one, two) == 1001.0
    assert revenue_of(fact("revenue", 1002.0, start="2023-12-30"), one) == 1000.0


def test_dates_may_be_dates_or_texts_and_rows_name_their_company_or_not() -> None:
    row = fact("revenue", 1000.0)
    typed = row | {key: date.fromisoformat(row[key]) for key in ("start", "end", "filed")} | {"symbol": SYMBOL}
    one, other = (company_facts([each], SYMBOL).statement(QUARTER, Duration.QUARTERLY) for each in (row, typed))
    assert one == other
    assert one.values == {"revenue": 1000.0}


def test_ends_are_those_of_the_class_ascending() -> None:
    book = company_facts(
        [*facts(), fact("revenue", 1.0, date(2023, 12, 30)), fact("revenue", 9.0, start="2023-04-02")], SYMBOL
    )
    assert book.ends(Duration.QUARTERLY) == (date(2023, 12, 30), QUARTER)
    assert book.ends(Duration.ANNUAL) == (QUARTER,)
    assert book.ends(Duration.HALF) == ()
    assert dict(book.statement(None, Duration.QUARTERLY).values) == {}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"value": float("nan")}, "value"),
        ({"value": float("inf")}, "value"),
        ({"value": 10**400}, "value"),
        ({"value": True}, "value"),
        ({"value": None}, "value"),
        ({"value": "1"}, "value"),
        ({"end": "2024-3-30"}, "end"),
        ({"end": None}, "end"),
        ({"filed": 20240503}, "filed"),
        ({"start": "2024-02-30"}, "start"),
        ({"start": "2024-03-31"}, "after"),
        ({"metric": None}, "metric"),
        ({"metric": ""}, "metric"),
    ],
)
def test_a_bad_row_is_named(change: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=rf"row 1 of filing_facts\.facts.*{named}") as caught:
        company_facts([fact("revenue", 1.0), fact("net_income", 1.0) | change], SYMBOL)
    assert "\n" not in str(caught.value)


def test_a_row_that_is_no_object_is_named() -> None:
    with pytest.raises(InputError, match="row 0"):
        company_facts([["revenue", 1.0]], SYMBOL)  # pyright: ignore[reportArgumentType]


def test_normalised_metrics() -> None:
    assert normalise(statement()) == {
        "revenue": 1000.0,
        "operating_income": 150.0,
        "net_income": 100.0,
        "eps_diluted": 1.25,
        "total_assets": 4000.0,
        "total_liabilities": 2200.0,
        "stockholders_equity": 1800.0,
        "operating_cash_flow": 120.0,
        "operating_margin": 0.15,
        "ebitda": 200.0,
    }
    assert tuple(normalise(statement())) == NORMALISED


@pytest.mark.parametrize(
    ("absent", "unknown"),
    [
        ("revenue", {"revenue", "operating_margin"}),
        ("operating_income", {"operating_income", "operating_margin", "ebitda"}),
        ("depreciation_amortization", {"ebitda"}),
        ("eps_diluted", {"eps_diluted"}),
        ("cost_of_revenue", set()),
    ],
)
def test_what_cannot_be_computed_is_none_and_nothing_else_is(absent: str, unknown: set[str]) -> None:
    found = normalise(statement(**{absent: None}))
    assert {name for name, value in found.items() if value is None} == unknown


def test_a_quarter_without_revenue_has_no_margin() -> None:
    assert normalise(statement(revenue=0.0))["operating_margin"] is None
    assert normalise(statement(revenue=-10.0, operating_income=-5.0))["operating_margin"] == 0.5


@given(NUMBERS | st.none(), NUMBERS | st.none())
def test_arithmetic_with_unknowns(left: float | None, right: float | None) -> None:
    known = left is not None and right is not None
    assert (sum_or_none(left, right) is None) is (not known)
    assert (difference_or_none(left, right) is None) is (not known)
    quotient = ratio(left, right)
    if not known or right == 0:
        assert quotient is None
    elif quotient is not None:
        assert quotient == left / right


def test_a_quotient_that_overflows_is_unknown() -> None:
    assert ratio(1e18, 5e-324) is None
