"""Score submitted rules clause by clause on hidden probe portfolios.

A clause earns its balanced accuracy above chance at its worst boundary. With the recognised share of exceeding probes
and the passed share of the others, this is 2 x mean - 1. Rules that pass everything, or nothing, earn 0. Rules under a
number without a rule in force (a deleted clause, a definition) lower the mean if they flag any probe.
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
from finskillbench_desk.committee_case.documents.rendering import Guidelines, ReadingTrap
from finskillbench_desk.committee_case.documents.vocabulary import Vocabulary
from finskillbench_desk.committee_case.rules.instruments import probe_universe
from finskillbench_desk.committee_case.rules.probes import Probes, clause_probes, random_books
from finskillbench_desk.engines.guidelines.book import Books
from finskillbench_desk.engines.guidelines.evaluation import exceeded
from finskillbench_desk.engines.guidelines.language import Rule, rule_json
from finskillbench_desk.engines.guidelines.parsing import parse_rules

_KEPT = 4
"""Cases with cached probes: each takes about 10 MB, and 0.25 s to draw again."""
_POOL = 768
"""Base books of a case: three times the probes of a clause, each scaled differently in each clause."""
_PHANTOM_PROBES = 8
"""Probes of each clause on which rules of nonexistent clauses are tried."""
Verdict: TypeAlias = Literal["avoided", "fallen", "untested"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """Score of coded rules in total and by clause, nonexistent clauses, and the verdict on each reading trap."""

    value: float
    clauses: Mapping[str, float]
    phantoms: tuple[str, ...]
    traps: Mapping[str, Verdict]
    problems: tuple[str, ...]


def coding_truth(guidelines: Guidelines, vocabulary: Vocabulary, seed: int) -> JsonObject:
    """Return what is stored with the truth: the rules in force, those of each trap where they differ, and the seed."""
    true = by_clause(guidelines.rules())
    misread: dict[str, list[Any]] = {}
    for trap in ReadingTrap:
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
    """Group rules by the first dotted number in their clause name."""
    out: dict[str, tuple[Rule, ...]] = {}
    for rule in rules:
        found = re.search(r"\d+(?:\.\d+)+", rule.clause)
        number = found[0] if found else rule.clause
        out[number] = (*out.get(number, ()), rule)
    return out


@dataclass(frozen=True, eq=False)
class Clauses:
    """Clauses in force of a case with their rules; probes are drawn on first use."""

    rules: Mapping[str, tuple[Rule, ...]]
    vocabulary: Vocabulary
    seed: int
    drawn: dict[str, Probes] = field(default_factory=dict[str, Probes], repr=False)

    @cached_property
    def pool(self) -> Books:
        rules = [rule for clause_rules in self.rules.values() for rule in clause_rules]
        rng = np.random.default_rng([self.seed, 0])
        return random_books(probe_universe(rules, self.vocabulary, rng), rng, _POOL)

    def probes(self, clause: str) -> Probes:
        if clause not in self.drawn:
            rng = np.random.default_rng([self.seed, 1 + list(self.rules).index(clause)])
            self.drawn[clause] = clause_probes(self.rules[clause], self.pool, rng)
        return self.drawn[clause]


def clauses_of(hidden: Mapping[str, Any]) -> Clauses:
    """Return the clauses in force of a case; the last few cases are cached with their probes."""
    parts = {key: hidden[key] for key in ("rules", "issuers", "sub_sectors", "seed")}
    return _clauses(json.dumps(parts, sort_keys=True))


@lru_cache(maxsize=_KEPT)
def _clauses(key: str) -> Clauses:
    data = json.loads(key)
    rules, _ = parse_rules(data["rules"])
    vocabulary = Vocabulary({name: name for name in data["issuers"]}, data["sub_sectors"])
    return Clauses(by_clause(rules), vocabulary, data["seed"])


def judge_rules(submitted: object, hidden: Mapping[str, Any], *, probed: bool = False) -> Judgement:
    """Score submitted coded rules of any JSON; `probed` draws probes even for rules equal to the true ones."""
    rules, problems = parse_rules(submitted)
    theirs, clauses = by_clause(rules), clauses_of(hidden)
    stated = {clause: theirs.get(clause, ()) for clause in clauses.rules}
    same = {name for name, true in clauses.rules.items() if not probed and _canonical(stated[name]) == _canonical(true)}
    earned = {name: 1.0 if name in same else clause_score(stated[name], clauses, name) for name in clauses.rules}
    invented = [number for number in theirs if number not in earned]
    phantoms = tuple(number for number in invented if _exceeded_anywhere(theirs[number], clauses))
    value = math.fsum(earned.values()) / (len(earned) + len(phantoms))
    traps: dict[str, Verdict] = {
        name: _verdict(theirs, {clause: parse_rules(stored)[0] for clause, stored in changed}, clauses, same)
        for name, changed in hidden["misread"].items()
    }
    return Judgement(value, earned, phantoms, traps, tuple(problems))


def _canonical(rules: Sequence[Rule]) -> list[str]:
    return sorted(json.dumps({**rule_json(rule), "clause": ""}, sort_keys=True) for rule in rules)


def clause_score(rules: Sequence[Rule], clauses: Clauses, clause: str) -> float:
    """Return the balanced accuracy above chance of the rules of one clause, at its worst boundary."""
    if not rules:
        return 0.0
    probes = clauses.probes(clause)
    states = _states(rules, probes)
    right = states == _true_states(probes)
    out = 1.0
    for boundary in np.unique(probes.boundary):
        selected = probes.boundary == boundary
        inside, outside = right[selected & ~probes.exceeds], right[selected & probes.exceeds]
        if inside.size and outside.size:
            out = min(out, max(float(inside.mean() + outside.mean() - 1), 0.0))
    return out


def _states(rules: Sequence[Rule], probes: Probes) -> Integers:
    """Return 0 where nothing is exceeded, 1 where a reporting threshold is, 2 where a limit is."""
    out = np.zeros(len(probes.exceeds), dtype=np.intp)
    for rule in rules:
        out = np.maximum(out, exceeded(rule, probes.books) * (1 if rule.effect == "report" else 2))
    return out


def _true_states(probes: Probes) -> Integers:
    return probes.exceeds * (1 if probes.effect == "report" else 2)


def _exceeded_anywhere(rules: Sequence[Rule], clauses: Clauses) -> bool:
    """Return True if the rules flag any of a few probes of each clause."""
    for probes in map(clauses.probes, clauses.rules):
        if _states(rules, probes)[:: max(len(probes.exceeds) // _PHANTOM_PROBES, 1)].any():
            return True
    return False


def _verdict(
    theirs: Mapping[str, Sequence[Rule]], wrong: Mapping[str, Sequence[Rule]], clauses: Clauses, same: Collection[str]
) -> Verdict:
    """Compare the rules with the truth and with a misreading on the probes where the two differ."""
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
    return "avoided" if right_count > 0 and right_count >= 2 * wrong_count else "untested"
