"""The optimiser call of tool use: parameters that count, and the worth of a call."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from finskillbench.engines.holdings import HOLDING_THRESHOLD
from finskillbench.scoring.values import array, boolean, mapping, number, numbers, text

_ROUNDING = 1.001e-3
"""Relative difference below which two numbers are the same number, one third and 0.333 for instance."""
MISTAKE = 0.5
"""What a limit that is wrong, missing or added leaves of a call: it builds a portfolio that nobody ordered."""
ANOTHER_OBJECTIVE = 0.3
"""What the right limits are worth under an objective that was not asked for."""


def effective_parameters(call: Mapping[str, Any], sectors: Sequence[str], size: int) -> dict[str, Any]:
    """The parameters of a call that change the optimiser's objective or feasible set; the rest is left out.

    Left out are defaults (long_only true, risk_aversion 1), limits that cannot bind (a cap of 1, a turnover of 1,
    max_names of the whole universe, a min_names that max_weight or min_weight already forces) and anything that is not
    of the API. Sector caps are compared sector by sector, whichever way they were written.
    """
    limits = mapping(call.get("constraints"))
    found: dict[str, Any] = {}
    objective = text(call.get("objective"))
    if objective is not None:
        found["objective"] = objective
    aversion = number(call.get("risk_aversion"))
    if objective == "max_sharpe" and aversion is not None and aversion != 1.0:
        found["risk_aversion"] = aversion
    floor, short = _floor(limits)
    if short:
        found["long_only"] = False
    if floor is not None and (short or floor > 0):
        found["min_weight"] = floor
    cap = number(limits.get("max_weight"))
    forced = 0 if short else _forced_names(cap, floor or 0.0, size)
    for name, binds in (
        ("max_weight", short or (cap is not None and cap < 1)),
        ("max_turnover", short or (number(limits.get("max_turnover")) or 0.0) < 1),
        ("max_tracking_error", True),
        ("min_names", (number(limits.get("min_names")) or 0.0) > forced),
        ("max_names", (number(limits.get("max_names")) or 0.0) < size),
    ):
        value = number(limits.get(name))
        if value is not None and binds:
            found[name] = value
    caps = _sector_caps(limits, sectors)
    if caps:
        found["sector_limits"] = caps
    factors = sorted({factor for factor in array(limits.get("neutral_factors")) if isinstance(factor, str)})
    if factors:
        found["neutral_factors"] = factors
        tolerance = number(limits.get("neutrality_tolerance"))
        found["neutrality_tolerance"] = 0.01 if tolerance is None else tolerance
    return found


def _floor(limits: Mapping[str, Any]) -> tuple[float | None, bool]:
    """The least weight of every name that two parameters set together, and whether it leaves room for short sales.

    A floor of 0 or more bans them whatever `long_only` says: `long_only: false, min_weight: 0` is a long-only call.
    """
    floor = number(limits.get("min_weight"))
    if boolean(limits.get("long_only")) is False:
        return floor, floor is None or floor < 0
    return max(floor or 0.0, 0.0), False


def _forced_names(cap: float | None, floor: float, size: int) -> int:
    """Holdings forced by a floor on every name, or by a cap: k caps and size − k stubs under the threshold reach 1."""
    if floor >= HOLDING_THRESHOLD:
        return size
    if cap is None or cap <= HOLDING_THRESHOLD:
        return 1
    return max(1, math.ceil((1 - HOLDING_THRESHOLD * size) / (cap - HOLDING_THRESHOLD)))


def _sector_caps(limits: Mapping[str, Any], sectors: Sequence[str]) -> dict[str, float]:
    general = number(limits.get("max_sector_weight"))
    caps = {} if general is None else dict.fromkeys(sectors, general)
    caps |= numbers(limits.get("sector_limits"))
    caps |= {name: 0.0 for name in array(limits.get("excluded_sectors")) if isinstance(name, str)}
    return {name: cap for name, cap in caps.items() if cap < 1}


def merit(given: Mapping[str, Any], wanted: Mapping[str, Any]) -> float:
    """What a call is worth: half for each mistake in its limits, and little of that under another objective."""
    asked = given.get("objective") == wanted.get("objective")
    return (1.0 if asked else ANOTHER_OBJECTIVE) * MISTAKE ** mistakes(given, wanted)


def mistakes(given: Mapping[str, Any], wanted: Mapping[str, Any]) -> float:
    """How many parameters are wrong, missing or added, the objective apart.

    Sector caps count once for each level of cap, by the share of the sectors at that level that do not have it: a cap
    of one sector weighs as much as that of all the others.
    """
    names = (given.keys() | wanted.keys()) - {"objective", "sector_limits"}
    wrong = float(sum(not (name in given and name in wanted and _same(given[name], wanted[name])) for name in names))
    caps, expected = (mapping(call.get("sector_limits")) for call in (given, wanted))
    for level in set(expected.values()):
        sectors = [sector for sector, cap in expected.items() if cap == level]
        missed = [sector for sector in sectors if not (sector in caps and _same(caps[sector], level))]
        wrong += len(missed) / len(sectors)
    return wrong + len({cap for sector, cap in caps.items() if sector not in expected})


def _same(given: object, wanted: object) -> bool:
    if isinstance(given, float) and isinstance(wanted, float):
        return abs(given - wanted) <= _ROUNDING * abs(wanted)
    return given == wanted
