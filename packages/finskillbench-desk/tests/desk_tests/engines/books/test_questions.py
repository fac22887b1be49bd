"""Questions to a fund's papers: sums and differences by hand, and one line for whatever cannot be meant."""

from __future__ import annotations

from typing import Any

import pytest

from finskillbench.errors import InputError
from finskillbench_desk.engines.books.questions import answered
from finskillbench_desk.engines.guidelines.stated import book_from, orders_from

PAPERS: dict[str, Any] = {
    "fx": {"USD": 1.0, "GBP": 1.25},
    "custodian": {
        "custodian": ["NORTH", "NORTH", "SOUTH"],
        "security": ["A", "B", "A"],
        "lot": ["L-1", "L-2", "L-1"],
        "acquired": ["2024-01-03", "2024-01-04", "2024-01-03"],
        "quantity": [100, 50, 100],
        "unit_cost": [10.0, 4.0, 10.0],
    },
    "trades": {
        "trade": ["T-1", "T-2", "T-3"],
        "trade_date": ["2024-01-05", "2024-01-05", "2024-01-08"],
        "settle_date": ["2024-01-09", "2024-01-05", "2024-01-10"],
        "security": ["A", "A", "A:L"],
        "side": ["sell", "buy", "buy"],
        "quantity": [30, 10, 7],
        "price": [11.0, 10.0, 900.0],
    },
    "prices": {
        "date": ["2024-01-03", "2024-01-04", "2024-01-05"] * 3,
        "security": ["A"] * 3 + ["B"] * 3 + ["A:L"] * 3,
        "close": [10.0, 11.0, 11.0, 4.0, 4.0, 4.0, 870.0, 875.0, 880.0],
        "volume": [5, 6, 7, 1, 0, 0, 2, 2, 2],
    },
    "second_source": {"security": ["A", "B", "A:L"], "close": [11.02, 4.4, 880.0], "currency": ["USD", "USD", "GBX"]},
    "reference": {
        "security": ["A", "B", "A:L"],
        "kind": ["share", "share", "receipt"],
        "issuer": ["A", "B", "A"],
        "country": ["US"] * 3,
        "currency": ["USD", "USD", "GBP"],
        "multiplier": [1.0] * 3,
        "cost_bp": [5.0] * 3,
        "lists": [None] * 3,
        "adv_usd": [1e6, 1e6, None],
        "rating": [None] * 3,
        "maturity_years": [None] * 3,
        "beta": [1.0, 1.1, 1.0],
        "sub_sector": ["X", "Y", "X"],
        "sector": ["Energy", "Utilities", "Energy"],
        "shares_outstanding": [1000.0, 2000.0, 1000.0],
    },
    "benchmark": {"issuer": ["A", "B"], "weight": [0.5, 0.5], "sector": ["Energy", "Energy"]},
    "constituents": {"security": [], "issuer": [], "weight": []},
}
BOOK = {**PAPERS, "units": {"A": 100, "A:L": 7}, "cash": 50.0}


def ask(**question: Any) -> dict[str, Any]:
    (answer,) = answered({**PAPERS, "questions": [question]})
    return answer


def test_sums_count_what_the_question_does_not_leave_out() -> None:
    lots = {"ask": "sums", "table": "custodian", "column": "quantity", "by": "security"}
    assert ask(**lots)["sums"] == {"A": 200, "B": 50}
    assert ask(**lots, once="lot")["sums"] == {"A": 100, "B": 50}
    assert ask(**lots, without={"custodian": "SOUTH"})["sums"] == {"A": 100, "B": 50}
    assert ask(**lots, where={"security": ["B"]})["total"] == 50


def test_sums_have_signs_products_days_and_dollars() -> None:
    orders = {"ask": "sums", "table": "trades", "column": "quantity", "by": "security", "negative": {"side": "sell"}}
    assert ask(**orders)["sums"] == {"A": -20, "A:L": 7}
    pending = {**orders, "until": {"trade_date": "2024-01-05"}, "after": {"settle_date": "2024-01-05"}}
    assert ask(**pending)["sums"] == {"A": -30}
    in_dollars = {**orders, "times": ["price"], "in_dollars": True}
    assert ask(**in_dollars)["sums"] == {"A": -230, "A:L": 7 * 900 * 1.25}
    assert ask(**in_dollars, currencies={"A:L": "GBX"})["sums"]["A:L"] == pytest.approx(7 * 900 * 0.0125)


