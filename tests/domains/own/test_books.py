"""What a user's books become: portfolios at their dates, and episodes whose labels are derived twice."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date

import pytest
from tests.domains.own.mistakes import SCENARIO
from tests.domains.own.test_holdings import read

from finskillbench.domains.building import BuildContext
from finskillbench.domains.checks.proofs import rederivation_proof
from finskillbench.domains.risk import constraint_monitoring, stress_testing
from finskillbench.domains.risk.catalogs import risk_settings
from finskillbench.domains.risk.objects import construct
from finskillbench.domains.risk.objects.mandates import RiskDate
from finskillbench.domains.risk.objects.monitoring import against_mandates
from finskillbench.domains.risk.objects.scenarios import build_scenarios
from finskillbench.domains.risk.objects.stress import as_stated
from finskillbench.domains.risk.shared import resolved_covariance
from finskillbench.domains.risk.user_catalogs.books import UserPools, user_pools
from finskillbench.domains.risk.user_catalogs.mandates import mandates_in
from finskillbench.domains.risk.user_catalogs.scenarios import scenarios_in
from finskillbench.edition import Edition
from finskillbench.panels import Panels, read_panels


@dataclass(frozen=True)
class Made:
    """The pools of two books of one date, what they were built from, and the notes of the build."""

    panels: Panels
    day: date
    dates: Mapping[date, RiskDate]
    shares: dict[str, int]
    pools: UserPools
    notes: list[str]


@pytest.fixture(scope="module")
def made(synthetic_edition: Edition, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A book of weights under a mandate, and one of shares without; a scenario beside the built-in ones."""
    panels = read_panels(synthetic_edition.path / "panels")
    day = panels.risk_dates[-1]
    panels = replace(panels, regimes={day: panels.regimes[day]})
    names = panels.symbols_at(day)
    shares = {name: 1000 * place for place, name in enumerate(names[:12], start=1)}
    weights = [f"{day},{name},{0.19 if place == 0 else 0.04},,\n" for place, name in enumerate(names[:20])]
    folder = tmp_path_factory.mktemp("own")
    held = f"date,symbol,quantity\n{day},CASH,500000\n" + "".join(f"{day},{n},{q}\n" for n, q in shares.items())
    read(folder, held, "shares")
    text = "date,symbol,weight,nav,mandate\n" + f"{day},CASH,0.05,4e9,balanced_01\n" + "".join(weights)
    catalog = read(folder, text, "weights", scenarios=SCENARIO)
    context = BuildContext(panels, 1, None, catalog)
    scenarios = build_scenarios(panels, scenarios_in(catalog), [])
    dates = construct._dates(context, scenarios, mandates_in(catalog))
    return Made(panels, day, dates, shares, user_pools(context, dates, scenarios, risk_settings()), context.notes)


def test_weights_and_shares_become_portfolios(made: Made) -> None:
    by_shares, by_weights = made.pools.books
    stamp = f"{made.day:%Y%m%d}"
    assert (by_shares.portfolio_id, by_weights.portfolio_id) == (f"shares-{stamp}", f"weights-{stamp}")
    assert (by_weights.home, by_weights.portfolio.nav, by_weights.portfolio.cash) == ("balanced_01", 4e9, 0.05)
    assert sorted(by_weights.portfolio.weights[by_weights.portfolio.weights > 0].tolist()) == [0.04] * 19 + [0.19]
    row = made.panels.prices.filter(made.panels.prices["date"] == made.day)
    worth = {name: quantity * row[f"close:{name}"][0] for name, quantity in made.shares.items()}
    nav = math.fsum(worth.values()) + 500_000
    assert by_shares.portfolio.nav == round(nav)
    told = {one["symbol"]: one["weight"] for one in by_shares.to_json()["holdings"]}
    assert told == {name: pytest.approx(value / nav, abs=6e-7) for name, value in worth.items()}
    for case in made.pools.books:
        assert case.portfolio.weights.sum() + case.portfolio.cash == pytest.approx(1, abs=1e-9)
    assert made.pools.parameters["books"][f"weights-{stamp}"] == {"as_of": str(made.day), "mandate": "balanced_01"}


def test_a_book_without_a_mandate_has_the_one_of_which_it_breaks_the_least(made: Made) -> None:
    (case, _), (pair, named) = made.pools.books, made.pools.monitored
    broken = {
        name: len(one.violations) for name, one in against_mandates([case], made.dates)[case.portfolio_id].items()
    }
    assert broken[case.home] == min(broken.values()) < max(broken.values())
    assert (pair.mandate.mandate_id, named.mandate.mandate_id) == (case.home, "balanced_01")


def test_scenarios_of_ones_own_come_first_and_no_book_has_more_than_three(made: Made) -> None:
    by_book = {case.portfolio_id: [] for case in made.pools.books}
    for pair in made.pools.stress:
        by_book[pair.case.portfolio_id].append(pair.scenario["scenario_id"])
    assert [len(names) for names in by_book.values()] == [3, 3]
    assert {names[0] for names in by_book.values()} == {"bank_run"}
    stressed = [as_stated(pair) for pair in made.pools.stress]
    assert [case.tier == "hard" for case in stressed] == ["correlation_shift" in case.scenario for case in stressed]
    assert {
        case.result.stressed_var is not None for case in stressed if case.scenario["scenario_id"] == "bank_run"
    } == {True}


def test_labels_of_books_are_derived_a_second_time(made: Made) -> None:
    covariance = resolved_covariance(made.pools.books[0].market)
    tasks = [
        *((constraint_monitoring, constraint_monitoring._task(pair)) for pair in made.pools.monitored),
        *((stress_testing, stress_testing._task(as_stated(pair))) for pair in made.pools.stress),
    ]
    assert len(tasks) == 8
    for module, task in tasks:
        task_input = {**task.episode.input}
        if "covariance_matrix" in task_input:
            task_input["covariance_matrix"] = covariance
        leaves = module.SUBTASK.derived_again(task.truth.expected_output, task_input)
        assert rederivation_proof(task.truth.task_id, leaves)
        assert task.truth.verification["portfolio_type"] == "own"


def test_a_book_is_remedied_under_a_mandate_that_it_breaks_or_a_note_says_why_not(made: Made) -> None:
    pairs = {pair.case.portfolio_id: pair for pair in made.pools.remediation}
    assert f"shares-{made.day:%Y%m%d}" in pairs
    for pair in pairs.values():
        assert (bool(pair.violations), pair.discriminates, pair.remedy.settled) == (True, True, True)
    notes = [note for note in made.notes if note.startswith("risk_remediation leaves out")]
    assert len(notes) == (len(pairs) < 2)
