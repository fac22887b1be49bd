"""Constraint checks against hand arithmetic, the published sample and a plain second derivation."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines.risk.cases import books, mandate_json, market, permuted, sample
from tests.sampling import examples

from finskillbench.arrays import FACTORS
from finskillbench.engines.portfolio.measures import FEASIBILITY_TOLERANCE
from finskillbench.engines.risk.mandate import COMPLIANCE_TOLERANCE, ConstraintKind, RiskMandate, mandate_from
from finskillbench.engines.risk.monitor import (
    LEAST_SCALE,
    check_constraints,
    constraint_report,
    measure_all,
    total_relative_excess,
)
from finskillbench.engines.risk.portfolio import MarketSnapshot, Portfolio
from finskillbench.engines.statistics.risk_model import RiskModel
from finskillbench.errors import InputError

_MANDATE = mandate_from(mandate_json())


def _plain(book: Portfolio, mandate: RiskMandate, universe: MarketSnapshot) -> list[tuple[float, float]]:
    """Value and excess of each constraint from the definitions alone, name by name."""
    assert universe.risk is not None
    assert universe.benchmark is not None
    weights = dict(zip(universe.tickers, book.weights.tolist(), strict=True))
    held = {name: weight for name, weight in weights.items() if abs(weight) > COMPLIANCE_TOLERANCE}
    sectors: dict[str, float] = {}
    for name, sector in zip(universe.tickers, universe.sectors, strict=True):
        sectors[sector] = sectors.get(sector, 0.0) + weights[name]
    active = [weight - own for weight, own in zip(weights.values(), universe.benchmark.tolist(), strict=True)]
    matrix = universe.risk.matrix.tolist()
    variance = sum(
        a * b * cov for a, row in zip(active, matrix, strict=True) for b, cov in zip(active, row, strict=True)
    )
    betas = {f: sum(w * b for w, b in zip(weights.values(), universe.betas[:, k].tolist(), strict=True))
             for k, f in enumerate(FACTORS)}  # fmt: skip
    counted = sum(abs(weight) >= 0.001 - 1e-9 for weight in weights.values())
    found: list[tuple[float, float]] = []
    for row in mandate.to_json()["constraints"]:
        limit = row.get("value", 0.0)
        match row["type"]:
            case "long_only":
                value = min(held.values(), default=0.0)
                found.append((value, -value))
            case "position_limit_min":
                value = min((abs(weight) for weight in held.values()), default=0.0)
                found.append((value, limit - value if held else 0.0))
            case "beta_range":
                found.append((betas["mkt_rf"], max(row["min"] - betas["mkt_rf"], betas["mkt_rf"] - row["max"])))
            case "name_count":
                found.append((counted, row["min"] - counted))
            case kind:
                value = {
                    "position_limit_max": max(held.values(), default=0.0),
                    "sector_limit_max": max(sectors.values()),
                    "tracking_error_max": math.sqrt(variance),
                    "factor_exposure_max": max(abs(betas["smb"]), abs(betas["hml"])),
                    "turnover_max_monthly": book.traded,
                    "cash_max": book.cash,
                    "gross_exposure_max": sum(map(abs, weights.values())),
                    "hhi_max": sum(weight**2 for weight in weights.values()),
                }[kind]
                found.append((value, value - limit))
    return found


@settings(max_examples=examples(100))
@given(book=books())
def test_agrees_with_the_definitions(book: Portfolio) -> None:
    universe = market()
    found = check_constraints(book, _MANDATE, universe)
    np.testing.assert_allclose([(one.value, one.excess) for one in found], _plain(book, _MANDATE, universe), atol=1e-12)
    assert [one.passed for one in found] == [
        excess <= COMPLIANCE_TOLERANCE for _, excess in _plain(book, _MANDATE, universe)
    ]


@settings(max_examples=examples(50))
@given(many=st.lists(books(), min_size=1, max_size=6))
def test_many_portfolios_at_once_are_the_same_as_one_by_one(many: list[Portfolio]) -> None:
    universe = market()
    weights = np.array([book.weights for book in many])
    cash, traded = np.array([book.cash for book in many]), np.array([book.traded for book in many])
    values, excess = measure_all(weights, cash, traded, _MANDATE, universe)
    for book, value, over in zip(many, values, excess, strict=True):
        single = check_constraints(book, _MANDATE, universe)
        np.testing.assert_allclose(value, [one.value for one in single], atol=1e-13)
        np.testing.assert_allclose(over, [one.excess for one in single], atol=1e-13)


@settings(max_examples=examples(50))
@given(book=books(), order=st.permutations(range(12)), nav=st.floats(1e3, 1e12))
def test_neither_the_order_of_names_nor_nav_matters(book: Portfolio, order: list[int], nav: float) -> None:
    universe, moved = market(), permuted(market(), np.array(order))
    first = check_constraints(book, _MANDATE, universe)
    second = check_constraints(replace(book, weights=book.weights[order], nav=nav), _MANDATE, moved)
    np.testing.assert_allclose([one.value for one in first], [one.value for one in second], atol=1e-12)
    assert [one.worst for one in first] == [one.worst for one in second]


def test_hand_computed() -> None:
    """Four names, two sectors, one short; every value by hand."""
    universe = MarketSnapshot(
        tickers=("A", "B", "C", "D"),
        sectors=("Energy", "Energy", "Utilities", "Utilities"),
        betas=np.array(
            [[1.0, 0.5, 0.0, 0, 0, 0], [2.0, 0.0, -1.0, 0, 0, 0], [0.5, 0, 0, 0, 0, 0], [1.0, 1, 1, 0, 0, 0]]
        ),
        benchmark=np.array([0.25, 0.25, 0.25, 0.25]),
        risk=RiskModel.from_matrix(np.diag([0.04, 0.09, 0.01, 0.16])),
    )
    book = Portfolio(np.array([0.5, 0.45, -0.05, 0.0]), 0.1, 1e6, 0.12)
    report = constraint_report(book, mandate_from(mandate_json(name_count={"min": 4, "max": 9})), universe)
    rows = {row.pop("type"): row for row in report["constraints"]}
    failed = {kind: row.pop("violation_magnitude") for kind, row in rows.items() if row.pop("status") == "FAIL"}
    values = {kind: row["value"] for kind, row in rows.items()}
    error = math.sqrt(0.25**2 * 0.04 + 0.2**2 * 0.09 + 0.3**2 * 0.01 + 0.25**2 * 0.16)
    assert values == pytest.approx(
        {
            "long_only": -0.05,
            "position_limit_max": 0.5,
            "position_limit_min": 0.05,
            "sector_limit_max": 0.95,
            "tracking_error_max": error,
            "beta_range": 0.5 + 0.9 - 0.025,
            "factor_exposure_max": 0.45,
            "turnover_max_monthly": 0.12,
            "cash_max": 0.1,
            "gross_exposure_max": 1.0,
            "hhi_max": 0.25 + 0.2025 + 0.0025,
            "name_count": 3,
        },
        abs=1e-15,
    )
    assert failed == pytest.approx(
        {
            "long_only": 0.05,
            "position_limit_max": 0.3,
            "sector_limit_max": 0.65,
            "tracking_error_max": error - 0.05,
            "beta_range": 0.375,
            "factor_exposure_max": 0.05,
            "turnover_max_monthly": 0.02,
            "cash_max": 0.05,
            "hhi_max": 0.305,
            "name_count": 1,
        },
        abs=1e-15,
    )
    assert (report["overall_compliant"], report["violations_count"]) == (False, 10)
    assert rows["position_limit_max"]["worst_symbol"] == "A"
    assert rows["position_limit_min"]["worst_symbol"] == "C"
    assert rows["sector_limit_max"]["worst_sector"] == "Energy"
    assert (rows["beta_range"]["min"], rows["beta_range"]["max"]) == (0.0, 1.0)
    assert (rows["long_only"]["limit"], rows["hhi_max"]["limit"]) == (0.0, 0.15)
    assert isinstance(rows["name_count"]["value"], int)


def test_the_published_concentrated_portfolio() -> None:
    """Position and sector values of the published episode; its tracking error and beta need panels it does not give."""
    episode = sample("task_rm_cm_portfolio_concentrated_2023_24_rebound_000_mandate_balanced_01")
    holdings = episode["input"]["portfolio"]["holdings"]
    financial = {"AIG", "C", "L", "USB"}
    universe = MarketSnapshot(
        tickers=tuple(row["symbol"] for row in holdings),
        sectors=tuple("Financial Services" if row["symbol"] in financial else "Healthcare" for row in holdings),
        betas=np.zeros((len(holdings), len(FACTORS))),
    )
    weights = np.array([row["weight"] for row in holdings])
    limits = {"position_limit_max": 0.05, "position_limit_min": 0.001, "sector_limit_max": 0.25}
    chosen: dict[str, Any] = dict.fromkeys(kind.value for kind in ConstraintKind)
    chosen |= {kind: {"value": value} for kind, value in limits.items()} | {"long_only": {"value": True}}
    mandate = mandate_from(mandate_json(**chosen))
    expected = {row["type"]: row for row in episode["expected_output"]["constraints"]}
    for row in constraint_report(Portfolio(weights, 1 - weights.sum(), 1e7), mandate, universe)["constraints"]:
        published = expected[row["type"]]
        assert row["status"] == published["status"]
        if row["type"] != "long_only":  # published as a boolean
            for field in row.keys() & {"value", "limit", "violation_magnitude"}:
                assert row[field] == pytest.approx(published[field], abs=1e-9)
            for field in row.keys() & {"worst_symbol", "worst_sector"}:
                assert row[field] == published[field]


def test_limits_met_to_a_tenth_of_a_basis_point_pass() -> None:
    universe = market(5)
    only = dict.fromkeys(kind.value for kind in ConstraintKind)
    mandate = mandate_from(mandate_json(**(only | {"position_limit_max": {"value": 0.3}})))
    for weight, strictly, submitted in (
        (0.3, True, True),
        (0.300009, True, True),
        (0.300011, False, True),
        (0.3006, False, False),
    ):
        book = Portfolio(np.array([weight, 0.2, 0.2, 0.2, 0.8 - 0.4 - weight]), 0.0, 1e6)
        assert check_constraints(book, mandate, universe)[0].passed is strictly
        assert check_constraints(book, mandate, universe, FEASIBILITY_TOLERANCE)[0].passed is submitted


def test_a_rounding_residue_is_no_holding_of_a_submitted_portfolio() -> None:
    universe = market(5)
    only = dict.fromkeys(kind.value for kind in ConstraintKind)
    kinds = {"position_limit_min": {"value": 0.01}, "name_count": {"min": 3, "max": 3}}
    mandate = mandate_from(mandate_json(**(only | kinds)))
    book = Portfolio(np.array([0.4, 0.4, 0.1999, 0.0001, 0.0]), 0.0, 1e6)
    assert [one.passed for one in check_constraints(book, mandate, universe)] == [False, True]
    assert [one.passed for one in check_constraints(book, mandate, universe, FEASIBILITY_TOLERANCE)] == [True, True]
    # Of a weight next to the threshold: it counts for the least number, and not for the greatest.
    near = Portfolio(np.array([0.4, 0.4, 0.1991, 0.0009, 0.0]), 0.0, 1e6)
    four = mandate_from(mandate_json(**(only | {"name_count": {"min": 4, "max": 4}})))
    assert [check_constraints(near, four, universe, slack)[0].passed for slack in (1e-9, FEASIBILITY_TOLERANCE)] == [
        False,
        True,
    ]
    near = Portfolio(np.array([0.4, 0.4, 0.1989, 0.0011, 0.0]), 0.0, 1e6)
    three = mandate_from(mandate_json(**(only | {"name_count": {"min": 3, "max": 3}})))
    assert [check_constraints(near, three, universe, slack)[0].passed for slack in (1e-9, FEASIBILITY_TOLERANCE)] == [
        False,
        True,
    ]


def test_nothing_held_is_neither_short_nor_small_nor_large() -> None:
    found = {one.kind: one for one in check_constraints(Portfolio(np.zeros(12), 1.0, 1e6), _MANDATE, market())}
    for kind in (ConstraintKind.LONG_ONLY, ConstraintKind.POSITION_LIMIT_MAX, ConstraintKind.POSITION_LIMIT_MIN):
        assert (found[kind].passed, found[kind].value, found[kind].worst) == (True, 0.0, None)
    assert not found[ConstraintKind.NAME_COUNT].passed


@pytest.mark.parametrize(("field", "name"), [("risk", "covariance_matrix"), ("benchmark", "benchmark_weights")])
def test_no_limit_is_skipped_for_want_of_data(field: str, name: str) -> None:
    with pytest.raises(InputError, match=f"{name} is missing"):
        check_constraints(Portfolio(np.zeros(12), 1.0, 1e6), _MANDATE, replace(market(), **{field: None}))


def test_relative_excess_counts_what_remediation_may_give_up() -> None:
    mandate = mandate_from(mandate_json(beta_range={"min": 0.5, "max": 1.0}, cash_max={"value": 0.0}))
    kinds = [constraint.kind for constraint in mandate.constraints]
    values, excess = np.zeros(len(kinds)), np.full(len(kinds), -0.1)

    def of(**changes: tuple[float, float]) -> float:
        given_values, given_excess = values.copy(), excess.copy()
        for kind, (value, over) in changes.items():
            place = kinds.index(ConstraintKind(kind))
            given_values[place], given_excess[place] = value, over
        return total_relative_excess(given_values, given_excess, mandate)

    assert of() == 0.0
    assert of(long_only=(-0.1, 0.1), position_limit_min=(0.0, 0.01), name_count=(2, 6)) == 0.0
    assert of(turnover_max_monthly=(0.2, 0.1)) == 0.0
    assert of(beta_range=(0.4, 0.1)) == pytest.approx(0.2)  # below 0.5
    assert of(beta_range=(1.1, 0.1)) == pytest.approx(0.1)  # above 1.0
    assert of(position_limit_max=(0.3, 0.1), hhi_max=(0.18, 0.03)) == pytest.approx(0.5 + 0.2)
    assert of(cash_max=(0.02, 0.02)) == pytest.approx(0.02 / LEAST_SCALE)
