"""Which parameters of an optimiser call count, and how two calls are compared."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from finskillbench.domains.portfolio.tool_use import ANOTHER_OBJECTIVE, effective_parameters, merit

SECTORS = ("Energy", "Technology", "Utilities")
SIZE = 30


def _effective(objective: Any = "min_variance", aversion: Any = None, **constraints: Any) -> dict[str, Any]:
    call = {"objective": objective, "constraints": constraints}
    return effective_parameters(call if aversion is None else call | {"risk_aversion": aversion}, SECTORS, SIZE)


PLAIN = {"objective": "min_variance"}


@pytest.mark.parametrize(
    "constraints",
    [
        {},
        {"long_only": True},
        {"long_only": None},
        {"max_weight": 1.0},
        {"min_weight": 0.0},
        {"max_turnover": 1.0},
        {"max_names": 30},
        {"max_names": 31},
        {"min_names": 1},
        {"max_sector_weight": 1.0},
        {"sector_limits": {}},
        {"sector_limits": {"Energy": 1.0}},
        {"excluded_sectors": []},
        {"neutral_factors": []},
        {"neutrality_tolerance": 0.02},
        {"max_tracking_error": None},
        {"no_such_parameter": 3},
        {"max_weight": "0.05"},
        {"max_weight": True},
    ],
)
def test_what_changes_nothing_does_not_count(constraints: dict[str, Any]) -> None:
    assert _effective(**constraints) == PLAIN


@pytest.mark.parametrize(
    ("constraints", "found"),
    [
        ({"long_only": False}, {"long_only": False}),
        ({"max_weight": 0.05}, {"max_weight": 0.05}),
        ({"min_weight": 0.0005}, {"min_weight": 0.0005}),
        ({"max_turnover": 0.0}, {"max_turnover": 0.0}),
        ({"max_tracking_error": 0.03}, {"max_tracking_error": 0.03}),
        ({"max_names": 29}, {"max_names": 29.0}),
        ({"min_names": 2}, {"min_names": 2.0}),
        ({"neutral_factors": ["smb", "hml", "smb"]}, {"neutral_factors": ["hml", "smb"], "neutrality_tolerance": 0.01}),
        ({"excluded_sectors": ["Energy"]}, {"sector_limits": {"Energy": 0.0}}),
        (
            {"max_sector_weight": 0.2, "sector_limits": {"Energy": 0.3}},
            {"sector_limits": {"Energy": 0.3, "Technology": 0.2, "Utilities": 0.2}},
        ),
        (
            {"max_sector_weight": 0.2, "excluded_sectors": ["Energy"], "sector_limits": {"Energy": 0.3}},
            {"sector_limits": {"Energy": 0.0, "Technology": 0.2, "Utilities": 0.2}},
        ),
    ],
)
def test_what_changes_the_portfolio_counts(constraints: dict[str, Any], found: dict[str, Any]) -> None:
    assert _effective(**constraints) == PLAIN | found


def test_risk_aversion_counts_under_max_sharpe_only_and_off_its_default() -> None:
    assert _effective("max_sharpe", 2.0) == {"objective": "max_sharpe", "risk_aversion": 2.0}
    assert _effective("max_sharpe", 1.0) == {"objective": "max_sharpe"}
    assert _effective("min_variance", 2.0) == PLAIN


@pytest.mark.parametrize(("cap", "forced"), [(0.05, 20), (0.08, 13), (0.06, 17), (0.1, 10), (0.5, 2)])
def test_a_minimum_of_names_that_the_cap_forces_is_implied(cap: float, forced: int) -> None:
    """k caps and 30 − k stubs of just under 0.1 % reach 1 only from `forced` names on."""
    assert forced * cap + (SIZE - forced) * 0.001 >= 1 > (forced - 1) * cap + (SIZE - forced + 1) * 0.001
    assert "min_names" not in _effective(max_weight=cap, min_names=forced)
    assert _effective(max_weight=cap, min_names=forced + 1)["min_names"] == forced + 1


def test_a_floor_for_every_name_implies_holding_them_all_and_forbids_short_sales() -> None:
    floor = {"min_weight": 0.005}
    assert _effective(**floor, min_names=SIZE, long_only=False) == PLAIN | floor
    assert "min_names" in _effective(min_weight=0.0005, min_names=SIZE)


def test_a_floor_of_nothing_bans_short_sales_whatever_long_only_says() -> None:
    assert _effective(long_only=False, min_weight=0.0) == PLAIN == _effective(long_only=True)
    assert _effective(long_only=False, min_weight=-0.05) == PLAIN | {"long_only": False, "min_weight": -0.05}
    assert _effective(long_only=False, max_weight=1.0, max_turnover=1.2) == PLAIN | {
        "long_only": False,
        "max_weight": 1.0,
        "max_turnover": 1.2,
    }


def test_limits_count_both_ways_and_the_objective_is_a_gate() -> None:
    wanted = _effective(max_weight=0.05, max_turnover=0.1)
    assert merit(wanted, wanted) == 1.0
    assert merit(_effective(max_weight=0.05), wanted) == pytest.approx(1 / 2)
    assert merit(_effective(max_weight=0.05, max_turnover=0.1, min_weight=0.01), wanted) == pytest.approx(1 / 2)
    assert merit(_effective(max_weight=0.051, max_turnover=0.1), wanted) == pytest.approx(1 / 2)
    assert merit(PLAIN, wanted) == 1 / 4
    assert merit(_effective("max_return", max_weight=0.05, max_turnover=0.1), wanted) == ANOTHER_OBJECTIVE <= 0.3


def test_a_unit_error_leaves_nothing_of_a_parameter() -> None:
    right = {"max_weight": 0.05, "max_turnover": 0.1, "max_tracking_error": 0.03}
    per_cent = {name: 100 * limit for name, limit in right.items()}
    wanted = _effective(**right)
    for name in right:
        assert merit(_effective(**right | {name: per_cent[name]}), wanted) == 1 / 2
    assert merit(_effective(**per_cent), wanted) == 1 / 8


def test_numbers_are_equal_within_rounding_only() -> None:
    wanted = _effective(max_tracking_error=0.0125)
    assert merit(_effective(max_tracking_error=0.01250000001), wanted) == 1.0
    assert merit(_effective(max_tracking_error=0.0126), wanted) == 1 / 2
    assert merit(_effective(max_sector_weight=0.333), _effective(max_sector_weight=1 / 3)) == 1.0


def test_sector_caps_weigh_by_level_and_agree_by_the_share_of_sectors() -> None:
    wanted = _effective(max_sector_weight=0.2)
    assert merit(_effective(sector_limits={"Energy": 0.2, "Technology": 0.2}), wanted) == pytest.approx(0.5 ** (1 / 3))
    assert merit(_effective(sector_limits={"Financials": 0.2}), wanted) == 1 / 4
    two = _effective(max_sector_weight=0.2, sector_limits={"Energy": 0.1})
    assert merit(wanted, two) == pytest.approx(1 / 2)
    assert merit(_effective(sector_limits={"Energy": 0.1}), two) == pytest.approx(1 / 2)
    assert merit(two, _effective(max_weight=0.05) | two) == 1 / 2


@settings(suppress_health_check=[HealthCheck.too_slow])  # of the machine, not of the function
@given(st.dictionaries(st.sampled_from(["objective", "constraints", "risk_aversion"]), st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(allow_nan=False), st.integers(), st.text(max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["max_weight", "sector_limits", "excluded_sectors", "neutral_factors", "min_names", "x"]),
            inner,
        ),
    ),
)))  # fmt: skip
def test_any_call_is_read_without_a_crash_and_agrees_with_itself(call: dict[str, Any]) -> None:
    found = effective_parameters(call, SECTORS, SIZE)
    assert merit(found, found) == 1.0
