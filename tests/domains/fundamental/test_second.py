"""The independent derivation against hand arithmetic, the definitions of the two scores, and Apple's filings."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any, cast

import pytest

from finskillbench.domains.fundamental.inputs import FactRow
from finskillbench.domains.fundamental.rederive.answers import Figures, SegmentChange, decomposed, normalised, quality
from finskillbench.domains.fundamental.rederive.definitions import (
    QUARTER_APART,
    YEAR_APART,
    VisibleFacts,
    a_year_apart,
    kind_of,
    nearest_first,
    period_of,
    segment_changes,
)
from finskillbench.panels.filings.facts import build_facts
from finskillbench.panels.filings.query import FactStore
from finskillbench.panels.filings.statements import FundamentalPanels
from finskillbench.sources.edgar.companyfacts import parse_companyfacts

Json = dict[str, Any]
END = date(2024, 3, 30)


# --- periods -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "end", "kind"),
    [
        ("2023-07-02", "2023-09-30", "quarterly"),  # 13 weeks
        ("2023-07-02", "2023-10-07", "quarterly"),  # 14 weeks
        ("2023-05-08", "2023-09-03", "quarterly"),  # 17 weeks, Costco
        ("2023-09-04", "2024-02-18", "half"),  # 24 weeks, Costco
        ("2022-08-29", "2023-05-07", "nine_months"),  # 36 weeks, Costco
        ("2022-09-25", "2023-09-30", "annual"),  # 53 weeks
        ("2022-09-25", "2023-09-23", "annual"),  # 52 weeks
        ("2022-01-01", "2022-05-15", "other"),  # a transition period of 135 days
        (None, "2022-01-01", "instant"),
    ],
)
def test_kinds_of_period(start: str | None, end: str, kind: str) -> None:
    assert kind_of(None if start is None else date.fromisoformat(start), date.fromisoformat(end)) == kind


def test_the_nearest_day_counts_and_of_two_the_later() -> None:
    days = [date(2023, 3, 30), date(2023, 4, 1), date(2023, 3, 1), date(2023, 12, 30)]
    assert nearest_first(END, days, YEAR_APART) == [date(2023, 4, 1), date(2023, 3, 30)]
    assert nearest_first(END, days, QUARTER_APART) == [date(2023, 12, 30)]
    with pytest.raises(ValueError, match="8-K"):
        period_of("8-K")


# --- what an episode sees ----------------------------------------------------------------------------------------


def row(metric: str, start: str | None, end: str, value: float, **changes: Any) -> Any:
    """A row as `filing_facts` holds it."""
    given = {"metric": metric, "start": start, "end": end, "value": value, "derived": False, "tag": ""}
    return given | {"filed": "2024-05-03", "accession": "1"} | changes


def test_of_several_rows_of_a_period_the_reported_then_the_last_filed_counts() -> None:
    rows = [
        row("revenue", "2024-01-01", "2024-03-30", 3.0, filed="2025-01-01", derived=True),
        row("revenue", "2024-01-01", "2024-03-30", 1.0),
        row("revenue", "2023-12-31", "2024-03-30", 2.0, filed="2024-06-01"),
        row("revenue", "2023-10-01", "2024-03-30", 9.0),
        row("total_assets", None, "2024-03-30", 7.0),
    ]
    for order in (rows, rows[::-1]):
        assert VisibleFacts(order).figures(END, "quarterly") == {"revenue": 2.0, "total_assets": 7.0}


@pytest.mark.parametrize(("days", "expected"), [((80.0, 81.0), (80.0, 81.0)), ((80.0, None), (320.0, 330.0))])
def test_diluted_shares_are_of_one_length_of_period(
    days: tuple[float | None, ...], expected: tuple[float, ...]
) -> None:
    rows = [
        row("revenue", start, end, 1.0) for start, end in (("2023-12-31", "2024-03-30"), ("2023-01-01", "2023-04-01"))
    ]
    for end, start, year, of_quarter, of_year in (
        ("2024-03-30", "2023-12-31", "2023-04-02", days[0], 320.0),
        ("2023-04-01", "2023-01-01", "2022-04-03", days[1], 330.0),
    ):
        rows += [] if of_quarter is None else [row("diluted_shares", start, end, of_quarter)]
        rows.append(row("diluted_shares", year, end, of_year))
    now, before, prior_end = a_year_apart(VisibleFacts(rows), END)
    assert prior_end == date(2023, 4, 1)
    assert (now["diluted_shares"], before["diluted_shares"]) == expected


def test_the_first_axis_that_adds_up_in_both_quarters_explains_the_change() -> None:
    periods = {"2024-03-30": "2023-12-31", "2023-12-30": "2023-10-01"}
    facts = VisibleFacts(
        [row("revenue", start, end, value) for (end, start), value in zip(periods.items(), (100.0, 80.0), strict=True)]
    )

    def parts(axis: str, **values: tuple[float, float]) -> list[Any]:
        return [
            row("", start, end, value, axis=axis, segment=name)
            for name, both in values.items()
            for (end, start), value in zip(periods.items(), both, strict=True)
        ]

    regions = parts("geographic_segment", Asia=(40.0, 40.0), Europe=(60.0, 40.0))
    ends = END, date(2023, 12, 30)
    expected = [SegmentChange("Europe", "geographic_segment", 20.0)]
    assert segment_changes(regions, facts, *ends) == expected
    assert segment_changes([*parts("product_segment", Phones=(98.0, 80.0)), *regions], facts, *ends) == expected
    assert segment_changes(parts("product_segment", Phones=(99.5, 80.0)), facts, *ends) == [
        SegmentChange("Phones", "product_segment", 19.5)
    ]
    assert segment_changes([], facts, *ends) == []


# --- the arithmetic ----------------------------------------------------------------------------------------------

WHOLE: Figures = dict.fromkeys(
    (
        *("revenue", "gross_profit", "operating_income", "net_income", "operating_cash_flow", "diluted_shares", "sga"),
        *("depreciation_amortization", "total_assets", "current_assets", "current_liabilities", "receivables"),
        *("ppe_net", "long_term_debt"),
    ),
    1.0,
)


def test_scores_at_their_ends() -> None:
    better = {"net_income": 2.0, "operating_cash_flow": 3.0, "long_term_debt": 0.5, "current_assets": 2.0}
    better |= {"gross_profit": 2.0 * 1.5, "revenue": 2.0}
    worse = {"net_income": -1.0, "operating_cash_flow": -2.0, "long_term_debt": 2.0, "current_assets": 0.5}
    worse |= {"gross_profit": 0.2, "revenue": 0.5, "diluted_shares": 2.0}
    for changes, signal in ((better, 1), (worse, 0)):
        answer = quality({**WHOLE, **changes}, WHOLE).answer
        assert list(answer["piotroski_components"].values()) == [signal] * 9
        assert answer["piotroski_score"] == 9 * signal
    assert quality({**WHOLE, "current_assets": None}, WHOLE).answer["piotroski_score"] is None


def test_beneish_of_an_unchanged_company() -> None:
    """All indices one and no accruals: the intercept and the sum of seven coefficients."""
    alike = {**WHOLE, "total_assets": 4.0}
    expected = -4.84 + 0.92 + 0.528 + 0.404 + 0.892 + 0.115 - 0.172 - 0.327
    assert quality(alike, alike).answer["beneish_m_score"] == pytest.approx(expected, rel=1e-12)
    assert quality({**alike, "receivables": None}, alike).answer["beneish_m_score"] is None
    assert quality(alike, {**alike, "sga": 0.0}).answer["beneish_flag"] is None


def test_a_verdict_at_its_threshold_is_doubtful_only_beside_it() -> None:
    assert not quality(WHOLE, WHOLE).doubtful
    assert quality({**WHOLE, "diluted_shares": 1.0 + 1e-12}, WHOLE).doubtful


def test_flags_are_raised_beyond_their_thresholds() -> None:
    loss = quality({**WHOLE, "net_income": 2.0, "operating_cash_flow": -1.0}, WHOLE).answer
    assert (loss["accruals_ratio"], loss["income_quality_ratio"]) == (3.0, -0.5)
    assert loss["piotroski_score"] == 3
    assert loss["flags"] == ["low_piotroski", "beneish_manipulation_flag", "high_accruals", "negative_income_quality"]


def test_drivers_by_hand() -> None:
    now = {"revenue": 200.0, "operating_income": 50.0, "sga": 20.0, "rnd": 10.0}
    before = {"revenue": 100.0, "operating_income": 30.0, "sga": 10.0}
    answer = decomposed(now, before, [SegmentChange("A", "product_segment", -25.0)])
    assert answer["revenue_delta"] == 100.0
    assert answer["top_revenue_drivers"] == [
        {
            "driver": "A",
            "type": "product_segment",
            "direction": "decrease",
            "magnitude_usd": -25.0,
            "contribution_pct": -25.0,
        }
    ]
    (margin,) = answer["margin_drivers"]  # the share of sga stands still, rnd has no figure before
    assert margin == {
        "driver": "operating_margin",
        "type": "margin",
        "direction": "decrease",
        "delta_pp": pytest.approx(-5.0),
    }


# --- Apple -------------------------------------------------------------------------------------------------------


def test_apple_quarter_to_march_2024(realdata: Path) -> None:
    """The episode that the published release labels with six months of cash flow and depreciation."""
    served = parse_companyfacts(realdata / "companyfacts/full_2026-07/CIK0000320193.json.gz")
    nothing = FundamentalPanels.empty().tables
    store = FactStore(build_facts({"AAPL": served}).frame, nothing["filings"], nothing["segments"])
    facts, before_it = (
        VisibleFacts(cast("list[FactRow]", store.visible("AAPL", date(2024, 5, day))["facts"])) for day in (3, 2)
    )
    found = normalised(facts.figures(END, "quarterly"))
    assert found == {
        "revenue": 90_753e6,
        "operating_income": 27_900e6,
        "net_income": 23_636e6,
        "eps_diluted": 1.53,
        "total_assets": 337_411e6,
        "total_liabilities": 263_217e6,
        "stockholders_equity": 74_194e6,
        "operating_cash_flow": 62_585e6 - 39_895e6,
        "operating_margin": pytest.approx(27_900 / 90_753),
        "ebitda": 27_900e6 + 5_684e6 - 2_848e6,
    }
    now, before, prior_end = a_year_apart(facts, END)
    assert prior_end == date(2023, 4, 1)
    answer = quality(now, before).answer
    assert answer["accruals_ratio"] == pytest.approx((23_636 - 22_690) / 337_411)
    assert answer["income_quality_ratio"] == pytest.approx(22_690 / 23_636)
    assert answer["beneish_m_score"] == pytest.approx(-2.31635, abs=1e-5)
    assert answer["piotroski_score"] == 6
    assert "revenue" not in before_it.figures(END, "quarterly")
