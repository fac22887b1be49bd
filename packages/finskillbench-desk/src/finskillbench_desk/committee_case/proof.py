"""The label of a case examined: all of it derived again from the visible papers and text, the cure proved again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from finskillbench.domains.examples import Label
from finskillbench.findings import Findings
from finskillbench.scoring.values import json_equal
from finskillbench_desk.committee_case.documents.reader import read_guidelines
from finskillbench_desk.committee_case.documents.reader.misread import misread
from finskillbench_desk.committee_case.documents.vocabulary import Vocabulary
from finskillbench_desk.committee_case.draw import breached, forbidden
from finskillbench_desk.committee_case.judging.agent_documents import Facts
from finskillbench_desk.committee_case.judging.later import keeps
from finskillbench_desk.committee_case.rederive.places import recovered, rows_of
from finskillbench_desk.committee_case.rederive.withheld import differences, same, stated_book, withheld
from finskillbench_desk.committee_case.rules.proof import coding
from finskillbench_desk.engines.books.figures import figures
from finskillbench_desk.engines.guidelines.cure import after, cheapest_cure
from finskillbench_desk.engines.guidelines.language import Rule
from finskillbench_desk.engines.guidelines.parsing import parse_rules

SAME_COST = 1e-9
"""Difference of two costs of a cure, fractions of net asset value: what trades that are rounded to nothing leave."""


def examine(label: Label[Any], findings: Findings) -> None:
    """What is withheld of a label, its book, rules, breaches, exclusions, cure and figures."""
    facts, where = Facts.of(label.truth), label.episode.task_id
    book = recovered(label.task_input)
    for key, again in withheld(label.task_input, book).items():
        path = next(differences(facts.known.get(key), again, key), None)
        findings.expect(path is None, where, f"{path} is not what the papers give", f"verification.{key}")
    path = next(differences(facts.expected["book"], stated_book(label.task_input, book), "book"), None)
    findings.expect(path is None, where, f"{path} is not what the papers give")
    text, vocabulary = label.task_input["documents"]["guidelines"], _words(label.task_input)
    rules, problems = parse_rules(read_guidelines(text, vocabulary))
    findings.expect(not problems, where, f"the text reads as rules with problems: {problems}")
    for name, held in coding(facts, rules, misread(text, vocabulary), vocabulary).items():
        findings.expect(held, where, f"coding: {name}", "verification.coding")
    for name, held in _standing(facts, rules).items():
        findings.expect(held, where, f"{name} derived again differ from the label")
    for name, held in _cure(facts, label.certificate).items():
        findings.expect(held, where, f"the cure: {name}")


def _words(task_input: Mapping[str, Any]) -> Vocabulary:
    return Vocabulary({row["issuer"]: row["issuer"] for row in rows_of(task_input["reference"]) if row["issuer"]})


def _standing(facts: Facts, rules: Sequence[Rule]) -> dict[str, bool]:
    return {
        "breaches": list(breached(rules, facts.book)) == list(facts.expected["breaches"]),
        "exclusions": list(forbidden(rules, facts.book)) == list(facts.expected["excluded"]),
    }


def _cure(facts: Facts, certificate: Mapping[str, Any]) -> dict[str, bool]:
    trades = {row["security"]: row["value"] for row in facts.expected["trades"]}
    cost = math.fsum(facts.terms.rates[name] * abs(value) for name, value in trades.items()) / facts.book.nav
    again = cheapest_cure(facts.rules, facts.book, facts.terms)
    measured = figures(after(facts.book, trades), facts.risk)
    stated = facts.expected["figures"]
    return {
        "a limit is not kept": keeps(facts.rules, facts.book, trades),
        "its cost is not that of its trades": abs(cost - float(facts.known["least_cost"])) <= SAME_COST,
        "its bound is not proved": again.bound >= cost - 1e-8 and again.certified.optimality.gap <= 1e-7,
        "its certificate states another cost": not certificate or abs(float(certificate["cost"]) - cost) <= SAME_COST,
        "its figures are others": same(stated, measured),
        "its trades are no list by security": json_equal(
            facts.expected["trades"], [{"security": name, "value": value} for name, value in sorted(trades.items())]
        ),
    }
