"""The identities of a statement."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest

from finskillbench.domains.fundamental.rederive.answers import Figures
from finskillbench.domains.fundamental.rederive.identities import IDENTITIES, broken_identities, faults

WHOLE: Figures = {
    "revenue": 100e9,
    "cost_of_revenue": 60e9,
    "gross_profit": 40e9,
    "operating_expenses": 25e9,
    "operating_income": 15e9,
    "total_assets": 500e9,
    "total_liabilities": 300e9,
    "stockholders_equity": 190e9,
    "minority_interest": 10e9,
    "operating_cash_flow": 20e9,
    "investing_cash_flow": -5e9,
    "financing_cash_flow": -8e9,
    "exchange_rate_effect": -1e9,
    "cash_change": 6e9,
}
BROKEN: dict[str, tuple[str, dict[str, float]]] = {
    "Under Armour's products for its revenue": ("gross_profit", {"revenue": 90e9, "operating_expenses": 15e9}),
    "operating income without an expense": ("operating_income", {"operating_income": 22e9}),
    "liabilities counted twice": ("balance_sheet", {"total_liabilities": 400e9}),
    "equity of the wrong sign": ("balance_sheet", {"stockholders_equity": -190e9}),
    "cash that exceeds assets": ("balance_sheet", {"cash": 600e9}),
    "a section of the cash flow statement left out": ("cash_flow", {"financing_cash_flow": 0.0}),
    "a negative expense": ("sign", {"sga": -1e9}),
}


def test_what_adds_up_breaks_nothing_and_rounding_does_neither() -> None:
    assert list(broken_identities(WHOLE)) == []
    assert list(broken_identities({**WHOLE, "gross_profit": 40_001e6, "cash_change": 6_001e6})) == []
    assert list(broken_identities({name: value for name, value in WHOLE.items() if name != "cost_of_revenue"})) == []
    assert list(broken_identities({})) == []


@pytest.mark.parametrize("case", BROKEN)
def test_a_statement_that_does_not_add_up_is_named(case: str) -> None:
    identity, changes = BROKEN[case]
    assert {fault.identity for fault in broken_identities({**WHOLE, **changes})} == {identity}
    assert identity in IDENTITIES


def _of_quarters(now: Figures, before: Mapping[str, float]) -> Any:
    """A source of one quarter and, four times, of the quarters before it."""
    return SimpleNamespace(figures=lambda end, kind: now, quarters_before=lambda metric, end: [before[metric]] * 4)


@pytest.mark.parametrize(
    ("changes", "out"),
    [
        ({"revenue": 101e9}, {"revenue"}),
        ({"sga": 0.09e9}, {"sga"}),
        ({"revenue": 99e9}, set()),
        ({"revenue": 110e9, "cost_of_revenue": 66e9}, set()),  # a business bought
        ({"revenue": 10e6, "cost_of_revenue": 6e6, "sga": 1e6}, {"revenue", "cost_of_revenue", "sga"}),  # in thousands
        ({"revenue": 110e9, "cost_of_revenue": 0.3e9, "sga": 0.3e9}, {"revenue"}),
    ],
)
def test_ten_times_the_quarters_before_is_out_of_pattern(changes: dict[str, float], out: set[str]) -> None:
    usual = {"revenue": 10e9, "cost_of_revenue": 6e9, "sga": 1e9}
    found = list(faults(_of_quarters(usual | changes, usual), [(date(2023, 6, 30), "quarterly")]))
    assert {fault.message.split()[3] for fault in found if fault.identity == "pattern"} == out
