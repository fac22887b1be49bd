"""Portfolios held against mandates: which statuses each shows, and the pairs that become episodes."""

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
from finskillbench.engines.risk.mandate import COLUMN, COMPLIANCE_TOLERANCE, Kind, Mandate
from finskillbench.engines.risk.monitor import limit_scales, measure_pairs

GREY_BAND = 2 * COMPLIANCE_TOLERANCE
"""A status that hangs on less than this, in the unit of its limit, is a test of rounding and no episode."""
_COMPLIANT = 10
"""Episodes of portfolios that keep their whole mandate."""
_NEAR = (0.01, 0.05)
"""Distances from a limit, relative to it, within which values are to lie on both sides."""
MODEL_BASED = frozenset({Kind.TRACKING_ERROR_MAX, Kind.BETA_RANGE, Kind.FACTOR_EXPOSURE_MAX})
"""Limits that take betas or a covariance to check; weights and trades tell the others."""
_STATUS_WEIGHT, _NEAR_WEIGHT, _RARE_WEIGHT, _STRATA_WEIGHT = 2.0, 1.0, 3.0, 1.0
"""What the draw weighs: balance of statuses, near misses and their sides, near misses of kinds with few, strata."""
_TOLD_WEIGHT, _PLAIN_WEIGHT, _CONSTANCY = 1.2, 80.0, 200.0
"""And against it: a kind that tells the whole verdict, breaches that weights alone tell, more compliant or fewer."""
_LEAST_COUNTED, _UNEQUAL_WEIGHT = 10, 200.0
"""From so many of a kind on, the two sides may differ by a share of them at most; the weight of what is more."""
_UNEQUAL_STATUSES, _UNEQUAL_NEAR = 1 / 3, 0.6
"""That share, of statuses and of near misses."""
_DISAGREE = -2.5
"""What a status unlike the whole verdict weighs beside one like it: about one in four is, where statuses balance."""


@dataclass(frozen=True, eq=False)
class MonitoringPair:
    """A portfolio held against a mandate.

    `violations` are the kinds that fail; `margin` is how far the nearest status is from changing, in the unit of its
    limit (whole names are counted, not measured); `beyond` is how far each kind lies beyond its limit, relative to it.
    """

    case: PortfolioCase
    mandate: Mandate
    tier: str
    violations: tuple[Kind, ...]
    margin: float
    beyond: Mapping[Kind, float]

    @property
    def compliant(self) -> bool:
        """Whether every constraint passes."""
        return not self.violations


_BEST_FITTING = 0.8
"""Share of the portfolios that are held against the mandates of other tiers that they come nearest to keeping."""


def measured(cases: Sequence[PortfolioCase], mandates: Sequence[Mandate]) -> tuple[Floats, Floats]:
    """Values and excess of m pairs of a case and a mandate, (m, kinds) each, as `measure_pairs` returns them."""
    batch, rows = batched(cases)
    return measure_pairs(batch, rows, mandates)


def against_mandates(
    cases: Sequence[PortfolioCase], dates: Mapping[date, RiskDate]
) -> dict[str, dict[str, MonitoringPair]]:
    """Every case, by id, with every mandate, by name, as fitted to its date."""
    pairs = [(case, name, one) for case in cases for name, one in dates[case.as_of].mandates.items()]
    excess = measured([case for case, _, _ in pairs], [one.mandate for _, _, one in pairs])[1]
    margins = np.nanmin(np.abs(np.delete(excess, COLUMN[Kind.NAME_COUNT], axis=1)), axis=1).tolist()
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
    """The home mandate, then one mandate of each other tier: of many portfolios that of which they break the least.

    A mandate under which some status hangs on less than `band` is taken only where its tier has no other.
    """
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
    """The pairs that become episodes, in their order: each kind of limit as often broken as kept.

    One at a time, the pair that leaves the least imbalance: of PASS and FAIL of each kind, of values just inside and
    just beyond their limits (the more of these of each kind the better), and of tiers, types, regimes and mandates; a
    quarter complies, and most of the others break a limit that takes a model. A portfolio comes up once.
    A pair of which a verdict hangs on less than `GREY_BAND` is passed over. Where one side of a kind is too rare in the
    end, pairs are drawn again with a weight against that.
    """
    rng = context.generator(sub_task, "draw")
    pairs = permuted([pair for pair in pool if pair.margin >= GREY_BAND], rng)
    statuses = np.array([[_status(pair, kind) for kind in Kind] for pair in pairs])
    rarity = len(pairs) / np.maximum(np.abs(statuses).sum(axis=0), 1)
    near = np.array([[_near(pair, kind) for kind in Kind] + [_nearest(pair)] for pair in pairs])
    missed = np.array([[sum(abs(pair.beyond.get(k, np.inf)) <= w for w in _NEAR) for k in Kind] for pair in pairs])
    strata = _one_hot([(pair.tier, pair.case.type, pair.case.regime, pair.mandate.mandate_id) for pair in pairs])
    compliant = np.array([pair.compliant for pair in pairs])
    told = np.where(statuses * np.where(compliant, -1, 1)[:, None] < 0, _DISAGREE, np.abs(statuses))
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
            cost = cost + _TOLD_WEIGHT * np.maximum(told[chosen].sum(axis=0) + told, 0) ** 2 @ rarity
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
    """(...) excess of the two sides' difference over the most allowed, summed over (..., kinds) with enough counted.

    `balance` is FAIL less PASS of `counted` statuses, `sides` values beyond less inside of `nearby` ones.
    """
    statuses = np.maximum(np.abs(balance) - _UNEQUAL_STATUSES * counted, 0) * (counted >= _LEAST_COUNTED)
    misses = np.maximum(np.abs(sides) - _UNEQUAL_NEAR * nearby, 0) * (nearby >= _LEAST_COUNTED)
    return np.asarray(statuses.sum(axis=-1) + misses.sum(axis=-1))


def _status(pair: MonitoringPair, kind: Kind) -> float:
    """1 for FAIL, -1 for PASS, 0 where the mandate does not limit the kind."""
    return 0.0 if pair.mandate.get(kind) is None else 1.0 if kind in pair.violations else -1.0


def _near(pair: MonitoringPair, kind: Kind) -> float:
    """1 for a value just beyond its limit, -1 for one just inside it, else 0."""
    beyond = pair.beyond.get(kind, np.inf)
    return float(np.sign(beyond)) if abs(beyond) <= max(_NEAR) else 0.0


def _nearest(pair: MonitoringPair) -> float:
    """Values within the nearest distance beyond their limits less those inside them."""
    return math.fsum(np.sign(beyond) for beyond in pair.beyond.values() if abs(beyond) <= min(_NEAR))


def _one_hot(rows: Sequence[Sequence[str]]) -> Floats:
    """(m, values) 1 for each value that a row has, over the root of how many a stratum has: rare ones count more."""
    columns = [sorted(set(column)) for column in zip(*rows, strict=True)]
    return np.array(
        [
            [np.sqrt(len(known)) * (value == one) for value, known in zip(row, columns, strict=True) for one in known]
            for row in rows
        ]
    )
