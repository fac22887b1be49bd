"""Verify the label of a committee case: derive it again from the visible records and text, and prove the cure again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from finskillbench.domains.examples import Label
from finskillbench.findings import Findings
from finskillbench.scoring.values import json_equal
from finskillbench_desk.committee_case.documents.reader import read_guidelines
from finskillbench_desk.committee_case.documents.reader.misread import misread_rules
from finskillbench_desk.committee_case.documents.vocabulary import Vocabulary
from finskillbench_desk.committee_case.draw import breached, forbidden
from finskillbench_desk.committee_case.judging.agent_documents import Facts
from finskillbench_desk.committee_case.judging.scorer import cure_keeps_limits
from finskillbench_desk.committee_case.rederive.book_and_traps import recovered, table_rows
from finskillbench_desk.committee_case.rederive.verification import (
    derive_book,
    derive_verification,
    json_differences,
    same,
)
from finskillbench_desk.committee_case.rules.proof import coding_checks
from finskillbench_desk.engines.books.figures import figures
from finskillbench_desk.engines.guidelines.cure import after, cheapest_cure
from finskillbench_desk.engines.guidelines.parsing import parse_rules

SAME_COST = 1e-9
"""Tolerance between two costs of a cure, as a fraction of net asset value."""


def examine_committee_case(label: Label[Any], findings: Findings) -> None:
    """Check verification data, book, rules, breaches, exclusions, cure and figures of a label."""
    facts, where = Facts.of(label.truth), label.episode.task_id
    book = recovered(label.task_input)
    for key, again in derive_verification(label.task_input, book).items():
        path = next(json_differences(facts.known.get(key), again, key), None)
        message = f"{path} differs from the value derived from the records"
        findings.expect(path is None, where, message, f"verification.{key}")
    path = next(json_differences(facts.expected["book"], derive_book(label.task_input, book), "book"), None)
    findings.expect(path is None, where, f"{path} differs from the value derived from the records")
    text, vocabulary = label.task_input["documents"]["guidelines"], _vocabulary(label.task_input)
    rules, problems = parse_rules(read_guidelines(text, vocabulary))
    findings.expect(not problems, where, f"rules parsed from the guidelines are invalid: {problems}")
    for name, held in coding_checks(facts, rules, misread_rules(text, vocabulary), vocabulary).items():
        findings.expect(held, where, f"coding: {name}", "verification.coding")
    for name, field, found in (("breaches", "breaches", breached), ("exclusions", "excluded", forbidden)):
        held = list(found(rules, facts.book)) == list(facts.expected[field])
        findings.expect(held, where, f"rederived {name} differ from the label")
    for name, held in _cure(facts, label.certificate).items():
        findings.expect(held, where, f"cure: {name}")


def _vocabulary(task_input: Mapping[str, Any]) -> Vocabulary:
    return Vocabulary({row["issuer"]: row["issuer"] for row in table_rows(task_input["reference"]) if row["issuer"]})


def _cure(facts: Facts, certificate: Mapping[str, Any]) -> dict[str, bool]:
    trades = {row["security"]: row["value"] for row in facts.expected["trades"]}
    cost = math.fsum(facts.trading_costs.rates[name] * abs(value) for name, value in trades.items()) / facts.book.nav
    again = cheapest_cure(facts.rules, facts.book, facts.trading_costs)
    measured = figures(after(facts.book, trades), facts.risk)
    listed = [{"security": name, "value": value} for name, value in sorted(trades.items())]
    return {
        "trades leave a limit exceeded": cure_keeps_limits(facts.rules, facts.book, trades),
        "stated cost differs from the cost of the trades": abs(cost - float(facts.known["least_cost"])) <= SAME_COST,
        "lower bound is not proved": again.bound >= cost - 1e-8 and again.certified.optimality.gap <= 1e-7,
        "certificate states a different cost": not certificate or abs(float(certificate["cost"]) - cost) <= SAME_COST,
        "figures differ from those after the trades": same(facts.expected["figures"], measured),
        "trades are not a list sorted by security": json_equal(facts.expected["trades"], listed),
    }
