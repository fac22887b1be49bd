"""Every parameter that a judge is told comes out of the papers, and each defect that is planted in one is found."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from desk_tests.committee_case.conftest import Played, played
from tests.sampling import sampled

from finskillbench.domains.checks.examination import examining
from finskillbench.domains.examples import Label
from finskillbench.domains.tables import EpisodeTable
from finskillbench.episode import Truth
from finskillbench.findings import Findings
from finskillbench.panels import Panels
from finskillbench_desk.committee_case.build import committee_task
from finskillbench_desk.committee_case.draw import draw_committee_case
from finskillbench_desk.committee_case.ledger import case as ledger_of_case
from finskillbench_desk.committee_case.ledger.lines import AddedLines
from finskillbench_desk.committee_case.ledger.records import FundLedger
from finskillbench_desk.committee_case.proof import examine_committee_case
from finskillbench_desk.committee_case.rederive.book_and_traps import recovered
from finskillbench_desk.committee_case.rederive.verification import derive_verification
from finskillbench_desk.market import ListedName

pytestmark = pytest.mark.slow

Known = dict[str, Any]
Defect = Callable[[Known], object]


def _first(known: Known, key: str) -> Any:
    return known[key][sorted(known[key])[3]] if isinstance(known[key], dict) else known[key][0]


def _scaled(key: str) -> Defect:
    def change(known: Known) -> None:
        name = sorted(known[key])[3]
        known[key][name] *= 1.00001

    return change


def _line(**values: Any) -> Defect:
    """Another value in the first line that has one of these fields."""

    def change(known: Known) -> None:
        for field, value in values.items():
            line = next(line for line in known["instruments"] if line[field])
            line[field] = value

    return change


DEFECTS: dict[str, Defect] = {
    "a price": _scaled("prices"),
    "a price that is missing": lambda known: known["prices"].pop(sorted(known["prices"])[3]),
    "units shown": _scaled("shown"),
    "a rate": _scaled("rates"),
    "a leverage": _scaled("leverage"),
    "purchases and sales exchanged": lambda known: known["trading"].reverse(),
    "a pending purchase left out": lambda known: known["trading"].__setitem__(2, 0.9 * known["trading"][2]),
    "a vendor's sector": lambda known: _first(known, "vendor").update(sector="Utilities."),
    "a vendor's count": lambda known: _first(known, "vendor").update(shares=1e9 + 1),
    "instruments in another order": lambda known: known["instruments"].reverse(),
    "an instrument left out": lambda known: known["instruments"].pop(),
    "a kind": _line(kind="warrant"),
    "an issuer": _line(issuer="NOBODY"),
    "a sector": _line(sector="Utilities."),
    "a currency": _line(currency="GBX"),
    "a list": _line(lists=[]),
    "a benchmark weight": _line(benchmark=0.01),
    "an attribute": _line(attributes={}),
    "a holding": _line(holdings={}),
    "a trap left out": lambda known: known["planted"].pop(0),
    "a trap told twice": lambda known: known["planted"].append(known["planted"][0]),
    "traps in another order": lambda known: known["planted"].reverse(),
    "a control for a trap": lambda known: known["planted"][0].update(trap=not known["planted"][0]["trap"]),
    "another kind of trap": lambda known: known["planted"][0].update(kind="restated_filing"),
    "another field": lambda known: known["planted"][0].update(field="cash"),
    "another place": lambda known: known["planted"][0].update(where="F1"),
    "another right value": lambda known: known["planted"][0].update(right=known["planted"][0]["fallen"]),
    "another misleading value": lambda known: known["planted"][0].update(fallen=known["planted"][0]["right"]),
}


@pytest.mark.parametrize("name", sampled(DEFECTS, 4))
def test_a_defect_of_a_parameter_is_found(cases: list[Played], name: str) -> None:
    case = cases[len(name) % len(cases)]
    known = copy.deepcopy(dict(case.task.truth.verification))
    DEFECTS[name](known)
    messages = _found(replace(case.task.truth, verification=known), case)
    assert any("differs from the value derived from the records" in message for message in messages)


ANSWERS: dict[str, tuple[Defect, str]] = {
    "pending purchases": (lambda book: book.update(pending_purchases=1.0), "book.pending_purchases differs"),
    "pending sales": (lambda book: book.update(pending_sales=1.0), "book.pending_sales differs"),
    "fields replaced": (lambda book: book["replaced"].pop(), "book.replaced differs"),
    "cash": (lambda book: book.update(cash=1.00001 * book["cash"]), "book.cash differs"),
    "a value": (lambda book: book["positions"][2].update(value=1.0), "book.positions[2].value differs"),
    "positions in another order": (lambda book: book["positions"].reverse(), "book.positions[0].quantity differs"),
    "a position told twice": (lambda book: book["positions"].append(book["positions"][0]), "book.positions differs"),
}


@pytest.mark.parametrize("name", sampled(ANSWERS, 2))
def test_a_defect_of_the_book_is_found(cases: list[Played], name: str) -> None:
    case = next(case for case in cases if case.truth["book"]["replaced"])
    expected = copy.deepcopy(case.truth)
    change, words = ANSWERS[name]
    change(expected["book"])
    assert any(words in message for message in _found(replace(case.task.truth, expected_output=expected), case))


def _limit(coding: Known) -> None:
    rule = next(rule for rule in coding["rules"] if isinstance(rule.get("limit"), float) and rule["limit"])
    rule["limit"] *= 1.00001


def _slip(name: str) -> Defect:
    return lambda coding: next(own for own in coding["misread"].values() if own)[0].__setitem__(1, [name])


CODED: dict[str, Defect] = {
    "a limit": _limit,
    "a rule left out": lambda coding: coding["rules"].pop(),
    "a misreading that cannot be read": _slip("x"),
    "a misreading left out": lambda coding: next(own for own in coding["misread"].values() if len(own) > 1).pop(),
    "misreadings in another order": lambda coding: next(
        own for own in coding["misread"].values() if len(own) > 1
    ).reverse(),
    "a kind of misreading left out": lambda coding: coding["misread"].pop("timing"),
    "an issuer left out": lambda coding: coding["issuers"].pop(),
    "a sub-sector left out": lambda coding: coding["sub_sectors"].popitem(),
    "a seed that is none": lambda coding: coding.update(seed=True),
    "a field beside": lambda coding: coding.update(probes=256),
}


@pytest.mark.parametrize("name", sampled(CODED, 2))
def test_a_defect_of_what_rules_are_judged_by_is_found(cases: list[Played], name: str) -> None:
    case = cases[len(name) % len(cases)]
    known = copy.deepcopy(dict(case.task.truth.verification))
    CODED[name](known["coding"])
    assert any("coding" in message for message in _found(replace(case.task.truth, verification=known), case))


def test_a_place_is_found_whatever_was_planted(cases: list[Played]) -> None:
    """A lot that is printed twice without anybody's having planted it is a trap all the same."""
    case = cases[0]
    lots = case.task_input["custodian"].frame
    again = {**case.task_input, "custodian": EpisodeTable(lots.vstack(lots.tail(1)))}
    where = lots["security"][-1]
    before, after = (derive_verification(papers, recovered(papers))["planted"] for papers in (case.task_input, again))
    (new,) = [place for place in after if place not in before]
    assert (new["kind"], new["where"], new["trap"]) == ("duplicate_line", where, True)
    assert new["fallen"] == pytest.approx(new["right"] + lots["quantity"][-1])


