"""The twelve mandates of the catalog, each fitted to the universe of a date so that it can be kept."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np
from scipy.optimize import linprog  # pyright: ignore[reportUnknownVariableType]

from finskillbench.arrays import FACTORS, Floats, Integers
from finskillbench.domains.risk.catalogs import MandateEntry, WideningRules
from finskillbench.domains.risk.objects.placement import place, tightened
from finskillbench.engines.risk.mandate import COMPLIANCE_TOLERANCE, Constraint, Kind, Mandate, mandate_from
from finskillbench.engines.risk.monitor import measure_all
from finskillbench.engines.risk.portfolio import Market
from finskillbench.errors import InternalError, SourceError

TIERS = ("easy", "medium", "hard")
_ROOM_SHARE, _ROOM_LEAST = 0.02, 0.001
"""How far inside each limit a witness lies: two percent of it, ten basis points at the least."""
_WITNESS_NAMES = 100
"""A witness holds the largest names of the benchmark, so many at the most: enough, and quickly found."""
_FLOORED = 0.5
"""Share of NAV that holding every name of a witness at its least weight may take."""


@dataclass(frozen=True)
class Widening:
    """One limit that the catalog's universe-free number could not be kept at."""

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


def fit(entry: MandateEntry, as_of: date, market: Market, rules: WideningRules) -> FittedMandate:
    """The catalog's mandate on the universe of a date; a limit that nobody could keep there is widened.

    The tracking-error limit is the catalog's unless that lies below 1.25 times the least attainable within the other
    limits; the others are the catalog's unless no portfolio keeps them together with a little room, and are then
    widened where a least total relative excess needs it (`rules`: factors and rounding).

    Raises
    ------
    SourceError : where no widening of these limits makes the mandate one that can be kept.
    """
    stated = mandate_from(entry)
    mandate = _counted(stated, market)
    support = _support(mandate, market)
    witness = _closest(mandate, market, support)
    if witness is None:
        mandate = _widen_linear(mandate, market, support, rules)
        witness = _closest(mandate, market, support)
    if witness is None:
        mandate = _widen_hhi(mandate, market, support, rules)
        witness = _closest(mandate, market, support)
    if witness is not None:
        mandate = _widen_tracking_error(mandate, market, witness, rules)
        mandate.check(len(market.tickers))
        excess = measure_all(witness[None], 1 - witness.sum(keepdims=True), np.zeros(1), mandate, market)[1]
        if (excess <= COMPLIANCE_TOLERANCE).all():
            changes = zip(stated.constraints, mandate.constraints, strict=True)
            widened = tuple(Widening(a.kind, _limit(a), _limit(b)) for a, b in changes if a != b)
            return FittedMandate(mandate, entry["tier"], witness, widened)
    raise SourceError(
        f"panels at {as_of}",
        f"no portfolio of the {len(market.tickers)} names keeps the mandate {mandate.mandate_id}, widened or not",
        remedy="add names to the universe, or loosen the mandate in domains/risk/catalog/mandates.json",
    )


def _counted(mandate: Mandate, market: Market) -> Mandate:
    """A least number of holdings is at most four fifths of the universe."""
    count = mandate.get(Kind.NAME_COUNT)
    most = math.floor(0.8 * len(market.tickers))
    if count is None or count.minimum is None or count.minimum <= most:
        return mandate
    return _with(mandate, replace(count, minimum=most))


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


def _widen_tracking_error(mandate: Mandate, market: Market, witness: Floats, rules: WideningRules) -> Mandate:
    limit = mandate.get(Kind.TRACKING_ERROR_MAX)
    if limit is None or limit.value is None:
        return mandate
    rule = rules[Kind.TRACKING_ERROR_MAX]
    values = measure_all(witness[None], np.zeros(1), np.zeros(1), mandate, market)[0]
    least = float(values[0, mandate.constraints.index(limit)])
    attainable = _up(rule["times_least"] * least, rule["round_up_to"])
    return mandate if attainable <= limit.value else _with(mandate, replace(limit, value=attainable))


