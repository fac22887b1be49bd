"""The ranked exposures against hand arithmetic and the published sample; what must not change them."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines.risk.cases import books, market, permuted, sample
from tests.sampling import examples

from finskillbench.engines.risk.exposures import (
    CONVENTIONS,
    LIST_LENGTH,
    MATERIAL,
    ExposureType,
    candidates,
    days_to_liquidate,
    hhi,
    illiquid_share,
    illiquid_shares,
    ranked,
    top,
    weights_by_sector,
)
from finskillbench.engines.risk.portfolio import MarketSnapshot, Portfolio
from finskillbench.engines.statistics.risk_model import RiskModel
from finskillbench.errors import InputError


def _universe() -> MarketSnapshot:
    """Four names in two sectors at 20 % each, unrelated; A and B carry factors, D hardly trades."""
    return MarketSnapshot(
        tickers=("A", "B", "C", "D"),
        sectors=("Energy", "Energy", "Utilities", "Utilities"),
        betas=np.array([[1.5, 1.0, 0, 0, 0, 0], [1.5, 0.0, -1, 0, 0, 0], [0.5, 0, 0, 0, 0, 0], [0.5, 0, 0, 0, 0, 0.0]]),
        benchmark=np.full(4, 0.25),
        risk=RiskModel.from_factors(np.zeros((1, 4)), np.full(4, 0.04)),
        dollar_volume=np.array([1e7, 1e7, 1e7, 1e5]),
        factor_volatility=np.array([0.2, 0.1, 0.1, 0.1, 0.1, 0.1]),
    )


def _summary(book: Portfolio, universe: MarketSnapshot, k: int = LIST_LENGTH) -> list[tuple[str, str, float]]:
    return [(one.type.value, one.subject, round(one.magnitude, 12)) for one in ranked(book, universe, k)]


BOOK = Portfolio(np.array([0.45, 0.25, 0.1, 0.15]), 0.05, 1e6)
"""Active: +20 %, 0, -15 % and -10 %. Of D 5 % cannot be sold: 15 % of a million against 5 x 0.2 x 1e5."""


def test_the_list_computed_by_hand() -> None:
    assert _summary(BOOK, _universe(), k=9) == [
        ("sector_concentration", "Energy", 0.04),
        ("single_name", "A", 0.04),
        ("factor_tilt", "mkt_rf", 0.035),
        ("factor_tilt", "smb", 0.02),
    ]
    found = {(one.type.value, one.subject): one for one in candidates(BOOK, _universe())}
    assert found["factor_tilt", "mkt_rf"].evidence == pytest.approx(1.5 * 0.7 + 0.5 * 0.25)
    assert found["concentration", "portfolio"].magnitude == pytest.approx(0.2 * math.sqrt(0.04 + 0.0225 + 0.01))
    assert found["concentration", "portfolio"].evidence == pytest.approx(0.2975)
    assert found["liquidity_risk", "portfolio"].magnitude == pytest.approx(0.05 * 0.2)
    assert found["liquidity_risk", "portfolio"].evidence == pytest.approx(0.05)
    np.testing.assert_allclose(days_to_liquidate(BOOK, _universe()), [0.225, 0.125, 0.05, 7.5], atol=1e-15)


@pytest.mark.parametrize(("names", "listed"), [(16, True), (20, False)])
def test_names_of_equal_weight_are_concentrated_only_where_they_are_few(names: int, listed: bool) -> None:
    size = 100
    universe = MarketSnapshot(
        tickers=tuple(f"N{at:03d}" for at in range(size)),
        sectors=("Energy",) * size,
        betas=np.zeros((size, 6)),
        benchmark=np.full(size, 1 / size),
        risk=RiskModel.from_factors(np.zeros((1, size)), np.full(size, 0.16)),
        dollar_volume=np.full(size, 1e9),
        factor_volatility=np.full(6, 0.1),
    )
    book = Portfolio(np.where(np.arange(size) < names, 1 / names, 0.0), 0.0, 1e6)
    (one,) = [one for one in candidates(book, universe) if one.type is ExposureType.CONCENTRATION]
    assert one.magnitude >= MATERIAL[one.type]
    assert one.material is listed


def test_the_benchmark_itself_has_no_exposure() -> None:
    index = Portfolio(np.full(4, 0.25), 0.0, 1e5)
    assert ranked(index, _universe()) == ()
    assert max(one.magnitude for one in candidates(index, _universe())) == pytest.approx(0.0)
    large = candidates(replace(index, nav=1e6), _universe())  # of D 25 % of a million against 1e5
    assert max(one.magnitude for one in large) == pytest.approx(0.15 * 0.2)


def test_a_sector_below_its_benchmark_weight_is_no_concentration() -> None:
    sectors = [one.subject for one in candidates(BOOK, _universe()) if one.type is ExposureType.SECTOR_CONCENTRATION]
    assert sectors == ["Energy"]


def test_candidates_are_everything_whatever_its_size() -> None:
    kinds = [one.type for one in candidates(BOOK, _universe())]
    assert {kind: kinds.count(kind) for kind in ExposureType} == {
        ExposureType.FACTOR_TILT: 6,
        ExposureType.SECTOR_CONCENTRATION: 1,
        ExposureType.SINGLE_NAME: 4,
        ExposureType.CONCENTRATION: 1,
        ExposureType.LIQUIDITY_RISK: 1,
    }


def test_the_published_concentrated_portfolio() -> None:
    """The Herfindahl index and the five largest names as published."""
    episode = sample("task_rm_ri_portfolio_concentrated_2023_24_rebound_000")
    weights = np.array([row["weight"] for row in episode["input"]["portfolio"]["holdings"]])
    published = {row["type"]: row for row in episode["expected_output"]["top_risk_exposures"]}
    assert hhi(weights) == pytest.approx(published["concentration"]["magnitude"], abs=5e-5)
    assert published["concentration"]["detail"] == f"HHI={hhi(weights):.4f}, top-5={top(weights, 5):.1%}"


@settings(max_examples=examples(100))
@given(book=books(), order=st.permutations(range(12)), scale=st.floats(0.01, 100))
def test_neither_the_order_of_names_nor_nav_matters(book: Portfolio, order: list[int], scale: float) -> None:
    universe, moved = market(), permuted(market(), np.array(order))
    first, second = ranked(book, universe, 9), ranked(replace(book, weights=book.weights[order]), moved, 9)
    assert [(one.type, one.subject) for one in first] == [(one.type, one.subject) for one in second]
    assert [one.magnitude for one in first] == pytest.approx([one.magnitude for one in second], abs=1e-12)
    scaled = replace(book, nav=book.nav * scale)
    rest = [[row for row in _summary(one, universe, 99) if row[0] != "liquidity_risk"] for one in (book, scaled)]
    assert [row[:2] for row in rest[0]] == [row[:2] for row in rest[1]]
    # Liquidity does depend on NAV, and only on NAV over volume.
    assert universe.dollar_volume is not None
    deeper = replace(universe, dollar_volume=universe.dollar_volume * scale)
    assert illiquid_share(scaled, deeper) == pytest.approx(illiquid_share(book, universe), abs=1e-12)


@settings(max_examples=examples(50))
@given(book=books())
def test_identities(book: Portfolio) -> None:
    universe = market()
    assert sum(weights_by_sector(book.weights, universe).values()) == pytest.approx(1 - book.cash, abs=1e-12)
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


@pytest.mark.parametrize("field", ["dollar_volume", "risk", "benchmark", "factor_volatility"])
def test_nothing_is_assumed_that_is_not_given(field: str) -> None:
    changes: dict[str, Any] = {field: None}
    with pytest.raises(InputError, match="is missing"):
        candidates(BOOK, replace(_universe(), **changes))


def test_conventions_name_every_type_and_factor_subject() -> None:
    assert {kind.value for kind in ExposureType} <= set(CONVENTIONS)
    assert all(f"{kind} {least:g}" in CONVENTIONS["listed"] for kind, least in MATERIAL.items())
    assert "5 x 0.2 x average_daily_volume_usd" in CONVENTIONS["liquidity_risk"]