def test_a_pending_trade_is_worth_its_true_currency(
    market_panels: Panels, members: tuple[ListedName, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a line quoted in pence that the vendor has in pounds, a pending purchase is paid in pence."""
    deal = cast("Callable[..., ledger_of_case.Roles]", vars(ledger_of_case)["_roles"])

    def roles(ledger: FundLedger, own: AddedLines, *rest: Any) -> ledger_of_case.Roles:
        dealt = deal(ledger, own, *rest)
        others = {name: tuple(one for one in getattr(dealt, name) if one != own.london[0]) for name in _PLAYING}
        return replace(dealt, **{**others, "bought": (*others["bought"], own.london[0])})

    monkeypatch.setattr(ledger_of_case, "_roles", roles)
    number = ledger_of_case.KINDS.index("currency_unit")
    found = draw_committee_case(
        market_panels, members, market_panels.month_ends[0], "easy", number, np.random.default_rng(1)
    )
    case = played(committee_task(found, number))
    orders = [row for row in found.world.ledger.orders if row.security == found.world.added.london[0]]
    order = orders[0]
    assert found.world.ledger.securities[order.security].currency == "GBP"
    ledger, void = found.world.ledger, {row.replaces for row in found.world.ledger.orders}
    bought = [
        row.quantity * row.price * (0.01 if row.security == order.security else 1.0) * ledger.units(row.security)
        for row in ledger.orders
        if row.quantity > 0 and row.trade not in void and row.trade_date <= ledger.as_of < row.settle_date
    ]
    assert case.truth["book"]["pending_purchases"] == pytest.approx(sum(bought), rel=1e-12)
    assert _found(case.task.truth, case) == []


_PLAYING = ("bought", "sold", "new", "executed", "tomorrow")


def _found(truth: Truth, case: Played) -> list[str]:
    findings = Findings()
    with examining(truth.task_id, findings):
        examine_committee_case(Label(case.task.episode, case.task_input, truth, case.task.certificate), findings)
    return [finding.message for finding in findings.found]
