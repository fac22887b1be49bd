"""Coded rules on books: by hand, against a second implementation, and by identities."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from desk_tests.committee_case.documents import WORDS, document
from desk_tests.engines.guidelines import naive
from tests.sampling import sampled

from finskillbench.errors import InputError
from finskillbench_desk.committee_case.rules.instruments import probe_universe
from finskillbench_desk.committee_case.rules.probes import random_books
from finskillbench_desk.engines.guidelines.book import Book, Books, Instrument, Position, QuarterTrades
from finskillbench_desk.engines.guidelines.evaluation import evaluate, exceeded
from finskillbench_desk.engines.guidelines.language import Rule, rule_json
from finskillbench_desk.engines.guidelines.parsing import parse_rules

ALPHA = Instrument(
    "ALPHA",
    "share",
    "ALPHA",
    "Energy",
    "Oil",
    "US",
    "USD",
    benchmark=4.0,
    attributes={"adv": 5.0, "market_cap": 900.0, "beta": 1.2},
)
ALPHA_B = Instrument(
    "ALPHA.B", "share", "ALPHA", "Energy", "Oil", "US", "USD", attributes={"adv": 1.0, "market_cap": 900.0, "beta": 1.0}
)
BETA = Instrument(
    "BETA",
    "receipt",
    "BETA",
    "Utilities",
    "Power",
    "JP",
    "USD",
    frozenset(("Restricted List",)),
    2.0,
    {"adv": 10.0, "market_cap": 50.0, "beta": 0.5},
)
BOND = Instrument(
    "BETA.N", "corporate_bond", "BETA", "Utilities", "Power", "JP", "EUR", attributes={"rating": 11.0, "maturity": 7.0}
)
GILT = Instrument("GILT", "government_bond", "GB", "", "", "GB", "GBP", attributes={"rating": 3.0, "maturity": 0.5})
FUND = Instrument("FUND", "fund", "FUND", currency="USD", holdings={"ALPHA": 0.5, "GAMMA": 0.25})
GAMMA = Instrument("GAMMA", "share", "GAMMA", "Energy", "Wind", "US", "USD", benchmark=1.0)
FUTURE = Instrument("FUT", "equity_future", currency="USD")
SHORT = Instrument("BFUT", "bond_future", currency="USD")
CASH = Instrument("USD", "cash", "BANK", currency="USD")
OWED = Instrument("EUR", "cash", "BANK", currency="EUR")
BOOK = Book(
    (
        Position(ALPHA, 60.0),
        Position(ALPHA_B, 20.0, bought=True),
        Position(BETA, 40.0),
        Position(BOND, 30.0),
        Position(GILT, 10.0),
        Position(FUND, 40.0),
        Position(FUTURE, 0.0, 50.0),
        Position(SHORT, 0.0, -30.0),
        Position(CASH, 210.0),
        Position(OWED, -10.0),
    ),
    (GAMMA,),
    QuarterTrades(20.0, 12.0, 8.0, 0.0),
)
"""Net asset value 400."""
EQUITIES = {"kind": ["share", "receipt"]}
BONDS = {"kind": ["corporate_bond", "government_bond"]}


def said(**rule: Any) -> tuple[float, float, str, str]:
    """Measure, limit, group and state of one rule on the book."""
    rules, problems = parse_rules([{"clause": "1", "comparison": "at_most", "limit": 1e6, **rule}])
    assert problems == []
    found = evaluate(rules, BOOK)[0]
    return pytest.approx(found.measured), pytest.approx(found.limit), found.where, found.state


@pytest.mark.parametrize(
    ("rule", "measured"),
    [
        ({"measure": "weight", "of": EQUITIES, "by": "issuer"}, 20.0),  # (60 + 20) / 400
        ({"measure": "weight", "of": EQUITIES, "by": "instrument"}, 15.0),
        ({"measure": "weight", "of": EQUITIES, "by": "issuer", "basis": EQUITIES}, 100 * 80 / 120),
        ({"measure": "weight", "of": EQUITIES, "by": "issuer", "look_through": True}, 25.0),  # 20 more in the fund
        ({"measure": "weight", "of": {"kind": "fund"}, "look_through": True}, 2.5),  # what the fund keeps for itself
        ({"measure": "weight", "of": EQUITIES, "by": "sector"}, 20.0),
        ({"measure": "weight", "of": {"list": "Restricted List"}}, 10.0),
        ({"measure": "weight", "of": {"not": {"currency": "USD"}}}, 7.5),  # 30 + 10 - 10
        ({"measure": "weight", "of": {"kind": ["equity_future", "bond_future"]}, "futures": "net"}, 5.0),
        ({"measure": "weight", "of": {"kind": ["equity_future", "bond_future"]}, "futures": "gross"}, 20.0),
        ({"measure": "weight", "of": {"kind": ["equity_future", "bond_future"]}}, 0.0),
        ({"measure": "weight", "of": {"not": {"kind": "cash"}}, "futures": "gross"}, 70.0),
        ({"measure": "weight", "of": {"not": {"kind": "cash"}}, "futures": "gross", "basis": "gross"}, 100.0),
        ({"measure": "short", "of": {"kind": "cash"}}, 2.5),
        ({"measure": "sum_above", "of": EQUITIES, "by": "issuer", "above": 15}, 20.0),
        ({"measure": "top", "of": EQUITIES, "by": "instrument", "n": 2}, 25.0),
        ({"measure": "count", "of": EQUITIES, "by": "issuer"}, 2.0),
        ({"measure": "count", "of": EQUITIES, "by": "issuer", "above": 12}, 1.0),
        ({"measure": "active_share", "of": EQUITIES, "by": "issuer"}, (16 + 8 + 1) / 2),
        ({"measure": "ownership", "of": EQUITIES}, 80.0),  # 40 of 50
        ({"measure": "days_to_sell", "of": EQUITIES, "by": "instrument", "participation": 20}, 100.0),
        ({"measure": "sellable", "days": 5, "participation": 20}, 100 * (200 + 5 + 1 + 10) / 400),
        ({"measure": "average", "of": BONDS, "attribute": "rating"}, (30 * 11 + 10 * 3) / 40),
        ({"measure": "average", "of": EQUITIES, "attribute": "beta"}, (60 * 1.2 + 20 + 40 * 0.5) / 120),
        ({"measure": "turnover"}, 5.0),  # half of 28 + 12
        ({"measure": "turnover", "convention": "lesser"}, 3.0),
        ({"measure": "turnover", "convention": "greater", "trades": "used"}, 5.0),
        ({"measure": "turnover", "convention": "sum", "trades": "pending"}, 2.0),
        ({"measure": "weight", "of": {**BONDS, "rating": {"above": 10}}}, 7.5),
        ({"measure": "weight", "of": {"any": [{"kind": "cash"}, {**BONDS, "maturity": {"at_most": 1}}]}}, 52.5),
    ],
)
def test_measures_by_hand(rule: dict[str, Any], measured: float) -> None:
    assert said(**rule)[0] == measured


def test_five_ten_forty() -> None:
    """Article 52 of the UCITS directive: issuers above 5 % each may make up 40 % together, none more than 10 %."""
    shares = [Instrument(f"S{i}", "share", f"S{i}") for i in range(20)]
    weights = [9.0, 9.0, 8.0, 8.0, 6.0, *[4.0] * 15]
    book = Book(tuple(Position(share, weight) for share, weight in zip(shares, weights, strict=True)))
    ten = {"clause": "1", "measure": "weight", "by": "issuer", "comparison": "at_most", "limit": 10}
    forty = {"clause": "2", "measure": "sum_above", "by": "issuer", "above": 5, "comparison": "at_most", "limit": 40}
    rules, _ = parse_rules([ten, forty])
    assert [found.state for found in evaluate(rules, book)] == ["ok", "ok"]
    more = Book((*book.positions[:5], Position(shares[5], 5.2), *book.positions[6:]))
    assert [found.state for found in evaluate(rules, more)] == ["ok", "breach"]


def test_only_what_is_bought_breaks_a_test_at_purchase() -> None:
    rule = {"measure": "weight", "of": EQUITIES, "by": "issuer", "limit": 9, "when": "purchase"}
    assert said(**rule)[2:] == ("ALPHA", "breach")
    assert said(**{**rule, "by": "instrument"})[3] == "passive"  # the class that is bought is small
    assert said(**{**rule, "limit": 30})[3] == "ok"


def test_limits_that_move_with_the_benchmark() -> None:
    above = {"measure": "weight", "of": EQUITIES, "by": "issuer", "limit": {"benchmark_times": 1, "plus": 16}}
    assert said(**above)[:2] == (20.0, 20.0)
    greater = {**above, "limit": {"greater_of": [5, {"benchmark_times": 2, "plus": 0}]}}
    assert said(**greater) == (20.0, 8.0, "ALPHA", "breach")
    lesser = {**above, "limit": {"lesser_of": [5, {"benchmark_times": 2, "plus": 0}]}}
    assert said(**lesser)[1:] == (5.0, "ALPHA", "breach")


def test_a_floor_by_benchmark_counts_what_is_not_held() -> None:
    rule = {"measure": "weight", "of": {"kind": "share"}, "by": "issuer", "comparison": "at_least"}
    assert said(**rule, limit={"benchmark_times": 1, "plus": -0.5})[2:] == ("GAMMA", "breach")
    assert said(**rule, limit=10)[3] == "ok"  # a fixed floor is for what is held


def test_reporting_thresholds_are_no_breaches_and_exceptions_have_their_own_limit() -> None:
    rule = {"measure": "weight", "of": EQUITIES, "by": "issuer", "limit": 5}
    assert said(**rule, effect="report")[3] == "report"
    spared = {"of": {"issuer": "ALPHA"}, "limit": 25}
    assert said(**rule, exceptions=[spared])[2:] == ("BETA", "breach")
    assert said(**rule, exceptions=[spared, {"of": {"country": "JP"}, "limit": None}])[3] == "ok"
    tighter = {"of": {"issuer": "ALPHA"}, "limit": 3}
    first = [{"of": {"sector": "Energy"}, "limit": None}, tighter]
    assert said(**{**rule, "limit": 12}, exceptions=first)[3] == "ok"
    assert said(**{**rule, "limit": 12}, exceptions=first[::-1])[2:] == ("ALPHA", "breach")


def test_a_rule_of_which_nothing_is_there_is_kept() -> None:
    assert said(measure="weight", of={"sector": "Nowhere"}, by="sector", limit=5)[3] == "ok"
    assert said(measure="weight", of={"sector": "Nowhere"}, comparison="at_least", limit=5)[3] == "breach"
    assert said(measure="weight", of=EQUITIES, basis={"sector": "Nowhere"}, limit=5)[3] == "breach"


def test_books_that_cannot_be_are_refused() -> None:
    with pytest.raises(InputError, match="ALPHA is in the book twice"):
        _ = Book((Position(ALPHA, 1.0), Position(ALPHA, 1.0))).universe.index
    with pytest.raises(InputError, match="FUND holds ALPHA, which is no instrument"):
        _ = Book((Position(FUND, 1.0),)).universe


@pytest.mark.slow
@pytest.mark.parametrize("number", sampled(range(0, 40, 4), 2))
def test_a_second_implementation_agrees(number: int) -> None:
    """Every rule of some documents, at random limits, on random books of their probe instruments."""
    rng = np.random.default_rng(number)
    rules = document(number).rules()
    universe = probe_universe(rules, WORDS, rng)
    books = random_books(universe, rng, 6)
    by_name = {each.name: each for each in universe.instruments}
    agreed = {False: 0, True: 0}
    for rule in rules:
        for scaled in (0.6, 1.0, 1.6):
            terms = tuple(replace(term, plus=term.plus * scaled) for term in rule.limit.terms)
            tried = replace(rule, limit=replace(rule.limit, terms=terms))
            theirs = exceeded(tried, books)
            for i in range(len(theirs)):
                mine = naive.exceeded(
                    rule_json(tried) | _details(tried), _positions(books, i), by_name, _trading(books, i)
                )
                assert mine == theirs[i], rule_json(tried)
                agreed[mine] += 1
    assert min(agreed.values()) > 50


def _details(rule: Rule) -> dict[str, Any]:
    """Numbers that JSON leaves out where they are as by default."""
    return {"n": rule.n, "days": rule.days, "participation": rule.participation, "of": rule_json(rule).get("of", {})}


def _positions(books: Books, row: int) -> list[Position]:
    columns = zip(books.universe.instruments, books.values[row], books.notionals[row], books.bought[row], strict=True)
    return [Position(each, float(value), float(notional), bool(bought)) for each, value, notional, bought in columns]


def _trading(books: Books, row: int) -> QuarterTrades:
    return QuarterTrades(*(float(amount) for amount in books.trading[row]))


@pytest.mark.parametrize("number", [1, 2])
def test_identities(number: int) -> None:
    """Money has no unit; an exception is the same as two rules; the order of instruments does not matter."""
    rng = np.random.default_rng(number)
    rules = document(number).rules()
    universe = probe_universe(rules, WORDS, rng)
    books = random_books(universe, rng, 40)
    order = rng.permutation(len(universe.instruments))
    shuffled = Books(
        type(universe)(tuple(universe.instruments[int(i)] for i in order)),
        books.values[:, order],
        books.notionals[:, order],
        books.bought[:, order],
        books.trading,
    )
    for rule in rules:
        fires = exceeded(rule, books)
        assert np.array_equal(fires, exceeded(rule, shuffled))
        assert np.array_equal(fires, np.any([exceeded(atom, books) for atom in rule.atoms()], axis=0))
        if rule.measure not in ("ownership", "days_to_sell", "sellable"):
            doubled = replace(books, values=2 * books.values, notionals=2 * books.notionals, trading=2 * books.trading)
            assert np.array_equal(fires, exceeded(rule, doubled))
