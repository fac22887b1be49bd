"""The label of a case examined: all of it derived again from the visible papers and text, the cure proved again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from finskillbench.domains.base import Label
from finskillbench.domains.desk.committee_case.documents.reader import read_guidelines
from finskillbench.domains.desk.committee_case.documents.vocabulary import Vocabulary
from finskillbench.domains.desk.committee_case.judging.facts import Facts
from finskillbench.domains.desk.committee_case.judging.later import keeps
from finskillbench.domains.desk.committee_case.rules.judging import judge
from finskillbench.domains.desk.committee_case.second.papers import Recovered, recovered, rows_of
from finskillbench.domains.desk.committee_case.second.withheld import replaced, trading, withheld
from finskillbench.domains.desk.committee_case.standing import breached, forbidden
from finskillbench.engines.books.figures import figures
from finskillbench.engines.guidelines.cure import after, cheapest_cure
from finskillbench.engines.guidelines.parsing import parse_rules
from finskillbench.findings import Findings
from finskillbench.scoring.values import is_array, is_object, json_equal, mapping, number

CLOSE = 1e-7
"""Relative difference of two derivations of one number."""
SAME_COST = 1e-9
"""Difference of two costs of a cure, fractions of net asset value: what trades that are rounded to nothing leave."""


def examine(label: Label[Any], findings: Findings) -> None:
    """What is withheld of a label, its book, rules, breaches, exclusions, cure and figures."""
    facts, where = Facts.of(label.truth), label.episode.task_id
    book = recovered(label.task_input)
    for key, again in withheld(label.task_input, book).items():
        path = next(_differences(facts.known.get(key), again, key), None)
        findings.expect(path is None, where, f"{path} is not what the papers give", f"verification.{key}")
    for name, held in (_book(facts, book) | _stated(facts, label.task_input, book)).items():
        findings.expect(held, where, f"the papers give another {name} than the label")
    findings.expect(_risk(facts, label.task_input), where, "the covariance is not that of the edition")
    for name, held in _standing(facts, label.task_input).items():
        findings.expect(held, where, f"{name} derived again differ from the label")
    for name, held in _cure(facts, label.certificate).items():
        findings.expect(held, where, f"the cure: {name}")


def _near(first: float, second: float, scale: float = 1.0) -> bool:
    return abs(first - second) <= CLOSE * max(abs(second), scale)


def _book(facts: Facts, found: Recovered) -> dict[str, bool]:
    units = {name: count for name, (count, _) in facts.positions.items()}
    values = {name: found.prices[name] * count for name, count in found.quantities.items()}
    return {
        "list of positions": found.quantities.keys() == units.keys(),
        "quantity": all(_near(found.quantities.get(name, 0.0), count) for name, count in units.items()),
        "value": all(_near(values.get(name, 0.0), value) for name, (_, value) in facts.positions.items()),
        "cash": _near(found.cash, float(facts.expected["book"]["cash"])),
        "sector": all(
            found.sectors.get(line.issuer, "") == line.sector for line in facts.lines.values() if line.sector
        ),
    }


def _stated(facts: Facts, task_input: Mapping[str, Any], found: Recovered) -> dict[str, bool]:
    """What the answer says of the book beside its positions."""
    stated, pending = facts.expected["book"], trading(task_input, found)[2:]
    given = [stated["pending_purchases"], stated["pending_sales"]]
    return {
        "amount of pending trades": _same(given, pending),
        "list of replaced fields": _same(stated["replaced"], replaced(task_input, found)),
    }


def _same(stated: object, again: object) -> bool:
    return next(_differences(stated, again, ""), None) is None


def _differences(stated: object, again: object, path: str) -> Iterator[str]:
    """Paths at which two JSON values differ by more than rounding; lists are held against each other in their order."""
    if is_object(stated) and is_object(again):
        for key in sorted({*stated, *again}):
            where = f"{path}.{key}"
            yield from _differences(stated[key], again[key], where) if key in stated and key in again else (where,)
    elif is_array(stated) and is_array(again):
        if len(stated) != len(again):
            yield path
        for place, (one, other) in enumerate(zip(stated, again, strict=False)):
            yield from _differences(one, other, f"{path}[{place}]")
    elif (first := number(stated)) is None or (second := number(again)) is None:
        if not json_equal(stated, again):
            yield path
    elif not _near(first, second, abs(second)):
        yield path


def _risk(facts: Facts, task_input: Mapping[str, Any]) -> bool:
    table, risk = task_input["covariance_matrix"], facts.risk
    places = [list(table["tickers"]).index(name) for name in risk.issuers]
    if "matrix" in table:
        whole = np.array(table["matrix"], dtype=np.float64)[np.ix_(places, places)]
    else:
        loadings = np.array(table["loadings"], dtype=np.float64)[:, places]
        whole = loadings.T @ loadings + np.diag(np.array(table["specific"], dtype=np.float64)[places])
    return bool(np.allclose(whole, risk.covariance, rtol=1e-9, atol=1e-12))


def _standing(facts: Facts, task_input: Mapping[str, Any]) -> dict[str, bool]:
    issuers = {row["issuer"]: row["issuer"] for row in rows_of(task_input["reference"]) if row["issuer"]}
    read = read_guidelines(task_input["documents"]["guidelines"], Vocabulary(issuers))
    rules, problems = parse_rules(read)
    return {
        "rules": not problems and judge(read, mapping(facts.known["coding"])).value >= 1.0 - CLOSE,
        "breaches": list(breached(rules, facts.book)) == list(facts.expected["breaches"]),
        "exclusions": list(forbidden(rules, facts.book)) == list(facts.expected["excluded"]),
    }


def _cure(facts: Facts, certificate: Mapping[str, Any]) -> dict[str, bool]:
    trades = {row["security"]: row["value"] for row in facts.expected["trades"]}
    cost = sum(facts.terms.rates[name] * abs(value) for name, value in trades.items()) / facts.book.nav
    again = cheapest_cure(facts.rules, facts.book, facts.terms)
    measured = figures(after(facts.book, trades), facts.risk)
    stated = facts.expected["figures"]
    return {
        "a limit is not kept": keeps(facts.rules, facts.book, trades),
        "its cost is not that of its trades": abs(cost - float(facts.known["least_cost"])) <= SAME_COST,
        "its bound is not proved": again.bound >= cost - 1e-8 and again.certified.optimality.gap <= 1e-7,
        "its certificate states another cost": not certificate or abs(float(certificate["cost"]) - cost) <= SAME_COST,
        "its figures are others": all(_near(measured[name], stated[name]) for name in measured),
    }
