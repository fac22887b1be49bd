"""The constructed risk objects: mandates that can be kept, planted risks that are there, statuses in balance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np
import pytest
from tests.sampling import THOROUGH, thorough

from finskillbench.domains.building import BuildContext
from finskillbench.domains.risk.catalogs import mandate_catalog, risk_settings
from finskillbench.domains.risk.objects import construct as construction
from finskillbench.domains.risk.objects.construct import RiskObjects, construct
from finskillbench.domains.risk.objects.mandates import FittedMandate, fit
from finskillbench.domains.risk.objects.monitoring import drawn_for_monitoring
from finskillbench.domains.risk.objects.portfolios import clear_of_limits
from finskillbench.domains.risk.objects.recipes import LEAST, TYPES
from finskillbench.domains.risk.objects.remediation import RemediationPair
from finskillbench.edition import Edition
from finskillbench.engines.risk.mandate import ConstraintKind
from finskillbench.engines.risk.monitor import check_constraints
from finskillbench.engines.risk.portfolio import Portfolio
from finskillbench.engines.risk.remediation import nearest, remediate
from finskillbench.engines.risk.stress import scenario_from
from finskillbench.engines.risk.task import portfolio_from
from finskillbench.panels import Panels, read_panels

SETTINGS = risk_settings()
FEW = 40 if THOROUGH else 10


@pytest.fixture(scope="module")
def synthetic_panels(synthetic_edition: Edition) -> Panels:
    return read_panels(synthetic_edition.path / "panels")


@pytest.fixture(scope="module")
def again(synthetic_panels: Panels) -> RiskObjects:
    """The synthetic edition's objects drawn again from its stored panels, with few remediations."""
    context = BuildContext(synthetic_panels, 1)
    context.generator("something else").random(5)
    return construct(context, {**SETTINGS, "remediation_pairs": FEW})


def fitted_mandates(objects: RiskObjects) -> list[FittedMandate]:
    return [fitted for at in objects.dates.values() for fitted in at.mandates.values()]


def test_every_mandate_can_be_kept_at_every_risk_date(objects: RiskObjects) -> None:
    for as_of, at in objects.dates.items():
        for name, fitted in at.mandates.items():
            proof = nearest(fitted.mandate, at.market, np.asarray(at.market.benchmark))
            assert proof.optimality.violation <= 1e-9, (name, as_of)
            fitted.mandate.check(len(at.market.tickers))


def test_the_mandates_use_every_constraint_and_none_twice(objects: RiskObjects) -> None:
    used: set[ConstraintKind] = set()
    for fitted in fitted_mandates(objects):
        kinds = [limit.kind for limit in fitted.mandate.constraints]
        assert len(set(kinds)) == len(kinds)
        used |= set(kinds)
    assert used == set(ConstraintKind)
    tiers = {fitted.mandate.mandate_id: fitted.tier for fitted in fitted_mandates(objects)}
    assert Counter(tiers.values()) == {"easy": 3, "medium": 4, "hard": 5}


def test_a_mandate_is_as_the_catalog_states_it_or_wider_with_a_note(objects: RiskObjects, edition: Edition) -> None:
    widened = {(one.mandate.mandate_id, change.kind) for one in fitted_mandates(objects) for change in one.widened}
    noted = [note for note in edition.manifest["notes"] if note.startswith("The mandate ")]
    assert len(noted) >= len(widened)
    for name, kind in widened:
        assert any(f"The mandate {name} has {kind} " in note for note in noted)


def test_every_benchmark_keeps_the_mandates_held_against_it(objects: RiskObjects) -> None:
    """But for what no index is held against; and an index mandate runs next to its index."""
    run = {ConstraintKind.POSITION_LIMIT_MIN, ConstraintKind.NAME_COUNT}
    for at in objects.dates.values():
        benchmark = np.asarray(at.market.benchmark)
        assert benchmark.sum() == pytest.approx(1)
        assert benchmark.max() <= max(0.05, 2.4 / len(benchmark)) + 1e-12
        for fitted in at.mandates.values():
            index = Portfolio(benchmark, 0.0, 1e9)
            broken = {one.kind for one in check_constraints(index, fitted.mandate, at.market) if not one.passed}
            assert broken <= run, fitted.mandate.mandate_id
            if (most := fitted.mandate.limit(ConstraintKind.TRACKING_ERROR_MAX)) is not None:
                assert most <= (0.02 if "Index" in fitted.mandate.name else 0.06)


