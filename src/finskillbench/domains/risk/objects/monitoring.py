"""Pairs of portfolio and mandate, their statuses, and the draw of monitoring episodes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.building import BuildContext, permuted
from finskillbench.domains.risk.catalogs import EPISODES
from finskillbench.domains.risk.objects.mandates import TIERS, RiskDate
from finskillbench.domains.risk.objects.portfolios import PortfolioCase, batched
from finskillbench.engines.risk.mandate import COLUMN, COMPLIANCE_TOLERANCE, ConstraintKind, RiskMandate
from finskillbench.engines.risk.monitor import limit_scales, measure_pairs

GREY_BAND = 2 * COMPLIANCE_TOLERANCE
"""Least margin of a status, in the unit of its limit, so that rounding does not decide it."""
_COMPLIANT = 10
"""Episodes of fully compliant portfolios."""
_NEAR = (0.01, 0.05)
"""Relative distances from a limit within which both sides need values."""
MODEL_BASED = frozenset(
    {ConstraintKind.TRACKING_ERROR_MAX, ConstraintKind.BETA_RANGE, ConstraintKind.FACTOR_EXPOSURE_MAX}
)
"""Limits that need betas or a covariance."""
_STATUS_WEIGHT, _NEAR_WEIGHT, _RARE_WEIGHT, _STRATA_WEIGHT = 2.0, 1.0, 3.0, 1.0
"""Weights of status balance, near-miss balance, rare near misses, and strata."""
_AGREEMENT_WEIGHT, _PLAIN_WEIGHT, _CONSTANCY = 1.2, 80.0, 200.0
"""Weights against kinds that reveal the verdict, breaches visible in weights, and a wrong share of compliant pairs."""
_LEAST_COUNTED, _UNEQUAL_WEIGHT = 10, 200.0
"""Count from which the imbalance of a kind is limited, and weight of the excess."""
_UNEQUAL_STATUSES, _UNEQUAL_NEAR = 1 / 3, 0.6
"""Largest imbalance of statuses and of near misses, as a share of their count."""
_DISAGREE = -2.5
"""Weight of a status that differs from the overall verdict; about one in four does."""


@dataclass(frozen=True, eq=False)
class MonitoringPair:
    """Portfolio under a mandate.

    violations : kinds that fail.
    margin : least distance of a status from changing, in the unit of its limit, without name_count.
    beyond : excess of each kind relative to its limit.
    """

    case: PortfolioCase
    mandate: RiskMandate
    tier: str
    violations: tuple[ConstraintKind, ...]
    margin: float
    beyond: Mapping[ConstraintKind, float]

    @property
    def compliant(self) -> bool:
        return not self.violations


_BEST_FITTING = 0.8
"""Share of portfolios paired with the mandates of other tiers that they break least."""


def measure_cases(cases: Sequence[PortfolioCase], mandates: Sequence[RiskMandate]) -> tuple[Floats, Floats]:
    """Return values and excesses, (m, kinds) each, of m pairs; see `measure_pairs`."""
    batch, rows = batched(cases)
    return measure_pairs(batch, rows, mandates)


def against_mandates(
    cases: Sequence[PortfolioCase], dates: Mapping[date, RiskDate]
) -> dict[str, dict[str, MonitoringPair]]:
    """Pair every case with every fitted mandate, keyed by portfolio and mandate id."""
    pairs = [(case, name, one) for case in cases for name, one in dates[case.as_of].mandates.items()]
    excess = measure_cases([case for case, _, _ in pairs], [one.mandate for _, _, one in pairs])[1]
    margins = np.nanmin(np.abs(np.delete(excess, COLUMN[ConstraintKind.NAME_COUNT], axis=1)), axis=1).tolist()
    failing = excess > COMPLIANCE_TOLERANCE
    found: dict[str, dict[str, MonitoringPair]] = {case.portfolio_id: {} for case in cases}
    for (case, name, one), fails, over, margin in zip(pairs, failing, excess, margins, strict=True):
        limits = one.mandate.constraints
        kinds = tuple(limit.kind for limit in limits if fails[COLUMN[limit.kind]])
        beyond = {limit.kind: float(over[COLUMN[limit.kind]]) / max(limit_scales(limit)) for limit in limits}
        found[case.portfolio_id][name] = MonitoringPair(case, one.mandate, one.tier, kinds, margin, beyond)
    return found


def monitoring_pairs(
    context: BuildContext, case: PortfolioCase, against: Mapping[str, MonitoringPair], band: float
) -> list[MonitoringPair]:
    """Return the home mandate and one of each other tier, with a margin of at least `band` if possible."""
    rng = context.generator("risk", "monitored", case.portfolio_id)
    fitting = rng.random() < _BEST_FITTING
    chosen = [against[case.home]]
    for tier in TIERS:
        of_tier = [one for one in against.values() if one.tier == tier]
        if tier == chosen[0].tier or not of_tier:
            continue
        mixed = permuted(of_tier, rng)
        best = min(mixed, key=lambda one: (one.margin < band, len(one.violations) if fitting else 0))
        chosen.append(best if best.margin >= band else max(mixed, key=lambda one: one.margin))
    return chosen


def drawn_for_monitoring(context: BuildContext, pool: Sequence[MonitoringPair], sub_task: str) -> list[MonitoringPair]:
    """Draw monitoring episodes, each kind of limit as often broken as kept.

    A greedy search adds the pair of least imbalance: statuses per kind, near misses on both sides, and strata. A
    quarter complies; most others break a model-based limit. Each portfolio is drawn once, and margins below
    `GREY_BAND` are excluded. If a side stays too rare, the draw is repeated with a penalty.
    """
    rng = context.generator(sub_task, "draw")
    pairs = permuted([pair for pair in pool if pair.margin >= GREY_BAND], rng)
    statuses = np.array([[_status(pair, kind) for kind in ConstraintKind] for pair in pairs])
    rarity = len(pairs) / np.maximum(np.abs(statuses).sum(axis=0), 1)
    near = np.array([[_near(pair, kind) for kind in ConstraintKind] + [_nearest(pair)] for pair in pairs])
    missed = np.array(
        [[sum(abs(pair.beyond.get(k, np.inf)) <= w for w in _NEAR) for k in ConstraintKind] for pair in pairs]
    )
    strata = _one_hot([(pair.tier, pair.case.type, pair.case.regime, pair.mandate.mandate_id) for pair in pairs])
    compliant = np.array([pair.compliant for pair in pairs])
    agreement = np.where(statuses * np.where(compliant, -1, 1)[:, None] < 0, _DISAGREE, np.abs(statuses))
    plain = np.array([bool(pair.violations) and not MODEL_BASED & set(pair.violations) for pair in pairs])
    cases = np.array([pair.case.portfolio_id for pair in pairs])

    def drawn(weight: float) -> list[int]:
        left, chosen = np.ones(len(pairs), dtype=bool), list[int]()
        while left.any() and len(chosen) < context.most(EPISODES):
            due = round((len(chosen) + 1) * _COMPLIANT / EPISODES)
            balance, sides = statuses[chosen].sum(axis=0) + statuses, near[chosen].sum(axis=0) + near
            cost = _STATUS_WEIGHT * (balance**2 @ rarity)
            cost = cost + _NEAR_WEIGHT * (sides**2).sum(axis=1)
            cost = cost - _NEAR_WEIGHT * missed.sum(axis=1) ** 2
            cost = cost - _RARE_WEIGHT * (missed / (1 + missed[chosen].sum(axis=0))).sum(axis=1)
            cost = cost + _AGREEMENT_WEIGHT * np.maximum(agreement[chosen].sum(axis=0) + agreement, 0) ** 2 @ rarity
            cost = cost + _PLAIN_WEIGHT * plain
            cost = cost + _STRATA_WEIGHT * (strata @ strata[chosen].sum(axis=0))
            cost = cost + _CONSTANCY * np.abs(compliant[chosen].sum() + compliant - due)
            if weight:
                counted = np.abs(statuses[chosen]).sum(axis=0) + np.abs(statuses)
                nearby = np.abs(near[chosen]).sum(axis=0) + np.abs(near)
                cost = cost + weight * _unequal(balance, counted, sides, nearby)
            at = int(np.argmin(np.where(left, cost, np.inf)))
            left &= cases != cases[at]
            chosen.append(at)
        return chosen

    chosen = drawn(0.0)
    if _unequal(*(each[chosen].sum(axis=0) for each in (statuses, np.abs(statuses), near, np.abs(near)))) > 0:
        chosen = drawn(_UNEQUAL_WEIGHT)
    return permuted([pairs[at] for at in chosen], context.generator(sub_task, "order"))


def _unequal(balance: Floats, counted: Floats, sides: Floats, nearby: Floats) -> Floats:
    """Return (...) imbalances above the allowed shares, summed over (..., kinds) with enough observations."""
    statuses = np.maximum(np.abs(balance) - _UNEQUAL_STATUSES * counted, 0) * (counted >= _LEAST_COUNTED)
    misses = np.maximum(np.abs(sides) - _UNEQUAL_NEAR * nearby, 0) * (nearby >= _LEAST_COUNTED)
    return np.asarray(statuses.sum(axis=-1) + misses.sum(axis=-1))


def _status(pair: MonitoringPair, kind: ConstraintKind) -> float:
    """Return 1 for FAIL, -1 for PASS, 0 without such a limit."""
    return 0.0 if pair.mandate.get(kind) is None else 1.0 if kind in pair.violations else -1.0


def _near(pair: MonitoringPair, kind: ConstraintKind) -> float:
    """Return 1 for a near miss outside the limit, -1 inside, else 0."""
    beyond = pair.beyond.get(kind, np.inf)
    return float(np.sign(beyond)) if abs(beyond) <= max(_NEAR) else 0.0


def _nearest(pair: MonitoringPair) -> float:
    """Return the closest near misses outside minus those inside their limits."""
    return math.fsum(np.sign(beyond) for beyond in pair.beyond.values() if abs(beyond) <= min(_NEAR))


def _one_hot(rows: Sequence[Sequence[str]]) -> Floats:
    """Return (m, values) indicators scaled by the root of the stratum's number of values."""
    columns = [sorted(set(column)) for column in zip(*rows, strict=True)]
    return np.array(
        [
            [np.sqrt(len(known)) * (value == one) for value, known in zip(row, columns, strict=True) for one in known]
            for row in rows
        ]
    )
