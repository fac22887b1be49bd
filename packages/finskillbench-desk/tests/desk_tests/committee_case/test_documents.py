"""Guidelines from the grammar: forty paragraphs, unlike each other, every kind of clause, limits that suit a book."""

from __future__ import annotations

import itertools
import re
from collections import Counter

import numpy as np
import pytest
from desk_tests.committee_case.documents import AS_OF, WORDS, document

from finskillbench_desk.committee_case.documents import phrases
from finskillbench_desk.committee_case.documents.amending import PARAGRAPHS, draw_guidelines
from finskillbench_desk.committee_case.documents.kinds import KINDS
from finskillbench_desk.committee_case.documents.rendering import ReadingTrap
from finskillbench_desk.committee_case.documents.terms import DEFINED
from finskillbench_desk.committee_case.rules.instruments import probe_universe
from finskillbench_desk.committee_case.rules.probes import random_books
from finskillbench_desk.engines.guidelines.book import Book, Position, QuarterTrades
from finskillbench_desk.engines.guidelines.evaluation import evaluate

EDITION = 40


def five_grams(text: str) -> set[tuple[str, ...]]:
    words = text.lower().split()
    return {tuple(words[i : i + 5]) for i in range(len(words) - 4)}


@pytest.mark.parametrize("seed", [0, 1])
def test_an_edition_of_documents(seed: int) -> None:
    drawn = [document(i, seed) for i in range(EDITION)]
    assert {each.paragraphs for each in drawn} == {PARAGRAPHS}
    assert all(600 <= len(each.text.split()) <= 1_500 for each in drawn)
    grams = [five_grams(each.text) for each in drawn]
    assert max(len(a & b) / len(a | b) for a, b in itertools.combinations(grams, 2)) <= 0.35
    kinds = Counter(kind for each in drawn for kind in {c.kind for c in (*each.clauses, *each.in_force()[0])})
    assert len(KINDS) >= 40
    assert min(kinds[name] for name in KINDS) >= 3


def test_every_kind_has_eight_phrasings() -> None:
    for kind in KINDS.values():
        assert len(set(kind.frames)) >= 8, kind.name
        assert all(("{W}" in frame) == (kind.cls in ("cap", "other")) for frame in kind.frames), kind.name
    ways = (phrases.ALWAYS, phrases.PURCHASE, phrases.RAISED, phrases.EXEMPT, phrases.NOTWITHSTANDING, DEFINED)
    for frames in (*ways, phrases.PRECEDENCE, phrases.AT_PURCHASE, phrases.AT_ALL_TIMES, *phrases.AMENDED.values()):
        assert len(set(frames)) >= 8


@pytest.mark.parametrize("number", range(0, EDITION, 8))
def test_a_document_is_whole(number: int) -> None:
    guidelines = document(number)
    assert "{" not in guidelines.text
    assert "  " not in guidelines.text
    numbers = re.findall(r"^(A?\d+\.\d+) ", guidelines.text, re.MULTILINE)
    assert len(numbers) == len(set(numbers)) == PARAGRAPHS
    operative = {clause.number for clause in guidelines.in_force()[0]}
    referred = set(re.findall(r"\bclauses? (\d+\.\d+)", guidelines.text, re.IGNORECASE))
    assert referred <= operative | set(numbers)
    unquoted = re.sub("[“”]", "", guidelines.text).lower()
    for term in guidelines.definitions.values():
        assert unquoted.count(term.name.lower()) > 1 or term.key in ("approved", "small"), term.name


def test_words_that_had_two_readings() -> None:
    """A test's time stands apart from the limit, and a dropped exception is named."""
    assert all(each.startswith(", ") for each in (*phrases.ALWAYS, *phrases.PURCHASE))
    assert all("{who}" in frame for frame in phrases.AMENDED["exception_drop"])
    frames = [frame for kind in KINDS.values() for frame in kind.frames]
    assert not any(re.search(r"\{B\}, \{how\}|non-dollar|\{[SQ]\} beyond \{y\}", frame) for frame in frames)
    assert not any("plus" in way for ways in phrases.HOW.values() for way in ways)
    for number in range(8):
        part = document(number).text.split("2. Interpretation")[0]
        starts = re.findall(r"^1\.\d+ (By|References|Wherever|In these)?[^“]*“[^”]+”(:| \w+)", part, re.MULTILINE)
        assert len(starts) >= 5
        led = [lead for lead, _ in starts if lead]
        assert len(led) == len(set(led))


@pytest.mark.parametrize("number", range(0, EDITION, 5))
def test_every_trap_changes_rules(number: int) -> None:
    guidelines = document(number)
    true = {rule.clause: rule for rule in guidelines.rules()}
    for trap in ReadingTrap:
        wrong = {rule.clause: rule for rule in guidelines.rules(frozenset((trap,)))}
        changed = [clause for clause in {*true, *wrong} if true.get(clause) != wrong.get(clause)]
        assert len(changed) >= 3, trap


def some_book(number: int) -> Book:
    """A diversified book of a probe universe."""
    rng = np.random.default_rng(number)
    universe = probe_universe(document(number).rules(), WORDS, rng)
    books = random_books(universe, rng, 1)
    held = zip(universe.instruments, books.values[0], books.notionals[0], books.bought[0], strict=True)
    positions = tuple(Position(each, float(v), float(n), bool(b)) for each, v, n, b in held if v or n)
    names = {position.instrument.name for position in positions}
    others = tuple(each for each in universe.instruments if each.name not in names)
    return Book(positions, others, QuarterTrades(*(float(amount) for amount in books.trading[0])))


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("breaches", [0, 3])
def test_limits_suit_a_book(number: int, breaches: int) -> None:
    book = some_book(number)
    guidelines = draw_guidelines(np.random.default_rng([5, number]), WORDS, AS_OF, book, breaches)
    states = Counter(found.state for found in evaluate(guidelines.rules(), book))
    assert states["breach"] <= breaches
    assert states["breach"] >= min(breaches, 1)
    assert guidelines.paragraphs == PARAGRAPHS


def test_the_stream_decides() -> None:
    assert document(4).text == draw_guidelines_again(4)
    assert document(4).text != document(4, seed=1).text


def draw_guidelines_again(number: int) -> str:
    """The same document, drawn anew."""
    document.cache_clear()
    return document(number).text
