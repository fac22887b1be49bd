"""Shortcuts and graded examples of risk identification."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from finskillbench.domains.examples import GradedExample, Label
from finskillbench.domains.risk import rederive
from finskillbench.domains.risk.examples import exploits
from finskillbench.domains.risk.examples.exploits import to_significant_digits
from finskillbench.domains.risk.inputs import CovarianceInput, IdentificationInput
from finskillbench.domains.risk.rederive import RederivedExposure
from finskillbench.episode import JsonObject

_USUAL = 0.3
"""Typical annual volatility of a name."""
_LIQUIDITY = "liquidity_risk"


def shortcuts(task_input: IdentificationInput) -> Mapping[str, JsonObject]:
    """Return one answer per shortcut, right in all other parts."""
    right = rederive.every_exposure(task_input)
    covariance = task_input["covariance_matrix"]
    variances = _variances(covariance)
    names = covariance["tickers"]
    unrelated: CovarianceInput = {"tickers": names, "loadings": [], "specific": variances}
    alike: CovarianceInput = {"tickers": names, "loadings": [], "specific": [_USUAL**2] * len(names)}
    absolute = rederive.every_exposure(_with(task_input, benchmark_weights=dict.fromkeys(names, 0.0)))
    found = {
        "weights, betas and shares for magnitudes": _by(right, lambda one: abs(one.evidence)),
        "weights instead of active weights": absolute,
        "factor tilts without the benchmark": [*_only(absolute, "factor_tilt"), *_without(right, "factor_tilt")],
        "tilts without factor volatilities": rederive.every_exposure(
            _with(task_input, factor_volatility=dict.fromkeys(task_input["factor_volatility"], 1.0))
        ),
        "names unrelated": rederive.every_exposure(_with(task_input, covariance_matrix=unrelated)),
        "one volatility for all names": rederive.every_exposure(_with(task_input, covariance_matrix=alike)),
        "the illiquid share for its risk": _by(
            right, lambda one: one.evidence if one.type == _LIQUIDITY else one.magnitude
        ),
        "no liquidity": _without(right, _LIQUIDITY),
        "names and sectors alone": _only(right, "single_name", "sector_concentration"),
    }
    answers = {name: _listed(rederive.material_exposures(every)) for name, every in found.items()}
    answers["five whatever their size"] = _listed(rederive.rank_exposures(right)[: rederive.LISTED])
    return answers


def _with(task_input: IdentificationInput, **changes: object) -> IdentificationInput:
    return cast("IdentificationInput", {**task_input, **changes})


def _variances(covariance: CovarianceInput) -> list[float]:
    if "matrix" in covariance:
        return [row[at] for at, row in enumerate(covariance["matrix"])]
    loadings, specific = covariance.get("loadings", []), covariance.get("specific", [])
    return [math.fsum(row[at] ** 2 for row in loadings) + residual for at, residual in enumerate(specific)]


def _by(found: Iterable[RederivedExposure], size: Callable[[RederivedExposure], float]) -> list[RederivedExposure]:
    return [one._replace(magnitude=size(one)) for one in found]


def _only(found: Iterable[RederivedExposure], *kinds: str) -> list[RederivedExposure]:
    return [one for one in found if one.type in kinds]


def _without(found: Iterable[RederivedExposure], kind: str) -> list[RederivedExposure]:
    return [one for one in found if one.type != kind]


def _listed(found: Iterable[RederivedExposure]) -> JsonObject:
    return exploits.exposure_answer([(one.type, one.subject, one.magnitude, one.evidence) for one in found])


_Row = dict[str, Any]
_CLEARLY = 1.06
"""Ratio above which two magnitudes cannot be confused."""


def graded_examples(label: Label[IdentificationInput]) -> list[GradedExample]:
    """Return examples from the truth to an empty list."""
    truth = label.truth.expected_output
    rows: list[_Row] = [dict(row) for row in truth["top_risk_exposures"]]
    examples = [
        GradedExample("truth", truth, 1.0, 1.0),
        GradedExample("six digits", to_significant_digits(truth, 6), 1.0, 1.0),
        GradedExample("four digits", to_significant_digits(truth, 4), 0.99, 1.0),
        GradedExample("three digits", to_significant_digits(truth, 3), 0.9, 1.0),
        GradedExample("without the last of the list", _ranked(rows[:-1]), 0.2, 0.8),
    ]
    if len(rows) > 2 and rows[0]["magnitude"] > _CLEARLY * rows[-1]["magnitude"]:
        examples.append(GradedExample("the list in reverse", _ranked(rows[::-1]), 0.0, 0.3))
    larger = [row | {"magnitude": row["magnitude"] * 1.008} for row in rows]
    examples.append(GradedExample("magnitudes off by 0.8 per cent", _ranked(larger), 0.05, 0.2))
    if all(abs(abs(row["evidence"]) / row["magnitude"] - 1) > _CLEARLY - 1 for row in rows):
        plain = [row | {"magnitude": abs(row["evidence"])} for row in rows]
        examples.append(GradedExample("weights and betas for magnitudes", _ranked(plain), 0.0, 0.0))
    in_per_cent = [row | {"magnitude": row["magnitude"] * 100, "evidence": row["evidence"] * 100} for row in rows]
    examples.append(GradedExample("magnitudes in per cent", _ranked(in_per_cent), 0.0, 0.0))
    examples.append(GradedExample("no exposures", {"top_risk_exposures": []}, 0.0, 0.0))
    return examples


def _ranked(rows: Sequence[_Row]) -> JsonObject:
    return {"top_risk_exposures": [row | {"rank": rank} for rank, row in enumerate(rows, start=1)]}
