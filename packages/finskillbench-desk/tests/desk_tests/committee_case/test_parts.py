"""Judging part by part: what is right earns all, one slip costs once, traps cost, and nothing is had for nothing."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from desk_tests.committee_case.conftest import Played
from desk_tests.committee_case.slips import consistent, with_field

from finskillbench.engines.optimisation.certified import InfeasibleError, UndecidedError
from finskillbench_desk.committee_case.judging.agent_documents import Facts
from finskillbench_desk.committee_case.judging.scorer import SIGNED, cure_keeps_limits

LATER = ("breaches", "cure", "figures")


def parts(case: Played, answer: Any) -> dict[str, float]:
    return case.scored(answer).details["parts"]


def test_the_truth_earns_everything_and_is_signed(cases: list[Played]) -> None:
    for case in cases:
        found = case.scored(case.truth)
        assert found.value == pytest.approx(1.0, abs=1e-12)
        assert found.details["signed"] is True
        assert set(found.details["traps"].values()) == {"avoided"}


def test_rounding_to_cents_costs_nothing(cases: list[Played]) -> None:
    for case in cases:
        answer = copy.deepcopy(case.truth)
        for row in (*answer["book"]["positions"], *answer["trades"]):
            row["value"] = round(row["value"], 2)
        answer["book"]["cash"] = round(answer["book"]["cash"], 2)
        answer["figures"] = {name: float(f"{value:.5g}") for name, value in answer["figures"].items()}
        assert min(parts(case, answer).values()) >= SIGNED


@pytest.mark.slow
def test_wrong_rules_with_all_that_follows_cost_the_first_part_only(cases: list[Played]) -> None:
    """Rules left out, limits changed, caps turned to tests at all times: the rest is judged by what they come to."""
    rng, tried = np.random.default_rng(3), 0
    for case in cases[:3]:
        for _ in range(3):
            answer = copy.deepcopy(case.truth)
            rules = answer["rules"]
            for place in rng.choice(len(rules), 6, replace=False).tolist():
                if rng.random() < 0.5 and isinstance(rules[place]["limit"], float):
                    rules[place]["limit"] = round(rules[place]["limit"] * float(rng.uniform(0.8, 1.3)), 2)
                else:
                    rules[place].pop("when", None)
                    rules[place].pop("exceptions", None)
            del rules[int(rng.integers(len(rules)))]
            try:
                wrong = consistent(answer, case.task.truth)
            except (InfeasibleError, UndecidedError):
                continue
            if wrong is None:
                continue
            tried += 1
            found = parts(case, wrong)
            assert found["rules"] < 0.999
            assert found["book"] == pytest.approx(1.0)
            assert [found[name] for name in LATER] == pytest.approx([1.0, 1.0, 1.0], abs=2e-3)
    assert tried >= 4


@pytest.mark.slow
def test_each_trap_alone_costs_its_part_and_no_other(cases: list[Played]) -> None:
    tried = 0
    for case in cases:
        for planted in case.task.truth.verification["planted"]:
            if not planted["trap"]:
                continue
            answer = with_field(case.truth, planted, planted["fallen"])
            try:
                fallen = consistent(answer, case.task.truth)
            except (InfeasibleError, UndecidedError):
                continue
            if fallen is None:
                continue
            tried += 1
            found = case.scored(fallen)
            label = f"{planted['kind']}@{planted['where']}"
            assert found.details["traps"][label] == "fallen"
            assert found.details["parts"]["book"] <= 0.9
            assert [found.details["parts"][name] for name in LATER] == pytest.approx([1.0, 1.0, 1.0], abs=2e-3)
            assert found.details["signed"] is False
    assert tried >= 5


def test_all_traps_fallen_leave_at_most_three_tenths(cases: list[Played]) -> None:
    for case in cases:
        answer = case.truth
        for planted in case.task.truth.verification["planted"]:
            if planted["trap"]:
                answer = with_field(answer, planted, planted["fallen"])
        assert parts(case, answer)["book"] <= 0.3 + 1e-12


def test_a_trap_seen_everywhere_leaves_at_most_three_tenths(cases: list[Played]) -> None:
    for case in cases:
        answer = case.truth
        for planted in case.task.truth.verification["planted"]:
            if not planted["trap"]:
                answer = with_field(answer, planted, planted["fallen"])
        assert parts(case, answer)["book"] <= 0.3 + 1e-12


def test_what_the_custodian_shows_at_the_vendors_closes_earns_little(cases: list[Played]) -> None:
    for case in cases:
        fx = {**case.task_input["fx"], "GBX": case.task_input["fx"]["GBP"] / 100}
        lines = {row["security"]: row for row in case.task_input["reference"].frame.to_dicts()}
        closes = {row["security"]: row["close"] for row in case.task_input["prices"].frame.to_dicts()}
        prices = {name: closes[name] * row["multiplier"] * fx[row["currency"]] for name, row in lines.items()}
        shown = case.task.truth.verification["shown"]
        rows = [{"security": name, "quantity": n, "value": n * prices[name]} for name, n in shown.items()]
        cash = sum(amount * fx[name] for name, amount in case.task_input["cash_balances"].items())
        book = {"positions": rows, "cash": cash, "pending_purchases": 0, "pending_sales": 0, "replaced": []}
        assert parts(case, {"book": book})["book"] <= 0.3
        assert case.scored({"book": book}).value <= 0.06


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"rules": [], "book": {}, "breaches": [], "excluded": [], "trades": [], "figures": {}},
        {"rules": "all", "book": [1], "breaches": {"a": 1}, "excluded": 3, "trades": [None], "figures": "none"},
        {"book": {"positions": [{"security": "CASH", "quantity": 1e300, "value": -1e300}], "cash": 1e308}},
        {"trades": [{"security": "CASH", "value": 1e12}], "figures": {"beta": True}},
    ],
)
def test_nothing_is_had_for_nothing(cases: list[Played], answer: Any) -> None:
    for case in cases[:2]:
        assert case.scored(answer).value <= 0.02


def test_a_cure_that_breaks_a_rule_or_costs_twice_as_much_earns_nothing(cases: list[Played]) -> None:
    for case in cases:
        answer = copy.deepcopy(case.truth)
        answer["trades"].remove(max(answer["trades"], key=lambda row: abs(row["value"])))
        fewer = parts(case, answer)["cure"]
        answer = copy.deepcopy(case.truth)
        least = case.task.truth.verification["least_cost"]
        rates = case.task.truth.verification["rates"]
        nav = sum(abs(row["value"]) for row in answer["book"]["positions"])
        dearest = max((name for name in rates if name[0] == "G"), key=lambda name: rates[name])
        answer["trades"] = [*answer["trades"], {"security": dearest, "value": 4 * least * nav / rates[dearest]}]
        assert fewer == 0.0
        assert parts(case, answer)["cure"] == 0.0


def test_a_dearer_cure_earns_less_and_nothing_from_a_quarter_more(cases: list[Played]) -> None:
    """A needless sale beside the cheapest cure: what it costs is taken off, and 1.25 times the least is too much."""
    tried = 0
    for case in cases:
        facts = Facts.of(case.task.truth)
        trades = {row["security"]: row["value"] for row in case.truth["trades"]}
        least = float(facts.known["least_cost"]) * facts.book.nav
        for row in case.truth["book"]["positions"]:
            name, rate = row["security"], facts.trading_costs.rates.get(row["security"], 1.0)
            sales = [{**trades, name: -share * least / rate} for share in (0.1, 0.3)]
            if name in trades or row["value"] < 0.3 * least / rate:
                continue
            if not all(cure_keeps_limits(facts.rules, facts.book, sale) for sale in sales):
                continue
            answers = [
                {**case.truth, "trades": [{"security": key, "value": value} for key, value in sale.items()]}
                for sale in sales
            ]
            assert [parts(case, answer)["cure"] for answer in answers] == pytest.approx([0.6, 0.0], abs=1e-6)
            tried += 1
            break
    assert tried
