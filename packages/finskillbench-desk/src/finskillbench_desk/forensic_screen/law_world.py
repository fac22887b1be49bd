"""World of a case whose law is not disclosed: tables, posterior under the law, and traps of the statements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from finskillbench.arrays import Floats, Integers
from finskillbench_desk.engines.posterior.model import Prediction, RatioModel
from finskillbench_desk.forensic_screen.difficulty import KINDS, MEASURES, QUARTERS, TIERS, log_score
from finskillbench_desk.forensic_screen.generator.draws import drawn_background
from finskillbench_desk.forensic_screen.generator.lines import (
    LOCAL,
    CommonParts,
    PitfallModel,
    StatementPitfall,
    drawn_pitfalls,
)
from finskillbench_desk.forensic_screen.generator.world import TableMaker, drawn_acquisitions, drawn_common
from finskillbench_desk.forensic_screen.law_paths import (
    draw_archive,
    draw_examinations,
    draw_managed,
    draw_paths,
    excess_growth,
    read_covariates,
    sizes,
)
from finskillbench_desk.forensic_screen.law_posterior import law_probabilities
from finskillbench_desk.forensic_screen.laws import Covariates, Law, draw_law
from finskillbench_desk.forensic_screen.reading import YEAR_END, AdjustedRatios, Rules, read_adjusted_ratios

CORRECTIONS = tuple(sorted(set(LOCAL) - {"growth"}))
"""Corrections of statements whose omission is a trap."""
LIKELIER = 0.5
"""Probability from which management is likelier than not."""
KNOWN_FREEDOM = 1000.0
"""Degrees of freedom of volatilities for a reader who takes those before the window as known."""
_CANDIDATES = 256
_RESTATED = 2.0
"""Length of the quarterly error in first filings that were restated, in standard deviations of innovations."""
_STRENGTHS = {"easy": 0.95, "medium": 0.85, "hard": 0.75}
"""Factors of the strength of management by tier."""
_LEAST_GAIN, _LEAST_KINDS = 4.0, 1.5
"""Least attainable gain of the logarithmic score, and of the expected number of kinds named right."""
_WORLDS = 40
"""Most worlds drawn for a case."""


@dataclass(frozen=True, slots=True, eq=False)
class LawWorld:
    """A complete world; `law`, `kind` (n,), -1 for none, and `pitfalls` are hidden."""

    law: Law
    rules: Rules
    tables: dict[str, pl.DataFrame]
    kind: Integers
    pitfalls: list[StatementPitfall]
    panel: AdjustedRatios
    posterior: Floats


def draw_law_world(rng: np.random.Generator, structure: str, tier: str, quarters: list[str]) -> LawWorld:
    """Draw worlds of a structure until one has enough attainable gain; raise ValueError if none has."""
    for _ in range(_WORLDS):
        world = _drawn(rng, structure, tier, quarters)
        if world is None:
            continue
        p = world.posterior.sum(axis=1)
        kinds = world.posterior.max(axis=1).sum() - world.posterior.sum(axis=0).max()
        if log_score(p, p) - log_score(np.full_like(p, p.mean()), p) >= _LEAST_GAIN and kinds >= _LEAST_KINDS:
            return world
    raise ValueError(f"no world of {structure} in {_WORLDS} has an attainable gain of {_LEAST_GAIN:g}; raise strengths")


def _drawn(rng: np.random.Generator, structure: str, tier: str, quarters: list[str]) -> LawWorld | None:
    """Draw a world; None if a line of its statements is rounded to 0, so that a ratio has no logarithm."""
    law = draw_law(rng, structure, _STRENGTHS[tier])
    common = drawn_common(rng, drawn_background(rng, law.model), quarters)
    rules = Rules(float(rng.integers(5, 13)))
    pitfalls = drawn_pitfalls(rng, CORRECTIONS, TIERS[tier].trapped, _errors(rng, law.model, common))
    acquired = drawn_acquisitions(rng, pitfalls)
    for place in pitfalls:
        if place.planted and place.kind == "acquisition":
            acquired[place.company] = place.quarter
    maker = TableMaker(rng, law.model, rules, common, quarters, pitfalls, acquired)
    revenue = maker.revenue()
    known = revenue[:, 1:].astype(np.float64)
    covariates = Covariates(
        maker.fiscal_quarters(), excess_growth(known, common.industry), sizes(known), common.industry
    )
    kind, start = draw_managed(rng, law, common.industry, QUARTERS)
    y = draw_paths(rng, law, covariates, kind, start, acquired)
    for place in pitfalls:
        if place.planted:
            y[place.company], kind[place.company] = _deceptive(rng, law, place, covariates, acquired)
    tables = maker.tables(y, revenue) | {
        "archive": draw_archive(rng, law).table(law),
        "examinations": draw_examinations(rng, law),
    }
    with np.errstate(divide="ignore"):
        panel = read_adjusted_ratios(tables, law.model, rules)
    if not np.isfinite(panel.y).all():
        return None
    posterior = law_probabilities(law, panel.y, panel.acquired, read_covariates(tables))
    return LawWorld(law, rules, tables, kind, pitfalls, panel, posterior)


def _errors(rng: np.random.Generator, model: RatioModel, common: CommonParts) -> PitfallModel:
    """Draw the errors of restated filings without regard to the law, which they would reveal."""
    errors = rng.standard_normal((len(KINDS), MEASURES))
    errors *= _RESTATED / np.linalg.norm(errors, axis=1, keepdims=True)
    shifted = Prediction(errors * model.deviation, np.zeros((len(KINDS), MEASURES, MEASURES)))
    return PitfallModel(replace(model, profiles=np.ones((len(KINDS), 4))), shifted, common)


def _deceptive(
    rng: np.random.Generator, law: Law, place: StatementPitfall, covariates: Covariates, acquired: Integers
) -> tuple[Floats, int]:
    """Draw the path (T, R) and kind of a company that looks managed without the correction and innocent with it.

    Candidates are chosen by visible data only, so the posterior is unchanged; shocks are ignored, which is faster.
    """
    facts = covariates.at(np.full(_CANDIDATES, place.company))
    bought = np.full(_CANDIDATES, acquired[place.company])
    kind, start = draw_managed(rng, law, facts.industry, QUARTERS)
    y = draw_paths(rng, law, facts, kind, start, bought)
    simple = replace(law, shock=0.0)
    clean = law_probabilities(simple, y, bought, facts).sum(axis=1)
    misread = misread_probabilities(simple, y + place.offset, facts)
    best = int((misread - clean).argmax())
    return y[best], int(kind[best])


def misread_probabilities(law: Law, y: Floats, covariates: Covariates) -> Floats:
    """Return the probabilities (n,) for a reader who takes volatilities before the window as known."""
    model = law.model
    before = y[:, : QUARTERS - model.starts]
    change = before[:, 1:] - model.persistence * before[:, :-1]
    change = change - change.mean(axis=1, keepdims=True)
    count = change.shape[1] - 1
    if law.separate_volatility:
        variance = (change**2).sum(axis=1, keepdims=True) / count / model.deviation**2
    else:
        squares = np.einsum("ntr,rs,nts->n", change, np.linalg.inv(model.sigma), change, optimize=True)
        variance = squares[:, None, None] / (count * change.shape[2])
    certain = replace(law, model=replace(model, freedom=KNOWN_FREEDOM))
    return law_probabilities(certain, y / np.sqrt(variance), np.full(len(y), -1), covariates).sum(axis=1)


def law_traps(world: LawWorld) -> list[dict[str, Any]]:
    """Return kind, site and misread probability of each correction without which a company looks managed."""
    companies = world.tables["companies"]["company"].to_list()
    clean = world.posterior.sum(axis=1)
    found: list[dict[str, Any]] = []
    for kind in CORRECTIONS:
        misread = read_adjusted_ratios(world.tables, world.law.model, world.rules, left_out=kind)
        moved = np.any(misread.y != world.panel.y, axis=(1, 2)) | (misread.acquired != world.panel.acquired)
        where = np.flatnonzero(moved)
        if not where.size:
            continue
        facts = read_covariates(_without_year_ends(world.tables) if kind == "fiscal_year" else world.tables)
        fallen = misread_probabilities(world.law, misread.y[where], facts.at(where))
        for company, probability in zip(where.tolist(), fallen.tolist(), strict=True):
            if clean[company] < LIKELIER < probability:
                name = companies[company]
                found.append({"kind": kind, "where": name, "probabilities": {name: round(probability, 6)}})
    return found


def _without_year_ends(tables: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    return {**tables, "events": tables["events"].filter(pl.col("event") != YEAR_END)}
