"""The second derivation against hand arithmetic, the definitions of the two scores, and Apple's filings."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from finskillbench.domains.fundamental.second.answers import Figures, SegmentChange, decomposed, normalised, quality
from finskillbench.domains.fundamental.second.concepts import Concept
from finskillbench.domains.fundamental.second.definitions import (
    QUARTER_APART,
    YEAR_APART,
    a_year_apart,
    kind_of,
    nearest_first,
    period_of,
)
from finskillbench.domains.fundamental.second.raw import RawFacts
from finskillbench.domains.fundamental.second.visible import VisibleFacts, segment_changes
from finskillbench.sources.edgar.companyfacts import parse_companyfacts

Json = dict[str, Any]
END = date(2024, 3, 30)


def filed(tag: str, start: str | None, end: str, value: float, filed: str, accession: str, form: str = "10-Q") -> Json:
    """One row of company facts."""
    return {
        "taxonomy": "us-gaap",
        "tag": tag,
        "unit": "USD",
        "start": None if start is None else date.fromisoformat(start),
        "end": date.fromisoformat(end),
        "value": value,
        "filed": date.fromisoformat(filed),
        "accession": accession,
        "form": form,
    }


FLOW = Concept(("us-gaap:New", "us-gaap:Old"), frozenset({"us-gaap:Old"}))


def quarter(rows: list[Json], day: date, end: date = END, metric: Concept = FLOW) -> float | None:
    """The quarter's figure of the one metric of some rows, as public on a day."""
    return RawFacts(rows, {"m": metric}).on(day).figures(end, "quarterly")["m"]


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


# --- what filings state ------------------------------------------------------------------------------------------


def test_a_quarter_is_what_the_year_to_date_leaves_as_far_as_it_is_filed() -> None:
    rows = [
        filed("New", "2023-10-01", "2023-12-30", 39_895.0, "2024-02-01", "1"),
        filed("New", "2023-10-01", "2024-03-30", 62_585.0, "2024-05-03", "2"),
        filed("New", "2023-10-01", "2024-03-30", 62_600.0, "2024-08-01", "3", "10-Q/A"),
        filed("New", "2023-10-01", "2024-03-30", 9.0, "2024-05-04", "4", "DEF 14A"),
    ]
    assert quarter(rows, date(2024, 5, 2)) is None
    assert quarter(rows, date(2024, 5, 3)) == 22_690.0
    # One restated parent of two: the difference stands until the other is restated too.
    assert quarter(rows, date(2024, 8, 1)) == 22_690.0
    public = RawFacts(rows, {"m": FLOW}).on(date(2024, 8, 1))
    assert public.preceding(END, QUARTER_APART) == date(2023, 12, 30)
    assert public.preceding(END, YEAR_APART) is None
    rows.append(filed("New", "2023-10-01", "2023-12-30", 39_900.0, "2025-01-31", "5"))
    assert quarter(rows, date(2025, 1, 31)) == 22_700.0


def test_a_reported_quarter_beats_the_difference_and_averages_have_none() -> None:
    rows = [
        filed("New", "2023-01-01", "2023-09-30", 60.0, "2023-11-01", "1"),
        filed("New", "2023-01-01", "2023-12-31", 100.0, "2024-02-01", "2", "10-K"),
    ]
    end, day = date(2023, 12, 31), date(2024, 2, 1)
    assert quarter(rows, day, end) == 40.0
    assert quarter(rows, day, end, replace(FLOW, summed=False)) is None
    rows.append(filed("New", "2023-10-01", "2023-12-31", 41.0, "2024-02-01", "2", "10-K"))
    assert quarter(rows, day, end) == 41.0


def test_a_weak_tag_fills_a_gap_and_restates_nothing() -> None:
    rows = [
        filed("New", "2023-10-01", "2023-12-30", 5.0, "2024-02-01", "1"),
        filed("Old", "2023-10-01", "2023-12-30", 7.0, "2025-02-01", "2"),
    ]
    assert quarter(rows, date(2026, 1, 1), date(2023, 12, 30)) == 5.0
    assert quarter(rows[1:], date(2026, 1, 1), date(2023, 12, 30)) == 7.0


def test_what_a_filing_does_not_state_is_computed_from_its_parts() -> None:
    terms = {"assets": 1, "equity": -1, "minority": -1}
    metrics = {
        "assets": Concept(("us-gaap:Assets",), instant=True),
        "equity": Concept(("us-gaap:Equity",), instant=True),
        "minority": Concept(("us-gaap:Minority",), instant=True),
        "liabilities": Concept(("us-gaap:Liabilities",), instant=True, terms=terms, optional=frozenset({"minority"})),
    }
    rows = [
        filed("Assets", None, "2024-03-30", 100.0, "2024-05-01", "1"),
        filed("Equity", None, "2024-03-30", 60.0, "2024-05-01", "1"),
        filed("Minority", None, "2024-03-30", 5.0, "2024-06-01", "2"),
    ]
    assert RawFacts(rows, metrics).on(date(2024, 7, 1)).figures(END, "quarterly")["liabilities"] == 40.0
    stated = RawFacts([*rows, filed("Liabilities", None, "2024-03-30", 33.0, "2024-07-01", "3")], metrics)
    assert stated.on(date(2024, 6, 30)).figures(END, "quarterly")["liabilities"] == 40.0
    assert stated.on(date(2024, 7, 1)).figures(END, "quarterly")["liabilities"] == 33.0


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
    assert loss["flags"] == [
        "low_piotroski",
        "beneish_manipulation_flag",
        "high_accruals",
        "negative_income_quality",
    ]


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
    facts = RawFacts(served.facts.iter_rows(named=True))
    found = normalised(facts.on(date(2024, 5, 3)).figures(END, "quarterly"))
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
    now, before, prior_end = a_year_apart(facts.on(date(2024, 5, 3)), END)
    assert prior_end == date(2023, 4, 1)
    answer = quality(now, before).answer
    assert answer["accruals_ratio"] == pytest.approx((23_636 - 22_690) / 337_411)
    assert answer["income_quality_ratio"] == pytest.approx(22_690 / 23_636)
    assert answer["beneish_m_score"] == pytest.approx(-2.31635, abs=1e-5)
    assert answer["piotroski_score"] == 6
    assert facts.on(date(2024, 5, 2)).figures(END, "quarterly")["revenue"] is None
