"""A task's fields become a market and a book; every wrong one is refused in one line that names it."""

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines.risk.cases import market, task
from tests.sampling import examples

from finskillbench.engines.risk.portfolio import MarketSnapshot, Portfolio, turnover_of
from finskillbench.engines.risk.task import market_from, portfolio_from
from finskillbench.errors import DimensionError, InputError


def test_reads_every_field_in_one_order() -> None:
    data, universe = task(), market()
    found = market_from(data)
    assert found.tickers == universe.tickers
    assert found.sectors == universe.sectors
    np.testing.assert_array_equal(found.betas, universe.betas)
    np.testing.assert_array_equal(found.benchmark, universe.benchmark)  # type: ignore[arg-type]
    np.testing.assert_array_equal(found.dollar_volume, universe.dollar_volume)  # type: ignore[arg-type]
    np.testing.assert_array_equal(found.factor_volatility, universe.factor_volatility)  # type: ignore[arg-type]
    np.testing.assert_allclose(found.risk.matrix, universe.risk.matrix, atol=1e-14)  # type: ignore[union-attr]
    book = portfolio_from(data, found)
    np.testing.assert_array_equal(book.weights, [0.19] * 5 + [0.0] * 7)
    assert (book.cash, book.nav) == (0.05, 2.5e9)
    assert book.traded == pytest.approx((0.04 + 0.02) / 2, abs=1e-15)


def test_absent_fields_stay_none_and_leave_the_order_to_the_next() -> None:
    data = task()
    for field in ("covariance_matrix", "benchmark_weights", "average_daily_volume_usd"):
        del data[field]
    found = market_from(data)
    assert (found.risk, found.benchmark, found.dollar_volume) == (None, None, None)
    assert found.tickers == tuple(data["sector_mapping"])


@pytest.mark.parametrize(
    ("trades", "turnover"),
    [
        ([0.0, 0.0], 0.0),
        ([0.1, -0.1], 0.1),  # a swap
        ([0.1, 0.0], 0.1),  # bought from cash: the cash is the other side
        ([-0.2, -0.1], 0.3),
        ([0.3, -0.1], 0.3),
    ],
)
def test_turnover_is_one_way_with_cash_as_a_position(trades: list[float], turnover: float) -> None:
    assert turnover_of(np.array(trades)) == pytest.approx(turnover, abs=1e-15)


def _set(*path: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        place: Any = data
        for key in path[:-1]:
            place = place[key]
        if to is ...:
            del place[path[-1]]
        else:
            place[path[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set("portfolio", to=None), "portfolio is missing"),
        (_set("portfolio", "holdings", to={}), "holdings must be a list"),
        (_set("portfolio", "holdings", 1, "weight", to=0.25), "sum to 1.06;"),
        (_set("portfolio", "cash_weight", to=0.05001), "sum to 1.00001;"),
        (_set("portfolio", "cash_weight", to=-0.05), "cash_weight is -0.05; a portfolio does not borrow"),
        (_set("portfolio", "cash_weight", to=None), "cash_weight must be a number"),
        (_set("portfolio", "holdings", 1, "weight", to=math.nan), r"holdings\[1\]: weight must be a number"),
        (_set("portfolio", "holdings", 1, "weight", to="0.19"), r"holdings\[1\]: weight must be a number"),
        (_set("portfolio", "holdings", 1, "symbol", to="ZZZ"), r"holdings\[1\] names ZZZ"),
        (_set("portfolio", "holdings", 1, "symbol", to="T00"), r"holdings\[1\] names T00 a second time"),
        (_set("portfolio", "holdings", 1, to="T01"), r"holdings\[1\] must be an object"),
        (_set("portfolio", "total_nav", to=0), "total_nav must be a positive"),
        (_set("portfolio", "total_nav", to=-5.0), "total_nav must be a positive"),
        (_set("portfolio", "total_nav", to=math.inf), "total_nav must be a number"),
        (_set("portfolio", "trades_this_month", to=...), "trades_this_month is missing"),
        (_set("portfolio", "trades_this_month", "ZZZ", to=0.1), "trades_this_month names ZZZ"),
        (_set("portfolio", "trades_this_month", "T00", to=math.nan), "trades_this_month: T00 must be a number"),
        (_set("sector_mapping", to=...), "sector_mapping is missing"),
        (_set("sector_mapping", "T03", to=...), "sector_mapping does not cover T03"),
        (_set("sector_mapping", "T03", to=7), "sector_mapping must map"),
        (_set("factor_exposures", "T03", to=...), "factor_exposures does not cover T03"),
        (_set("factor_exposures", "T03", "mom", to=None), "factor_exposures of T03: mom must be a number"),
        (_set("benchmark_weights", "T03", to=0.9), "benchmark_weights sum to"),
        (_set("benchmark_weights", "ZZZ", to=0.0), "benchmark_weights names ZZZ"),
        (_set("average_daily_volume_usd", "T03", to=-1.0), "average_daily_volume_usd holds a negative"),
        (_set("average_daily_volume_usd", "T03", to=...), "average_daily_volume_usd: T03 must be a number"),
        (_set("covariance_matrix", "matrix", 0, 0, to=math.nan), "covariance"),
        (_set("covariance_matrix", "tickers", 0, to="T01"), "names a ticker twice"),
        (_set("factor_volatility", "hml", to=...), "factor_volatility: hml must be a number"),
        (_set("factor_volatility", "hml", to=-0.1), "factor_volatility holds a negative number"),
    ],
)
def test_refuses_in_one_line(change: Callable[[dict[str, Any]], None], message: str) -> None:
    data = task()
    change(data)
    with pytest.raises(InputError, match=message) as refused:
        portfolio_from(data, market_from(data))
    assert "\n" not in str(refused.value)


_JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        list[Any](),
        dict[str, Any](),
        "x",
        -1,
        math.nan,
        math.inf,
        True,
        10**400,
        [list[Any]()],
        {"T00": None},
        "a\nb",
    ]
)


@settings(max_examples=examples(300))
@given(data=st.data(), junk=_JUNK)
def test_nothing_but_input_errors_escapes(data: st.DataObject, junk: Any) -> None:
    empty: Any = {"holdings": [], "cash_weight": 1.0, "trades_this_month": {}}
    broken: Any = copy.deepcopy(task(n=3) | {"portfolio": {**task()["portfolio"], **empty}})
    place, key = broken, data.draw(st.sampled_from(sorted(broken)))
    while type(place[key]) in (dict, list) and place[key] and data.draw(st.booleans()):
        place = place[key]
        keys: list[Any] = sorted(place) if hasattr(place, "keys") else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
    place[key] = junk
    message = ""
    try:
        assert isinstance(portfolio_from(broken, market_from(broken)), Portfolio)
    except InputError as refused:
        message = str(refused)
    assert "\n" not in message


def test_a_market_has_one_size() -> None:
    with pytest.raises(DimensionError, match="benchmark"):
        MarketSnapshot(("A", "B"), ("Energy", "Energy"), np.zeros((2, 6)), benchmark=np.ones(3) / 3)
    with pytest.raises(DimensionError, match="betas"):
        MarketSnapshot(("A", "B"), ("Energy", "Energy"), np.zeros((2, 3)))