def test_a_mandate_that_its_benchmark_would_break_is_raised_to_it(objects: RiskObjects) -> None:
    as_of, at = next(iter(objects.dates.items()))
    narrow: Any = {
        "mandate_id": "narrow",
        "name": "Narrow",
        "tier": "hard",
        "room": {"position_limit_max": 0.005},
        "constraints": [
            {"type": "long_only", "value": True},
            {"type": "position_limit_max", "value": 0.03},
            {"type": "sector_limit_max", "value": 0.07},
            {"type": "beta_range", "min": 1.9, "max": 2.0},
            {"type": "hhi_max", "value": 0.02},
            {"type": "name_count", "min": 40, "max": None},
        ],
    }
    fitted = fit(narrow, as_of, at.market, mandate_catalog()).mandate
    benchmark = np.asarray(at.market.benchmark)
    assert (fitted.limit(ConstraintKind.POSITION_LIMIT_MAX) or 0) - benchmark.max() == pytest.approx(0.0075, abs=0.0026)
    beta = fitted.get(ConstraintKind.BETA_RANGE)
    assert beta is not None
    assert beta.maximum == 2.0
    assert not {
        one.kind for one in check_constraints(Portfolio(benchmark, 0.0, 1e9), fitted, at.market) if not one.passed
    }
    assert nearest(fitted, at.market, benchmark).optimality.violation <= 1e-9


def test_two_hundred_portfolios_of_five_types_over_regimes_and_dates(objects: RiskObjects, panels: Panels) -> None:
    assert [case.portfolio_id for case in objects.portfolios] == [f"P{i:03d}" for i in range(1, 201)]
    assert Counter(case.type for case in objects.portfolios) == dict.fromkeys(TYPES, 40)
    regimes = set(panels.regimes.values())
    cells = Counter((case.type, case.regime) for case in objects.portfolios)
    assert len(cells) == len(TYPES) * len(regimes)
    assert max(cells.values()) - min(cells.values()) <= 1
    for regime in regimes:
        dates = {day for day, of in panels.regimes.items() if of == regime}
        drawn = {case.as_of for case in objects.portfolios if case.regime == regime}
        assert drawn == dates, regime
    # Runs of one type would let an id tell it: 200 shuffled entries of five types repeat one in five times.
    repeats = sum(a.type == b.type for a, b in zip(objects.portfolios, objects.portfolios[1:], strict=False))
    assert 20 <= repeats <= 65


def test_every_planted_risk_is_there_by_plain_arithmetic(objects: RiskObjects) -> None:
    for case in objects.portfolios:
        market, weights = case.market, case.portfolio.weights
        sectors: dict[str, float] = {}
        for sector, weight in zip(market.sectors, weights, strict=True):
            sectors[sector] = sectors.get(sector, 0.0) + float(weight)
        if case.type == "concentrated":
            assert max(sectors.values()) >= LEAST["sector"]
            assert weights.max() >= LEAST["name"]
        elif case.type == "factor_tilted":
            exposures = weights @ market.betas
            exposures[0] -= 1.0
            assert np.abs(exposures).max() >= LEAST["tilt"]
        elif case.type == "liquidity_stressed":
            volume = np.asarray(market.dollar_volume)
            assert np.maximum(np.abs(weights) - 5 * 0.2 * volume / case.portfolio.nav, 0).sum() >= 0.10
            days = np.sort(np.abs(weights) * case.portfolio.nav / (0.2 * volume))
            assert days[-3] >= 10
        elif case.type == "mandate_violating":
            home = objects.dates[case.as_of].mandates[case.home].mandate
            assert sum(not one.passed for one in check_constraints(case.portfolio, home, market)) >= 3
        else:
            losses: list[tuple[float, float]] = []
            for scenario in map(scenario_from, objects.scenarios.hypothetical_at(market)):
                of_name = market.betas @ scenario.factor_shocks
                of_name += [scenario.sector_sensitivities[sector] for sector in market.sectors]
                losses.append((float(weights @ of_name), float(np.asarray(market.benchmark) @ of_name)))
            worst = min(losses)
            assert worst[1] - worst[0] >= LEAST["worse"]


