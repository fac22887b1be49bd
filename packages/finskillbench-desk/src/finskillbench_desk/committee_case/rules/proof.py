"""Verify the stored data that coded rules are judged by: true rules, misreadings and probes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from finskillbench.scoring.values import as_array, as_object, json_equal
from finskillbench_desk.committee_case.documents.reader.misread import Misread
from finskillbench_desk.committee_case.documents.vocabulary import Vocabulary
from finskillbench_desk.committee_case.judging.agent_documents import Facts
from finskillbench_desk.committee_case.rederive.verification import CLOSE, same
from finskillbench_desk.committee_case.rules.judging import judge_rules
from finskillbench_desk.engines.guidelines.language import Rule, rule_json
from finskillbench_desk.engines.guidelines.parsing import parse_rules


def coding_checks(facts: Facts, read: Sequence[Rule], misreadings: Misread, vocabulary: Vocabulary) -> dict[str, bool]:
    """Check the stored coding truth against rules `read` from the text and their `misreadings`; True where it holds."""
    hidden = as_object(facts.known["coding"])
    entries = {name: as_array(stored) for name, stored in as_object(hidden["misread"]).items()}
    stated = {name: {clause: _plain(rules) for clause, rules in stored} for name, stored in entries.items()}
    again = {name: {clause: _forms(rules) for clause, rules in wrong.items()} for name, wrong in misreadings.items()}
    in_order = all([clause for clause, _ in stored] == list(again.get(name, ())) for name, stored in entries.items())
    issuers = sorted(line.issuer for line in facts.lines.values() if line.benchmark)
    return {
        "unexpected or missing fields": set(hidden) == {"rules", "misread", "issuers", "sub_sectors", "seed"},
        "rules differ from the guideline text": same(_plain(hidden["rules"]), _forms(read)),
        "rules differ from the answer": json_equal(facts.expected["rules"], hidden["rules"]),
        "misread rules differ from misreadings of the text": in_order and same(stated, again),
        "issuers differ from the benchmark": hidden["issuers"] == issuers,
        "sub-sectors differ from the vocabulary": json_equal(hidden["sub_sectors"], dict(vocabulary.sub_sectors)),
        "seed is not an integer": type(hidden["seed"]) is int,
        "true rules fail on the probes": judge_rules(hidden["rules"], hidden, probed=True).value >= 1.0 - CLOSE,
    }


def _plain(stored: object) -> list[Any]:
    """Return stored rules in canonical form; unchanged if they are not as `rule_json` writes them."""
    rules, problems = parse_rules(stored)
    if problems or not json_equal([rule_json(rule) for rule in rules], stored):
        return [stored]
    return _forms(rules)


def _forms(rules: Sequence[Rule]) -> list[Any]:
    """Return rules as JSON; exceptions without a limit move into the filter if no exception has one."""
    limited = [any(each.limit is not None for each in rule.exceptions) for rule in rules]
    return [rule_json(rule if kept else rule.atoms()[0]) for rule, kept in zip(rules, limited, strict=True)]
