"""Figures in thousands or millions are left out by name, and without a look at later filings."""

from datetime import date

import polars as pl
import pytest
from tests.panels.filings.test_facts import FIRST, FOURTH, HALF, SECOND, THIRD, panel, rows, versions

SHARES = "WeightedAverageNumberOfDilutedSharesOutstanding"


def test_figures_in_thousands_are_left_out_by_name() -> None:
    quarters = [FIRST, SECOND, ("2023-07-01", "2023-09-30"), FOURTH]
    good = rows([("NetIncomeLoss", p, 100e6, f"2024-0{i + 1}-01") for i, p in enumerate(quarters)])
    late = rows([("NetIncomeLoss", FIRST, 100e3, "2024-08-01")])
    built = panel(good, late)
    assert versions(built.frame, "net_income", FIRST) == [(100e6, "2024-01-01", False)]
    assert built.notes == (
        "ONE: 1 figures of NetIncomeLoss in 0000000001-24-080100 are in thousands or millions: left out.",
    )

    per_share = rows([("EarningsPerShareDiluted", FIRST, 2, "2023-05-01")], unit="USD/shares")
    in_millions = panel(
        rows([("NetIncomeLoss", FIRST, 100e6, "2023-05-01")]),
        per_share,
        rows([(SHARES, FIRST, 50, "2023-05-01")], unit="shares"),
    )
    assert set(in_millions.frame["metric"]) == {"net_income", "eps_diluted"}
    assert f"figures of {SHARES} in 0000000001-23-050100 are in thousands or millions" in in_millions.notes[0]
    dollars = panel(
        rows([("NetIncomeLoss", FIRST, 100e3, "2023-05-01"), ("Revenues", FIRST, 900e3, "2023-05-01")]),
        per_share,
        rows([(SHARES, FIRST, 50e6, "2023-05-01")], unit="shares"),
    )
    assert set(dollars.frame["metric"]) == {"diluted_shares", "eps_diluted"}


@pytest.mark.parametrize("count", [1_020.0, 1_020e3])
def test_shares_out_of_scale_are_told_by_those_known_before(count: float) -> None:
    """Of other periods; the whole filing falls, and what fell is no measure of what follows."""
    before = rows([(SHARES, FIRST, 1_000e6, "2023-05-01")], unit="shares")
    scaled = rows([(SHARES, SECOND, count, "2023-08-01"), (SHARES, HALF, 1_010e6, "2023-08-01")], unit="shares")
    again = rows([(SHARES, THIRD, count, "2023-11-01")], unit="shares")
    right = rows([(SHARES, FOURTH, 1_030e6, "2024-02-01")], unit="shares")
    built = panel(before, scaled, again, right)
    assert built.frame["value"].to_list() == [1_000e6, 1_030e6]
    assert built.notes == (
        f"ONE: 2 figures of {SHARES} in 0000000001-23-080100 are in thousands or millions: left out.",
        f"ONE: 1 figures of {SHARES} in 0000000001-23-110100 are in thousands or millions: left out.",
    )


def test_the_scale_of_shares_does_not_look_ahead() -> None:
    """Figures that only later filings show to be out of scale stand, whatever comes after them."""
    first = rows([(SHARES, FIRST, 1_000e3, "2023-05-01"), (SHARES, SECOND, 1_000e3, "2023-05-01")], unit="shares")
    later = rows([(SHARES, p, 1_000e6, "2023-08-01") for p in (FIRST, HALF)], unit="shares")
    fallen = rows([(SHARES, THIRD, 1_000e3, "2023-11-01")], unit="shares")
    whole = panel(first, later, fallen).frame
    for day, known in ((date(2023, 5, 1), (first,)), (date(2023, 8, 1), (first, later))):
        assert whole.filter(pl.col("filed") <= day).equals(panel(*known).frame)
    assert versions(whole, "diluted_shares", FIRST) == [(1e6, "2023-05-01", False), (1e9, "2023-08-01", False)]


def test_a_great_reverse_split_is_borne_out_by_earnings_per_share() -> None:
    before = rows([(SHARES, FIRST, 1_000e6, "2023-05-01")], unit="shares")
    after = rows([(SHARES, SECOND, 2e6, "2023-08-01")], unit="shares")
    income = rows([("NetIncomeLoss", SECOND, 10e6, "2023-08-01")])
    per_share = rows([("EarningsPerShareDiluted", SECOND, 5, "2023-08-01")], unit="USD/shares")
    assert versions(panel(before, after, income).frame, "diluted_shares", SECOND) == []
    split = panel(before, after, income, per_share).frame
    assert versions(split, "diluted_shares", SECOND) == [(2e6, "2023-08-01", False)]


def test_a_first_filing_in_thousands_is_told_by_its_income_a_share() -> None:
    first = rows([(SHARES, FIRST, 1.5e6, "2023-05-01"), (SHARES, SECOND, 1.5e6, "2023-05-01")], unit="shares")
    income = rows([("NetIncomeLoss", FIRST, 3_000e6, "2023-05-01")])
    built = panel(first, income)
    assert set(built.frame["metric"]) == {"net_income"}
    assert "2 figures" in built.notes[0]
    dear = rows([("EarningsPerShareDiluted", FIRST, 2_000, "2023-05-01")], unit="USD/shares")
    assert panel(first, income, dear).frame.filter(pl.col("metric") == "diluted_shares").height == 2
