"""Checks of mandates, scenarios, planted risks and certified cures; cures are proved without the engine."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, cast

import numpy as np
import polars as pl

from finskillbench.arrays import SECTORS
from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.domains.risk.catalogs import scenario_catalog
from finskillbench.domains.risk.checks.data import drawn_episodes, read_planted_fact, replay_window
from finskillbench.domains.risk.inputs import MonitoringInput, PortfolioInput, ScenarioInput, StressInput
from finskillbench.domains.risk.objects.portfolios import USER_BOOK
from finskillbench.domains.risk.objects.recipes import LEAST
from finskillbench.domains.risk.objects.scenarios import FEW, HYPOTHETICAL, REPLAY, SEVERE, economic_violations
from finskillbench.domains.risk.rederive import (
    FACTORS,
    days_to_sell,
    measure_constraint,
    rederived_illiquid_share,
    sector_totals,
    tilts,
    weights,
)
from finskillbench.domains.risk.rederive_stress import sensitivities_of, stress_holdings
from finskillbench.domains.risk.remediation.cure import RemediationProgram
from finskillbench.domains.risk.user_catalogs.scenarios import user_scenarios
from finskillbench.engines.risk.mandate import DEFINITIONS, mandate_from
from finskillbench.engines.risk.remediation import nearest
from finskillbench.engines.risk.task import market_from
from finskillbench.episode import Episode, JsonObject
from finskillbench.findings import Findings
from finskillbench.panels import Panels
from finskillbench.scoring.values import as_object, objects

ACCEPTED_GAIN = 1e-6
ACCEPTED_BY_NAME = 1e-5
"""Effect of the solver's integrality tolerance, summed over names."""
_SAME = 1e-6
_GOALS = {"least_turnover": "turnover", "least_cost": "cost", "least_excess": "excess"}
"""Objective of each stage of a certificate."""


def check_least_cost(subject: Subject, findings: Findings) -> None:
    """Check that no cure is cheaper than the certified one, or nearer to an infeasible mandate."""
    if not (subject.edition.has_truth and subject.edition.has_certificates):
        findings.skip("the edition has no truth or certificates")
        return
    episodes = [episode for episode in subject.episodes if "violations" in episode.input]
    stored = subject.edition.certificates(episodes[0].sub_task) if episodes else {}
    for episode in episodes:
        certificate = as_object(stored.get(episode.task_id))
        if certificate:
            with examining(episode.task_id, findings):
                _examine(subject, episode, certificate, findings)


def _examine(subject: Subject, episode: Episode, certificate: JsonObject, findings: Findings) -> None:
    task_input: JsonObject = subject.input_of(episode)
    complies = subject.edition.truth(episode.task_id).expected_output.get("post_trade_compliant")
    decisive = "least_cost" if complies else "least_excess"
    findings.expect(
        decisive in certificate,
        episode.task_id,
        f"post_trade_compliant is {complies}, but its certificate is missing",
        decisive,
    )
    for step_name, stored in certificate.items():
        cure, objective = RemediationProgram(task_input, _GOALS[step_name]), float(stored["objective"])
        if step_name != "least_excess":
            value = cure.value(np.array(stored["weights"], dtype=float))
            message = f"is {objective:.9g}, but its weights give {value:.9g}"
            findings.expect(abs(value - objective) <= _SAME, episode.task_id, message, f"{step_name}.objective")
        bound = _bounded(episode, cure, stored, step_name, findings)
        if step_name == "least_turnover":
            message = f"is {complies}, but {cure.left:.6f} of turnover is left and at least {bound:.6f} is needed"
            findings.expect(bound > cure.left, episode.task_id, message, "post_trade_compliant")


def _bounded(episode: Episode, cure: RemediationProgram, stored: JsonObject, step: str, findings: Findings) -> float:
    """Return the lower bound of a stage, and check that the stored objective equals it up to rounding."""
    accepted = ACCEPTED_BY_NAME if cure.named or cure.ticket else ACCEPTED_GAIN
    objective = float(stored["objective"])
    weights = np.array(stored["weights"], dtype=float)
    bound = cure.bound(weights, objective - accepted / 10, objective + accepted)
    if cure.open and (cure.named or cure.ticket) and bound < objective:  # tangents keep admitting new sets of names
        findings.add(f"{step}_left_open")
        return bound
    findings.add(f"{step}_bounded")
    findings.widest(f"{step}_greatest_gain", objective - bound)
    message = f"the objective is {objective:.9g}, the lower bound of every cure {bound:.9g}"
    findings.expect(abs(objective - bound) <= accepted, episode.task_id, message, f"{step}.weights")
    return bound


