"""Recheck of a case whose law is not disclosed, from its tables and the law stored with its truth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from finskillbench.arrays import Floats, Integers
from finskillbench.domains.examples import Label
from finskillbench.episode import JsonObject
from finskillbench.findings import Findings
from finskillbench.scoring.values import as_number
from finskillbench_desk.forensic_screen import procedures, rederive
from finskillbench_desk.forensic_screen.difficulty import KIND_NAMES, stored_posterior
from finskillbench_desk.forensic_screen.law_paths import read_covariates
from finskillbench_desk.forensic_screen.law_posterior import law_probabilities
from finskillbench_desk.forensic_screen.law_rederive import rederive_covariates, rederive_probabilities
from finskillbench_desk.forensic_screen.law_world import KNOWN_FREEDOM, LIKELIER
from finskillbench_desk.forensic_screen.laws import Law
from finskillbench_desk.forensic_screen.reading import Rules, read_adjusted_ratios

Case = Mapping[str, Any]
_AGREEMENT = 1e-6
"""Tolerance for probabilities."""
_EVERY, _EVERY_WITH_SHOCKS = 3, 20
"""One company in this many is rederived: the sum over the quarter of a shock takes 0.04 s for each company."""


def rederive_sample(task_input: Case, law: Law) -> JsonObject:
    """Return the expected assessments of a sample of companies, derived independently."""
    y, bought = rederive.paths(_as_stated(task_input, law))
    names = list(y)
    chosen = np.arange(0, len(names), _EVERY_WITH_SHOCKS if law.shock > 0.0 else _EVERY)
    found = _probabilities(law, y, bought, rederive.frames_of(task_input), chosen)
    return {
        "assessments": [
            {"company": names[place], "probability": math.fsum(row), "kind": KIND_NAMES[int(np.argmax(row))]}
            for place, row in zip(chosen.tolist(), found.tolist(), strict=True)
        ]
    }


def sample_of(expected: JsonObject, rederived: JsonObject) -> JsonObject:
    """Return the assessments of the companies that were rederived."""
    names = {each["company"] for each in rederived["assessments"]}
    return {"assessments": [each for each in expected["assessments"] if each["company"] in names]}


def check_law_posterior(label: Label[Any], law: Law, findings: Findings) -> None:
    """Rederive a sample of the posterior, and recompute the rest with the build's code."""
    task_input, where = label.task_input, label.episode.task_id
    companies, posterior = stored_posterior(label.truth.verification)
    base_rate = as_number(label.truth.verification.get("base_rate")) or 0.0
    again = rederive_sample(task_input, law)["assessments"]
    p = dict(zip(companies, posterior, strict=True))
    same = list(rederive.frames_of(task_input)["companies"]["company"]) == companies
    findings.expect(same, where, "the stored posterior has other companies than the case")
    if not same:
        return
    widest = max(abs(float(p[each["company"]].sum()) - each["probability"]) for each in again)
    findings.widest("greatest_difference", widest)
    findings.expect(widest < _AGREEMENT, where, f"the posterior differs by {widest:.1e} from its rederivation")
    frames = rederive.frames_of(task_input)
    material = rederive.material_of(task_input["documents"]["data_notes"])
    panel = read_adjusted_ratios(frames, law.model, Rules(material))
    found = law_probabilities(law, panel.y, panel.acquired, read_covariates(frames))
    widest = float(np.abs(found - posterior).max())
    findings.expect(widest < _AGREEMENT, where, f"the posterior differs by {widest:.1e} from that of its law")
    mean = float(found.sum(axis=1).mean())
    message = f"base_rate is {base_rate} in the truth, and the mean probability is {mean:.6f}"
    findings.expect(abs(mean - base_rate) < _AGREEMENT, where, message)


def rederive_law_traps(task_input: Case, law: Law) -> list[dict[str, Any]]:
    """Return kind, site and misread probability of each correction without which a company looks managed."""
    case = _as_stated(task_input, law)
    frames = rederive.frames_of(case)
    y, bought = rederive.paths(case)
    names = list(y)
    misread = rederive.misread_paths(case, y)
    sites = [
        (kind, place)
        for kind in misread
        if kind != "growth"
        for place, name in enumerate(names)
        if (name in bought if kind == "acquisition" else not np.array_equal(misread[kind][name], y[name]))
    ]
    if not sites:
        return []
    which = np.array([place for _, place in sites])
    clean = _probabilities(law, y, bought, frames, which).sum(axis=1)
    facts = rederive_covariates(frames).at(which)
    ends = frames["events"].filter(pl.col("event") != "year end changed")
    moved = np.array([kind == "fiscal_year" for kind, _ in sites])
    former = rederive_covariates({**frames, "events": ends}).at(which).fiscal
    facts = facts._replace(fiscal=np.where(moved[:, None], former, facts.fiscal))
    certain = replace(law, model=replace(law.model, freedom=KNOWN_FREEDOM))
    scaled = np.array([_in_deviations(law, misread[kind][names[place]]) for kind, place in sites])
    fallen = rederive_probabilities(certain, scaled, np.full(len(sites), -1), facts).sum(axis=1)
    return [
        {"kind": kind, "where": names[place], "probabilities": {names[place]: wrong}}
        for (kind, place), right, wrong in zip(sites, clean.tolist(), fallen.tolist(), strict=True)
        if right < LIKELIER < wrong
    ]


def _as_stated(task_input: Case, law: Law) -> Case:
    """Return the case as `rederive` reads it, with the law's parameters of unmanaged ratios."""
    notes = task_input["documents"]["data_notes"]
    return {**task_input, "model": procedures.disclosed(law.model), "documents": {"memo": notes}}


def _probabilities(
    law: Law, y: Mapping[str, Floats], bought: Mapping[str, int], frames: Mapping[str, pl.DataFrame], which: Integers
) -> Floats:
    names = list(y)
    chosen = [names[int(place)] for place in which.tolist()]
    acquired = np.array([bought.get(name, -1) for name in chosen])
    facts = rederive_covariates(frames).at(which)
    return rederive_probabilities(law, np.array([y[name] for name in chosen]), acquired, facts)


def _in_deviations(law: Law, path: Floats) -> Floats:
    """Divide a path (T, R) by its volatility before the window."""
    model = law.model
    calm = path[: len(path) - model.starts]
    moves = (calm[1:] - model.persistence * calm[:-1]) / model.deviation
    root = np.linalg.cholesky(model.correlation)
    white = np.asarray(np.linalg.solve(root, (moves - moves.mean(axis=0)).T), dtype=np.float64)
    squares = (white**2).sum(axis=1) / (len(moves) - 1)
    return path / np.sqrt(squares if law.separate_volatility else squares.mean())
