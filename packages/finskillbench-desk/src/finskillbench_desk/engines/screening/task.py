"""Steps of a screening for skill scripts: payload fields in, measures out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.fields import list_of, refuse_unknown, table_of
from finskillbench.errors import InputError
from finskillbench_desk.engines.posterior.signatures import Innovations, innovations, mixed_evidence, signature_evidence
from finskillbench_desk.engines.screening.fields import (
    list_column,
    number_column,
    number_field,
    object_entries,
    row_choices,
    table_field,
    text_field,
)
from finskillbench_desk.engines.screening.panel import KNOWN, RatioPanel, by_ratio, definitions_of, ratio_panel

_SIGNATURE = ("name", "weight", "profile", "shifts", "size", "size_spread", "ratio_spread")
LARGEST = 80
"""Most innovations shown."""


def ratio_innovations(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Compute standardised innovations of stated ratios: scales, volatilities, and the largest in the window."""
    refuse_unknown(payload, KNOWN, "ratio_innovations")
    panel = ratio_panel(payload)
    window = _window(payload, panel)
    found = _innovations(payload, panel, window)
    late = np.where(found.usable[:, :, None], found.standardised, 0.0)[:, -window:]
    order = np.argsort(-np.abs(late), axis=None)[:LARGEST]
    places = np.array(np.unravel_index(order, late.shape)).T
    names = panel.quarters[-window:]
    return {
        "innovation_sd": _by_name(panel.ratios, found.deviation, 5),
        "correlation": np.round(found.correlation, 2).tolist(),
        "volatility": _by_name(panel.companies, found.volatility, 2),
        "mean_square_in_window": _by_name(panel.companies, (late**2).mean(axis=(1, 2)), 2),
        "largest": [
            f"{panel.companies[company]} {names[quarter]} {panel.ratios[ratio]} {late[company, quarter, ratio]:+.1f}"
            for company, quarter, ratio in places
        ],
        "used": _used(payload, panel, window),
    }


