"""Plausibility checks of risk episodes: mandates, statuses, scenarios and published labels."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import date
from typing import cast

import polars as pl

from finskillbench.arrays import SECTORS
from finskillbench.domains.checks.examination import Subject, each_label, examining
from finskillbench.domains.risk.catalogs import scenario_catalog
from finskillbench.domains.risk.checks.data import drawn_episodes
from finskillbench.domains.risk.inputs import ConstraintInput, MonitoringInput, StressInput
from finskillbench.domains.risk.objects.scenarios import HYPOTHETICAL
from finskillbench.domains.risk.rederive import measure_constraint
from finskillbench.domains.risk.rederive_stress import stress_holdings
from finskillbench.domains.risk.user_catalogs.mandates import user_mandates
from finskillbench.engines.risk.full_stress import OVERLAY
from finskillbench.episode import Episode, JsonObject, Truth
from finskillbench.findings import Findings
from finskillbench.scoring.values import as_number, as_object, as_text, objects

_NOT_OF_AN_INDEX = frozenset({"position_limit_min", "name_count", "turnover_max_monthly", "cash_max"})
"""Limits that do not apply to an index."""
_INDEXED, _MOST_ACTIVE = 0.02, 0.06
"""Largest tracking-error limit of an index mandate, and of any mandate."""
_LEAST_FAILING, _MOST_FAILING = 1 / 3, 2 / 3
_FEW = 10
"""Sample size from which shares are checked."""
_NEAR = {0.01: 0.03, 0.05: 0.1}
"""Relative distance from a limit, and least share of values within it on either side."""
_LEAST_SIDE = 0.2
"""Least share of near misses on the rarer side of a limit."""
_LEAST_COMPLIANT, _MOST_COMPLIANT = 0.15, 0.5


def check_risk_economics(subject: Subject, findings: Findings) -> None:
    """Check mandates against their benchmarks, and the balance of statuses."""
    _mandates(subject, findings)
    if subject.built and subject.edition.has_truth:
        _statuses(subject, findings)


def _mandates(subject: Subject, findings: Findings) -> None:
    """Check benchmarks against their mandates, and index mandates for tight limits; user mandates only warn."""
    seen, user_ids = set[tuple[str, date]](), user_mandates(subject.edition.manifest)
    for episode in subject.episodes:
        if "mandate" not in episode.input or "benchmark_weights" not in episode.input:
            continue
        with examining(episode.task_id, findings, fatal=subject.built):
            task_input = cast("MonitoringInput", subject.input_of(episode))
            mandate = task_input["mandate"]
            key = str(mandate["mandate_id"]), episode.as_of_date
            if key not in seen:
                seen.add(key)
                if mandate["mandate_id"] in user_ids:
                    _warn_of_mandate(episode.task_id, task_input, findings)
                else:
                    _check_mandate(episode.task_id, task_input, findings)
    findings.figures["mandates_held_against_their_benchmark"] = len(seen)


def _check_mandate(where: str, task_input: MonitoringInput, findings: Findings) -> None:
    mandate, weights = task_input["mandate"], task_input["benchmark_weights"]
    holdings = [{"symbol": symbol, "weight": weight} for symbol, weight in weights.items() if weight != 0]
    portfolio = {**task_input["portfolio"], "holdings": holdings, "cash_weight": 0.0}
    index = cast("MonitoringInput", {**task_input, "portfolio": portfolio})
    for limit in mandate["constraints"]:
        if limit["type"] in _NOT_OF_AN_INDEX:
            continue
        found = measure_constraint(limit, index)
        findings.expect(
            found.status == "PASS",
            where,
            f"{limit['type']} of {mandate['mandate_id']} is broken by its benchmark, at {found.value:.4f}",
        )
        if limit["type"] == "tracking_error_max":
            most = _INDEXED if "index" in str(mandate["name"]).lower() else _MOST_ACTIVE
            allowed = float(limit.get("value", 0.0))
            findings.widest("largest_tracking_error_limit", allowed)
            findings.expect(
                allowed <= most, where, f"{mandate['name']} may run a tracking error of {allowed:.1%}, over {most:.0%}"
            )


def _warn_of_mandate(where: str, task_input: MonitoringInput, findings: Findings) -> None:
    found = Findings()
    _check_mandate(where, task_input, found)
    for one in found.found:
        findings.warn(one.where, one.message)


def _statuses(subject: Subject, findings: Findings) -> None:
    """Check the balance of statuses, near misses and compliance."""
    statuses: dict[str, Counter[str]] = defaultdict(Counter)
    near: dict[str, list[float]] = defaultdict(list)
    compliant: list[bool] = []
    for episode in drawn_episodes(subject, subject.of("constraint_monitoring")):
        with examining(episode.task_id, findings):
            task_input = cast("MonitoringInput", subject.input_of(episode))
            compliant.append(bool(subject.edition.truth(episode.task_id).expected_output["overall_compliant"]))
            for limit in task_input["mandate"]["constraints"]:
                found, kind = measure_constraint(limit, task_input), limit["type"]
                statuses[kind][found.status] += 1
                if kind not in ("long_only", "name_count"):
                    near[kind].append(found.excess / _size(limit, found.value))
    if not compliant:
        return
    for kind, counts in sorted(statuses.items()):
        total, failing = counts.total(), counts["FAIL"]
        findings.figures.setdefault("failing", {})[kind] = f"{failing} of {total}"
        if total >= _FEW:
            balanced = _LEAST_FAILING * total <= failing <= _MOST_FAILING * total
            findings.expect(balanced, kind, f"{failing} of {total} statuses are FAIL: a constant verdict scores well")
    share = sum(compliant) / len(compliant)
    findings.figures["compliant"] = f"{sum(compliant)} of {len(compliant)}"
    findings.expect(_LEAST_COMPLIANT <= share <= _MOST_COMPLIANT, "overall_compliant", f"{share:.0%} comply")
    _check_near(near, findings)


def _size(limit: ConstraintInput, value: float) -> float:
    ends = [float(end) for name in ("value", "min", "max") if (end := limit.get(name)) is not None]
    return abs(min(ends, key=lambda end: abs(end - value)))


def _check_near(near: dict[str, list[float]], findings: Findings) -> None:
    every = [one for values in near.values() for one in values]
    for within, least in _NEAR.items():
        inside, beyond = _sides(every, within)
        findings.figures[f"within_{within:.0%}"] = f"{inside} inside, {beyond} beyond, of {len(every)}"
        enough = min(inside, beyond) >= int(least * len(every))
        findings.expect(
            enough, "near misses", f"{inside} values lie within {within:.0%} inside their limits and {beyond} beyond"
        )
    for kind, values in sorted(near.items()):
        inside, beyond = _sides(values, max(_NEAR))
        if inside + beyond >= _FEW:
            findings.expect(
                min(inside, beyond) >= _LEAST_SIDE * (inside + beyond),
                kind,
                f"{inside} near misses inside the limit and {beyond} beyond: the side of the limit is predictable",
            )


def _sides(values: Sequence[float], within: float) -> tuple[int, int]:
    return sum(-within <= one < 0 for one in values), sum(0 < one <= within for one in values)


_HEADLINE = 0.005
"""Largest gap between benchmark loss and stated equity move, a fraction of NAV."""


def check_scenario_economics(subject: Subject, findings: Findings) -> None:
    """Check that each scenario is a loss of the stated size, and names no event foreign to its market."""
    panels = subject.panels(Findings())
    benchmarks: dict[date, dict[str, float]] = {}
    real = {entry["name"] for entry in scenario_catalog()["replays"]}
    fictional = subject.edition.manifest["source"].get("kind") == "synthetic"
    for episode in subject.of("stress_testing"):
        with examining(episode.task_id, findings, fatal=subject.built):
            task_input = cast("StressInput", episode.input)
            scenario, where = task_input["stress_scenario"], episode.task_id
            named = [name for name in real if name in scenario["name"]]
            findings.expect(
                not (fictional and named),
                where,
                f"replays {', '.join(named)}, but its market is fictional and never went through it",
            )
            if panels is None:
                continue
            if episode.as_of_date not in benchmarks:
                rows = panels.benchmark_weights.filter(pl.col("date") == episode.as_of_date)
                benchmarks[episode.as_of_date] = dict(rows.select("symbol", "weight").iter_rows())
            _check_headline(where, task_input, benchmarks[episode.as_of_date], findings)


def _check_headline(where: str, task_input: StressInput, benchmark: dict[str, float], findings: Findings) -> None:
    scenario = task_input["stress_scenario"]
    held = [{"symbol": symbol, "weight": benchmark.get(symbol, 0.0)} for symbol in task_input["sector_mapping"]]
    portfolio = {**task_input["portfolio"], "holdings": held, "cash_weight": 0.0}
    loss = stress_holdings(cast("StressInput", {**task_input, "portfolio": portfolio}), scenario).pnl
    findings.expect(loss < 0, where, f"{scenario['name']}: the benchmark gains {loss:.2%}, which is no stress")
    if scenario["type"] != HYPOTHETICAL:
        return
    headline = scenario["market_shocks"]["equity_change_pct"] / 100
    apart = abs(loss - headline)
    findings.widest("headline_apart", apart)
    message = f"{scenario['name']}: equities move {headline:.1%}, the benchmark {loss:.1%}"
    findings.expect(apart <= _HEADLINE, where, message)


_EXACT = 1e-6
_TIED = 1e-6
_ADDS_UP = 1e-4
_STRESSED = {"credit_spread_widening_bp": "credit", "equity_drawdown_pct": "market"}
"""Market moves of a replay, and the factor that must then lose."""


def check_attainable_mandates(subject: Subject, findings: Findings) -> None:
    """Check that mandates are feasible, and that published compliant cures respect the turnover limit."""

    def examine(episode: Episode, truth: Truth) -> None:
        _examine_mandate(episode, findings)
        if not subject.built:  # built editions are rederived trade by trade
            _examine_turnover(episode, truth.expected_output, findings)

    each_label(subject, findings, examine)


def check_risk_taxonomy(subject: Subject, findings: Findings) -> None:
    """Check that scenarios, holdings and labels use the same sector names."""
    each_label(subject, findings, lambda episode, truth: _examine_sectors(episode, truth.expected_output, findings))


def check_risk_uniqueness(subject: Subject, findings: Findings) -> None:
    """Check that labels with tied holdings have a scorer that accepts every tie."""
    each_label(subject, findings, lambda episode, truth: _examine_ties(episode, truth, findings))


def check_published_stress(subject: Subject, findings: Findings) -> None:
    """Check that published attributions sum to the P&L, and that costly shocks are no gain."""
    if not subject.built:  # built editions are rederived from the holdings
        each_label(subject, findings, lambda episode, truth: _examine_stress(episode, truth.expected_output, findings))


def _limits(episode: Episode) -> dict[str, JsonObject]:
    constraints = objects(as_object(episode.input.get("mandate")).get("constraints"))
    return {str(limit.get("type")): limit for limit in constraints}


def _examine_mandate(episode: Episode, findings: Findings) -> None:
    limits = _limits(episode)
    if not limits:
        return
    findings.add("mandates")
    cap = as_number(limits.get("position_limit_max", {}).get("value"))
    names = len(as_object(episode.input.get("sector_mapping"))) or _holding_count(episode)
    most = as_number(limits.get("hhi_max", {}).get("value"))
    if cap is not None and names and "cash_max" not in limits:
        message = f"{names} names of at most {cap:.1%} cannot be fully invested"
        findings.expect(cap * names >= 1 - _EXACT, episode.task_id, message, "mandate")
    if most is not None and names and "cash_max" not in limits:
        message = f"an HHI of at most {most:.3f} needs more than {names} names"
        findings.expect(most >= 1 / names - _EXACT, episode.task_id, message, "mandate")


def _examine_turnover(episode: Episode, label: JsonObject, findings: Findings) -> None:
    turnover = as_number(label.get("total_turnover"))
    limit = as_number(_limits(episode).get("turnover_max_monthly", {}).get("value"))
    if turnover is not None and limit is not None and label.get("post_trade_compliant") is True:
        message = f"is {turnover:.4f}, above the limit of {limit:.4f}, although the label is compliant"
        findings.expect(turnover <= limit + _EXACT, episode.task_id, message, "total_turnover")


def _holding_count(episode: Episode) -> int:
    return len(objects(as_object(episode.input.get("portfolio")).get("holdings")))


def _examine_sectors(episode: Episode, label: JsonObject, findings: Findings) -> None:
    scenario = as_object(episode.input.get("stress_scenario"))
    named = {
        "stress_scenario.sector_sensitivities": set(as_object(scenario.get("sector_sensitivities"))),
        "sector_mapping": set(as_object(episode.input.get("sector_mapping")).values()),
        "attribution.by_sector": {
            as_text(one.get("sector")) or "" for one in objects(as_object(label.get("attribution")).get("by_sector"))
        },
    }
    for place, sectors in named.items():
        strangers = sorted(map(str, sectors - {*SECTORS, OVERLAY}))
        message = f"unknown sectors: {', '.join(strangers)}"
        findings.expect(not strangers, episode.task_id, message, place)


def _examine_ties(episode: Episode, truth: Truth, findings: Findings) -> None:
    if truth.proof:
        return  # certified scorers accept ties
    holdings = objects(as_object(episode.input.get("portfolio")).get("holdings"))
    weights = [as_number(one.get("weight")) or 0.0 for one in holdings]
    largest = max(weights, default=0.0)
    tied = sum(abs(weight - largest) <= _TIED for weight in weights)
    names = {str(one.get("symbol")) for one in holdings}
    if tied > 1 and any(any(name in named for name in names) for named in _named_holdings(truth.expected_output)):
        findings.fail(episode.task_id, f"names one of {tied} equal largest holdings", "expected_output")


def _named_holdings(label: JsonObject) -> Iterator[str]:
    for one in objects(label.get("top_risk_exposures")):
        if one.get("type") == "single_name":
            yield from str(one.get("detail")).split()
    for one in objects(label.get("constraints")):
        if one.get("worst_symbol") and one.get("status") == "FAIL":
            yield str(one["worst_symbol"])


def _examine_stress(episode: Episode, label: JsonObject, findings: Findings) -> None:
    pnl, attribution = as_number(label.get("estimated_pnl_pct")), as_object(label.get("attribution"))
    if pnl is None:
        return
    findings.add("scenarios")
    for part in ("by_sector", "by_factor"):
        rows = objects(attribution.get(part))
        total = math.fsum(as_number(row.get("contribution_pct")) or 0.0 for row in rows)
        message = f"adds up to {total:.6f}, the P&L is {pnl:.6f}"
        findings.expect(not rows or abs(total - pnl) <= _ADDS_UP, episode.task_id, message, f"attribution.{part}")
    moves = as_object(as_object(episode.input.get("stress_scenario")).get("market_shocks"))
    by_factor = Counter(
        {
            str(row.get("factor")): as_number(row.get("contribution_pct")) or 0.0
            for row in objects(attribution.get("by_factor"))
        }
    )
    for move, factor in _STRESSED.items():
        if as_number(moves.get(move)) is not None:
            gain = by_factor[factor]
            message = f"{factor} gains {gain:+.4f} although {move} is {moves[move]}"
            findings.expect(gain <= 0, episode.task_id, message, "attribution.by_factor")