def _widen_hhi(mandate: Mandate, market: Market, support: Integers, rules: WideningRules) -> Mandate:
    limit = mandate.get(Kind.HHI_MAX)
    if limit is None or limit.value is None:
        return mandate
    free = _without(_without(mandate, Kind.TRACKING_ERROR_MAX), Kind.HHI_MAX)
    even = place(
        market, support, mandate=tightened(free, _ROOM_SHARE, _ROOM_LEAST), target=np.zeros(len(market.tickers))
    )
    if even is None:
        return mandate
    rule = rules[Kind.HHI_MAX]
    attainable = _up(rule["times_least"] * float(even @ even), rule["round_up_to"])
    return mandate if attainable <= limit.value else _with(mandate, replace(limit, value=attainable))


def _widen_linear(mandate: Mandate, market: Market, support: Integers, rules: WideningRules) -> Mandate:
    """Widen position, sector, beta and factor limits where the least total relative excess over them needs it."""
    tight = tightened(mandate, _ROOM_SHARE, _ROOM_LEAST)
    k = len(support)
    rows: list[tuple[Constraint, str, Floats, float]] = []
    for limit in tight.constraints:
        value = limit.value or 0.0
        if limit.kind is Kind.POSITION_LIMIT_MAX:
            rows += [(limit, "value", unit, value) for unit in np.eye(k)]
        elif limit.kind is Kind.SECTOR_LIMIT_MAX:
            rows += [(limit, "value", column, value) for column in market.membership[support].T]
        elif limit.kind is Kind.BETA_RANGE:
            slopes = market.betas[support, FACTORS.index("mkt_rf")]
            rows += [] if limit.maximum is None else [(limit, "maximum", slopes, limit.maximum)]
            rows += [] if limit.minimum is None else [(limit, "minimum", -slopes, -limit.minimum)]
        elif limit.kind is Kind.FACTOR_EXPOSURE_MAX:
            for factor in limit.factors:
                slopes = market.betas[support, FACTORS.index(factor)]
                rows += [(limit, "value", sign * slopes, value) for sign in (1.0, -1.0)]
    keys = list(dict.fromkeys((limit.kind, end) for limit, end, _, _ in rows))
    if not rows:
        return mandate
    matrix = np.zeros((len(rows), k + len(keys)))
    for index, (limit, end, row, _) in enumerate(rows):
        matrix[index, :k] = row
        matrix[index, k + keys.index((limit.kind, end))] = -1.0
    scale = [max(abs(getattr(_constraint(tight, kind), end)), _ROOM_LEAST) for kind, end in keys]
    low = tight.limit(Kind.POSITION_LIMIT_MIN) or 0.0
    result: Any = linprog(
        np.concatenate([np.zeros(k), 1 / np.array(scale)]),
        A_ub=matrix,
        b_ub=[limit for _, _, _, limit in rows],
        A_eq=np.concatenate([np.ones(k), np.zeros(len(keys))])[None],
        b_eq=[1.0],
        bounds=[(low, 1.0)] * k + [(0.0, None)] * len(keys),
        method="highs",
    )
    if result.x is None:
        return mandate
    excesses: list[float] = result.x[k:].tolist()
    for (kind, end), excess in zip(keys, excesses, strict=True):
        if excess <= 1e-9:
            continue
        rule, limit = rules[kind], _constraint(mandate, kind)
        number = getattr(limit, end)
        beyond = rule["times_excess"] * excess
        if end == "minimum":
            mandate = _with(mandate, replace(limit, minimum=-_up(beyond - number, rule["round_up_to"])))
        else:
            mandate = _with(mandate, replace(limit, **{end: _up(number + beyond, rule["round_up_to"])}))
    return mandate


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


def _constraint(mandate: Mandate, kind: Kind) -> Constraint:
    limit = mandate.get(kind)
    if limit is None:
        raise InternalError(f"the mandate {mandate.mandate_id} has no {kind}")
    return limit


def _with(mandate: Mandate, limit: Constraint) -> Mandate:
    return replace(mandate, constraints=tuple(limit if one.kind is limit.kind else one for one in mandate.constraints))


def _without(mandate: Mandate, kind: Kind) -> Mandate:
    return replace(mandate, constraints=tuple(one for one in mandate.constraints if one.kind is not kind))
