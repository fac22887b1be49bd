"""What coded rules are judged by, examined: the rules in force, what they can be misread for, and the probes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from finskillbench.scoring.values import array, json_equal, mapping
from finskillbench_desk.committee_case.documents.reader.misread import Misread
from finskillbench_desk.committee_case.documents.vocabulary import Vocabulary
from finskillbench_desk.committee_case.judging.agent_documents import Facts
from finskillbench_desk.committee_case.rederive.withheld import CLOSE, same
from finskillbench_desk.committee_case.rules.judging import judge
from finskillbench_desk.engines.guidelines.language import Rule, rule_json
from finskillbench_desk.engines.guidelines.parsing import parse_rules


def coding(facts: Facts, read: Sequence[Rule], slips: Misread, vocabulary: Vocabulary) -> dict[str, bool]:
    """What is wrong with what an agent's rules are judged by, and whether all is well with it.

    Parameters
    ----------
    read, slips : the rules that an independent reader makes of the text, and those of one who misreads it.
    """
    hidden = mapping(facts.known["coding"])
    entries = {name: array(own) for name, own in mapping(hidden["misread"]).items()}
    stated = {name: {clause: _plain(rules) for clause, rules in own} for name, own in entries.items()}
    again = {name: {clause: _forms(rules) for clause, rules in own.items()} for name, own in slips.items()}
    in_order = all([clause for clause, _ in own] == list(again.get(name, ())) for name, own in entries.items())
    issuers = sorted(line.issuer for line in facts.lines.values() if line.benchmark)
    return {
        "it has other fields": set(hidden) == {"rules", "misread", "issuers", "sub_sectors", "seed"},
        "the rules are not what the text says": same(_plain(hidden["rules"]), _forms(read)),
        "the rules are not those of the answer": json_equal(facts.expected["rules"], hidden["rules"]),
        "what is misread is not what the text can be taken for": in_order and same(stated, again),
        "its issuers are not the benchmark's": hidden["issuers"] == issuers,
        "its sub-sectors are others": json_equal(hidden["sub_sectors"], dict(vocabulary.sub_sectors)),
        "its seed is no whole number": type(hidden["seed"]) is int,
        "the right rules are not right on its probes": judge(hidden["rules"], hidden, probed=True).value >= 1.0 - CLOSE,
    }


def _plain(stored: object) -> list[Any]:
    """Stored rules in one form; as they are where they are not as `rule_json` writes them."""
    rules, problems = parse_rules(stored)
    if problems or not json_equal([rule_json(rule) for rule in rules], stored):
        return [stored]
    return _forms(rules)


def _forms(rules: Sequence[Rule]) -> list[Any]:
    """Rules as JSON; exceptions without a limit of their own may as well be left out of what a rule is about."""
    return [
        rule_json(rule if any(each.limit is not None for each in rule.exceptions) else rule.atoms()[0])
        for rule in rules
    ]