_EXACT = 1e-9
_STATED = 5e-5 + _EXACT
"""Rounding error of shocks and sensitivities with four decimals."""
_BY_TIER = ("description", "spread_widening_bp", "correlation_shift")
"""Scenario fields that depend on the tier."""
_SLOWEST = 3
"""Rank of the position whose selling time shows liquidity stress."""


def check_risk_mandates(subject: Subject, findings: Findings) -> None:
    """Check that each mandate is consistent, uses the engine's definitions, and is feasible in its universe."""
    seen: dict[tuple[str, date], tuple[str, Any]] = {}
    for episode in subject.episodes:
        if "mandate" not in episode.input:
            continue
        with examining(episode.task_id, findings, fatal=subject.built):
            mandate = episode.input["mandate"]
            key = (str(mandate["mandate_id"]), episode.as_of_date)
            if key in seen:
                first, known = seen[key]
                findings.expect(known == mandate, episode.task_id, f"{key[0]} differs from the mandate in {first}")
                continue
            seen[key] = (episode.task_id, mandate)
            _check_mandate(subject, episode, findings)
    findings.figures |= {"mandates": len({identity for identity, _ in seen}), "fitted": len(seen)}


def _check_mandate(subject: Subject, episode: Episode, findings: Findings) -> None:
    where, task_input = episode.task_id, cast("MonitoringInput", subject.input_of(episode))
    stated = task_input["mandate"]
    for constraint in stated["constraints"]:
        kind = constraint["type"]
        defined = constraint.get("definition") == as_object(DEFINITIONS).get(kind)
        findings.expect(defined, where, f"the definition of {kind} differs from the engine's")
        findings.add(kind)
    mandate, market = mandate_from(stated), market_from(task_input)
    mandate.check(len(market.tickers))
    if market.benchmark is None:
        findings.fail(where, "has a mandate and no benchmark weights")
        return
    # The witness proves the mandate if it keeps every limit, whichever solver found it.
    found = dict(zip(market.tickers, nearest(mandate, market, market.benchmark).weights.tolist(), strict=True))
    witness: PortfolioInput = {
        **task_input["portfolio"],
        "holdings": [{"symbol": ticker, "weight": weight} for ticker, weight in found.items() if weight != 0],
        "cash_weight": 1 - math.fsum(found.values()),
        "trades_this_month": {},
    }
    cash = witness["cash_weight"]
    findings.expect(cash >= -_EXACT, where, f"the feasibility witness has negative cash of {-cash:.1e}")
    for constraint in stated["constraints"]:
        excess = measure_constraint(constraint, {**task_input, "portfolio": witness}).excess
        findings.widest("greatest_excess", max(excess, 0.0))
        message = f"the feasibility witness exceeds {constraint['type']} by {excess:.1e}"
        findings.expect(excess <= 1e-7, where, message)


def check_risk_scenarios(subject: Subject, findings: Findings) -> None:
    """Check factors, sectors, signs and replays of scenarios; unusual economics of user scenarios only warn."""
    panels, user_ids = subject.panels(Findings()), user_scenarios(subject.edition.manifest)
    seen: dict[tuple[Any, ...], tuple[str, Any]] = {}
    for episode in subject.of("stress_testing"):
        with examining(episode.task_id, findings, fatal=subject.built):
            task_input = cast("StressInput", episode.input)
            scenario = task_input["stress_scenario"]
            identity = str(scenario["scenario_id"])
            sectors = {task_input["sector_mapping"][symbol] for symbol in weights(task_input)}
            lacking = sorted(sectors - sensitivities_of(scenario).keys())
            findings.expect(not lacking, episode.task_id, f"sectors without sensitivity: {', '.join(lacking)}")
            # Hypothetical scenarios are fitted to the date's benchmark with the available sensitivities.
            fitted = subject.built and scenario["type"] == HYPOTHETICAL
            covered = tuple(sorted(task_input["factor_exposures"])) if fitted else ()
            key = (identity, episode.as_of_date if fitted else None, tuple(scenario["sector_sensitivities"]), covered)
            shared = {name: value for name, value in scenario.items() if name not in _BY_TIER}
            if key in seen:
                first, known = seen[key]
                findings.expect(known == shared, episode.task_id, f"{identity} differs from the scenario in {first}")
                continue
            seen[key] = (episode.task_id, shared)
            findings.add(str(scenario["type"]))
            by_user = identity.removesuffix(SEVERE) in user_ids
            _check_scenario(episode.task_id, scenario, panels, findings, by_user=by_user)
    findings.figures["scenarios"] = len({key[0] for key in seen})


