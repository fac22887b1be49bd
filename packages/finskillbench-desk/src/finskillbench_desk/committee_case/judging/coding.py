"""Part 1, the coded rules: by behaviour, clause by clause, the clauses that are easily misread weighing most."""

from __future__ import annotations

from dataclasses import dataclass

from finskillbench.scoring.measures import clip, mean
from finskillbench.scoring.values import mapping
from finskillbench_desk.committee_case.judging.own import Own
from finskillbench_desk.committee_case.rules.judging import judge

OF_TRAPS = 0.8
"""Share of the part that the reading traps carry; clauses that no trap touches carry the rest."""
RIGHT, WRONG = 0.95, 0.6
"""Agreement with a clause on its probes (2 x balanced accuracy - 1) from which it counts in full; up to which not."""


@dataclass(frozen=True, slots=True)
class Coding:
    """The part's score, each clause's, and what became of each reading trap."""

    score: float
    clauses: dict[str, float]
    traps: dict[str, str]


def judged(own: Own) -> Coding:
    """Judge the rules of an answer."""
    hidden = mapping(own.facts.known["coding"])
    changed = {name: [clause for clause, _ in rules] for name, rules in mapping(hidden["misread"]).items() if rules}
    if own.same_rules:
        agreement = {rule.clause: 1.0 for rule in own.facts.rules}
        phantoms: tuple[str, ...] = ()
        traps: dict[str, str] = dict.fromkeys(changed, "avoided")
    else:
        found = judge(own.answer.get("rules"), hidden)
        agreement, phantoms = dict(found.clauses), found.phantoms
        traps = {name: fate for name, fate in found.traps.items() if name in changed}
    credit = {clause: clip((score - WRONG) / (RIGHT - WRONG)) for clause, score in agreement.items()}
    of_traps = [
        mean([credit.get(clause, float(bool(own.rules) and clause not in phantoms)) for clause in clauses])
        for clauses in changed.values()
    ]
    inside = {clause for clauses in changed.values() for clause in clauses}
    plain = [value for clause, value in credit.items() if clause not in inside]
    weight = OF_TRAPS if plain and of_traps else float(bool(of_traps))
    score = (weight * mean(of_traps) + (1 - weight) * mean(plain)) * len(credit) / (len(credit) + len(phantoms))
    return Coding(score, agreement, traps)
