"""Coded rules are judged by what they say of probes: rewrites earn all, misreadings lose, nothing raises."""

from __future__ import annotations

import itertools
import json
from copy import deepcopy
from functools import cache
from typing import Any

import numpy as np
import pytest
from desk_tests.committee_case.documents import WORDS, document
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sampling import examples, sampled

from finskillbench_desk.committee_case.documents.rendering import ReadingTrap
from finskillbench_desk.committee_case.judging import scorer
from finskillbench_desk.committee_case.judging.agent_documents import Facts, SubmittedAnswer
from finskillbench_desk.committee_case.rules.judging import clauses_of, coding_truth, judge_rules
from finskillbench_desk.committee_case.rules.probes import PROBES, Probes
from finskillbench_desk.engines.guidelines.book import KINDS
from finskillbench_desk.engines.guidelines.evaluation import distance
from finskillbench_desk.engines.guidelines.language import rule_json
from finskillbench_desk.engines.guidelines.parsing import parse_rules

NUMBER = 3
EDITION = sampled(range(0, 40, 3), 4)


def hidden(number: int = NUMBER) -> dict[str, Any]:
    """What is stored with the truth of a case, as it comes from disk."""
    return json.loads(json.dumps(coding_truth(document(number), WORDS, number)))


def _probes(case: dict[str, Any]) -> list[Probes]:
    clauses = clauses_of(case)
    return [clauses.probes(clause) for clause in clauses.rules]


def split_kinds(rule: dict[str, Any]) -> dict[str, Any]:
    """Kinds one by one instead of together."""
    of = rule.get("of", {})
    kinds = of.get("kind", []) if isinstance(of, dict) else []
    if len(kinds) < 2:
        return rule
    return {**rule, "of": {"any": [{**of, "kind": kind} for kind in kinds]}}


def doubly_negated(rule: dict[str, Any]) -> dict[str, Any]:
    """What is not outside is inside."""
    return {**rule, "of": {"not": {"not": rule.get("of", {})}}}


def by_complement(rule: dict[str, Any]) -> dict[str, Any]:
    """Kinds by those that are left out."""
    of = rule.get("of", {})
    if set(of) != {"kind"}:
        return rule
    return {**rule, "of": {"not": {"kind": [kind for kind in KINDS if kind not in of["kind"]]}}}


def redundant_exception(rule: dict[str, Any]) -> dict[str, Any]:
    """An exception for nothing, and one twice."""
    given = rule.get("exceptions", [])
    return {**rule, "exceptions": [*given, *given, {"of": {"list": "No Such List"}, "limit": None}]}


def as_greater_of(rule: dict[str, Any]) -> dict[str, Any]:
    """A limit as the greater of itself and something less."""
    limit = rule["limit"]
    if isinstance(limit, dict):
        return rule
    return {**rule, "limit": {"greater_of": [limit - 1, limit]}}


def spelled(rule: dict[str, Any]) -> dict[str, Any]:
    """The clause in other words, and defaults stated."""
    return {"when": "always", "effect": "limit", "basis": "nav", **rule, "clause": f"Clause {rule['clause']}."}


REWRITES = (split_kinds, doubly_negated, by_complement, redundant_exception, as_greater_of, spelled)


def without_exceptions(rule: dict[str, Any]) -> list[dict[str, Any]]:
    """Exceptions as rules of their own."""
    rules, _ = parse_rules([rule])
    return [rule_json(atom) for atom in rules[0].atoms()]


@pytest.mark.slow
@settings(max_examples=examples(25), deadline=None)
@given(st.lists(st.sampled_from(REWRITES), max_size=4), st.booleans(), st.randoms(use_true_random=False))
def test_rules_of_the_same_meaning_earn_all(rewrites: list[Any], flat: bool, random: Any) -> None:
    case = hidden()
    rules = deepcopy(case["rules"])
    for rewrite in rewrites:
        rules = [rewrite(rule) if random.random() < 0.7 else rule for rule in rules]
    if flat:
        rules = [atom for rule in rules for atom in without_exceptions(rule)]
    random.shuffle(rules)
    found = judge_rules(rules, case)
    assert found.problems == ()
    assert found.value == 1.0
    assert set(found.traps.values()) == {"avoided"}


def test_letting_all_or_nothing_pass_earns_nothing() -> None:
    case = hidden()
    clauses = [rule["clause"] for rule in case["rules"]]
    everything = [{"clause": c, "measure": "weight", "comparison": "at_most", "limit": 1e6} for c in clauses]
    nothing = [{"clause": c, "measure": "weight", "comparison": "at_least", "limit": 1e6} for c in clauses]
    for given_rules in ([], everything, nothing, [*everything, *nothing]):
        assert judge_rules(given_rules, case).value == 0.0


def test_a_threshold_for_reporting_coded_as_a_limit_earns_nothing_of_its_clause() -> None:
    case = hidden()
    report = next(rule for rule in case["rules"] if rule.get("effect") == "report")
    rules = [{**rule, "effect": "limit"} if rule is report else rule for rule in case["rules"]]
    found = judge_rules(rules, case)
    assert found.clauses[report["clause"]] == 0.0
    assert found.value == pytest.approx(1 - 1 / len(case["rules"]))


