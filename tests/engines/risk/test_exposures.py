"""The ranked exposures against hand arithmetic and the published sample; what must not change them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines.risk.cases import books, market, permuted, sample

from finskillbench.arrays import FACTORS
from finskillbench.engines.risk.exposures import (
    CONVENTIONS,
    LIST_LENGTH,
    ExposureType,
    candidates,
    days_to_liquidate,
    hhi,
    illiquid_share,
    illiquid_shares,
    ranked,
    sector_weights,
    top,
)
from finskillbench.engines.risk.portfolio import Market, Portfolio
from finskillbench.errors import InputError


def _universe() -> Market:
    """Four names in two sectors; A and B carry factors, D hardly trades."""
    return Market(
        tickers=("A", "B", "C", "D"),
        sectors=("Energy", "Energy", "Utilities", "Utilities"),
        betas=np.array([[1.5, 1.0, 0, 0, 0, 0], [1.5, 0.0, -1, 0, 0, 0], [0.5, 0, 0, 0, 0, 0], [0.5, 0, 0, 0, 0, 0.0]]),
        dollar_volume=np.array([1e7, 1e7, 1e7, 1e5]),
    )


def _summary(book: Portfolio, universe: Market, k: int = LIST_LENGTH) -> list[tuple[str, str, float]]:
    return [(one.type.value, one.subject, round(one.magnitude, 12)) for one in ranked(book, universe, k)]


def test_hand_computed_list() -> None:
    book = Portfolio(np.array([0.35, 0.3, 0.1, 0.2]), 0.05, 1e6)
    # Betas: mkt_rf 0.525 + 0.45 + 0.05 + 0.1 = 1.125 (tilt 0.125, too small), smb 0.35, hml -0.30 (just listed).
    # D: 0.2 of 1e6 against 5 x 0.2 x 1e5 = 0.1 of NAV: 0.1 cannot be sold in time.
    assert _summary(book, _universe(), k=9) == [
        ("sector_concentration", "Energy", 0.65),
        ("factor_tilt", "smb", 0.35),
        ("single_name", "A", 0.35),
        ("factor_tilt", "hml", 0.3),
        ("sector_concentration", "Utilities", 0.3),
        ("concentration", "portfolio", 0.2625),
        ("liquidity_risk", "portfolio", 0.1),
    ]
    assert _summary(book, _universe()) == _summary(book, _universe(), k=9)[:5]
    np.testing.assert_allclose(days_to_liquidate(book, _universe()), [0.175, 0.15, 0.05, 10.0], atol=1e-15)


def test_the_largest_sector_and_name_are_listed_however_small() -> None:
    book = Portfolio(np.array([0.05, 0.04, 0.03, 0.03]), 0.85, 1e5)
    # Market beta 0.165: a tilt of 0.835 against 1.
    assert _summary(book, _universe()) == [
        ("factor_tilt", "mkt_rf", 0.835),
        ("sector_concentration", "Energy", 0.09),
        ("single_name", "A", 0.05),
        ("concentration", "portfolio", 0.0059),
    ]


def test_ties_are_broken_by_type_and_subject() -> None:
    book = Portfolio(np.array([0.0, -0.25, 0.25, 0.0]), 1.0, 1e6)
    names = [row for row in _summary(book, _universe(), k=9) if row[0] in ("sector_concentration", "single_name")]
    assert names == [("sector_concentration", "Utilities", 0.25), ("single_name", "B", 0.25)]
    assert [row[0] for row in _summary(book, _universe(), k=9)][:4] == [
        "factor_tilt",  # mkt_rf -0.25: 1.25 from 1
        "sector_concentration",
        "single_name",
        "concentration",
    ]


def test_candidates_are_everything_whatever_its_size() -> None:
    book = Portfolio(np.array([0.5, 0.0, 0.5, 0.0]), 0.0, 1e6)
    kinds = [one.type for one in candidates(book, _universe())]
    assert {kind: kinds.count(kind) for kind in ExposureType} == {
        ExposureType.FACTOR_TILT: 6,
        ExposureType.SECTOR_CONCENTRATION: 2,
        ExposureType.SINGLE_NAME: 2,
        ExposureType.CONCENTRATION: 1,
        ExposureType.LIQUIDITY_RISK: 1,
    }


def test_the_published_concentrated_portfolio() -> None:
    """HHI, the five largest names, the largest sector and name as published."""
    episode = sample("task_rm_ri_portfolio_concentrated_2023_24_rebound_000")
    holdings = episode["input"]["portfolio"]["holdings"]
    weights = np.array([row["weight"] for row in holdings])
    universe = Market(
        tickers=tuple(row["symbol"] for row in holdings),
        sectors=tuple(
            "Financial Services" if row["symbol"] in {"AIG", "C", "L", "USB"} else "Healthcare" for row in holdings
        ),
        betas=np.tile([1.0, 0, 0, 0, 0, 0], (len(holdings), 1)),
    )
    published = {row["type"]: row for row in episode["expected_output"]["top_risk_exposures"]}
    book = Portfolio(weights, 1 - weights.sum(), 1e7)
    # Of a type that is listed twice, the first; the sectors of the other names are not published.
    found = {one.type.value: one for one in reversed(ranked(book, universe))}
    for kind in ("sector_concentration", "single_name", "concentration"):
        assert found[kind].magnitude == pytest.approx(published[kind]["magnitude"], abs=5e-5)
    assert found["single_name"].subject == "AIG"
    assert found["sector_concentration"].subject == "Financial Services"
    assert published["concentration"]["detail"] == f"HHI={hhi(weights):.4f}, top-5={top(weights, 5):.1%}"


@settings(max_examples=100, deadline=None)
@given(book=books(), order=st.permutations(range(12)), scale=st.floats(0.01, 100))
def test_neither_the_order_of_names_nor_nav_matters(book: Portfolio, order: list[int], scale: float) -> None:
    universe, moved = market(), permuted(market(), np.array(order))
    assert _summary(book, universe, 9) == _summary(replace(book, weights=book.weights[order]), moved, 9)
    scaled = replace(book, nav=book.nav * scale)
    rest = [[row for row in _summary(one, universe, 99) if row[0] != "liquidity_risk"] for one in (book, scaled)]
    assert rest[0] == rest[1]
    # Liquidity does depend on NAV, and only on NAV over volume.
    assert universe.dollar_volume is not None
    deeper = replace(universe, dollar_volume=universe.dollar_volume * scale)
    assert illiquid_share(scaled, deeper) == pytest.approx(illiquid_share(book, universe), abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(book=books())
def test_identities(book: Portfolio) -> None:
    universe = market()
    assert sum(sector_weights(book.weights, universe).values()) == pytest.approx(1 - book.cash, abs=1e-12)
    gross = float(np.abs(book.weights).sum())
    assert top(book.weights, 12) == pytest.approx(gross, abs=1e-12)
    assert gross**2 / 12 - 1e-12 <= hhi(book.weights) <= gross**2 + 1e-12
    share, days = illiquid_share(book, universe), days_to_liquidate(book, universe)
    # What is not sold after five sessions, from the days it takes.
    left = np.abs(book.weights) * np.maximum(1 - 5 / np.maximum(days, 1e-300), 0)
    assert share == pytest.approx(left.sum(), abs=1e-12)
    assert universe.dollar_volume is not None
    many = illiquid_shares(np.array([book.weights] * 2), np.array([book.nav, book.nav * 3]), universe.dollar_volume)
    assert many == pytest.approx([share, illiquid_share(replace(book, nav=book.nav * 3), universe)], abs=1e-15)


def test_a_name_nobody_trades_is_never_sold() -> None:
    universe = replace(_universe(), dollar_volume=np.array([0.0, 0.0, 1e7, 1e7]))
    book = Portfolio(np.array([0.4, 0.0, 0.6, 0.0]), 0.0, 1e6)
    assert days_to_liquidate(book, universe)[:2].tolist() == [np.inf, 0.0]
    assert illiquid_share(book, universe) == pytest.approx(0.4)


def test_volume_is_never_assumed() -> None:
    universe = replace(_universe(), dollar_volume=None)
    book = Portfolio(np.array([0.4, 0.0, 0.6, 0.0]), 0.0, 1e6)
    with pytest.raises(InputError, match="average_daily_volume_usd is missing"):
        illiquid_share(book, universe)
    assert all(one.type is not ExposureType.LIQUIDITY_RISK for one in candidates(book, universe))


def test_conventions_name_every_type_and_factor_subject() -> None:
    assert {kind.value for kind in ExposureType} <= set(CONVENTIONS)
    assert FACTORS[0] in CONVENTIONS["factor_tilt"]
    assert "5 x 0.2 x average_daily_volume_usd" in CONVENTIONS["liquidity_risk"]
