"""The optimiser call of tool use: which parameters count, and how an authored text becomes text and call."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from finskillbench.engines.portfolio.problem import HOLDING_THRESHOLD
from finskillbench.scoring.values import array, boolean, mapping, number, numbers, text

_ROUNDING = 1e-6
"""Relative difference below which two numbers are the same number, written differently."""
_WORDS = {0.15: "15 percent", 0.2: "one fifth", 0.25: "one quarter"}


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
    cap, floor = number(limits.get("max_weight")), number(limits.get("min_weight")) or 0.0
    if boolean(limits.get("long_only")) is False and floor <= 0:
        found["long_only"] = False
    for name, binds in (
        ("max_weight", cap is not None and cap < 1),
        ("min_weight", floor > 0),
        ("max_turnover", (number(limits.get("max_turnover")) or 0.0) < 1),
        ("max_tracking_error", True),
        ("min_names", (number(limits.get("min_names")) or 0.0) > _forced_names(cap, floor, size)),
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


def agreement(given: Mapping[str, Any], wanted: Mapping[str, Any]) -> float:
    """Share of the union of parameters on which two calls agree; sector caps agree by the share of sectors that do."""
    names = given.keys() | wanted.keys()
    total = sum(_same(given[name], wanted[name]) for name in names if name in given and name in wanted)
    return total / len(names) if names else 0.0


def _same(given: object, wanted: object) -> float:
    one, other = mapping(given), mapping(wanted)
    if isinstance(given, Mapping) and isinstance(wanted, Mapping):
        return agreement(one, other)
    if isinstance(given, float) and isinstance(wanted, float):
        return float(abs(given - wanted) <= _ROUNDING * max(abs(wanted), 1.0))
    return float(given == wanted)


def render(template: str, drawn: Mapping[str, float]) -> str:
    """The authored text with its numbers printed in the styles it asks for, e.g. `{cap:pct}`."""
    return re.sub(r"\{(\w+):(\w+)\}", lambda match: _styled(drawn[match[1]], match[2]), template)


def _styled(value: float, style: str) -> str:
    if style == "pct":
        return f"{value * 100:g}%"
    if style == "bps":
        return f"{value * 10_000:g} basis points"
    if style == "words":
        return _WORDS[value]
    return f"{value:g}"


def fill(call: Mapping[str, Any], drawn: Mapping[str, float]) -> dict[str, Any]:
    """The authored call with drawn numbers in place of their names."""
    return {key: _filled(value, drawn) for key, value in call.items()}


def _filled(value: object, drawn: Mapping[str, float]) -> object:
    inner = mapping(value)
    if isinstance(value, Mapping):
        return fill(inner, drawn)
    return drawn.get(value, value) if isinstance(value, str) else value
