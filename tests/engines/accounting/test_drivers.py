"""Which axis explains a change, in what order drivers come, and which ratios moved."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.engines.accounting.cases import BEFORE, CURRENT, PRIOR, QUARTER, SYMBOL, prior, segment, statement

from finskillbench.engines.accounting.drivers import (
    LEAST_DELTA_PP,
    TOP_SEGMENTS,
    Segments,
    drivers,
    explaining_axis,
    segments_at,
)
from finskillbench.errors import InputError

PRODUCTS: tuple[Segments, Segments] = (
    {"product_segment": {"Phones": 500.0, "Services": 300.0, "Wearables": 150.0, "Tablets": 50.0}},
    {"product_segment": {"Phones": 380.0, "Services": 180.0, "Wearables": 180.0, "Tablets": 60.0}},
)
REGIONS: tuple[Segments, Segments] = (
    {"geographic_segment": {"Americas": 600.0, "Asia": 400.0}},
    {"geographic_segment": {"Americas": 500.0, "Asia": 300.0}},
)


def both(*breakdowns: Segments) -> Segments:
    """One quarter's breakdowns by several axes."""
    return {axis: parts for one in breakdowns for axis, parts in one.items()}


def revenue_drivers(now: Segments, before: Segments, **changes: float) -> list[dict[str, Any]]:
    """The revenue drivers of the two quarters of `cases`."""
    return drivers(statement(**changes), prior(), now, before)["top_revenue_drivers"]


def test_drivers_come_by_size_and_their_contributions_add_up() -> None:
    answer = drivers(statement(), prior(), *PRODUCTS)
    assert answer["revenue_delta"] == 200.0
    assert answer["top_revenue_drivers"] == [
        {
            "driver": name,
            "type": "product_segment",
            "direction": direction,
            "magnitude_usd": size,
            "contribution_pct": contribution,
        }
        for name, direction, size, contribution in (
            ("Phones", "increase", 120.0, 60.0),  # equal to Services: by name
            ("Services", "increase", 120.0, 60.0),
            ("Wearables", "decrease", -30.0, -15.0),
            ("Tablets", "decrease", -10.0, -5.0),
        )
    ]
    assert sum(item["contribution_pct"] for item in answer["top_revenue_drivers"]) == pytest.approx(100.0)


def test_products_go_before_regions() -> None:
    now, before = both(PRODUCTS[0], REGIONS[0]), both(PRODUCTS[1], REGIONS[1])
    assert explaining_axis(statement(), prior(), now, before) == "product_segment"
    assert explaining_axis(statement(), prior(), now, REGIONS[1]) == "geographic_segment"
    assert explaining_axis(statement(), prior(), *REGIONS) == "geographic_segment"
    assert explaining_axis(statement(), prior(), {}, {}) is None


def test_an_axis_that_does_not_add_up_in_both_quarters_explains_nothing() -> None:
    for short in (both(PRODUCTS[0], {"product_segment": {**PRODUCTS[0]["product_segment"], "Tablets": 39.0}}),):
        assert revenue_drivers(short, PRODUCTS[1]) == []
        assert revenue_drivers(both(short, REGIONS[0]), both(PRODUCTS[1], REGIONS[1]))[0]["driver"] == "Americas"
    within = {"product_segment": {**PRODUCTS[0]["product_segment"], "Tablets": 40.0}}  # 990 of 1,000
    assert len(revenue_drivers(within, PRODUCTS[1])) == 4
    assert drivers(statement(revenue=None), prior(), *PRODUCTS)["top_revenue_drivers"] == []


def test_a_renamed_segment_is_no_change_of_business() -> None:
    parts = dict(PRODUCTS[0]["product_segment"])
    renamed = {"product_segment": {"Handsets": parts.pop("Phones"), **parts}}
    assert revenue_drivers(renamed, PRODUCTS[1]) == []


def test_what_did_not_move_drives_nothing_and_five_are_enough() -> None:
    now = {"geographic_segment": {f"Region {n}": 100.0 + n for n in range(10)} | {"Rest": -45.0}}
    before = {"geographic_segment": {f"Region {n}": 100.0 for n in range(10)} | {"Rest": -200.0}}
    found = revenue_drivers(now, before)
    assert len(found) == TOP_SEGMENTS
    assert [item["driver"] for item in found] == ["Rest", "Region 9", "Region 8", "Region 7", "Region 6"]
    unmoved = {"product_segment": dict(PRODUCTS[1]["product_segment"])}
    assert drivers(prior(), prior(), unmoved, PRODUCTS[1])["top_revenue_drivers"] == []


def test_without_a_change_of_revenue_there_is_no_contribution() -> None:
    now = {"product_segment": {"A": 500.0, "B": 300.0}}
    before = {"product_segment": {"A": 300.0, "B": 500.0}}
    found = drivers(statement(revenue=800.0), prior(), now, before)
    assert found["revenue_delta"] == 0.0
    assert [(item["driver"], item["contribution_pct"]) for item in found["top_revenue_drivers"]] == [
        ("A", None),
        ("B", None),
    ]


def test_a_cost_ratio_that_is_no_mirror_counts() -> None:
    found = drivers(statement(cost_of_revenue=500.0), prior(), {}, {})["margin_drivers"]
    assert {"gross_margin", "cogs_ratio"} <= {item["driver"] for item in found}


