"""Effective parameters of an optimiser call and their score."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from finskillbench.engines.holdings import HOLDING_THRESHOLD
from finskillbench.scoring.values import as_array, as_boolean, as_number, as_object, as_text, numbers

_ROUNDING = 1.001e-3
"""Relative difference of numbers that count as equal, such as one third and 0.333."""
MISTAKE = 0.5
"""Factor for each wrong, missing or added limit."""
ANOTHER_OBJECTIVE = 0.3
"""Factor for right limits under a wrong objective."""


def effective_parameters(call: Mapping[str, Any], sectors: Sequence[str], size: int) -> dict[str, Any]:
    """Return the parameters of a call that change the optimiser's objective or feasible set; expand sector caps.

    Leaves out defaults (long_only true, risk_aversion 1), unknown parameters, and limits that cannot bind: a cap or
    turnover of 1, max_names of the whole universe, a min_names implied by max_weight or min_weight.
    """
    limits = as_object(call.get("constraints"))
    found: dict[str, Any] = {}
    objective = as_text(call.get("objective"))
    if objective is not None:
        found["objective"] = objective
    aversion = as_number(call.get("risk_aversion"))
    if objective == "max_sharpe" and aversion is not None and aversion != 1.0:
        found["risk_aversion"] = aversion
    floor, short = _floor(limits)
    if short:
        found["long_only"] = False
    if floor is not None and (short or floor > 0):
        found["min_weight"] = floor
    cap = as_number(limits.get("max_weight"))
    forced = 0 if short else _forced_names(cap, floor or 0.0, size)
    for name, binds in (
        ("max_weight", short or (cap is not None and cap < 1)),
        ("max_turnover", short or (as_number(limits.get("max_turnover")) or 0.0) < 1),
        ("max_tracking_error", True),
        ("min_names", (as_number(limits.get("min_names")) or 0.0) > forced),
        ("max_names", (as_number(limits.get("max_names")) or 0.0) < size),
    ):
        value = as_number(limits.get(name))
        if value is not None and binds:
            found[name] = value
    caps = _sector_caps(limits, sectors)
    if caps:
        found["sector_limits"] = caps
    factors = sorted({factor for factor in as_array(limits.get("neutral_factors")) if isinstance(factor, str)})
    if factors:
        found["neutral_factors"] = factors
        tolerance = as_number(limits.get("neutrality_tolerance"))
        found["neutrality_tolerance"] = 0.01 if tolerance is None else tolerance
    return found


def _floor(limits: Mapping[str, Any]) -> tuple[float | None, bool]:
    """Return the minimum weight of every name, and True if short sales remain possible (not with a floor >= 0)."""
    floor = as_number(limits.get("min_weight"))
    if as_boolean(limits.get("long_only")) is False:
        return floor, floor is None or floor < 0
    return max(floor or 0.0, 0.0), False


def _forced_names(cap: float | None, floor: float, size: int) -> int:
    """Return the holdings implied by a floor, or by a cap: k caps and size − k stubs under the threshold reach 1."""
    if floor >= HOLDING_THRESHOLD:
        return size
    if cap is None or cap <= HOLDING_THRESHOLD:
        return 1
    return max(1, math.ceil((1 - HOLDING_THRESHOLD * size) / (cap - HOLDING_THRESHOLD)))


def _sector_caps(limits: Mapping[str, Any], sectors: Sequence[str]) -> dict[str, float]:
    general = as_number(limits.get("max_sector_weight"))
    caps = {} if general is None else dict.fromkeys(sectors, general)
    caps |= numbers(limits.get("sector_limits"))
    caps |= {name: 0.0 for name in as_array(limits.get("excluded_sectors")) if isinstance(name, str)}
    return {name: cap for name, cap in caps.items() if cap < 1}


def merit(submitted: Mapping[str, Any], wanted: Mapping[str, Any]) -> float:
    """Score a call: half for each mistake in its limits, times `ANOTHER_OBJECTIVE` for a wrong objective."""
    right_objective = submitted.get("objective") == wanted.get("objective")
    return (1.0 if right_objective else ANOTHER_OBJECTIVE) * MISTAKE ** count_mistakes(submitted, wanted)


def count_mistakes(stated: Mapping[str, Any], wanted: Mapping[str, Any]) -> float:
    """Count wrong, missing or added parameters, except the objective.

    Sector caps count once per level of cap, by the share of its sectors that lack it.
    """
    names = (stated.keys() | wanted.keys()) - {"objective", "sector_limits"}
    wrong = float(sum(not (name in stated and name in wanted and _same(stated[name], wanted[name])) for name in names))
    caps, expected = (as_object(call.get("sector_limits")) for call in (stated, wanted))
    for level in set(expected.values()):
        sectors = [sector for sector, cap in expected.items() if cap == level]
        missed = [sector for sector in sectors if not (sector in caps and _same(caps[sector], level))]
        wrong += len(missed) / len(sectors)
    return wrong + len({cap for sector, cap in caps.items() if sector not in expected})


def _same(submitted: object, wanted: object) -> bool:
    if isinstance(submitted, float) and isinstance(wanted, float):
        return abs(submitted - wanted) <= _ROUNDING * abs(wanted)
    return submitted == wanted