def _check_scenario(
    where: str, scenario: ScenarioInput, panels: Panels | None, findings: Findings, *, by_user: bool
) -> None:
    factors = set(scenario["factor_shocks"]) ^ set(FACTORS)
    findings.expect(not factors, where, f"missing or unknown factors: {', '.join(sorted(factors))}")
    unknown = sorted(set(scenario["sector_sensitivities"]) - set(SECTORS))
    findings.expect(not unknown, where, f"unknown sectors: {', '.join(unknown)}")
    if factors or unknown:
        return
    for broken in economic_violations(scenario):
        (findings.warn if by_user else findings.fail)(where, f"{scenario['scenario_id']}: {broken}")
    if scenario["type"] == REPLAY and panels is not None:
        window = replay_window(scenario)
        if window is None:
            findings.fail(where, f"{scenario['scenario_id']} does not state its window")
        else:
            _check_replay(where, scenario, panels, window, findings)


def _check_replay(
    where: str, scenario: ScenarioInput, panels: Panels, window: tuple[date, date], findings: Findings
) -> None:
    """Compare shocks with compounded factor returns, and sensitivities with sector returns beyond cash and betas."""
    start, end = window
    table = panels.factors.filter(pl.col("date").is_between(start, end)).sort("date")
    growth = np.prod(1 + table.select(*FACTORS, "rf").to_numpy(), axis=0) - 1
    shocks, cash = growth[:-1], float(growth[-1])
    for factor, derived in zip(FACTORS, shocks.tolist(), strict=True):
        _same(where, scenario["factor_shocks"][factor], derived, f"the shock to {factor}", findings)
    sessions = panels.prices["date"].to_list()
    rows = [row for row, day in enumerate(sessions) if start <= day <= end]
    known = panels.factor_exposures.filter(pl.col("date") < start)
    betas = known.filter(pl.col("date") == known["date"].max())
    moves: dict[str, list[float]] = {}
    for symbol, *row in betas.select("symbol", *FACTORS).iter_rows():
        prices = panels.prices[f"adj_close:{symbol}"].to_numpy()[rows[0] - 1 : rows[-1] + 1]
        if np.isfinite(prices).all():
            beyond = prices[-1] / prices[0] - 1 - cash - float(np.array(row) @ shocks)
            moves.setdefault(panels.sectors[symbol], []).append(beyond)
    overall = math.fsum(math.fsum(excess_returns) for excess_returns in moves.values()) / sum(map(len, moves.values()))
    for sector, stated in scenario["sector_sensitivities"].items():
        excess_returns = moves.get(sector, [])
        derived = math.fsum(excess_returns) / len(excess_returns) if excess_returns else math.nan
        derived = (derived + overall) / 2 if len(excess_returns) < FEW else derived
        _same(where, stated, derived, f"the sensitivity of {sector}", findings)
    findings.add("replayed")


def _same(where: str, stated: float, derived: float, what: str, findings: Findings) -> None:
    difference = abs(stated - derived)
    findings.widest("greatest_difference", difference)
    findings.expect(difference <= _STATED, where, f"{what} is {stated:.6g}, the panels give {derived:.6g}")


def check_planted_risks(subject: Subject, findings: Findings) -> None:
    """Check that input and panels show the planted risk of every portfolio."""
    for episode in subject.episodes:
        with examining(episode.task_id, findings, fatal=subject.built):
            _check_trades(episode, findings)
    if subject.built and not subject.edition.has_truth:
        return
    evidence = _Evidence(subject)
    for episode in subject.episodes:
        with examining(episode.task_id, findings, fatal=subject.built):
            kind = read_planted_fact(subject, episode, "portfolio_type")
            if kind == USER_BOOK:
                is_user_book = not drawn_episodes(subject, [episode])
                findings.expect(
                    is_user_book, episode.task_id, "portfolio_type is own, but the manifest lists no such book"
                )
                findings.add(USER_BOOK)
                continue
            verify = _SHOWN.get(kind)
            if verify is None:
                findings.fail(episode.task_id, f"unknown portfolio type {kind}")
                continue
            shown = verify(evidence, episode)
            if shown is None:
                findings.add(f"{kind}_not_shown_here")
            else:
                findings.add(kind)
                findings.expect(shown, episode.task_id, f"portfolio_type is {kind}, but the data do not show it")


def _check_trades(episode: Episode, findings: Findings) -> None:
    """Check that the month's trades imply no earlier short position or debt."""
    portfolio, owned = episode.input["portfolio"], weights(cast("StressInput", episode.input))
    traded: Mapping[str, float] = portfolio.get("trades_this_month") or {}
    now = {symbol: owned.get(symbol, 0.0) for symbol in (*owned, *traded)}
    short = sorted(name for name, weight in now.items() if weight >= 0 and weight - traded.get(name, 0.0) < -_EXACT)
    findings.expect(
        not short, episode.task_id, f"trades_this_month imply earlier short positions in {', '.join(short)}"
    )
    cash = portfolio["cash_weight"] + math.fsum(traded.values())
    findings.expect(cash >= -_EXACT, episode.task_id, f"trades_this_month imply earlier cash of {cash:.6f}")


