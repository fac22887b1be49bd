"""Coded rules out of JSON: what is read, what is refused and in which words, and that nothing raises."""

from __future__ import annotations

import json
from typing import Any

import pytest
from desk_tests.committee_case.documents import document
from hypothesis import given
from hypothesis import strategies as st

from finskillbench_desk.engines.guidelines.book import Book, Instrument, Position
from finskillbench_desk.engines.guidelines.evaluation import evaluate
from finskillbench_desk.engines.guidelines.language import rule_json
from finskillbench_desk.engines.guidelines.parsing import MOST_RULES, parse_rule, parse_rules

PLAIN: dict[str, Any] = {"clause": "4.2", "measure": "weight", "comparison": "at_most", "limit": 5}
BOOK = Book((Position(Instrument("A", "share", "A", "Energy"), 10.0), Position(Instrument("USD", "cash"), 90.0)))


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("4.2", "must be an object"),
        ({**PLAIN, "clause": 4.2}, "clause must be the number of the clause, as text"),
        ({**PLAIN, "measure": "heaviness"}, "measure must be one of weight, sum_above"),
        ({**PLAIN, "limit": "5%"}, "limit: must be a number"),
        ({**PLAIN, "limit": True}, "limit: must be a number"),
        ({**PLAIN, "limit": float("inf")}, "limit: must lie between"),
        ({**PLAIN, "limit": 10**400}, "limit: must be a number of usual size"),
        ({**PLAIN, "limit": {"benchmark": 1}}, "a limit is a number or an object with benchmark_times and plus"),
        ({**PLAIN, "limit": {"greater_of": []}}, "greater_of must be a list of limits, alone"),
        ({**PLAIN, "scope": {}}, "scope is no key of a rule"),
        ({**PLAIN, "by": "colour"}, "by must be one of issuer"),
        ({**PLAIN, "of": {"colour": "red"}}, "colour is no condition; use kind"),
        ({**PLAIN, "of": {"sector": 3}}, "of.sector: must be a word or a list of words"),
        ({**PLAIN, "of": {"rating": 3}}, "of.rating: must be an object with above"),
        ({**PLAIN, "measure": "top"}, "top adds up groups; state `by`"),
        ({**PLAIN, "look_through": 1}, "look_through must be true or false"),
        ({**PLAIN, "n": 0}, "n: must lie between 1 and"),
        ({**PLAIN, "exceptions": [{"limit": 3}]}, "exceptions[0]: must be an object with `of` and `limit`"),
        ({**PLAIN, "comparison": "equal"}, "comparison must be one of at_most, at_least"),
    ],
)
def test_what_is_wrong_is_said(rule: Any, words: str) -> None:
    read, problems = parse_rule(rule, "rules[3]")
    assert read is None
    assert len(problems) == 1
    assert problems[0].startswith("rules[3]")
    assert words in problems[0]


def test_none_needs_no_limit() -> None:
    none, _ = parse_rule({"clause": "1", "measure": "weight", "comparison": "none", "of": {"sector": "Energy"}})
    zero, _ = parse_rule({**PLAIN, "clause": "1", "limit": 0, "of": {"sector": "Energy"}})
    assert none == zero


def test_good_rules_are_read_beside_bad_ones_and_no_more_than_can_be_judged() -> None:
    rules, problems = parse_rules([PLAIN, 3, PLAIN])
    assert len(rules) == 2
    assert problems == ["rules[1]: must be an object"]
    rules, problems = parse_rules([PLAIN] * (MOST_RULES + 1))
    assert len(rules) == MOST_RULES
    assert "only the first" in problems[0]
    assert parse_rules({"rules": []}) == ((), ["rules must be a list of objects"])


@pytest.mark.parametrize("number", range(0, 40, 5))
def test_writing_and_reading_are_inverse(number: int) -> None:
    for rule in document(number).rules():
        assert parse_rule(json.loads(json.dumps(rule_json(rule))))[0] == rule


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["nav", "issuer"]),
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(st.text(max_size=8), inside, max_size=4),
    max_leaves=12,
)
KEYS = (*PLAIN, "of", "by", "basis", "effect", "when", "futures", "look_through", "exceptions", "above", "n", "days")
CONDITIONS = ("all", "any", "not", "kind", "list", "sector", "issuer", "rating", "market_cap")
FILTERS = st.recursive(
    st.dictionaries(st.sampled_from(CONDITIONS), JSON, max_size=3),
    lambda inside: st.dictionaries(st.sampled_from(("all", "any", "not")), inside | st.lists(inside, max_size=3)),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from((*KEYS, "participation", "attribute", "trades", "convention")), JSON | FILTERS))
def test_any_json_is_read_or_refused(values: dict[str, Any]) -> None:
    for rule in (values, {**PLAIN, **values}):
        read, problems = parse_rule(rule)
        assert (read is None) == (len(problems) == 1)
        if read is not None:
            found = evaluate((read,), BOOK)[0]
            assert found.state in ("ok", "passive", "report", "breach")
            assert abs(found.measured) < float("inf")


def test_a_filter_that_is_too_deep_is_refused() -> None:
    deep: Any = {"sector": "Energy"}
    for _ in range(200):
        deep = {"not": deep}
    assert "deep" in parse_rule({**PLAIN, "of": deep})[1][0]
