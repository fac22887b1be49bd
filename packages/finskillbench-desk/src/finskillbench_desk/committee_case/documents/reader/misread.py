"""Derive the rules that each kind of misreading yields, with the independent reader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from finskillbench_desk.committee_case.documents.reader import read_guidelines
from finskillbench_desk.committee_case.documents.vocabulary import Vocabulary
from finskillbench_desk.engines.guidelines.language import Rule
from finskillbench_desk.engines.guidelines.parsing import parse_rules

Misread = dict[str, dict[str, tuple[Rule, ...]]]


def misread_rules(text: str, vocabulary: Vocabulary) -> Misread:
    """Return the misread rules by kind of misreading and clause, for clauses where they differ from the true ones."""
    true = parse_rules(read_guidelines(text, vocabulary))[0]
    readings: Mapping[str, tuple[Rule, ...]] = {
        "definition": parse_rules(read_guidelines(text, vocabulary, defined=False))[0],
        "amendment": parse_rules(read_guidelines(text, vocabulary, amended=False))[0],
        "exception": tuple(replace(rule, exceptions=()) for rule in true),
        "reporting": tuple(replace(rule, effect="limit") for rule in true),
        "basis": tuple(rule if isinstance(rule.basis, str) else replace(rule, basis="nav") for rule in true),
        "timing": tuple(replace(rule, when="always") for rule in true),
    }
    return {slip: changed(true, rules) for slip, rules in readings.items()}


def changed(true: tuple[Rule, ...], alternative: tuple[Rule, ...]) -> dict[str, tuple[Rule, ...]]:
    """Return the alternative rules by clause where they differ; an empty tuple where a clause has none."""
    clauses = sorted({rule.clause for rule in (*true, *alternative)})
    found = {name: tuple(rule for rule in alternative if rule.clause == name) for name in clauses}
    return {name: rules for name, rules in found.items() if rules != tuple(one for one in true if one.clause == name)}
