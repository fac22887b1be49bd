"""Shortcuts and mistakes at risk identification: the definitions with one part left out, in plain arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import cast

from finskillbench.domains.risk import second
from finskillbench.domains.risk.audits import exploits
from finskillbench.domains.risk.inputs import CovarianceInput, IdentificationInput
from finskillbench.domains.risk.second import Exposure
from finskillbench.episode import JsonObject

_USUAL = 0.3
"""A usual volatility of a name, a decimal per year."""
_LIQUIDITY = "liquidity_risk"


def shortcuts(task_input: IdentificationInput) -> Mapping[str, JsonObject]:
    """An answer by each shortcut, with everything else as it should be."""
    right = second.every_exposure(task_input)
    covariance = task_input["covariance_matrix"]
    variances = _variances(covariance)
    names = covariance["tickers"]
    unrelated: CovarianceInput = {"tickers": names, "loadings": [], "specific": variances}
    alike: CovarianceInput = {"tickers": names, "loadings": [], "specific": [_USUAL**2] * len(names)}
    absolute = second.every_exposure(_with(task_input, benchmark_weights=dict.fromkeys(names, 0.0)))
    found = {
        "weights, betas and shares for magnitudes": _by(right, lambda one: abs(one.evidence)),
        "weights instead of active weights": absolute,
        "factor tilts without the benchmark": [*_only(absolute, "factor_tilt"), *_without(right, "factor_tilt")],
        "tilts without factor volatilities": second.every_exposure(
            _with(task_input, factor_volatility=dict.fromkeys(task_input["factor_volatility"], 1.0))
        ),
        "names unrelated": second.every_exposure(_with(task_input, covariance_matrix=unrelated)),
        "one volatility for all names": second.every_exposure(_with(task_input, covariance_matrix=alike)),
        "the illiquid share for its risk": _by(
            right, lambda one: one.evidence if one.type == _LIQUIDITY else one.magnitude
        ),
        "no liquidity": _without(right, _LIQUIDITY),
        "names and sectors alone": _only(right, "single_name", "sector_concentration"),
    }
    answers = {name: _listed(second.listed(every)) for name, every in found.items()}
    answers["five whatever their size"] = _listed(second.ranked(right)[: second.LISTED])
    return answers


def _with(task_input: IdentificationInput, **changes: object) -> IdentificationInput:
    return cast("IdentificationInput", {**task_input, **changes})


def _variances(covariance: CovarianceInput) -> list[float]:
    """The diagonal of a covariance."""
    if "matrix" in covariance:
        return [row[at] for at, row in enumerate(covariance["matrix"])]
    loadings, specific = covariance.get("loadings", []), covariance.get("specific", [])
    return [math.fsum(row[at] ** 2 for row in loadings) + own for at, own in enumerate(specific)]


def _by(found: Iterable[Exposure], size: Callable[[Exposure], float]) -> list[Exposure]:
    return [one._replace(magnitude=size(one)) for one in found]


def _only(found: Iterable[Exposure], *kinds: str) -> list[Exposure]:
    return [one for one in found if one.type in kinds]


def _without(found: Iterable[Exposure], kind: str) -> list[Exposure]:
    return [one for one in found if one.type != kind]


def _listed(found: Iterable[Exposure]) -> JsonObject:
    return exploits.listed([(one.type, one.subject, one.magnitude, one.evidence) for one in found])
