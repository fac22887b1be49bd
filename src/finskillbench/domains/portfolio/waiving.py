"""Limits of an input waived, moved or measured: what infeasibility detection asks of a mandate, on its JSON alone."""

from __future__ import annotations

from collections.abc import Iterable

from finskillbench.domains.portfolio import second
from finskillbench.episode import JsonObject

LIMITS = ("max_weight", "sector_limits", "max_turnover", "max_tracking_error", "factor_neutrality")
"""Limits that can be waived, each as a whole; budget, long-only and restricted names cannot."""
_SECTOR = "sector_limits."


def family(limit: str) -> str:
    """The limit of `LIMITS` that `limit_to_relax` belongs to: `sector_limits.Energy` is one of `sector_limits`."""
    return _SECTOR[:-1] if limit.startswith(_SECTOR) else limit


def sector_of(limit: str) -> str:
    """The name that the optimiser has for a limit to relax: a sector stands for its cap."""
    return limit.removeprefix(_SECTOR)


def printed(task_input: JsonObject, limit: str) -> float:
    """The value of a limit to relax as the input sets it."""
    limits = task_input["constraints"]
    if limit.startswith(_SECTOR):
        return limits["sector_limits"][sector_of(limit)]
    return limits["neutrality_tolerance" if limit == "factor_neutrality" else limit]


def moved(task_input: JsonObject, limit: str, value: float) -> JsonObject:
    """The input with another value of a limit to relax."""
    limits = task_input["constraints"]
    if limit.startswith(_SECTOR):
        change: JsonObject = {"sector_limits": {**limits["sector_limits"], sector_of(limit): value}}
    else:
        change = {"neutrality_tolerance" if limit == "factor_neutrality" else limit: value}
    return {**task_input, "constraints": {**limits, **change}}


def waived(task_input: JsonObject, names: Iterable[str]) -> JsonObject:
    """The input without some of `LIMITS`."""
    off = {name: False if name == "factor_neutrality" else None for name in names}
    return {**task_input, "constraints": {**task_input["constraints"], **off}}


def level(task_input: JsonObject, limit: str, sigma: second.Floats, weights: second.Floats) -> float:
    """What a limit to relax limits, of weights (n,)."""
    at_zero = moved(waived(task_input, [name for name in LIMITS if name != family(limit)]), limit, 0.0)
    if limit.startswith(_SECTOR):
        at_zero["constraints"]["sector_limits"] = {sector_of(limit): 0.0}
    return second.excesses(at_zero, sigma, weights)[family(limit)]