def test_ratios_in_percentage_points_by_size() -> None:
    found = drivers(statement(), prior(), {}, {})["margin_drivers"]
    # Over revenue of 1,000 and 800: 40 and 37.5, 60 and 62.5, 3 and 5, 15 and 16.25, 20 and 18.75, 3.5 and 2.5, ...
    assert [(item["driver"], item["type"], item["direction"]) for item in found] == [
        ("gross_margin", "margin", "increase"),
        ("rnd_ratio", "expense_ratio", "decrease"),
        ("operating_margin", "margin", "decrease"),
        ("sga_ratio", "expense_ratio", "increase"),
        ("tax_ratio", "expense_ratio", "increase"),
        ("interest_ratio", "expense_ratio", "decrease"),
    ]
    assert [item["delta_pp"] for item in found] == pytest.approx([2.5, -2.0, -1.25, 1.25, 1.0, -0.5])


@pytest.mark.parametrize("absent", ["gross_profit", "rnd", "interest_expense"])
@pytest.mark.parametrize("side", ["now", "before"])
def test_a_ratio_unknown_on_either_side_is_left_out(absent: str, side: str) -> None:
    current, earlier = statement(), prior()
    if side == "now":
        current = statement(**{absent: None})
    else:
        earlier = prior(**{absent: None})
    names = {item["driver"] for item in drivers(current, earlier, {}, {})["margin_drivers"]}
    lost = {"gross_profit": "gross_margin", "rnd": "rnd_ratio", "interest_expense": "interest_ratio"}[absent]
    assert lost not in names
    assert len(names) == (6 if absent == "gross_profit" else 5)  # without its margin the cost ratio counts


def test_a_ratio_that_hardly_moved_is_left_out() -> None:
    base = prior(revenue=1e6, rnd=50_000.0)
    for moved, listed in ((50_049.0, False), (50_051.0, True), (49_949.0, True)):
        found = drivers(statement(revenue=1e6, rnd=moved), base, {}, {})["margin_drivers"]
        assert ("rnd_ratio" in {item["driver"] for item in found}) is listed


_AMOUNTS = st.one_of(st.none(), st.just(0.0), st.floats(-1e18, 1e18))
_STATEMENTS = st.fixed_dictionaries(dict.fromkeys(sorted(CURRENT), _AMOUNTS))


@example({"revenue": 1.0, "rnd": 0.0}, {"revenue": 5e-292, "rnd": 9e14})  # a ratio that overflows in percentage points
@given(_STATEMENTS, _STATEMENTS)
def test_whatever_is_filed_drivers_are_finite_and_sorted(
    now: dict[str, float | None], before: dict[str, float | None]
) -> None:
    answer = drivers(statement(**now), prior(**before), *PRODUCTS)
    sizes = [abs(item["delta_pp"]) for item in answer["margin_drivers"]]
    assert sizes == sorted(sizes, reverse=True)
    assert all(LEAST_DELTA_PP <= size < float("inf") for size in sizes)
    assert (answer["revenue_delta"] is None) is (now["revenue"] is None or before["revenue"] is None)


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=TOP_SEGMENTS), st.data())
def test_the_changes_of_five_segments_or_fewer_are_the_change_of_revenue(now: list[int], data: st.DataObject) -> None:
    before = data.draw(st.lists(st.integers(1, 10**9), min_size=len(now), max_size=len(now)))
    parts = [{"product_segment": {f"S{n}": float(value) for n, value in enumerate(side)}} for side in (now, before)]
    answer = drivers(statement(revenue=float(sum(now))), prior(revenue=float(sum(before))), *parts)
    assert sum(item["magnitude_usd"] for item in answer["top_revenue_drivers"]) == answer["revenue_delta"]


def test_segments_of_the_quarter_come_from_the_last_filing_that_breaks_it_down() -> None:
    rows = [
        segment("Phones", 600.0),
        segment("Rest", 400.0),
        segment("Phones", 590.0, filed="2025-05-02"),
        segment("Handsets", 410.0, filed="2025-05-02"),
        segment("Phones", 1100.0, start="2023-10-01"),
        segment("Phones", 500.0, BEFORE),
        segment("Asia", 1000.0, axis="geographic_segment"),
        segment("Phones", 1.0, symbol="OTH", filed="2026-01-01"),
    ]
    assert segments_at(rows, SYMBOL, QUARTER) == {
        "product_segment": {"Phones": 590.0, "Handsets": 410.0},
        "geographic_segment": {"Asia": 1000.0},
    }
    assert segments_at(rows, SYMBOL, BEFORE) == {"product_segment": {"Phones": 500.0}}
    assert segments_at([], SYMBOL, QUARTER) == {}


def test_a_bad_segment_row_is_named() -> None:
    with pytest.raises(InputError, match=r"row 0 of filing_facts\.segments: segment"):
        segments_at([segment("", 1.0)], SYMBOL, QUARTER)


def test_the_cases_balance() -> None:
    for values in (CURRENT, PRIOR):
        assert values["revenue"] - values["cost_of_revenue"] == values["gross_profit"]
        assert values["total_assets"] == values["total_liabilities"] + values["stockholders_equity"]