def test_repeats_differences_and_what_stands_still() -> None:
    (group,) = ask(ask="repeats", table="custodian", columns=["lot"])["groups"]
    assert [row["custodian"] for row in group] == ["NORTH", "SOUTH"]
    closes = {"table": "prices", "key": "security", "column": "close", "latest": "date"}
    second = {"table": "second_source", "key": "security", "column": "close"}
    found = ask(ask="differences", left=closes, right=second, beyond=0.003)
    assert found == {"ask": "differences", "compared": 3, "differences": [{"key": "B", "left": 4.0, "right": 4.4}]}
    sectors = {"key": "issuer", "column": "sector"}
    found = ask(ask="differences", left={"table": "reference", **sectors}, right={"table": "benchmark", **sectors})
    assert [row["key"] for row in found["differences"]] == ["B"]
    still = {row["security"]: row for row in ask(ask="unchanged", sessions=2)["lines"]}
    assert still["B"] == {"security": "B", "sessions": 3, "close": 4.0, "volumes": [1, 0, 0]}
    assert still["A"]["volumes"] == [6, 7]


def test_costs_levels_and_values() -> None:
    lots = ask(ask="costs", securities=["B"])["lots"]
    assert [(row["lot"], row["unit_cost"], row["close_then"]) for row in lots] == [("L-2", 4.0, 4.0)]
    levels = ask(ask="levels", securities=["A:L"], currencies=["GBP", "GBX"])["over_the_issuers_first_line"]
    assert levels == {"A:L": {"GBP": pytest.approx(100.0), "GBX": pytest.approx(1.0)}}
    found = ask(ask="values", units={"A": 2, "A:L": 3}, closes={"A": 12.0}, currencies={"A:L": "GBX"})
    assert found["dollars"] == {"A": 24.0, "A:L": pytest.approx(33.0)}


def test_a_book_is_worth_its_units_and_companies_their_shares() -> None:
    book = book_from({**BOOK, "currencies": {"A:L": "GBX"}})
    assert [position.value for position in book.positions] == pytest.approx([50.0, 1100.0, 77.0])
    sizes = {line.name: line.attributes["market_cap"] for line in book.universe.instruments if line.kind != "cash"}
    assert sizes == pytest.approx({"A": 11_000.0, "A:L": 11_000.0, "B": 8_000.0})


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"ask": "total"}, "ask must be one of"),
        ({"ask": "sums", "table": "custodian", "column": "quantity", "by": "security", "group": 1}, "unknown group"),
        ({"ask": "sums", "table": "book", "column": "quantity", "by": "security"}, "table must be one of"),
        ({"ask": "sums", "table": "custodian", "column": "units", "by": "security"}, "no column units"),
        ({"ask": "sums", "table": "custodian", "column": "lot", "by": "security"}, "lot must be a number"),
        ({"ask": "repeats", "table": "custodian", "columns": "lot"}, "columns must be a list"),
        ({"ask": "differences", "left": {"table": "prices", "row": 1}, "right": {}}, "differences: left: unknown row"),
        ({"ask": "unchanged", "sessions": "three"}, "sessions must be a number"),
        ({"ask": "levels", "securities": ["C"], "currencies": ["USD"]}, "names C"),
        ({"ask": "values", "units": {"C": 1}}, "names C"),
        ({"ask": "values", "units": {"A": 1}, "currencies": {"A": "XXX"}}, "fx has no 'XXX'"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(question: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as error:
        ask(**question)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("questions", [None, [], "sums", [3], {"ask": "sums"}])
def test_questions_are_a_list_of_objects(questions: Any) -> None:
    with pytest.raises(InputError, match="questions"):
        answered({**PAPERS, "questions": questions})


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"units": {}}, "units must map"),
        ({"units": {"C": 1}}, "units names C"),
        ({"units": {"A": "many"}}, "A must be a number"),
        ({"closes": [1]}, "closes must be an object"),
        ({"prices": None}, "prices must be a table"),
        ({"quarter": {"purchase": 1}}, "quarter: unknown purchase"),
        ({"replaced": {"A": 1}}, "replaced must be a list"),
        ({"replaced": [{"issuer": "A", "field": "country", "value": "DE"}]}, "no 'country'"),
        ({"orders": {"C": 1}}, "orders names C"),
    ],
)
def test_a_book_that_cannot_be_meant_is_refused_in_one_line(changed: dict[str, Any], words: str) -> None:
    stated = {**BOOK, **changed}
    with pytest.raises(InputError) as error:
        orders_from(stated, book_from(stated))
    assert words in str(error.value)
