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
from finskillbench.engines.accounting.task import (
    MOST_ROWS,
    driver_decomposition,
    earnings_quality,
    metrics_on_file,
    normalization,
)
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
    assert {key: answer[key] for key in list(answer)[:7]} == quality.quality_answer(statement(), prior())
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


@pytest.fixture
def filed() -> dict[str, Any]:
    """Facts of one company: a quarter restated, one derived, a year and two balance sheets."""
    source = {"form": "10-Q", "tag": "Revenues", "unit": "USD"}
    rows = [
        fact("revenue", 1000.0, **source),
        fact("revenue", 1010.0, filed="2024-08-02", accession="0000000001-24-000009", **source),
        fact("revenue", 800.0, BEFORE, derived=True, **source),
        fact("revenue", 3500.0, start="2023-04-02", duration="annual", **source),
        fact("total_assets", 4000.0),
        fact("total_assets", 3600.0, BEFORE),
    ]
    return {"symbol": SYMBOL, "filing_facts": {"facts": rows}}


def test_metrics_on_file_are_the_rows_that_count_latest_period_first(filed: dict[str, Any]) -> None:
    found = metrics_on_file(filed)
    assert found["matching"] == len(found["metrics"]) == 5
    told = [(row["metric"], row["end"], row["duration"], row["value"], row["derived"]) for row in found["metrics"]]
    assert told == [
        ("revenue", "2024-03-30", "annual", 3500.0, False),
        ("revenue", "2024-03-30", "quarterly", 1010.0, False),
        ("total_assets", "2024-03-30", "instant", 4000.0, False),
        ("revenue", "2023-12-30", "quarterly", 800.0, True),
        ("total_assets", "2023-12-30", "instant", 3600.0, False),
    ]
    assert found["metrics"][1] == {
        "metric": "revenue",
        "duration": "quarterly",
        "start": "2023-12-31",
        "end": "2024-03-30",
        "value": 1010.0,
        "unit": "USD",
        "tag": "Revenues",
        "derived": False,
        "form": "10-Q",
        "accession": "0000000001-24-000009",
        "filed": "2024-08-02",
    }


@pytest.mark.parametrize(
    ("filters", "values"),
    [
        ({"metrics": ["total_assets"]}, [4000.0, 3600.0]),
        ({"metrics": []}, []),
        ({"period_end": "2023-12-30"}, [800.0, 3600.0]),
        ({"duration": "annual"}, [3500.0]),
        ({"metrics": ["revenue"], "period_end": "2024-03-30", "duration": "quarterly"}, [1010.0]),
        ({"metrics": ["revenue"], "duration": "half"}, []),
        ({"metrics": None, "period_end": None, "duration": "instant"}, [4000.0, 3600.0]),
    ],
)
def test_filters_choose_among_the_metrics_on_file(
    filed: dict[str, Any], filters: dict[str, Any], values: list[float]
) -> None:
    assert [row["value"] for row in metrics_on_file(filed | filters)["metrics"]] == values


def test_metrics_on_file_are_cut_and_counted(filed: dict[str, Any]) -> None:
    rows = [fact(f"metric_{number:03d}", 1.0) for number in range(MOST_ROWS + 5)]
    found = metrics_on_file(filed | {"filing_facts": {"facts": rows}})
    assert (len(found["metrics"]), found["matching"]) == (MOST_ROWS, MOST_ROWS + 5)


@pytest.mark.parametrize(
    ("filters", "words"),
    [
        ({"metrics": ["revenues"]}, r"metrics: \w+ has no revenues; it has revenue, total_assets"),
        ({"metrics": "revenue"}, "metrics must be a list of names"),
        ({"metric": ["revenue"]}, "derive_metrics: unknown metric; known are symbol, filing_facts, metrics"),
        ({"duration": "other"}, "duration must be one of instant, quarterly, half, nine_months, annual"),
        ({"period_end": "2024"}, "period_end must be a date"),
        ({"period_end": "2024-03-31"}, "no figures for 2024-03-31; the nearest ends are 2024-03-30, 2023-12-30"),
        ({"symbol": "OTH", "filing_facts": {"facts": []}}, "no row of OTH"),
    ],
)
def test_a_wrong_filter_is_named_with_what_there_is(filed: dict[str, Any], filters: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        metrics_on_file(filed | filters)
