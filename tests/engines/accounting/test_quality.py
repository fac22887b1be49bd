"""Piotroski, Beneish and accruals against worked figures, and what an unknown part does to them."""

from fractions import Fraction as Exact

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engines.accounting.cases import CURRENT, PRIOR, prior, statement

from finskillbench.engines.accounting.quality import (
    BENEISH_COEFFICIENTS,
    COMPONENTS,
    FLAGS,
    accruals_ratio,
    beneish,
    flags,
    income_quality,
    m_score,
    piotroski,
    quality_answer,
)
from finskillbench.engines.accounting.statements import Statement

METRICS = sorted(CURRENT)
PARTS = {
    "roa_positive": ({"net_income", "total_assets"}, set()),
    "cfo_positive": ({"operating_cash_flow"}, set()),
    "delta_roa_positive": ({"net_income", "total_assets"},) * 2,
    "accruals_negative": ({"operating_cash_flow", "net_income"}, set()),
    "delta_leverage_negative": ({"long_term_debt", "total_assets"},) * 2,
    "delta_current_ratio_positive": ({"current_assets", "current_liabilities"},) * 2,
    "no_dilution": ({"diluted_shares"},) * 2,
    "delta_gross_margin_positive": ({"gross_profit", "revenue"},) * 2,
    "delta_asset_turnover_positive": ({"revenue", "total_assets"},) * 2,
    "DSRI": ({"receivables", "revenue"},) * 2,
    "GMI": ({"gross_profit", "revenue"},) * 2,
    "AQI": ({"current_assets", "ppe_net", "total_assets"},) * 2,
    "SGI": ({"revenue"},) * 2,
    "DEPI": ({"depreciation_amortization", "ppe_net"},) * 2,
    "SGAI": ({"sga", "revenue"},) * 2,
    "TATA": ({"net_income", "operating_cash_flow", "total_assets"}, set()),
    "LVGI": ({"long_term_debt", "current_liabilities", "total_assets"},) * 2,
}
"""Which figures of the quarter, and of the one a year before, each signal and ratio needs: by the definitions."""

# Beneish (1999), Table 2: mean ratios of manipulators and of other companies; the scores worked by hand from the
# published coefficients, term by term:
# -4.84 + 1.3478 + .629904 + .506616 + 1.433444 + .123855 - .179052 + .145049 - .363297 = -1.195681
# -4.84 + .94852 + .535392 + .419756 + 1.011528 + .115115 - .181288 + .084222 - .339099 = -2.245854
MANIPULATORS = dict(zip(BENEISH_COEFFICIENTS, (1.465, 1.193, 1.254, 1.607, 1.077, 1.041, 0.031, 1.111), strict=True))
OTHERS = dict(zip(BENEISH_COEFFICIENTS, (1.031, 1.014, 1.039, 1.134, 1.001, 1.054, 0.018, 1.037), strict=True))


def test_the_mean_companies_of_beneish_score_as_worked_by_hand() -> None:
    assert list(BENEISH_COEFFICIENTS) == ["DSRI", "GMI", "AQI", "SGI", "DEPI", "SGAI", "TATA", "LVGI"]
    assert m_score(MANIPULATORS) == pytest.approx(-1.195681, abs=1e-12)
    assert m_score(OTHERS) == pytest.approx(-2.245854, abs=1e-12)


def test_ratios_and_score_of_two_statements() -> None:
    found = beneish(statement(), prior())
    expected = {
        "DSRI": Exact(300, 1000) / Exact(200, 800),
        "GMI": Exact(300, 800) / Exact(400, 1000),
        "AQI": (1 - Exact(1500 + 1700, 4000)) / (1 - Exact(1200 + 1560, 3600)),
        "SGI": Exact(1000, 800),
        "DEPI": Exact(40, 40 + 1560) / Exact(50, 50 + 1700),
        "SGAI": Exact(200, 1000) / Exact(150, 800),
        "TATA": Exact(100 - 120, 4000),
        "LVGI": Exact(800 + 1000, 4000) / Exact(900 + 1000, 3600),
    }
    assert dict(found.ratios) == pytest.approx({name: float(value) for name, value in expected.items()}, rel=1e-14)
    # 1.2, .9375, .857143, 1.25, .875, 1.066667, -.005, .852632, each by its coefficient
    hand = -4.84 + 1.104 + 0.495 + 0.3462857143 + 1.115 + 0.100625 - 0.1834666667 - 0.023395 - 0.2788105263
    assert found.m_score == pytest.approx(hand, abs=1e-9)
    assert found.flag is False


def test_the_threshold_itself_is_not_flagged() -> None:
    current, before = statement(receivables=650.0), prior()
    ratios = dict(beneish(current, before).ratios)
    assert ratios["DSRI"] == pytest.approx(2.6)
    assert beneish(current, before).flag is True
    assert flags(4, False, 0.05, 0.0) == []
    assert flags(3, True, 0.0500001, -1e-9) == list(FLAGS)


