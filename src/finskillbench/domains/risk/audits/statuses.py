"""What an audit asks of risk episodes beside what it asks of every domain: would a professional believe them?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import date
from typing import cast

from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.domains.risk.checks.data import drawn
from finskillbench.domains.risk.inputs import ConstraintInput, MonitoringInput
from finskillbench.domains.risk.own.mandates import own_mandates
from finskillbench.domains.risk.second import measured
from finskillbench.findings import Findings

_NOT_OF_AN_INDEX = frozenset({"position_limit_min", "name_count", "turnover_max_monthly", "cash_max"})
"""Limits on how a portfolio is run, which no index is held against."""
_INDEXED, _MOST_ACTIVE = 0.02, 0.06
"""Largest tracking error that a mandate which calls itself an index may allow, and any mandate."""
_LEAST_FAILING, _MOST_FAILING = 1 / 3, 2 / 3
_FEW = 10
"""Statuses, or near misses, of a kind below which no share of them says anything."""
_NEAR = {0.01: 0.03, 0.05: 0.1}
"""Relative distance from a limit, to the share of values that lie so near on either side, at least."""
_LEAST_SIDE = 0.2
"""Share of a kind's near misses that lie on the rarer side of the limit, at least."""
_LEAST_COMPLIANT, _MOST_COMPLIANT = 0.15, 0.5


def economics(subject: Subject, findings: Findings) -> None:
    """Mandates that their own benchmark keeps; statuses that neither a constant nor a distance from a limit tells."""
    _mandates(subject, findings)
    if subject.built and subject.edition.has_truth:
        _statuses(subject, findings)


def _mandates(subject: Subject, findings: Findings) -> None:
    """Nobody gives out a mandate that its benchmark breaks, or an index mandate that may leave its index.

    Of a mandate that a user brought this is only said: it is not ours to choose.
    """
    seen, own = set[tuple[str, date]](), own_mandates(subject.edition.manifest)
    for episode in subject.episodes:
        if "mandate" not in episode.input or "benchmark_weights" not in episode.input:
            continue
        with examining(episode.task_id, findings, fatal=subject.built):
            task_input = cast("MonitoringInput", subject.input_of(episode))
            mandate = task_input["mandate"]
            key = str(mandate["mandate_id"]), episode.as_of_date
            if key not in seen:
                seen.add(key)
                if mandate["mandate_id"] in own:
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
        found = measured(limit, index)
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
    """Statuses near balance by kind, near misses on both sides, compliance no rule of thumb."""
    statuses: dict[str, Counter[str]] = defaultdict(Counter)
    near: dict[str, list[float]] = defaultdict(list)
    compliant: list[bool] = []
    for episode in drawn(subject, subject.of("constraint_monitoring")):
        with examining(episode.task_id, findings):
            task_input = cast("MonitoringInput", subject.input_of(episode))
            compliant.append(bool(subject.edition.truth(episode.task_id).expected_output["overall_compliant"]))
            for limit in task_input["mandate"]["constraints"]:
                found, kind = measured(limit, task_input), limit["type"]
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
            findings.expect(balanced, kind, f"{failing} of {total} statuses are FAIL: a constant verdict does well")
    share = sum(compliant) / len(compliant)
    findings.figures["compliant"] = f"{sum(compliant)} of {len(compliant)}"
    findings.expect(_LEAST_COMPLIANT <= share <= _MOST_COMPLIANT, "overall_compliant", f"{share:.0%} comply")
    _check_near(near, findings)


def _size(limit: ConstraintInput, value: float) -> float:
    """The limit that a value is nearest to."""
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
                f"{inside} near misses inside the limit and {beyond} beyond: the side tells who drew them",
            )


def _sides(values: Sequence[float], within: float) -> tuple[int, int]:
    return sum(-within <= one < 0 for one in values), sum(0 < one <= within for one in values)