def signature_match(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Compute log Bayes factors of stated signatures, mixed by weight, against none; start and size are unknown."""
    refuse_unknown(payload, (*KNOWN, "signatures"), "signature_match")
    signatures = object_entries(payload, "signatures", _SIGNATURE)
    panel = ratio_panel(payload)
    window = _window(payload, panel)
    found = _innovations(payload, panel, window)
    if not signatures:
        raise InputError("signatures must list them, each with name, weight, profile, shifts and size_spread")
    names = [text_field(each, "name", "signatures") for each in signatures]
    weights = np.array([number_field(each, "weight", "signatures") for each in signatures])
    if (weights < 0).any() or not weights.sum() > 0:
        raise InputError("signatures: weights must not be negative, and not all 0")
    parts = np.stack([_evidence(each, panel, found, window) for each in signatures], axis=1)
    weights = weights / weights.sum()
    total = mixed_evidence(parts, weights)
    each = np.stack([mixed_evidence(parts[:, [place]], np.ones(1)) for place in range(len(names))], axis=1)
    with np.errstate(divide="ignore"):
        shares = np.exp(each + np.log(weights) - total[:, None])
    # Signatures with the same name are one kind.
    kinds = list(dict.fromkeys(names))
    of_kind = np.stack([shares[:, [name == kind for name in names]].sum(axis=1) for kind in kinds], axis=1)
    strongest = of_kind.argmax(axis=1)
    return {
        "columns": ["company", "log_bayes_factor", "strongest_signature", "its_share"],
        "rows": [
            [company, round(float(total[row]), 2), kinds[best], round(float(of_kind[row, best]), 2)]
            for row, (company, best) in enumerate(zip(panel.companies, strongest, strict=True))
        ],
        "used": _used(payload, panel, window),
    }


def case_effects(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Measure the mean shift of resolved cases by group, by least squares on each group's time profile."""
    refuse_unknown(payload, ("archive", "group", "values", "profiles", "unit", "keep", "drop"), "case_effects")
    cases = table_field(payload, "archive")
    if cases is None:
        raise InputError("archive is missing; inject it from the task data")
    values = [str(name) for name in list_of(payload.get("values")) or ()]
    profiles = table_of(payload.get("profiles"))
    if not values or profiles is None:
        raise InputError("values (names of columns) and profiles (group to its time profile) must be given")
    unit = number_field(payload, "unit", "case_effects")
    kept = np.ones(len(list_column(cases, "case", "archive")), dtype=bool)
    keep, drop = row_choices(payload, "keep"), row_choices(payload, "drop")
    for name, wanted in keep.items():
        kept &= np.array([value in wanted for value in list_column(cases, name, "archive")])
    for name, unwanted in drop.items():
        kept &= np.array([value not in unwanted for value in list_column(cases, name, "archive")])
    case, by = np.array(list_column(cases, "case", "archive")), str(payload.get("group") or "kind")
    group = np.array(list_column(cases, by, "archive"))
    period = number_column(cases, "quarter", "archive").astype(int)
    moves = unit * np.stack([number_column(cases, name, "archive") for name in values], axis=1)
    if not kept.any():
        raise InputError("keep and drop leave no case; look at the entries of their columns in the archive")
    before = kept & (period < 0)
    noise = np.atleast_2d(np.cov(moves[before].T)) if before.sum() > len(values) else None
    return {
        "cases_kept": len(set(case[kept])),
        "groups": {
            name: _effect(case, period, moves, kept & (group == name), _profile(profile, name), values, noise)
            for name, profile in profiles.items()
        },
        "used": {"unit": unit, "group": by, "keep": _cases_with(keep, cases), "drop": _cases_with(drop, cases)},
    }


def calibrate(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Convert log Bayes factors and a base rate to probabilities by Bayes' theorem."""
    refuse_unknown(payload, ("log_bayes_factors", "base_rate", "weight"), "calibrate")
    rate = number_field(payload, "base_rate", "payload")
    factors = table_of(payload.get("log_bayes_factors"))
    if not 0.0 < rate < 1.0 or not factors:
        raise InputError("base_rate must lie between 0 and 1, and log_bayes_factors map names to numbers")
    weight = number_field(payload, "weight", "payload", 1.0)
    prior = np.log(rate) - np.log1p(-rate)
    logs = np.array([number_field(factors, name, "log_bayes_factors") for name in factors])
    found = 1.0 / (1.0 + np.exp(-np.clip(prior + weight * logs, -700.0, 700.0)))
    return {
        "calibrated": _by_name(list(factors), found, 4),
        "sum": round(float(found.sum()), 2),
        "base_rate_times_number": round(rate * len(found), 2),
        "used": {"base_rate": rate, "weight": weight},
    }


def _window(payload: Mapping[str, Any], panel: RatioPanel) -> int:
    window = int(number_field(payload, "window", "payload"))
    if not 1 <= window <= len(panel.quarters) - 10:
        raise InputError(f"window must leave ten quarters before it, so at most {len(panel.quarters) - 10}")
    return window


def _used(payload: Mapping[str, Any], panel: RatioPanel, window: int) -> dict[str, Any]:
    """Report the inputs used, so that a missing correction is visible."""
    stated = "innovation_sd" in definitions_of(payload)[0]
    return {
        "window": window,
        "versions": payload["versions"],
        "growth_line": payload.get("growth_line"),
        "table_unit": payload.get("table_unit"),
        "tables": [name for name in ("industry_paths", "seasons") if payload.get(name) is not None],
        "freedom": payload.get("freedom", 0.0),
        "innovation_sd": "as stated" if stated else "estimated before the window",
        "correlation": "estimated before the window" if payload.get("correlation") is None else "as stated",
        "number_applied": panel.applied,
    }


def _innovations(payload: Mapping[str, Any], panel: RatioPanel, window: int) -> Innovations:
    definitions = definitions_of(payload)
    stated = None
    if all("innovation_sd" in each for each in definitions):
        stated = np.array([number_field(each, "innovation_sd", "ratios") for each in definitions])
    freedom = number_field(payload, "freedom", "payload", 0.0)
    found = innovations(panel.y, panel.persistence, window, panel.new_level, freedom, stated)
    correlation = _correlation(payload, panel)
    return found if correlation is None else replace(found, correlation=correlation)


def _correlation(payload: Mapping[str, Any], panel: RatioPanel) -> Floats | None:
    """Return the stated correlation of innovations in the order of the ratios; None if it is not stated."""
    stated = payload.get("correlation")
    if stated is None:
        return None
    rows = [[item for item in list_of(row) or () if isinstance(item, int | float)] for row in list_of(stated) or ()]
    size = len(panel.ratios)
    if len(rows) == size and all(len(row) == size for row in rows):
        matrix = np.array(rows, dtype=np.float64)
        unit = np.allclose(np.diag(matrix), 1.0) and np.allclose(matrix, matrix.T)
        if unit and np.isfinite(matrix).all() and np.linalg.eigvalsh(matrix).min() > 0.0:
            return matrix
    raise InputError(f"correlation must be a positive definite {size} x {size} matrix with ones on its diagonal")


def _evidence(signature: Mapping[str, Any], panel: RatioPanel, found: Innovations, window: int) -> Floats:
    profile = _profile(signature.get("profile"), text_field(signature, "name", "signatures"))
    shifts = by_ratio(signature, "shifts", "signatures", panel.ratios)
    shift = np.array([number_field(shifts, name, "signatures.shifts", 0.0) for name in panel.ratios])
    size, spread = (
        number_field(signature, "size", "signatures", 1.0),
        number_field(signature, "size_spread", "signatures", 0.0),
    )
    scatter = number_field(signature, "ratio_spread", "signatures", 0.0)
    return signature_evidence(found, shift, profile, size, spread, window, scatter)


def _profile(value: object, name: str) -> Floats:
    numbers = [float(item) for item in list_of(value) or () if isinstance(item, int | float)]
    if not numbers or not any(numbers):
        raise InputError(f"profile of {name} must be a list of numbers, from the first quarter on, not all 0")
    return np.array(numbers)


def _effect(
    case: np.ndarray,
    period: np.ndarray,
    moves: Floats,
    which: np.ndarray,
    profile: Floats,
    values: list[str],
    noise: Floats | None,
) -> dict[str, Any]:
    """Measure each case of a group by least squares; return mean, standard error and spread of sizes."""
    inside = which & (period >= 0) & (period < len(profile))
    effort = float(profile @ profile)
    names, rows = np.unique(case[inside], return_inverse=True)
    measured = np.zeros((len(names), len(values)))
    np.add.at(measured, rows, profile[period[inside]][:, None] * moves[inside] / effort)
    if len(names) < 2:
        return {"cases": len(names)}
    mean = measured.mean(axis=0)
    length = float(mean @ mean)
    spread = float((measured @ mean / length).var(ddof=1))
    if noise is not None:  # subtract the measurement error of a single case
        spread = max(spread - float(mean @ noise @ mean) / length**2 / effort, 0.0)
    return {
        "cases": len(names),
        "mean_shift": _by_name(values, mean, 3),
        "standard_error": _by_name(values, measured.std(axis=0, ddof=1) / np.sqrt(len(names)), 3),
        "size_spread": round(float(np.sqrt(spread)), 3),
    }


def _cases_with(choice: Mapping[str, list[Any]], cases: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Count the cases with each chosen entry; a misspelt entry shows as 0."""
    rows = {name: list(zip(cases["case"], cases[name], strict=True)) for name in choice}
    return {
        name: {str(entry): len({case for case, value in rows[name] if value == entry}) for entry in wanted}
        for name, wanted in choice.items()
    }


def _by_name(names: list[str], values: Floats, digits: int) -> dict[str, float]:
    return {name: round(float(value), digits) + 0.0 for name, value in zip(names, values, strict=True)}