class _Evidence:
    """Data of all episodes by date, and the hypothetical scenarios of the catalog."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.panels = subject.panels(Findings())
        self.under: dict[date, dict[str, Episode]] = {}
        parameters = as_object(subject.edition.manifest["parameters"].get("scenarios", scenario_catalog()))
        self.hypothetical = cast("list[ScenarioInput]", objects(parameters.get("hypothetical")))
        """As stated; date-specific versions add one number to all sectors."""
        for episode in subject.episodes:
            if "mandate" in episode.input:
                name = str(as_object(episode.input["mandate"]).get("mandate_id"))
                self.under.setdefault(episode.as_of_date, {}).setdefault(name, episode)

    def with_betas(self, episode: Episode) -> StressInput | None:
        """Return the input with missing betas filled from the panels; None without panels."""
        task_input = cast("StressInput", episode.input)
        if task_input["sector_mapping"].keys() <= task_input["factor_exposures"].keys():
            return task_input
        if self.panels is None:
            return None
        rows = self.panels.factor_exposures.filter(pl.col("date") == episode.as_of_date)
        known = {
            symbol: dict(zip(FACTORS, row, strict=True)) for symbol, *row in rows.select("symbol", *FACTORS).iter_rows()
        }
        return cast("StressInput", {**task_input, "factor_exposures": known})

    def concentrated(self, episode: Episode) -> bool | None:
        """Check for a sector and a name of the planted weight."""
        task_input = cast("StressInput", episode.input)
        largest = max(map(abs, weights(task_input).values()))
        return max(sector_totals(task_input).values()) >= LEAST["sector"] and largest >= LEAST["name"]

    def factor_tilted(self, episode: Episode) -> bool | None:
        """Check for a beta at the planted distance from the market's."""
        task_input = self.with_betas(episode)
        return None if task_input is None else max(tilts(task_input).values()) >= LEAST["tilt"]

    def liquidity_stressed(self, episode: Episode) -> bool | None:
        """Check the illiquid share and the slowest positions."""
        volumes = episode.input.get("average_daily_volume_usd")
        if volumes is None and self.panels is not None:
            rows = self.panels.liquidity.filter(pl.col("date") == episode.as_of_date)
            volumes = dict(rows.select("symbol", "average_daily_volume_usd").iter_rows())
        if not volumes:
            return None
        portfolio = cast("PortfolioInput", episode.input["portfolio"])
        days = sorted(days_to_sell(portfolio, volumes), reverse=True)
        enough = rederived_illiquid_share(portfolio, volumes) >= LEAST["illiquid"]
        return enough and days[min(_SLOWEST, len(days)) - 1] >= LEAST["days"]

    def mandate_violating(self, episode: Episode) -> bool | None:
        """Check for the planted number of broken constraints under a mandate of the date; None if not shown."""
        for other in self.under.get(episode.as_of_date, {}).values():
            task_input = cast("MonitoringInput", self.subject.input_of(other))
            on_this: MonitoringInput = {**task_input, "portfolio": episode.input["portfolio"]}
            broken = sum(
                measure_constraint(one, on_this).status == "FAIL" for one in task_input["mandate"]["constraints"]
            )
            if broken >= LEAST["failing"]:
                return True
        return None

    def stress_vulnerable(self, episode: Episode) -> bool | None:
        """Check for the planted excess loss over the benchmark under a hypothetical scenario."""
        benchmark = episode.input.get("benchmark_weights")
        if benchmark is None and self.panels is not None:
            rows = self.panels.benchmark_weights.filter(pl.col("date") == episode.as_of_date)
            benchmark = dict(rows.select("symbol", "weight").iter_rows())
        task_input = self.with_betas(episode)
        if not benchmark or task_input is None:
            return None
        market = [{"symbol": symbol, "weight": benchmark[symbol]} for symbol in task_input["sector_mapping"]]
        of_market = cast("StressInput", {**task_input, "portfolio": {**task_input["portfolio"], "holdings": market}})
        for scenario in self.hypothetical:
            of_benchmark, pnl = stress_holdings(of_market, scenario).pnl, stress_holdings(task_input, scenario).pnl
            shift = scenario["market_shocks"]["equity_change_pct"] / 100 - of_benchmark
            if of_benchmark - pnl + shift * (1 - math.fsum(weights(task_input).values())) >= LEAST["worse"]:
                return True
        return False


_SHOWN: Mapping[str, Callable[[_Evidence, Episode], bool | None]] = {
    "concentrated": _Evidence.concentrated,
    "factor_tilted": _Evidence.factor_tilted,
    "liquidity_stressed": _Evidence.liquidity_stressed,
    "mandate_violating": _Evidence.mandate_violating,
    "stress_vulnerable": _Evidence.stress_vulnerable,
}
