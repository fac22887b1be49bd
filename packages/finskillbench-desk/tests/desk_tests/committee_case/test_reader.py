"""The independent reader recovers the rules of whole documents, and of every kind of clause in every phrasing."""

from __future__ import annotations

import ast
import itertools
from pathlib import Path

import numpy as np
import pytest
from desk_tests.committee_case.documents import WORDS, document
from tests.sampling import sampled

from finskillbench_desk.committee_case.documents import amending, reader
from finskillbench_desk.committee_case.documents.clauses import CarveOut, Clause, Timing, coded_rule
from finskillbench_desk.committee_case.documents.drafting import draw_style
from finskillbench_desk.committee_case.documents.kinds import KINDS
from finskillbench_desk.committee_case.documents.phrases import ALWAYS, EXEMPT, PURCHASE, RAISED
from finskillbench_desk.committee_case.documents.reader import read_guidelines
from finskillbench_desk.committee_case.documents.reader.amendments import AmendedTexts
from finskillbench_desk.committee_case.documents.reader.definitions import (
    ReadingContext,
    UnreadableError,
    country_names,
    parse_definitions,
)
from finskillbench_desk.committee_case.documents.reader.subjects import coded_clause
from finskillbench_desk.committee_case.documents.rendering import defined, sentence
from finskillbench_desk.committee_case.documents.terms import draw_definitions, term_filters
from finskillbench_desk.committee_case.rules.instruments import probe_universe
from finskillbench_desk.engines.guidelines.book import InstrumentUniverse
from finskillbench_desk.engines.guidelines.evaluation import matches, scope
from finskillbench_desk.engines.guidelines.language import Rule
from finskillbench_desk.engines.guidelines.parsing import parse_rules


def meaning(rule: Rule, universe: InstrumentUniverse) -> list[object]:
    """What a rule says over a universe, however its filters are written."""
    out: list[object] = []
    for atom in rule.atoms():
        who = scope(atom, universe)
        basis = atom.basis if isinstance(atom.basis, str) else matches(atom.basis, universe).tolist()
        details = (
            atom.above if atom.measure in ("sum_above", "count") else 0,
            atom.n if atom.measure == "top" else 0,
            atom.days if atom.measure == "sellable" else 0,
            atom.participation if atom.measure in ("sellable", "days_to_sell") else 0,
            atom.attribute if atom.measure == "average" else "",
            (atom.trades, atom.convention) if atom.measure == "turnover" else (),
        )
        held = (who.chosen.tolist(), who.names, basis, atom.futures, atom.look_through)
        out.append((atom.measure, atom.comparison, atom.limit, atom.effect, atom.when, held, details))
    return sorted(out, key=str)


@pytest.mark.parametrize("seed", sampled(range(4), 4))
def test_whole_documents_are_recovered(seed: int) -> None:
    for number in sampled(range(40), 4):
        guidelines = document(number, seed)
        rules, problems = parse_rules(read_guidelines(guidelines.text, WORDS))
        assert problems == []
        universe = probe_universe(guidelines.rules(), WORDS, np.random.default_rng(number))
        theirs = {rule.clause: meaning(rule, universe) for rule in rules}
        assert theirs == {rule.clause: meaning(rule, universe) for rule in guidelines.rules()}, guidelines.text


@pytest.mark.slow
@pytest.mark.parametrize("name", list(KINDS))
def test_every_phrasing_of_every_kind_is_recovered(name: str) -> None:
    """All frames and all words on timing, on both bases, with exceptions of every sort; if thorough, each with each."""
    rng = np.random.default_rng(sum(map(ord, name)))
    kind = KINDS[name]
    timings: tuple[Timing, ...] = ("silent", "always", "purchase") if kind.cls == "cap" else ("silent",)
    for frame, word in sampled(itertools.product(range(8), range(len(ALWAYS))), 5):
        terms, style = draw_definitions(rng, WORDS), draw_style(rng)
        countries = country_names(WORDS)
        read = parse_definitions(defined(terms, style, WORDS), countries, WORDS.sub_sectors)
        default: Timing = "purchase" if word % 2 else "always"
        timing = timings[int(rng.integers(len(timings)))]
        if kind.cls == "other" and default == "purchase":
            timing = "always"
        limit = float(rng.choice(kind.grid))
        clause = Clause(
            "4.2",
            name,
            limit,
            "equity" if kind.equity and rng.integers(2) else "nav",
            timing,
            dict(kind.extra(rng, WORDS)),
            _carve(kind.carves, limit, rng),
            frame,
            word,
        )
        text = sentence(clause, style, terms, WORDS)
        reading = ReadingContext(read, countries, WORDS, default)
        rules, problems = parse_rules([coded_clause("4.2", text, reading, AmendedTexts({"4.2": text}), {})])
        assert problems == []
        true = coded_rule(kind, clause, term_filters(terms, naive=False), default)
        universe = probe_universe((true,), WORDS, np.random.default_rng(word))
        assert meaning(rules[0], universe) == meaning(true, universe), text


def _carve(level: str, limit: float, rng: np.random.Generator) -> tuple[CarveOut, ...]:
    ways = {
        "issuer": ("approved", "country:JP", "sector:Energy"),
        "sector": ("sector:Utilities",),
        "sub_sector": ("sub_sector:Hotels, Resorts & Cruise Lines",),
        "country": ("country:KR",),
    }.get(level, ())
    if not ways or rng.integers(2):
        return ()
    return (CarveOut(str(rng.choice(ways)), limit + 3 if rng.integers(2) else None),)


def test_a_paragraph_that_says_nothing_known_is_named() -> None:
    text = document(0).text
    amended = {item.target for items in document(0).amendments for item in items}
    clause = next(clause for clause in document(0).clauses if clause.number not in amended)
    line = next(line for line in text.splitlines() if line.startswith(f"{clause.number} "))
    with pytest.raises(UnreadableError, match="kindly"):
        read_guidelines(text.replace(line, f"{clause.number} The Manager shall act kindly."), WORDS)
    with pytest.raises(UnreadableError, match="no numbered paragraphs"):
        read_guidelines("Invest well.", WORDS)


def test_the_reader_shares_no_code_with_the_grammar() -> None:
    """It imports the words of the data and nothing else of the package of documents."""
    package = "finskillbench_desk.committee_case.documents."
    for file in Path(reader.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(package):
                assert node.module.removeprefix(package).split(".")[0] in ("reader", "vocabulary"), file
    assert len(RAISED) == len(EXEMPT) == len(PURCHASE) == 8
    assert amending.PARAGRAPHS == 40
