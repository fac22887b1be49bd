"""Which days that lie ahead were appointed, and which are the future."""

from __future__ import annotations

from datetime import date

import orjson
import pytest

from finskillbench.edition.checks.episodes import without_appointed
from finskillbench_desk.committee_case.subtask import APPOINTED

AS_OF = date(2024, 5, 31)


@pytest.mark.parametrize(
    ("asked", "column", "day", "known"),
    [
        ("read_table(trades, 0)", "settle_date", "2024-06-04", True),
        ("read_table(trades, 0)", "settle_date", "2024-06-14", True),
        ("read_table(trades, 0)", "settle_date", "2024-06-15", False),
        ("read_table(trades, 0)", "price_date", "2024-06-03", False),
        ("read_table(corporate_actions, 200)", "pay_date", "2024-07-12", True),
        ("read_table(corporate_actions, 200)", "pay_date", "2024-07-13", False),
        ("read_table(prices, 0)", "settle_date", "2024-06-03", False),
        ("get_task_data(trades)", "settle_date", "2024-06-03", False),
    ],
)
def test_a_day_is_appointed_by_table_column_and_how_far_ahead_it_lies(
    asked: str, column: str, day: str, known: bool
) -> None:
    rows = [["T-1", "2024-05-30", day], ["T-2", "2024-05-29", None]]
    page = orjson.dumps({"columns": ["trade", "booked", column], "first": 0, "matching": 2, "rows": rows}).decode()
    assert (day not in without_appointed(asked, page, APPOINTED, AS_OF)) is known
    assert "2024-05-30" in without_appointed(asked, page, APPOINTED, AS_OF)
