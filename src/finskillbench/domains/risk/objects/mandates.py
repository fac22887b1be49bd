"""The mandates of a build, each set against its benchmark on a date, and proved to be one that can be kept.

Nobody gives a manager a mandate that its own benchmark breaks. The benchmark is the universe by market capitalisation
with a cap on single names, as capped indices are; a limit of the catalog is raised, where it must be, to what the
benchmark measures and the room that the catalog leaves above it. A user's own mandates are held as they are stated.
"""

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
from finskillbench.engines.risk.mandate import COMPLIANCE_TOLERANCE, Constraint, Kind, Mandate, mandate_from
from finskillbench.engines.risk.monitor import measure_all
from finskillbench.engines.risk.portfolio import Market, required
from finskillbench.engines.risk.remediation import nearest
from finskillbench.engines.risk.stress import Scenario, apply_to_names
from finskillbench.errors import InputError, SourceError

TIERS = ("easy", "medium", "hard")
_ROOM_SHARE, _ROOM_LEAST = 0.02, 0.001
"""How far inside each limit a witness lies: two percent of it, ten basis points at the least."""
_WITNESS_NAMES = 100
"""A witness holds the largest names of the benchmark, so many at the most: enough, and quickly found."""
_FLOORED = 0.5
"""Share of NAV that holding every name of a witness at its least weight may take."""
_ATTAINED = 1.25
"""A tracking-error limit is at least so many times the least attainable one, rounded up to a tenth of a percent."""


@dataclass(frozen=True)
class Widening:
    """One limit that the universe leaves no room for as stated."""

    kind: Kind
    stated: str
    fitted: str


@dataclass(frozen=True)
class FittedMandate:
    """A mandate at a date, the portfolio (n,) that witnesses it can be kept, and what had to be widened."""

    mandate: Mandate
    tier: str
    witness: Floats
    widened: tuple[Widening, ...]


@dataclass(frozen=True)
class RiskDate:
    """What a draw needs to know of its date: the market, the fitted mandates by id, the hypothetical scenarios."""

    market: Market
    mandates: Mapping[str, FittedMandate]
    scenarios: Sequence[Scenario]

    @cached_property
    def of_names(self) -> Floats:
        """(n, s) P&L of each name alone under each scenario; every try on a date asks for it."""
        return apply_to_names(self.scenarios, self.market)


def fit(
    entry: MandateEntry, as_of: date, market: Market, catalog: MandateCatalog, where: str | None = None
) -> FittedMandate:
    """The catalog's mandate at a date, consistent with the benchmark of its market and with its universe.

    One that is held as stated is not made so: it is proved to be one that can be kept. `where` is where a user states
    it.

    Raises
    ------
    SourceError : where no portfolio of the universe keeps it.
    """
    if entry.get("as_stated"):
        return _as_stated(entry, as_of, market, where)
    stated = _counted(mandate_from(entry), market)
    mandate = _beside_benchmark(stated, market, {**catalog["room"], **entry.get("room", {})})
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
        remedy=f"add names to the universe, or {'loosen it' if where else 'bring own mandates by --catalog'}",
    )


def _as_stated(entry: MandateEntry, as_of: date, market: Market, where: str | None) -> FittedMandate:
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


def _witness(mandate: Mandate, market: Market) -> Floats | None:
    """A portfolio (n,) without trades that keeps a mandate: with room to every limit, else the benchmark's nearest."""
    try:
        mandate.check(len(market.tickers))
    except InputError:
        return None
    found = [_closest(mandate, market, _support(mandate, market))]
    if found[0] is None:
        try:
            found.append(nearest(mandate, market, required(market.benchmark, "benchmark weights")).weights)
        except (InfeasibleError, UndecidedError):
            return None
    for weights in found:
        if weights is not None:
            cash = np.array([1 - weights.sum()])
            excess = measure_all(weights[None], cash, np.zeros(1), mandate, market)[1]
            if (excess <= COMPLIANCE_TOLERANCE).all():
                return weights
    return None


def _counted(mandate: Mandate, market: Market) -> Mandate:
    """A least number of holdings is at most two thirds of the universe."""
    count = mandate.get(Kind.NAME_COUNT)
    most = math.floor(2 / 3 * len(market.tickers))
    if count is None or count.minimum is None or count.minimum <= most:
        return mandate
    return _with(mandate, replace(count, minimum=most))


