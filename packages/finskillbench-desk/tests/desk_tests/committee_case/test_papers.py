"""The papers of a case: the true book comes out of them by other code, and each planted defect is one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from desk_tests.committee_case.conftest import Played
from tests.sampling import sampled

from finskillbench.domains.examples import Label
from finskillbench.domains.tables import EpisodeTable
from finskillbench.findings import Findings
from finskillbench.panels import Panels
from finskillbench_desk.committee_case.draw import CONTROLS, TRAPS
from finskillbench_desk.committee_case.ledger.case import KINDS, draft_market, round_quantities, write_records
from finskillbench_desk.committee_case.ledger.records import ledger_tables
from finskillbench_desk.committee_case.proof import examine_committee_case
from finskillbench_desk.committee_case.rederive.book_and_traps import recovered
from finskillbench_desk.market import ListedName

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("trap", [True, False])
def test_the_true_book_comes_out_of_the_papers(
    market_panels: Panels, members: tuple[ListedName, ...], kind: str, trap: bool
) -> None:
    """Every kind of trap and control, by code that knows nothing of what was planted."""
    for seed in sampled(range(3), 3):
        rng = np.random.default_rng(seed)
        one = draft_market(market_panels, members, market_panels.month_ends[seed], [(kind, trap)], rng)
        weights = rng.dirichlet(np.full(len(one.roles.held), 4.0))
        sizes = {name: 5e8 * w / one.prices[name] for name, w in zip(one.roles.held, weights, strict=True)}
        world = write_records(one, round_quantities(one, sizes), 2e7, rng)
        ledger, truth = world.ledger, world.holdings
        case = {name: EpisodeTable(frame) for name, frame in ledger_tables(ledger).items()}
        fx = {name: rate for name, rate in ledger.fx.items() if name != "GBX"}
        found = recovered({**case, "as_of": ledger.as_of.isoformat(), "fx": fx, "cash_balances": ledger.balances})
        assert found.quantities == pytest.approx(truth.quantities)
        assert {name: found.prices[name] for name in truth.prices} == pytest.approx(truth.prices)
        assert found.cash == pytest.approx(truth.cash, abs=1e-3)
        assert {name: found.sectors[name] for name in truth.sectors} == truth.sectors
        (planted,) = world.planted
        assert planted.trap is trap
        assert planted.right != planted.fallen


def test_a_case_has_its_traps_and_its_controls(cases: list[Played]) -> None:
    for case in cases:
        planted = case.task.truth.verification["planted"]
        assert sum(one["trap"] for one in planted) == TRAPS[case.task.episode.difficulty]
        assert sum(not one["trap"] for one in planted) == CONTROLS[case.task.episode.difficulty]


def test_labels_stand_up_to_examination(cases: list[Played]) -> None:
    for case in cases:
        assert _found(case) == []


def test_a_risk_model_that_is_altered_is_found(cases: list[Played]) -> None:
    case = cases[0]
    frame = case.task_input["risk_model"].frame.with_columns(pl.col("factor_3") + 1e-5)
    (message,) = _found(Played(case.task, {**case.task_input, "risk_model": EpisodeTable(frame)}))
    assert message.startswith("risk_model.")
    assert message.endswith("differs from the value derived from the records")


def test_a_cost_may_differ_by_rounding_and_no_more(cases: list[Played]) -> None:
    case = cases[0]
    truth, certificate = case.task.truth, case.task.certificate
    known, cost = dict(truth.verification), truth.verification["least_cost"]
    for change, expected in (
        (5e-10, []),
        (2e-9, ["cure: stated cost differs from the cost of the trades", "cure: certificate states a different cost"]),
    ):
        altered = replace(truth, verification={**known, "least_cost": cost + change})
        stated = {**certificate, "cost": cost + change}
        assert _found(Played(replace(case.task, truth=altered, certificate=stated), case.task_input)) == expected


def test_a_lot_that_is_altered_is_found(cases: list[Played]) -> None:
    case = cases[0]
    altered = case.task_input["custodian"].frame.with_columns(
        pl.when(pl.int_range(pl.len()) == 0)
        .then(pl.col("quantity") + 7)
        .otherwise(pl.col("quantity"))
        .alias("quantity")
    )
    messages = _found(Played(case.task, {**case.task_input, "custodian": EpisodeTable(altered)}))
    assert any("book.positions[0].quantity" in message for message in messages)


def _found(case: Played) -> list[str]:
    findings = Findings()
    examine_committee_case(Label(case.task.episode, case.task_input, case.task.truth, case.task.certificate), findings)
    return [finding.message for finding in findings.found]
