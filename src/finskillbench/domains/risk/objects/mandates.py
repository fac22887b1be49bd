"""Mandates fitted to a date, so that its benchmark keeps every limit with a margin; user mandates stay as stated."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property

import numpy as np

from finskillbench.arrays import FACTORS, Floats, Integers
from finskillbench.domains.risk.catalogs import MandateCatalog, MandateEntry
from finskillbench.domains.risk.objects.placement import place, tightened
from finskillbench.engines.optimisation.certified import InfeasibleError, UndecidedError
from finskillbench.engines.risk.mandate import (
    COMPLIANCE_TOLERANCE,
    Constraint,
    ConstraintKind,
    RiskMandate,
    mandate_from,
)
from finskillbench.engines.risk.monitor import measure_all
from finskillbench.engines.risk.portfolio import MarketSnapshot, require_field
from finskillbench.engines.risk.remediation import nearest
from finskillbench.engines.risk.stress import Scenario, apply_to_names
from finskillbench.errors import InputError, SourceError

TIERS = ("easy", "medium", "hard")
_MARGIN_SHARE, _LEAST_MARGIN = 0.02, 0.001
"""Distance of a witness from each limit: 2 % of the limit, but at least 10 basis points."""
_WITNESS_NAMES = 100
"""Most names of a witness, the largest of the benchmark; enough, and fast to solve."""
_FLOORED = 0.5
"""Most NAV that the minimum weights of a witness may take."""
_ATTAINED = 1.25
"""Least ratio of a tracking-error limit to the least attainable error; rounded up to 0.1 %."""


@dataclass(frozen=True)
class Widening:
    """Limit that was widened to fit the universe."""

    kind: ConstraintKind
    stated: str
    fitted: str


@dataclass(frozen=True)
class FittedMandate:
    """Mandate at a date, a feasible portfolio (n,), and the widened limits."""

    mandate: RiskMandate
    tier: str
    witness: Floats
    widened: tuple[Widening, ...]


@dataclass(frozen=True)
class RiskDate:
    """Market, fitted mandates by id, and hypothetical scenarios of a date."""

    market: MarketSnapshot
    mandates: Mapping[str, FittedMandate]
    scenarios: Sequence[Scenario]

    @cached_property
    def of_names(self) -> Floats:
        """Cache the (n, s) P&L of each name under each scenario."""
        return apply_to_names(self.scenarios, self.market)


def fit(
    entry: MandateEntry, as_of: date, market: MarketSnapshot, catalog: MandateCatalog, where: str | None = None
) -> FittedMandate:
    """Fit a mandate to benchmark and universe of a date; one marked `as_stated` is only proved feasible.

    where : location of a user's mandate, for errors.

    Raises
    ------
    SourceError : no portfolio of the universe keeps it.
    """
    if entry.get("as_stated"):
        return _as_stated(entry, as_of, market, where)
    stated = _counted(mandate_from(entry), market)
    mandate = _widened_to_benchmark(stated, market, {**catalog["room"], **entry.get("room", {})})
    support = _support(mandate, market)
    witness = _closest(mandate, market, support)
    if witness is not None:
        attainable = _attainable(mandate, market, witness)
        mandate.check(len(market.tickers))
        excess = measure_all(witness[None], 1 - witness.sum(keepdims=True), np.zeros(1), attainable, market)[1]
        if (excess <= COMPLIANCE_TOLERANCE).all():
            changes = zip(mandate.constraints, attainable.constraints, strict=True)
            widened = tuple(Widening(a.kind, _limit(a), _limit(b)) for a, b in changes if a != b)
            return FittedMandate(attainable, entry["tier"], witness, widened)
    raise SourceError(
        where or f"panels at {as_of}",
        f"no portfolio of the {len(market.tickers)} names of {as_of} keeps the mandate {mandate.mandate_id}",
        remedy=f"add names to the universe, or {'loosen it' if where else 'supply other mandates with --catalog'}",
    )


def _as_stated(entry: MandateEntry, as_of: date, market: MarketSnapshot, where: str | None) -> FittedMandate:
    mandate = mandate_from(entry)
    witness = _witness(mandate, market)
    if witness is not None:
        return FittedMandate(mandate, entry["tier"], witness, ())
    alone = [one.kind for one in mandate.constraints if _witness(_without(mandate, one.kind), market) is not None]
    raise SourceError(
        where or f"panels at {as_of}",
        f"no portfolio of the {len(market.tickers)} names of {as_of} keeps the mandate {mandate.mandate_id}",
        remedy=f"loosen {' or '.join(alone) or 'several of its limits'}, or add names to the universe",
    )


def _witness(mandate: RiskMandate, market: MarketSnapshot) -> Floats | None:
    """Return a feasible portfolio (n,) without trades: with margin to every limit, else nearest to the benchmark."""
    try:
        mandate.check(len(market.tickers))
    except InputError:
        return None
    found = [_closest(mandate, market, _support(mandate, market))]
    if found[0] is None:
        try:
            found.append(nearest(mandate, market, require_field(market.benchmark, "benchmark weights")).weights)
        except (InfeasibleError, UndecidedError):
            return None
    for weights in found:
        if weights is not None:
            cash = np.array([1 - weights.sum()])
            excess = measure_all(weights[None], cash, np.zeros(1), mandate, market)[1]
            if (excess <= COMPLIANCE_TOLERANCE).all():
                return weights
    return None


def _counted(mandate: RiskMandate, market: MarketSnapshot) -> RiskMandate:
    """Limit the minimum number of holdings to two thirds of the universe."""
    count = mandate.get(ConstraintKind.NAME_COUNT)
    most = math.floor(2 / 3 * len(market.tickers))
    if count is None or count.minimum is None or count.minimum <= most:
        return mandate
    return _with(mandate, replace(count, minimum=most))


def _widened_to_benchmark(mandate: RiskMandate, market: MarketSnapshot, margins: Mapping[str, float]) -> RiskMandate:
    """Raise every limit that the benchmark would break to its value plus margin, rounded up."""
    benchmark = require_field(market.benchmark, "benchmark weights")
    betas = benchmark @ market.betas

    def at_least(limit: Constraint, measured: float, step: float) -> Constraint:
        least = _up(measured + margins[limit.kind], step)
        return limit if limit.value is None or limit.value >= least else replace(limit, value=least)

    def beta_range(limit: Constraint) -> Constraint:
        low, high, margin = limit.minimum or 0.0, limit.maximum or 0.0, margins[ConstraintKind.BETA_RANGE]
        down, up = max(0.0, low + margin - float(betas[0])), max(0.0, float(betas[0]) + margin - high)
        low, high = low - _up(down, _BETA_STEP), high + _up(up, _BETA_STEP)
        return replace(limit, minimum=round(low, 9), maximum=round(high, 9))

    fitted: Mapping[ConstraintKind, Callable[[Constraint], Constraint]] = {
        ConstraintKind.POSITION_LIMIT_MAX: lambda limit: at_least(limit, float(benchmark.max()), 0.005),
        ConstraintKind.SECTOR_LIMIT_MAX: lambda limit: at_least(
            limit, float((market.membership.T @ benchmark).max()), 0.01
        ),
        ConstraintKind.HHI_MAX: lambda limit: at_least(limit, float(benchmark @ benchmark), 0.005),
        ConstraintKind.FACTOR_EXPOSURE_MAX: lambda limit: at_least(
            limit, max(abs(float(betas[FACTORS.index(name)])) for name in limit.factors), 0.05
        ),
        ConstraintKind.BETA_RANGE: beta_range,
    }
    constraints = (fitted[limit.kind](limit) if limit.kind in fitted else limit for limit in mandate.constraints)
    return replace(mandate, constraints=tuple(constraints))


_BETA_STEP = 0.05


def _support(mandate: RiskMandate, market: MarketSnapshot) -> Integers:
    """Return indices of the largest benchmark names, as many as floors and counts allow."""
    size = min(len(market.tickers), _WITNESS_NAMES)
    floor, count = mandate.get(ConstraintKind.POSITION_LIMIT_MIN), mandate.get(ConstraintKind.NAME_COUNT)
    if floor is not None and floor.value:
        size = min(size, int(_FLOORED / floor.value))
    if count is not None and count.maximum is not None:
        size = min(size, int(count.maximum))
    order = np.argsort(-np.asarray(market.benchmark), kind="stable")
    return np.sort(order[:size])


def _closest(mandate: RiskMandate, market: MarketSnapshot, support: Integers) -> Floats | None:
    """Return the fully invested portfolio of least tracking error with margin to every other limit."""
    free = _without(mandate, ConstraintKind.TRACKING_ERROR_MAX)
    floor = mandate.get(ConstraintKind.NAME_COUNT)
    # Every name of a counted mandate weighs at least 10 basis points.
    low = 0.0 if floor is None else 0.002
    found = place(market, support, mandate=tightened(free, _MARGIN_SHARE, _LEAST_MARGIN), least=low)
    return None if found is None else np.where(np.abs(found) < 1e-9, 0.0, found)


def _attainable(mandate: RiskMandate, market: MarketSnapshot, witness: Floats) -> RiskMandate:
    limit = mandate.get(ConstraintKind.TRACKING_ERROR_MAX)
    if limit is None or limit.value is None:
        return mandate
    values = measure_all(witness[None], np.zeros(1), np.zeros(1), mandate, market)[0]
    least = _up(_ATTAINED * float(values[0, mandate.constraints.index(limit)]), 0.001)
    return mandate if least <= limit.value else _with(mandate, replace(limit, value=least))


def describe_widenings(fitted: Sequence[tuple[date, FittedMandate]]) -> list[str]:
    """Return one note per widened limit: the new values and the number of dates."""
    found: dict[tuple[str, ConstraintKind, str], list[str]] = defaultdict(list)
    for _, one in fitted:
        for change in one.widened:
            found[one.mandate.mandate_id, change.kind, change.stated].append(change.fitted)
    return [
        f"The mandate {mandate} has {kind} {_span(limits)} instead of {stated} at {len(limits)} of "
        f"{len({day for day, _ in fitted})} dates, because the universe does not allow the stated limit."
        for (mandate, kind, stated), limits in found.items()
    ]


def _span(limits: Sequence[str]) -> str:
    low, high = min(limits), max(limits)
    return low if low == high else f"{low} to {high}"


def _limit(limit: Constraint) -> str:
    if limit.value is not None:
        return f"{limit.value:.4g}"
    ends = ("" if end is None else f"{end:.4g}" for end in (limit.minimum, limit.maximum))
    return "[" + ", ".join(ends) + "]"


def _up(number: float, step: float) -> float:
    """Round up to a multiple of `step`, without floating-point residue."""
    return round(math.ceil(round(number / step, 9)) * step, 9)


def _with(mandate: RiskMandate, limit: Constraint) -> RiskMandate:
    return replace(mandate, constraints=tuple(limit if one.kind is limit.kind else one for one in mandate.constraints))


def _without(mandate: RiskMandate, kind: ConstraintKind) -> RiskMandate:
    return replace(mandate, constraints=tuple(one for one in mandate.constraints if one.kind is not kind))
