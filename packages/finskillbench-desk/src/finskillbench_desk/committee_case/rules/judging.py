"""How an agent's coded rules are judged: by what they say of hidden probe portfolios, clause by clause.

A clause earns its balanced accuracy above chance, 2 x (mean of the share of exceeding probes that are recognised and of
the share of others that are left alone) - 1, at the boundary where that is least: a rule that is right on one side of
an exception, or only of purchases, is not the rule. Rules that let everything pass, or nothing, earn 0. Rules under a
number that has no rule in force (a clause that was deleted, a definition) dilute the mean wherever they say anything.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np

from finskillbench.arrays import Booleans, Integers
from finskillbench.episode import JsonObject
from finskillbench_desk.committee_case.documents.rendering import Guidelines, Trap
from finskillbench_desk.committee_case.documents.vocabulary import Vocabulary
from finskillbench_desk.committee_case.rules.instruments import probe_universe
from finskillbench_desk.committee_case.rules.probes import Probes, clause_probes, random_books
from finskillbench_desk.engines.guidelines.book import Books
from finskillbench_desk.engines.guidelines.evaluation import exceeded
from finskillbench_desk.engines.guidelines.language import Rule, rule_json
from finskillbench_desk.engines.guidelines.parsing import parse_rules

_KEPT = 4
"""Cases whose probes are kept: each takes about ten megabytes and a quarter of a second to draw again."""
_POOL = 768
"""Books that the probes of a case are made of: three times what a clause takes, each scaled otherwise in each."""
_PHANTOM_PROBES = 8
"""Probes of each clause on which rules of clauses that do not exist are tried."""
Verdict: TypeAlias = Literal["avoided", "fallen", "unknown"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What coded rules earn, in all and by clause, which clauses do not exist, and which traps were fallen for."""

    value: float
    clauses: Mapping[str, float]
    phantoms: tuple[str, ...]
    traps: Mapping[str, Verdict]
    problems: tuple[str, ...]


def withheld(guidelines: Guidelines, vocabulary: Vocabulary, seed: int) -> JsonObject:
    """What is stored with the truth: the rules in force, those of every trap where they differ, and the seed."""
    true = by_clause(guidelines.rules())
    misread: dict[str, list[Any]] = {}
    for trap in Trap:
        wrong = by_clause(guidelines.rules(frozenset((trap,))))
        changed = [clause for clause in sorted({*true, *wrong}) if true.get(clause) != wrong.get(clause)]
        misread[trap.value] = [[clause, [rule_json(rule) for rule in wrong.get(clause, ())]] for clause in changed]
    return {
        "rules": [rule_json(rule) for rule in guidelines.rules()],
        "misread": misread,
        "issuers": sorted(vocabulary.issuers),
        "sub_sectors": dict(vocabulary.sub_sectors),
        "seed": seed,
    }


def by_clause(rules: Sequence[Rule]) -> dict[str, tuple[Rule, ...]]:
    """Rules by the number of their clause, however it is written."""
    out: dict[str, tuple[Rule, ...]] = {}
    for rule in rules:
        found = re.search(r"\d+(?:\.\d+)+", rule.clause)
        number = found[0] if found else rule.clause
        out[number] = (*out.get(number, ()), rule)
    return out


@dataclass(frozen=True, eq=False)
class Clauses:
    """The clauses in force of a case with the rules of each; probes are drawn when they are first asked for."""

    rules: Mapping[str, tuple[Rule, ...]]
    vocabulary: Vocabulary
    seed: int
    drawn: dict[str, Probes] = field(default_factory=dict[str, Probes], repr=False)

    @cached_property
    def pool(self) -> Books:
        """The books that all probes are made of."""
        rules = [rule for own in self.rules.values() for rule in own]
        rng = np.random.default_rng([self.seed, 0])
        return random_books(probe_universe(rules, self.vocabulary, rng), rng, _POOL)

    def probes(self, clause: str) -> Probes:
        """The probes of a clause."""
        if clause not in self.drawn:
            rng = np.random.default_rng([self.seed, 1 + list(self.rules).index(clause)])
            self.drawn[clause] = clause_probes(self.rules[clause], self.pool, rng)
        return self.drawn[clause]


