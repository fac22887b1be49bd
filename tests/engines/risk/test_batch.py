"""Portfolios of different markets side by side: the same as each alone."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines.risk.cases import books, mandate_json, market, scenario_json
from tests.sampling import examples

from finskillbench.arrays import FACTORS
from finskillbench.engines.risk.batch import Batch
from finskillbench.engines.risk.mandate import mandate_from
from finskillbench.engines.risk.monitor import check_constraints, measure_pairs
from finskillbench.engines.risk.portfolio import MarketSnapshot, Portfolio
from finskillbench.engines.risk.stress import BY_FACTOR, apply, apply_pairs, scenario_from
from finskillbench.engines.statistics.risk_model import RiskModel
from finskillbench.errors import InputError

# Twelve names of eleven sectors by factors, five names of five sectors by a dense covariance.
_WIDE, _SMALL = market(12, 0), market(5, 1)
assert _SMALL.risk is not None
_NARROW = replace(_SMALL, risk=RiskModel.from_matrix(_SMALL.risk.matrix))
_EVERY = mandate_from(mandate_json())
_FEW = mandate_from(
    {
        "mandate_id": "M2",
        "name": "Few kinds in another order",
        "constraints": [
            {"type": "name_count", "min": None, "max": 4},
            {"type": "sector_limit_max", "value": 0.1},
            {"type": "factor_exposure_max", "factors": ["mkt_rf", "mom"], "value": 0.1},
        ],
    }
)
_CASES = st.lists(
    st.one_of(st.tuples(books(12), st.just(_WIDE)), st.tuples(books(5), st.just(_NARROW))), min_size=1, max_size=8
)


@settings(max_examples=examples(100))
@given(cases=_CASES, data=st.data())
def test_monitoring_pairs_are_the_same_as_one_by_one(
    cases: list[tuple[Portfolio, MarketSnapshot]], data: st.DataObject
) -> None:
    pairs = data.draw(
        st.lists(st.tuples(st.integers(0, len(cases) - 1), st.sampled_from([_EVERY, _FEW])), min_size=1, max_size=12)
    )
    batch = Batch.of([book for book, _ in cases], [own for _, own in cases])
    values, excess = measure_pairs(batch, np.array([row for row, _ in pairs]), [mandate for _, mandate in pairs])
    for (row, mandate), value, over in zip(pairs, values, excess, strict=True):
        book, own = cases[row]
        single = check_constraints(book, mandate, own)
        np.testing.assert_allclose(value[mandate.columns], [one.value for one in single], atol=1e-12)
        np.testing.assert_allclose(over[mandate.columns], [one.excess for one in single], atol=1e-12)
        assert np.isnan(np.delete(over, mandate.columns)).all()


@settings(max_examples=examples(100))
@given(cases=_CASES)
def test_stress_pairs_are_the_same_as_one_by_one(cases: list[tuple[Portfolio, MarketSnapshot]]) -> None:
    mild = dict.fromkeys(FACTORS, -0.01)
    scenarios = [scenario_from(scenario_json()), scenario_from(scenario_json(factor_shocks=mild))]
    batch = Batch.of([book for book, _ in cases], [own for _, own in cases])
    rows = np.repeat(np.arange(len(cases)), 2)
    columns = np.tile([1, 0], len(cases))
    made, factors, sectors = (of_pairs.tolist() for of_pairs in apply_pairs(batch, rows, scenarios, columns))
    order: list[int] = rows.tolist()
    chosen: list[int] = columns.tolist()
    for row, column, pnl, by_factor, by_sector in zip(order, chosen, made, factors, sectors, strict=True):
        book, own = cases[row]
        single = apply(book, scenarios[column], own)
        assert pnl == pytest.approx(single.pnl, abs=1e-12)
        assert dict(zip(BY_FACTOR, by_factor, strict=True)) == pytest.approx(dict(single.by_factor), abs=1e-12)
        named = dict(zip(batch.sector_names, by_sector, strict=True))
        assert named == pytest.approx(dict.fromkeys(named, 0.0) | dict(single.by_sector), abs=1e-12)


def test_a_sector_that_a_market_lacks_is_not_its_heaviest() -> None:
    short = Portfolio(np.full(5, -0.1), 1.5, 1e6)
    batch = Batch.of([Portfolio(np.full(12, 0.05), 0.4, 1e6), short], [_WIDE, _NARROW])
    assert batch.heaviest_sector.tolist() == pytest.approx([0.1, -0.1])


def test_only_a_sector_held_in_the_pair_needs_a_sensitivity() -> None:
    lacking = scenario_json()
    del lacking["sector_sensitivities"]["Communication Services"]
    scenarios = [scenario_from(scenario_json()), scenario_from(lacking)]
    batch = Batch.of([Portfolio(np.full(12, 0.05), 0.4, 1e6), Portfolio(np.full(5, 0.1), 0.5, 1e6)], [_WIDE, _NARROW])
    apply_pairs(batch, np.array([0, 1]), scenarios, np.array([0, 1]))
    with pytest.raises(InputError, match="S1: sector_sensitivities lacks Communication Services, which is held"):
        apply_pairs(batch, np.array([0, 1]), scenarios, np.array([1, 1]))
