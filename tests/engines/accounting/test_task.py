"""Tasks as fields: which period counts, and what is refused in one line."""

from datetime import date
from typing import Any

import pytest
from tests.engines.accounting.cases import (
    BEFORE,
    PRIOR,
    QUARTER,
    SYMBOL,
    YEAR_AGO,
    fact,
    facts,
    prior,
    segment,
    statement,
)

from finskillbench.engines.accounting import quality
from finskillbench.engines.accounting.drivers import drivers
from finskillbench.engines.accounting.task import driver_decomposition, earnings_quality, normalization
from finskillbench.errors import InputError

PRODUCTS = [segment("A", 700.0), segment("B", 300.0), segment("A", 500.0, BEFORE), segment("B", 300.0, BEFORE)]


@pytest.fixture
def payload() -> dict[str, Any]:
    """The fields of all three subtasks; the prior quarter has the figures of the one a year before."""
    rows = [*facts(), *facts(PRIOR, YEAR_AGO), *facts(PRIOR, BEFORE), fact("revenue", 3500.0, start="2023-04-02")]
    return {
        "symbol": SYMBOL,
        "period_end": "2024-03-30",
        "form_type": "10-Q",
        "current_period_end": "2024-03-30",
        "prior_period_end": "2023-12-30",
        "filing_facts": {"facts": rows, "segments": PRODUCTS},
    }


def test_a_10_q_means_the_quarter_and_a_10_k_the_year(payload: dict[str, Any]) -> None:
    assert normalization(payload)["metrics"]["revenue"] == 1000.0
    annual = normalization(payload | {"form_type": "10-K"})["metrics"]
    assert (annual["revenue"], annual["net_income"], annual["total_assets"]) == (3500.0, None, 4000.0)


def test_earnings_quality_is_about_the_quarter_a_year_before_whatever_the_form(payload: dict[str, Any]) -> None:
    answer = earnings_quality(payload)
    assert {key: answer[key] for key in list(answer)[:7]} == quality.earnings_quality(statement(), prior())
    assert {name: used["end"] for name, used in answer["used"].items()} == {
        "current": "2024-03-30",
        "prior": "2023-04-01",
    }
    assert answer["used"]["prior"]["figures"]["revenue"]["value"] == prior().values["revenue"]
    assert answer["beneish_ratios"] == dict(quality.beneish(statement(), prior()).ratios)
    assert earnings_quality(payload | {"form_type": "10-K"}) == answer


def test_without_a_year_before_it_says_so(payload: dict[str, Any]) -> None:
    payload["filing_facts"]["facts"] = facts()
    answer = earnings_quality(payload)
    assert (answer["used"]["prior"]["end"], answer["piotroski_score"]) == (None, None)


def test_drivers_compare_the_two_quarters_named(payload: dict[str, Any]) -> None:
    answer = driver_decomposition(payload)
    parts = {"product_segment": {"A": 700.0, "B": 300.0}}, {"product_segment": {"A": 500.0, "B": 300.0}}
    used = answer.pop("used")
    assert (used["current"]["end"], used["prior"]["duration"]) == ("2024-03-30", "quarterly")
    assert answer == drivers(statement(), prior(), *parts) | {"axis": "product_segment"}
    assert [item["driver"] for item in answer["top_revenue_drivers"]] == ["A"]


@pytest.mark.parametrize("solve", [normalization, earnings_quality, driver_decomposition])
@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"filing_facts": None}, "filing_facts"),
        ({"filing_facts": []}, "filing_facts"),
        ({"filing_facts": {"segments": []}}, r"filing_facts\.facts"),
        ({"filing_facts": {"facts": "rows", "segments": []}}, r"filing_facts\.facts"),
        ({"filing_facts": {"facts": [], "segments": []}}, "FIR"),
        ({"symbol": None}, "symbol"),
        ({"period_end": "soon", "current_period_end": "soon"}, "period_end"),
        ({"period_end": None, "current_period_end": None}, "period_end"),
        ({"period_end": "2024-06-29", "current_period_end": "2024-06-29"}, "such periods end on.*2024-03-30"),
    ],
)
def test_a_bad_task_is_one_line(payload: dict[str, Any], solve: Any, change: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named) as caught:
        solve(payload | change)
    assert "\n" not in str(caught.value)


def test_what_only_one_subtask_reads_is_refused_by_it(payload: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="form_type"):
        normalization(payload | {"form_type": "8-K"})
    with pytest.raises(InputError, match="after prior_period_end"):
        driver_decomposition(payload | {"prior_period_end": "2024-03-30"})
    with pytest.raises(InputError, match=r"filing_facts\.segments"):
        driver_decomposition(payload | {"filing_facts": {"facts": facts()}})
    with pytest.raises(InputError, match=r"rows of OTH"):
        normalization(payload | {"filing_facts": {"facts": [fact("revenue", 1.0, symbol="OTH")]}})


def test_ends_are_those_of_the_cases() -> None:
    assert [(QUARTER - end).days for end in (YEAR_AGO, BEFORE)] == [364, 91]
    assert date(2024, 3, 30) == QUARTER
