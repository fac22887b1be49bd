"""Labels and mandates held against each other by plain arithmetic: what no portfolio could do, ties, names, signs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from finskillbench.arrays import SECTORS
from finskillbench.domains.checks.examination import Subject, each_label
from finskillbench.engines.risk.full_stress import OVERLAY
from finskillbench.episode import Episode, JsonObject, Truth
from finskillbench.findings import Findings
from finskillbench.scoring.values import mapping, number, objects, text

_EXACT = 1e-6
_TIED = 1e-6
_ADDS_UP = 1e-4
_STRESSED = {"credit_spread_widening_bp": "credit", "equity_drawdown_pct": "market"}
"""Market moves of a replay that cost money, and the factor whose contribution must then be no gain."""


def certified(subject: Subject, findings: Findings) -> None:
    """A mandate can be kept, and a published cure that is said to comply keeps its limit on turnover."""

    def examine(episode: Episode, truth: Truth) -> None:
        _examine_mandate(episode, findings)
        if not subject.built:  # ours are derived again trade by trade
            _examine_turnover(episode, truth.expected_output, findings)

    each_label(subject, findings, examine)


def taxonomy(subject: Subject, findings: Findings) -> None:
    """One vocabulary of sectors in scenarios, holdings and labels."""
    each_label(subject, findings, lambda episode, truth: _examine_sectors(episode, truth.expected_output, findings))


def unique(subject: Subject, findings: Findings) -> None:
    """Where a label names one of several equal holdings, its scorer is one that accepts the others."""
    each_label(subject, findings, lambda episode, truth: _examine_ties(episode, truth, findings))


def stress(subject: Subject, findings: Findings) -> None:
    """Published attributions add up to the P&L, and no shock that costs money brings any."""
    if not subject.built:  # ours are derived again from the holdings
        each_label(subject, findings, lambda episode, truth: _examine_stress(episode, truth.expected_output, findings))


def _limits(episode: Episode) -> dict[str, JsonObject]:
    return {
        str(limit.get("type")): limit for limit in objects(mapping(episode.input.get("mandate")).get("constraints"))
    }


def _examine_mandate(episode: Episode, findings: Findings) -> None:
    limits = _limits(episode)
    if not limits:
        return
    findings.add("mandates")
    cap = number(limits.get("position_limit_max", {}).get("value"))
    names = len(mapping(episode.input.get("sector_mapping"))) or _named(episode)
    most = number(limits.get("hhi_max", {}).get("value"))
    if cap is not None and names and "cash_max" not in limits:
        message = f"{names} names of at most {cap:.1%} cannot be fully invested"
        findings.expect(cap * names >= 1 - _EXACT, episode.task_id, message, "mandate")
    if most is not None and names and "cash_max" not in limits:
        message = f"an HHI of at most {most:.3f} needs more than {names} names"
        findings.expect(most >= 1 / names - _EXACT, episode.task_id, message, "mandate")


def _examine_turnover(episode: Episode, label: JsonObject, findings: Findings) -> None:
    turnover = number(label.get("total_turnover"))
    limit = number(_limits(episode).get("turnover_max_monthly", {}).get("value"))
    if turnover is not None and limit is not None and label.get("post_trade_compliant") is True:
        message = f"is {turnover:.4f} and said to comply with a limit of {limit:.4f}"
        findings.expect(turnover <= limit + _EXACT, episode.task_id, message, "total_turnover")


def _named(episode: Episode) -> int:
    return len(objects(mapping(episode.input.get("portfolio")).get("holdings")))


def _examine_sectors(episode: Episode, label: JsonObject, findings: Findings) -> None:
    scenario = mapping(episode.input.get("stress_scenario"))
    named = {
        "stress_scenario.sector_sensitivities": set(mapping(scenario.get("sector_sensitivities"))),
        "sector_mapping": set(mapping(episode.input.get("sector_mapping")).values()),
        "attribution.by_sector": {
            text(one.get("sector")) or "" for one in objects(mapping(label.get("attribution")).get("by_sector"))
        },
    }
    for place, sectors in named.items():
        strangers = sorted(map(str, sectors - {*SECTORS, OVERLAY}))
        message = f"names sectors outside the vocabulary: {', '.join(strangers)}"
        findings.expect(not strangers, episode.task_id, message, place)


def _examine_ties(episode: Episode, truth: Truth, findings: Findings) -> None:
    if truth.proof:
        return  # certified scorers accept every one of equal answers, which their ladders show
    holdings = objects(mapping(episode.input.get("portfolio")).get("holdings"))
    weights = [number(one.get("weight")) or 0.0 for one in holdings]
    largest = max(weights, default=0.0)
    tied = sum(abs(weight - largest) <= _TIED for weight in weights)
    names = {str(one.get("symbol")) for one in holdings}
    if tied > 1 and any(any(name in told for name in names) for told in _told(truth.expected_output)):
        findings.fail(episode.task_id, f"names one of {tied} equal largest holdings", "expected_output")


def _told(label: JsonObject) -> Iterator[str]:
    for one in objects(label.get("top_risk_exposures")):
        if one.get("type") == "single_name":
            yield from str(one.get("detail")).split()
    for one in objects(label.get("constraints")):
        if one.get("worst_symbol") and one.get("status") == "FAIL":
            yield str(one["worst_symbol"])


def _examine_stress(episode: Episode, label: JsonObject, findings: Findings) -> None:
    pnl, attribution = number(label.get("estimated_pnl_pct")), mapping(label.get("attribution"))
    if pnl is None:
        return
    findings.add("scenarios")
    for part in ("by_sector", "by_factor"):
        rows = objects(attribution.get(part))
        total = math.fsum(number(row.get("contribution_pct")) or 0.0 for row in rows)
        message = f"adds up to {total:.6f}, the P&L is {pnl:.6f}"
        findings.expect(not rows or abs(total - pnl) <= _ADDS_UP, episode.task_id, message, f"attribution.{part}")
    moves = mapping(mapping(episode.input.get("stress_scenario")).get("market_shocks"))
    by_factor = Counter(
        {
            str(row.get("factor")): number(row.get("contribution_pct")) or 0.0
            for row in objects(attribution.get("by_factor"))
        }
    )
    for move, factor in _STRESSED.items():
        if number(moves.get(move)) is not None:
            gain = by_factor[factor]
            message = f"{factor} brings {gain:+.4f} although {move} is {moves[move]}"
            findings.expect(gain <= 0, episode.task_id, message, "attribution.by_factor")
