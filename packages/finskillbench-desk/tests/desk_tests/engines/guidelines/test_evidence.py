"""Quotations from guidelines: by topic, with terms, references and gaps, and never a rule."""

from __future__ import annotations

import json

import pytest
from desk_tests.committee_case.documents import document

from finskillbench.errors import InputError
from finskillbench_desk.committee_case.documents.phrases import AMENDED
from finskillbench_desk.engines.guidelines.evidence import evidence, paragraphs_of

TEXT = """GUIDELINES

1.1 “Big Companies” means Issuers above USD 1 billion.
1.2 “Odd Things” means whatever is odd.
2.1 No Big Company may exceed 5 % of Net Assets
at any time.
2.2 Despite clause 2.1, banks may reach 7 %. See also clause 9.9.
2.3 There shall be 3 of them, at Net Assets.
A1.1 In clause 2.1, “5 %” is replaced by “4 %”.
"""


def test_what_is_found() -> None:
    found = evidence(TEXT)
    assert found["paragraphs"] == 6
    issuers = [quote["paragraph"] for quote in found["topics"]["single issuers"]]
    assert issuers == ["1.1"]
    assert [quote["paragraph"] for quote in found["topics"]["timing of tests"]] == ["2.1"]
    assert found["topics"]["timing of tests"][0]["quote"].endswith("Net Assets at any time.")
    assert [(term["term"], term["used_in"]) for term in found["terms"]] == [
        ("Big Companies", ["2.1"]),
        ("Odd Things", []),
    ]
    assert [(each["paragraph"], each["names"]) for each in found["references"]] == [
        ("2.2", ["2.1", "9.9"]),
        ("A1.1", ["2.1"]),
    ]


def test_gaps() -> None:
    gaps = evidence(TEXT)["gaps"]
    assert "turnover" in gaps["topics_never_mentioned"]
    assert [quote["paragraph"] for quote in gaps["paragraphs_with_numbers_and_no_topic"]] == ["2.3"]
    assert gaps["terms_never_used"] == ["Odd Things"]
    assert gaps["capitalised_and_not_defined"] == ["Net Assets"]
    assert [each["paragraph"] for each in gaps["references_to_nothing"]] == ["2.2"]


@pytest.mark.parametrize("words", AMENDED["insert"])
def test_a_clause_that_an_amendment_adds_is_there(words: str) -> None:
    added = words.format(c="2.9", text="No Issuer may exceed 3 %. See clause 2.8.")
    gaps = evidence(f"{TEXT}A1.2 {added}\nA1.3 Clause 2.9 has no exceptions.\n")["gaps"]
    assert [each["paragraph"] for each in gaps["references_to_nothing"]] == ["2.2", "A1.2"]


@pytest.mark.parametrize("words", AMENDED["exception_add"])
def test_an_addition_to_a_clause_that_is_not_there_is_a_gap(words: str) -> None:
    gaps = evidence(f"{TEXT}A1.2 {words.format(c='2.9', text='Banks are excepted.')}\n")["gaps"]
    assert [each["paragraph"] for each in gaps["references_to_nothing"]] == ["2.2", "A1.2"]


@pytest.mark.parametrize("number", [0, 9, 23])
def test_of_a_document_every_number_is_claimed_and_no_rule_is_given(number: int) -> None:
    guidelines = document(number)
    found = evidence(guidelines.text)
    assert found["paragraphs"] == 40
    quoted = {quote["paragraph"] for quotes in found["topics"].values() for quote in quotes}
    referring = {each["paragraph"] for each in found["references"]}
    left = {quote["paragraph"] for quote in found["gaps"]["paragraphs_with_numbers_and_no_topic"]}
    assert quoted | referring | left | {"1.1"} >= {clause.number for clause in guidelines.clauses}
    assert {item.number for items in guidelines.amendments for item in items if item.target} <= referring
    assert not {"measure", "comparison", "limit", "clause", "rules"} & set(_keys(json.loads(json.dumps(found))))
    assert len(json.dumps(found)) < 40_000


def _keys(value: object) -> list[str]:
    if isinstance(value, dict):
        return [*value, *(key for each in value.values() for key in _keys(each))]
    return [key for each in value for key in _keys(each)] if isinstance(value, list) else []


def test_what_cannot_be_read_is_refused() -> None:
    with pytest.raises(InputError, match="no numbered paragraphs"):
        evidence("Invest well.")
    with pytest.raises(InputError, match=r"two paragraphs are numbered 1\.1"):
        paragraphs_of("1.1 One.\n1.1 Two.")