def test_a_portfolio_is_what_its_json_says(objects: RiskObjects) -> None:
    low, high = SETTINGS["nav_usd"][0], SETTINGS["largest_nav_usd"]
    for case in objects.portfolios:
        shown = case.to_json()
        again = portfolio_from({"portfolio": shown}, case.market)
        assert (again.weights == case.portfolio.weights).all()
        assert again.traded == pytest.approx(case.portfolio.traded, abs=1e-15)
        assert 14 <= len(shown["holdings"]) <= 30
        assert sum(round(1e6 * row["weight"]) for row in shown["holdings"]) + round(1e6 * shown["cash_weight"]) == 10**6
        assert 0 <= case.portfolio.cash <= 0.25
        assert low <= case.portfolio.nav <= high
        assert case.type not in str(shown)
    assert any((case.portfolio.weights < 0).any() for case in objects.portfolios)


def test_what_was_held_before_the_trades_of_the_month_was_a_valid_portfolio(objects: RiskObjects) -> None:
    for case in objects.portfolios:
        before = case.portfolio.weights - case.trades
        assert before[case.portfolio.weights >= 0].min() >= 0
        assert (case.trades[case.portfolio.weights < 0] == 0).all()
        assert case.portfolio.cash + case.trades.sum() >= 0
    assert max(case.portfolio.traded for case in objects.portfolios) >= 0.2


def test_assets_do_not_tell_what_is_hard_to_sell(objects: RiskObjects) -> None:
    stressed = np.array([case.portfolio.nav for case in objects.portfolios if case.type == "liquidity_stressed"])
    others = np.array([case.portfolio.nav for case in objects.portfolios if case.type != "liquidity_stressed"])
    assert (others >= np.median(stressed)).sum() >= 5
    assert (others >= 4e9).sum() >= 10


def test_no_status_hangs_on_rounding(objects: RiskObjects) -> None:
    for pair in objects.monitoring:
        assert clear_of_limits(pair.case.portfolio, pair.mandate, pair.case.market, SETTINGS["grey_band"])


def test_each_portfolio_is_monitored_under_its_home_and_one_mandate_of_each_tier(objects: RiskObjects) -> None:
    assert len(objects.monitoring) == 600
    for index, case in enumerate(objects.portfolios):
        pairs = objects.monitoring[3 * index : 3 * index + 3]
        assert all(pair.case is case for pair in pairs)
        assert pairs[0].mandate.mandate_id == case.home
        assert {pair.tier for pair in pairs} == {"easy", "medium", "hard"}


def test_statuses_are_balanced(objects: RiskObjects, capsys: pytest.CaptureFixture[str]) -> None:
    compliant = [pair for pair in objects.monitoring if pair.compliant]
    by_tier = Counter(pair.tier for pair in compliant)
    passed, failed = Counter[ConstraintKind](), Counter[ConstraintKind]()
    for pair in objects.monitoring:
        for limit in pair.mandate.constraints:
            (failed if limit.kind in pair.violations else passed)[limit.kind] += 1
    with capsys.disabled():
        print(f"\ncompliant {len(compliant)} of 600, by tier {dict(by_tier)}")
        for kind in ConstraintKind:
            print(f"  {kind}: PASS {passed[kind]} FAIL {failed[kind]}")
    # Ten of 40 episodes can be drawn compliant, in every tier.
    assert 0.15 <= len(compliant) / 600 <= 0.6
    assert min(by_tier[tier] for tier in ("easy", "medium", "hard")) >= 4
    for kind in ConstraintKind:
        assert passed[kind] >= 5, kind
        assert failed[kind] >= 5, kind
    share = sum(passed.values()) / (sum(passed.values()) + sum(failed.values()))
    assert 0.4 <= share <= 0.6