def test_rules_of_clauses_that_are_not_there_dilute() -> None:
    case = hidden()
    count = len(case["rules"])
    silent = {"clause": "99.1", "measure": "weight", "comparison": "at_most", "limit": 1e6}
    loud = {"clause": "99.2", "measure": "weight", "comparison": "at_most", "limit": 1, "of": {"kind": "share"}}
    assert judge_rules([*case["rules"], silent], case).value == 1.0
    found = judge_rules([*case["rules"], silent, loud], case)
    assert found.phantoms == ("99.2",)
    assert found.value == pytest.approx(count / (count + 1))


def test_a_limit_that_is_off_by_a_twentieth_fails_near_the_boundary() -> None:
    case = hidden()
    weight = next(r for r in case["rules"] if r["measure"] == "weight" and isinstance(r["limit"], float) and r["limit"])
    rules = [{**rule, "limit": rule["limit"] * 1.05} if rule is weight else rule for rule in case["rules"]]
    assert judge_rules(rules, case).clauses[weight["clause"]] < 0.7


def part(number: int, traps: frozenset[ReadingTrap]) -> scorer.Coding:
    """The part of rules of somebody who falls for these traps and reads all else rightly."""
    case, guidelines = hidden(number), document(number)
    facts = Facts({"rules": case["rules"]}, {"coding": case})
    return scorer.judge_coding(SubmittedAnswer(facts, {"rules": [rule_json(rule) for rule in guidelines.rules(traps)]}))


@cache
def parts(number: int) -> tuple[dict[ReadingTrap, scorer.Coding], scorer.Coding]:
    """The parts of those who fall for one trap, and of one who falls for all: probes are drawn once for all of them."""
    return {trap: part(number, frozenset((trap,))) for trap in ReadingTrap}, part(number, frozenset(ReadingTrap))


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1])
def test_each_trap_is_live_and_told(number: int) -> None:
    for trap, found in parts(number)[0].items():
        assert found.score <= 0.9, trap
        assert found.traps[trap.value] == "fallen"


@pytest.mark.slow
def test_each_trap_costs_a_tenth_of_its_part_and_is_told_from_the_others_in_an_edition() -> None:
    """Who ignores a definition misreads amendments of its clauses too, so that a few other verdicts stay open."""
    told: list[str] = []
    for number, trap in itertools.product(EDITION, ReadingTrap):
        found = parts(number)[0][trap]
        assert found.score <= 0.9, (number, trap)
        assert found.traps[trap.value] == "fallen", (number, trap)
        told.extend(verdict for name, verdict in found.traps.items() if name != trap.value)
    assert told.count("avoided") >= 0.95 * len(told)
    assert told.count("fallen") <= 0.01 * len(told)


@pytest.mark.slow
def test_all_traps_fallen_leave_at_most_three_tenths_of_the_part_in_every_case_of_an_edition() -> None:
    assert max(parts(number)[1].score for number in EDITION) <= 0.3


def test_probes_lie_near_every_boundary_on_both_sides() -> None:
    for probes in _probes(hidden()):
        rules = [rule for rule in parse_rules(hidden()["rules"])[0] if rule.clause == probes.clause]
        assert len(probes.exceeds) == PROBES
        assert probes.near.mean() == pytest.approx(0.5, abs=0.05)
        for boundary in np.unique(probes.boundary):
            here = probes.boundary == boundary
            assert 0.2 < probes.exceeds[here].mean() < 0.8
        for i, atom in enumerate(atom for rule in rules for atom in rule.atoms()):
            fixed = atom.limit.terms[0].plus > 0 and atom.measure != "count"
            here = (probes.boundary // 2 == i) & probes.near
            if fixed:
                assert np.abs(distance(atom, probes.books)[here]).max() <= 0.0205


def test_probes_are_drawn_for_those_clauses_that_are_not_coded_word_for_word() -> None:
    case = {**hidden(), "seed": 98}
    true = case["rules"]
    assert judge_rules(true, case) == judge_rules(true, case, probed=True)
    case["seed"] = 97
    changed = [{**true[0], "when": "purchase" if true[0].get("when") != "purchase" else "always"}, *true[1:]]
    assert judge_rules(true, case).value == 1.0
    assert clauses_of(case).drawn == {}
    assert judge_rules(changed, case).value < 1.0
    assert set(clauses_of(case).drawn) == {true[0]["clause"]}


def test_the_same_seed_gives_the_same_probes_and_another_one_others() -> None:
    one, again, other = hidden(), hidden(), {**hidden(), "seed": 99}
    first, second = _probes(one)[0].books, _probes(other)[0].books
    assert np.array_equal(first.values, _probes(again)[0].books.values)
    assert first.values.sum() != second.values.sum()


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=6),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=6), inside, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(("clause", "measure", "limit", "of", "by", "basis")), JSON)) | JSON)
def test_no_json_raises(given_rules: Any) -> None:
    found = judge_rules(given_rules, hidden())
    assert 0.0 <= found.value <= 1.0
