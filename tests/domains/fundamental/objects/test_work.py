"""How much work a label takes, and operating income that is no line of the statement."""

from __future__ import annotations

from datetime import date

import pytest

from finskillbench.domains.fundamental.objects.work import count_decisions, difficulty_level, is_segment_total
from finskillbench.engines.accounting.periods import Duration
from finskillbench.engines.accounting.statements import Statement

END = date(2024, 6, 30)


def statement(**values: float) -> Statement:
    return Statement("FIR", END, Duration.QUARTERLY, values)


@pytest.mark.parametrize(
    ("told", "count"),
    [
        ({"NetIncomeLoss": [5.0]}, 0),
        ({"NetIncomeLoss": [5.0, 9.0]}, 1),  # the quarter and the year to date
        ({"NetIncomeLoss": [5.0], "ProfitLoss": [6.0]}, 1),  # with minorities
        ({"NetIncomeLoss": [9.0]}, 1),  # has to be computed
        ({}, 1),
    ],
)
def test_a_figure_needs_a_decision_unless_filings_say_it_and_nothing_else(
    told: dict[str, list[float]], count: int
) -> None:
    said = {(END, tag): values for tag, values in told.items()}
    assert count_decisions(said, [statement(net_income=5.0)], ("net_income", "revenue")) == count


def test_difficulty_is_the_count_in_bounds() -> None:
    assert [difficulty_level(count, (1, 5)) for count in (0, 1, 2, 5, 6)] == [
        "easy",
        "easy",
        "medium",
        "medium",
        "hard",
    ]


def test_operating_income_of_segments_is_told_from_that_of_the_statement() -> None:
    """Fiscal 2023 of The Walt Disney Company in millions, 0001744489-23-000216, and a statement that adds up."""
    pretax = "IncomeLossFromContinuingOperationsBeforeIncomeTaxesExtraordinaryItemsNoncontrollingInterest"
    said = {(END, "Revenues"): [88_898.0], (END, "CostsAndExpenses"): [79_906.0], (END, pretax): [4_769.0]}
    assert is_segment_total(said, statement(revenue=88_898.0, operating_income=12_863.0))
    assert not is_segment_total(said, statement(revenue=88_898.0, operating_income=8_992.0))
    assert not is_segment_total(
        said | {(END, pretax): [8_992.0]}, statement(revenue=88_898.0, operating_income=12_863.0)
    )
    assert not is_segment_total({(END, "Revenues"): [88_898.0]}, statement(revenue=88_898.0, operating_income=12_863.0))


def test_companies_without_operating_income_are_known_where_their_costs_are_not_filed() -> None:
    """Deere's operating profit of 2024 is 4,514 + 1,627 + 2,009 + 889 M of its segments, 0001558370-24-016169."""
    deere = Statement("DE", END, Duration.ANNUAL, {"revenue": 51_716e6, "operating_income": 9_039e6})
    assert is_segment_total({}, deere)
    assert not is_segment_total({}, Statement("DE", END, Duration.ANNUAL, {"revenue": 51_716e6}))
