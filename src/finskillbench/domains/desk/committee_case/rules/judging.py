"""How an agent's coded rules are judged: by what they say of hidden probe portfolios, clause by clause.

A clause earns its balanced accuracy above chance, 2 x (mean of the share of exceeding probes that are recognised and of
the share of others that are left alone) - 1, at the boundary where that is least: a rule that is right on one side of
an exception, or only of purchases, is not the rule. Rules that let everything pass, or nothing, earn 0. Rules under a
number that has no rule in force (a clause that was deleted, a definition) dilute the mean wherever they say anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np

from finskillbench.arrays import Booleans, Integers
from finskillbench.domains.desk.committee_case.documents.guidelines import Guidelines, Trap
from finskillbench.domains.desk.committee_case.documents.vocabulary import Vocabulary
from finskillbench.domains.desk.committee_case.rules.instruments import probe_universe
from finskillbench.domains.desk.committee_case.rules.probes import Probes, clause_probes
from finskillbench.engines.guidelines.evaluation import exceeded
from finskillbench.engines.guidelines.language import Rule, rule_json
from finskillbench.engines.guidelines.parsing import parse_rules
from finskillbench.episode import JsonObject

_KEPT = 4
"""Cases whose probes are kept: each takes about ten megabytes and half a second to draw again."""
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


def probes_of(hidden: Mapping[str, Any]) -> tuple[Probes, ...]:
    """Probes of every clause in force, in its order; the last few cases are kept."""
    parts = {key: hidden[key] for key in ("rules", "issuers", "sub_sectors", "seed")}
    return _drawn(json.dumps(parts, sort_keys=True))


@lru_cache(maxsize=_KEPT)
def _drawn(key: str) -> tuple[Probes, ...]:
    data = json.loads(key)
    rules, _ = parse_rules(data["rules"])
    vocabulary = Vocabulary({name: name for name in data["issuers"]}, data["sub_sectors"])
    universe = probe_universe(rules, vocabulary, np.random.default_rng([data["seed"], 0]))
    return tuple(
        clause_probes(own, universe, np.random.default_rng([data["seed"], i]))
        for i, own in enumerate(by_clause(rules).values(), 1)
    )


def judge(given: object, hidden: Mapping[str, Any]) -> Judgement:
    """Judge the list of coded rules that an agent gave; never raises on any JSON value."""
    rules, problems = parse_rules(given)
    theirs, probes = by_clause(rules), probes_of(hidden)
    earned = {each.clause: clause_score(theirs.get(each.clause, ()), each) for each in probes}
    phantoms = tuple(number for number in theirs if number not in earned and _speaks(theirs[number], probes))
    value = float(sum(earned.values()) / (len(earned) + len(phantoms)))
    traps: dict[str, Verdict] = {
        name: _verdict(theirs, {clause: parse_rules(own)[0] for clause, own in changed}, probes)
        for name, changed in hidden["misread"].items()
    }
    return Judgement(value, earned, phantoms, traps, tuple(problems))


def clause_score(rules: Sequence[Rule], probes: Probes) -> float:
    """Balanced accuracy above chance of the rules of one clause, at its worst boundary."""
    if not rules:
        return 0.0
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


def _speaks(rules: Sequence[Rule], probes: Sequence[Probes]) -> bool:
    """Whether the rules find anything exceeded on some probes of each clause."""
    return any(bool(_states(rules, each)[:: max(len(each.exceeds) // _PHANTOM_PROBES, 1)].any()) for each in probes)


def _verdict(
    theirs: Mapping[str, Sequence[Rule]], wrong: Mapping[str, Sequence[Rule]], probes: Sequence[Probes]
) -> Verdict:
    """Whom the rules follow on the probes where truth and a misreading part, counted by clause."""
    right_count = wrong_count = 0
    for each in probes:
        if each.clause not in wrong or each.clause not in theirs:
            continue
        mistaken, states = _states(wrong[each.clause], each), _states(theirs[each.clause], each)
        parted: Booleans = mistaken != _true_states(each)
        if parted.any():
            right_count += bool((states == _true_states(each))[parted].mean() > 0.8)
            wrong_count += bool((states == mistaken)[parted].mean() > 0.8)
    if wrong_count > right_count:
        return "fallen"
    return "avoided" if right_count > 0 and right_count >= 2 * wrong_count else "unknown"