def clauses_of(hidden: Mapping[str, Any]) -> Clauses:
    """The clauses in force of a case; those of the last few cases are kept, with what was drawn of them."""
    parts = {key: hidden[key] for key in ("rules", "issuers", "sub_sectors", "seed")}
    return _clauses(json.dumps(parts, sort_keys=True))


@lru_cache(maxsize=_KEPT)
def _clauses(key: str) -> Clauses:
    data = json.loads(key)
    rules, _ = parse_rules(data["rules"])
    vocabulary = Vocabulary({name: name for name in data["issuers"]}, data["sub_sectors"])
    return Clauses(by_clause(rules), vocabulary, data["seed"])


def judge(given: object, hidden: Mapping[str, Any], *, probed: bool = False) -> Judgement:
    """Judge the list of coded rules that an agent gave; never raises on any JSON value.

    A clause whose rules are the true ones word for word is right on any probe, so that none are drawn for it; `probed`
    draws them all the same.
    """
    rules, problems = parse_rules(given)
    theirs, clauses = by_clause(rules), clauses_of(hidden)
    same = {
        clause for clause, own in clauses.rules.items() if not probed and _words(theirs.get(clause, ())) == _words(own)
    }
    earned = {
        clause: 1.0 if clause in same else clause_score(theirs.get(clause, ()), clauses, clause)
        for clause in clauses.rules
    }
    phantoms = tuple(number for number in theirs if number not in earned and _speaks(theirs[number], clauses))
    value = math.fsum(earned.values()) / (len(earned) + len(phantoms))
    traps: dict[str, Verdict] = {
        name: _verdict(theirs, {clause: parse_rules(own)[0] for clause, own in changed}, clauses, same)
        for name, changed in hidden["misread"].items()
    }
    return Judgement(value, earned, phantoms, traps, tuple(problems))


def _words(rules: Sequence[Rule]) -> list[str]:
    """Rules of one clause, however it is numbered."""
    return sorted(json.dumps({**rule_json(rule), "clause": ""}, sort_keys=True) for rule in rules)


def clause_score(rules: Sequence[Rule], clauses: Clauses, clause: str) -> float:
    """Balanced accuracy above chance of the rules of one clause, at its worst boundary."""
    if not rules:
        return 0.0
    probes = clauses.probes(clause)
    states = _states(rules, probes)
    right = states == _true_states(probes)
    out = 1.0
    for boundary in np.unique(probes.boundary):
        here = probes.boundary == boundary
        inside, outside = right[here & ~probes.exceeds], right[here & probes.exceeds]
        if inside.size and outside.size:
            out = min(out, max(float(inside.mean() + outside.mean() - 1), 0.0))
    return out


def _states(rules: Sequence[Rule], probes: Probes) -> Integers:
    """0 where nothing is exceeded, 1 where a reporting threshold is, 2 where a limit is."""
    out = np.zeros(len(probes.exceeds), dtype=np.intp)
    for rule in rules:
        out = np.maximum(out, exceeded(rule, probes.books) * (1 if rule.effect == "report" else 2))
    return out


def _true_states(probes: Probes) -> Integers:
    return probes.exceeds * (1 if probes.effect == "report" else 2)


def _speaks(rules: Sequence[Rule], clauses: Clauses) -> bool:
    """Whether the rules find anything exceeded on some probes of each clause."""
    for clause in clauses.rules:
        probes = clauses.probes(clause)
        if _states(rules, probes)[:: max(len(probes.exceeds) // _PHANTOM_PROBES, 1)].any():
            return True
    return False


def _verdict(
    theirs: Mapping[str, Sequence[Rule]], wrong: Mapping[str, Sequence[Rule]], clauses: Clauses, same: Collection[str]
) -> Verdict:
    """Whom the rules follow on the probes where truth and a misreading part, counted by clause."""
    right_count = wrong_count = 0
    for clause in wrong:
        if clause in same:
            right_count += 1
        elif clause in clauses.rules and clause in theirs:
            probes = clauses.probes(clause)
            mistaken, states = _states(wrong[clause], probes), _states(theirs[clause], probes)
            parted: Booleans = mistaken != _true_states(probes)
            if parted.any():
                right_count += bool((states == _true_states(probes))[parted].mean() > 0.8)
                wrong_count += bool((states == mistaken)[parted].mean() > 0.8)
    if wrong_count > right_count:
        return "fallen"
    return "avoided" if right_count > 0 and right_count >= 2 * wrong_count else "unknown"