def test_nine_good_signals() -> None:
    found = piotroski(statement(), prior())
    assert tuple(found.components) == COMPONENTS
    assert (dict(found.components), found.score) == (dict.fromkeys(COMPONENTS, 1), 9)


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ({"net_income": -10.0}, {"roa_positive", "delta_roa_positive"}),
        ({"net_income": 65.0}, {"delta_roa_positive"}),
        ({"operating_cash_flow": 0.0}, {"cfo_positive", "accruals_negative"}),
        ({"operating_cash_flow": 100.0}, {"accruals_negative"}),
        ({"long_term_debt": 1000.0}, {"delta_leverage_negative"}),  # 1000 / 4000 = 900 / 3600
        ({"current_assets": 1200.0}, {"delta_current_ratio_positive"}),
        ({"diluted_shares": 82.0}, set()),
        ({"diluted_shares": 82.000001}, {"no_dilution"}),
        ({"gross_profit": 375.0}, {"delta_gross_margin_positive"}),
        ({"revenue": 888.0}, {"delta_asset_turnover_positive"}),
    ],
)
def test_a_signal_is_lost_by_what_it_measures(changes: dict[str, float], lost: set[str]) -> None:
    found = piotroski(statement(**changes), prior())
    assert {name for name, signal in found.components.items() if signal == 0} == lost
    assert found.score == 9 - len(lost)


@given(st.sets(st.sampled_from(METRICS)), st.sets(st.sampled_from(METRICS)))
def test_an_unknown_figure_makes_unknown_what_needs_it_and_nothing_else(now: set[str], before: set[str]) -> None:
    current, earlier = statement(**dict.fromkeys(now)), prior(**dict.fromkeys(before))
    signals, manipulation = piotroski(current, earlier), beneish(current, earlier)
    for name, value in {**signals.components, **manipulation.ratios}.items():
        parts_now, parts_before = PARTS[name]
        assert (value is None) is bool(parts_now & now or parts_before & before)
    assert (signals.score is None) is (None in signals.components.values())
    assert (manipulation.m_score is None) is (None in manipulation.ratios.values())
    assert (manipulation.flag is None) is (manipulation.m_score is None)


_AMOUNTS = st.one_of(st.none(), st.just(0.0), st.floats(-1e18, 1e18))
_STATEMENTS = st.fixed_dictionaries(dict.fromkeys(METRICS, _AMOUNTS))


@given(_STATEMENTS, _STATEMENTS)
def test_whatever_is_filed_every_part_is_a_finite_number_or_unknown(
    now: dict[str, float | None], before: dict[str, float | None]
) -> None:
    answer = quality_answer(statement(**now), prior(**before))
    for value in (answer["beneish_m_score"], answer["accruals_ratio"], answer["income_quality_ratio"]):
        assert value is None or abs(value) < float("inf")
    known = [signal for signal in answer["piotroski_components"].values() if signal is not None]
    assert set(known) <= {0, 1}
    assert answer["piotroski_score"] == (sum(known) if len(known) == 9 else None)
    assert set(answer["flags"]) <= set(FLAGS)


@given(st.floats(1e-3, 1e6))
def test_the_currency_unit_does_not_matter(scale: float) -> None:
    def scaled(values: dict[str, float]) -> dict[str, float]:
        return {name: value * scale for name, value in values.items()}

    plain = quality_answer(statement(net_income=70.0), prior())
    other = quality_answer(statement(**scaled({**CURRENT, "net_income": 70.0})), prior(**scaled(dict(PRIOR))))
    assert other["piotroski_components"] == plain["piotroski_components"]
    assert other["beneish_m_score"] == pytest.approx(plain["beneish_m_score"], rel=1e-9)


def test_a_company_against_itself_neither_improves_nor_manipulates() -> None:
    same = statement()
    assert {name: value for name, value in piotroski(same, same).components.items() if "delta" in name} == {
        name: 0 for name in COMPONENTS if "delta" in name
    }
    found = beneish(same, same)
    assert {name: value for name, value in found.ratios.items() if name != "TATA"} == dict.fromkeys(
        (name for name in BENEISH_COEFFICIENTS if name != "TATA"), 1.0
    )
    # -4.84 + (.92 + .528 + .404 + .892 + .115 - .172 - .327) = -2.48, and 4.679 x -0.005
    assert found.m_score == pytest.approx(-2.48 + 4.679 * -0.005, abs=1e-12)


def test_accruals_and_income_quality() -> None:
    assert accruals_ratio(statement()) == -0.005
    assert income_quality(statement()) == 1.2
    assert income_quality(statement(net_income=0.0)) is None
    assert accruals_ratio(statement(total_assets=0.0)) is None


def test_without_a_prior_year_the_levels_remain() -> None:
    answer = quality_answer(statement(), Statement("FIR", None, statement().duration))
    known = {name for name, value in answer["piotroski_components"].items() if value is not None}
    assert known == {"roa_positive", "cfo_positive", "accruals_negative"}
    assert (answer["piotroski_score"], answer["beneish_m_score"], answer["beneish_flag"]) == (None, None, None)
    assert (answer["accruals_ratio"], answer["income_quality_ratio"], answer["flags"]) == (-0.005, 1.2, [])