def _beside_benchmark(mandate: Mandate, market: Market, room: Mapping[str, float]) -> Mandate:
    """The mandate with every limit that the benchmark would break raised to it and the room above, in round numbers."""
    benchmark = required(market.benchmark, "benchmark weights")
    betas = benchmark @ market.betas

    def at_least(limit: Constraint, measured: float, step: float) -> Constraint:
        least = _up(measured + room[limit.kind], step)
        return limit if limit.value is None or limit.value >= least else replace(limit, value=least)

    def beta_range(limit: Constraint) -> Constraint:
        """The range widened at the end that leaves the benchmark outside, or without room."""
        low, high, margin = limit.minimum or 0.0, limit.maximum or 0.0, room[Kind.BETA_RANGE]
        down, up = max(0.0, low + margin - float(betas[0])), max(0.0, float(betas[0]) + margin - high)
        low, high = low - _up(down, _BETA_STEP), high + _up(up, _BETA_STEP)
        return replace(limit, minimum=round(low, 9), maximum=round(high, 9))

    fitted: Mapping[Kind, Callable[[Constraint], Constraint]] = {
        Kind.POSITION_LIMIT_MAX: lambda limit: at_least(limit, float(benchmark.max()), 0.005),
        Kind.SECTOR_LIMIT_MAX: lambda limit: at_least(limit, float((market.membership.T @ benchmark).max()), 0.01),
        Kind.HHI_MAX: lambda limit: at_least(limit, float(benchmark @ benchmark), 0.005),
        Kind.FACTOR_EXPOSURE_MAX: lambda limit: at_least(
            limit, max(abs(float(betas[FACTORS.index(name)])) for name in limit.factors), 0.05
        ),
        Kind.BETA_RANGE: beta_range,
    }
    constraints = (fitted.get(limit.kind, _as_it_is)(limit) for limit in mandate.constraints)
    return replace(mandate, constraints=tuple(constraints))


_BETA_STEP = 0.05


def _as_it_is(limit: Constraint) -> Constraint:
    return limit


def _support(mandate: Mandate, market: Market) -> Integers:
    """Places of the names that a witness holds: the largest of the benchmark, as many as floors and counts allow."""
    size = min(len(market.tickers), _WITNESS_NAMES)
    floor, count = mandate.get(Kind.POSITION_LIMIT_MIN), mandate.get(Kind.NAME_COUNT)
    if floor is not None and floor.value:
        size = min(size, int(_FLOORED / floor.value))
    if count is not None and count.maximum is not None:
        size = min(size, int(count.maximum))
    order = np.argsort(-np.asarray(market.benchmark), kind="stable")
    return np.sort(order[:size])


def _closest(mandate: Mandate, market: Market, support: Integers) -> Floats | None:
    """The fully invested portfolio of least tracking error with room to every other limit."""
    free = _without(mandate, Kind.TRACKING_ERROR_MAX)
    floor = mandate.get(Kind.NAME_COUNT)
    # Whoever is held counts: a holding is at least 10 basis points.
    low = 0.0 if floor is None else 0.002
    found = place(market, support, mandate=tightened(free, _ROOM_SHARE, _ROOM_LEAST), least=low)
    return None if found is None else np.where(np.abs(found) < 1e-9, 0.0, found)


def _attainable(mandate: Mandate, market: Market, witness: Floats) -> Mandate:
    limit = mandate.get(Kind.TRACKING_ERROR_MAX)
    if limit is None or limit.value is None:
        return mandate
    values = measure_all(witness[None], np.zeros(1), np.zeros(1), mandate, market)[0]
    least = _up(_ATTAINED * float(values[0, mandate.constraints.index(limit)]), 0.001)
    return mandate if least <= limit.value else _with(mandate, replace(limit, value=least))


def notes_on(fitted: Sequence[tuple[date, FittedMandate]]) -> list[str]:
    """One sentence per mandate and limit that was widened somewhere: how far, and at how many dates."""
    found: dict[tuple[str, Kind, str], list[str]] = defaultdict(list)
    for _, one in fitted:
        for change in one.widened:
            found[one.mandate.mandate_id, change.kind, change.stated].append(change.fitted)
    return [
        f"The mandate {mandate} has {kind} {_span(limits)} instead of {stated} at {len(limits)} of "
        f"{len({day for day, _ in fitted})} dates: the universe there leaves no room for it."
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
    """`number` rounded up to a multiple of `step`, without the dust of the multiplication."""
    return round(math.ceil(round(number / step, 9)) * step, 9)


def _with(mandate: Mandate, limit: Constraint) -> Mandate:
    return replace(mandate, constraints=tuple(limit if one.kind is limit.kind else one for one in mandate.constraints))


def _without(mandate: Mandate, kind: Kind) -> Mandate:
    return replace(mandate, constraints=tuple(one for one in mandate.constraints if one.kind is not kind))