@pytest.mark.parametrize("seed", [1, 19, 36])
def test_no_side_of_a_kind_is_rare_in_a_smaller_pool(
    seed: int, synthetic_risk_objects: RiskObjects, synthetic_panels: Panels
) -> None:
    """Of seven in ten portfolios a first draw leaves one side of some kind under the audit's share."""
    pool = synthetic_risk_objects.monitoring
    names = sorted({pair.case.portfolio_id for pair in pool})
    kept = set(np.random.default_rng(seed).permutation(names)[: len(names) * 7 // 10])
    smaller = [pair for pair in pool if pair.case.portfolio_id in kept]
    drawn = drawn_for_monitoring(BuildContext(synthetic_panels, 1), smaller, "x")
    for kind in ConstraintKind:
        beyond = np.array([pair.beyond[kind] for pair in drawn if pair.mandate.get(kind) is not None])
        failing = sum(kind in pair.violations for pair in drawn)
        assert len(beyond) < 10 or len(beyond) <= 3 * failing <= 2 * len(beyond)
        near = beyond[(np.abs(beyond) <= 0.05) & (beyond != 0)]
        assert len(near) < 10 or 0.2 * len(near) <= (near > 0).sum() <= 0.8 * len(near)


def test_twelve_scenarios_each_and_replays_only_later(objects: RiskObjects) -> None:
    assert len(objects.stress) == 12 * 200
    ends = objects.scenarios.ends
    for index, case in enumerate(objects.portfolios):
        shown = [pair.scenario for pair in objects.stress[12 * index : 12 * index + 12]]
        names = [one["scenario_id"] for one in shown]
        assert len(set(names)) == 12
        replays = {name for name in names if name in ends}
        assert replays == {name for name, end in ends.items() if end < case.as_of}
        assert {one["scenario_id"] for one in objects.scenarios.at(case.as_of, case.market)} <= set(names)


@thorough
def test_objects_depend_on_the_seed_and_on_nothing_else(
    synthetic_risk_objects: RiskObjects, again: RiskObjects, synthetic_panels: Panels, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown(objects: RiskObjects) -> list[tuple[Any, date, str, str]]:
        return [(case.to_json(), case.as_of, case.type, case.home) for case in objects.portfolios]

    first = shown(synthetic_risk_objects)
    assert shown(again) == first

    def none(*_: object) -> tuple[()]:
        return ()

    monkeypatch.setattr(construction, "remediation_pairs", none)  # takes most of the time
    other = shown(construct(BuildContext(synthetic_panels, 2), {**SETTINGS, "portfolios_per_type": 5}))
    assert len(other) == 5 * len(TYPES)
    assert not any(one in first for one in other)


def test_remediation_pairs_discriminate_and_some_are_beyond_mending(
    synthetic_risk_objects: RiskObjects, again: RiskObjects
) -> None:
    pairs, few = synthetic_risk_objects.remediation, again.remediation
    for found, wanted in ((pairs, SETTINGS["remediation_pairs"]), (few, FEW)):
        groups = _groups(found)
        assert set(groups) == {(False, True), (True, True), (True, False)}
        assert 0 < groups[False, True] <= round(SETTINGS["beyond_mending_share"] * wanted)
        assert len(found) <= wanted
    assert len(pairs) >= 40
    for pair in [*pairs, *few]:
        assert pair.discriminates
        assert pair.violations
        assert ConstraintKind.TURNOVER_MAX_MONTHLY not in pair.violations
        limit = pair.mandate.limit(ConstraintKind.TURNOVER_MAX_MONTHLY)
        assert limit is None or pair.case.portfolio.traded + pair.remedy.turnover <= limit + 1e-7
    compliant = next(pair for pair in pairs if pair.remedy.compliant)
    done = remediate(compliant.case.portfolio, compliant.mandate, compliant.case.market, compliant.rules)
    assert (done.trades == compliant.remedy.trades).all()


def _groups(pairs: Sequence[RemediationPair]) -> Counter[tuple[bool, bool]]:
    return Counter(pair.group for pair in pairs)
