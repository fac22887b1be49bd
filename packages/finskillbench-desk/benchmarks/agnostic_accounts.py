"""Screening for managed accounts by published methods, without knowledge of the law of a case.

Parameters of unmanaged ratios are estimated before the window. For each of a few general courses in time, the mean
shift of each kind is fitted to the archive by expectation maximisation, with a share of cases that show nothing.
Cross-validation on the archive chooses the course. Base rates are shrunk counts of examinations.

Sources: Dempster, Laird and Rubin (1977), EM; Stone (1974), cross-validation; Efron and Morris (1975), shrinkage;
Saerens et al. (2002), shares of kinds by EM on unlabelled companies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from finskillbench.arrays import Floats, Integers
from finskillbench.episode import JsonObject
from finskillbench_desk.engines.posterior.model import RatioModel
from finskillbench_desk.forensic_screen.difficulty import INDUSTRIES, KIND_NAMES, MEASURES, NAMES, QUARTERS, WINDOW
from finskillbench_desk.forensic_screen.examples import assessments_of
from finskillbench_desk.forensic_screen.generator.draws import LOG_UNIT
from finskillbench_desk.forensic_screen.law_paths import AFTER, BEFORE, level_profile, read_covariates
from finskillbench_desk.forensic_screen.law_posterior import log_evidence
from finskillbench_desk.forensic_screen.laws import GROWTH_UNIT, Covariates, Form, Labels, Law
from finskillbench_desk.forensic_screen.reading import Rules, read_adjusted_ratios
from finskillbench_desk.forensic_screen.rederive import frames_of, material_of

KIND_COUNT = len(KIND_NAMES)
Course = tuple[Form, bool, bool]
"""Course in time of a shift, whether it may have either sign, and whether it moves one ratio of its kind only."""
_BEFORE_WINDOW = QUARTERS - WINDOW
_FOLDS = 2
_PRIOR_SHIFT = 1.2
"""Prior deviation of a kind's mean shift in a ratio, in standard deviations of innovations."""

_SINGLE_SHIFT, _TOUCHED = 3.8, 0.3
"""Usual shift where only one ratio of a case moves, and the least mean shift of the ratios that may."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Hypotheses that are tried, and their priors.

    Attributes
    ----------
    courses : courses in time that are tried.
    spread : deviation of a case's shift about its kind's mean, in standard deviations of innovations.
    doubt : probability, in cross-validation, that a case shows nothing of its kind.
    clean : true if all archived cases are taken to show their kind.
    trust : factor of the log Bayes factors.
    scales : strengths of today's traces that are tried, as shares of the archive's.
    """

    courses: tuple[Course, ...]
    spread: float = 0.5
    doubt: float = 0.25
    clean: bool = False
    trust: float = 1.0
    scales: tuple[float, ...] = (0.4, 0.55, 0.7, 0.85, 1.0)


USUAL = Settings(
    (
        *(("growing", sign, False) for sign in (False, True)),
        *(("step", sign, False) for sign in (False, True)),
        *(("reversing", sign, False) for sign in (False, True)),
        *((form, False, False) for form in ("year_end", "growth", "size", "smoothing")),
        ("step", False, True),
    )
)
FEWER = replace(USUAL, courses=(("growing", False, False), ("step", False, False)))
TIMID = replace(USUAL, trust=0.5)
CAUTIOUS = replace(USUAL, trust=0.75)
AS_ARCHIVED = replace(USUAL, scales=(1.0,))
TRUSTING = replace(USUAL, clean=True, doubt=0.05)


class Accounts(NamedTuple):
    """Log ratios (n, T, R) less path and season, growth (n, T), public facts, and quarters of a new level, else -1."""

    y: Floats
    growth: Floats
    facts: Covariates
    changed: Integers


class ArchivedCases(NamedTuple):
    """Log ratios (n, T, R), public facts, and reported kinds (n,), -1 for cleared companies."""

    y: Floats
    facts: Covariates
    kind: Integers


def _blank(value: float) -> RatioModel:
    same, zero = np.full(MEASURES, value), np.zeros(MEASURES)
    shares = np.full(KIND_COUNT, 1 / KIND_COUNT)
    return RatioModel(zero, zero, zero, zero, same, zero, np.eye(MEASURES), 1.0, shares, zero, 0.0, 0.0, 0.0, WINDOW)


def read_accounts(fields: Mapping[str, Any]) -> Accounts:
    """Read statements and events; adopting the lease standard counts as a new level."""
    frames, rules = frames_of(fields), Rules(material_of(fields["documents"]["data_notes"]))
    read = read_adjusted_ratios(frames, _blank(0.0), rules)
    growth = (read.y - read_adjusted_ratios(frames, _blank(1.0), rules).y)[:, :, 0]
    adopted = read_adjusted_ratios(frames, replace(_blank(0.0), lease=np.ones(MEASURES)), rules)
    moved = (read.y - adopted.y)[:, :, 0] > 0.5
    changed = np.where(read.acquired < 0, np.where(moved.any(axis=1), moved.argmax(axis=1), -1), read.acquired)
    return Accounts(read.y, growth, read_covariates(frames), changed)


def read_archive(fields: Mapping[str, Any]) -> ArchivedCases:
    frame: pl.DataFrame = fields["archive"].frame.sort("case", "quarter")
    periods = BEFORE + AFTER

    def by_case(name: str) -> Any:
        return frame[name].to_numpy().reshape(-1, periods)

    places = {name: place for place, name in enumerate(INDUSTRIES)}
    facts = Covariates(
        by_case("fiscal_quarter") - 1,
        by_case("growth") * LOG_UNIT / GROWTH_UNIT,
        by_case("size")[:, 0],
        np.array([places[name] for name in by_case("industry")[:, 0]]),
    )
    kinds = {name: place for place, name in enumerate(KIND_NAMES)}
    kind = np.array([kinds.get(name, -1) for name in by_case("kind")[:, 0]])
    y = frame.select(NAMES).to_numpy().reshape(-1, periods, MEASURES) * LOG_UNIT
    return ArchivedCases(y, facts, kind)


def estimate(accounts: Accounts) -> RatioModel:
    """Estimate persistence, effect of growth, deviations, correlation and volatilities before the window."""
    kept = accounts.changed < 0
    y, growth = accounts.y[kept, :_BEFORE_WINDOW], accounts.growth[kept, :_BEFORE_WINDOW]
    periods = _BEFORE_WINDOW - 1
    persistence, effect = np.empty(MEASURES), np.empty(MEASURES)
    for ratio in range(MEASURES):
        columns = np.stack([y[:, :-1, ratio], growth[:, 1:], growth[:, :-1]], axis=2)
        columns = columns - columns.mean(axis=1, keepdims=True)
        target = y[:, 1:, ratio] - y[:, 1:, ratio].mean(axis=1, keepdims=True)
        design = columns.reshape(-1, 3)
        slope: Floats = np.asarray(np.linalg.solve(design.T @ design, design.T @ target.ravel()), dtype=np.float64)
        persistence[ratio] = min(
            float(slope[0]) + (1.0 + 3.0 * float(slope[0])) / periods, 0.95
        )  # bias of short panels (Kendall)
        effect[ratio] = slope[1]
    plain = y - growth[:, :, None] * effect
    change = plain[:, 1:] - persistence * plain[:, :-1]
    change = change - change.mean(axis=1, keepdims=True)
    usual = np.sqrt(np.median((change**2).mean(axis=1), axis=0))
    volatility: Floats = ((change / usual) ** 2).mean(axis=(1, 2))
    scaled = change / np.sqrt(volatility)[:, None, None]
    spread = max(float(np.var(np.log(volatility))) - 2.0 / (periods * MEASURES), 0.02)
    deviation = usual / np.sqrt((1.0 / volatility).mean())
    shares = np.full(KIND_COUNT, 1.0 / KIND_COUNT)
    correlation = np.corrcoef(scaled.reshape(-1, MEASURES).T)
    freedom = float(np.clip(2.0 / spread + 1.0, 2.5, 60.0))
    zeros = np.zeros(MEASURES)
    return RatioModel(
        persistence, deviation, 2.0 * deviation, 3.0 * deviation, effect, zeros, correlation, freedom, shares,
        np.zeros((KIND_COUNT, 1)), 0.0, 0.0, 0.0, WINDOW,
    )  # fmt: skip


def course_law(course: Course, model: RatioModel, settings: Settings) -> Law:
    form, sign, alone = course
    labels = Labels(np.zeros(1), np.arange(KIND_COUNT), np.ones(1), 0.0)
    rates, signature = np.zeros(len(INDUSTRIES)), np.zeros((KIND_COUNT, MEASURES))
    model = replace(model, spread=settings.spread)
    ones = np.ones(KIND_COUNT)
    return Law(form, not alone, sign, alone, 0.0, 3.0, 4, 0.5, rates, signature, model, ones, labels)


def _adjusted(y: Floats, growth: Floats, model: RatioModel) -> Floats:
    return y - growth[:, :, None] * model.growth


def fit_signatures(law: Law, cases: ArchivedCases, settings: Settings) -> Law:
    """Return the law with mean shifts of each kind, or quiet ratios, fitted to archived cases."""
    model = law.model
    y = _adjusted(cases.y, cases.facts.growth * GROWTH_UNIT, model)
    change = (y[:, 1:] - model.persistence * y[:, :-1]) / model.deviation
    change = change - change[:, : BEFORE - 1].mean(axis=1, keepdims=True)
    before = (change[:, : BEFORE - 1] ** 2).sum(axis=(1, 2))
    volatility = (model.freedom + before) / (model.freedom + (BEFORE - 2) * MEASURES)
    if law.form == "smoothing":
        quiet = (change[:, BEFORE - 1 :] ** 2).mean(axis=1) / volatility[:, None]
        usual = np.median(quiet[cases.kind < 0], axis=0)
        ratio = np.stack([np.median(quiet[cases.kind == kind], axis=0) / usual for kind in range(KIND_COUNT)])
        touched = ratio < 0.65
        damping = float(np.sqrt(ratio[touched].mean())) if touched.any() else 0.9
        return replace(law, signature=touched.astype(float), damping=damping)
    level = level_profile(law, cases.facts, np.full(len(y), BEFORE))[:, :, None]
    design = level[:, 1:] - model.persistence * level[:, :-1]
    scores = (design * change).sum(axis=1) / volatility[:, None]
    weights = (design**2).sum(axis=1) / volatility[:, None]
    means = [_mean_shift(scores[cases.kind == k], weights[cases.kind == k], law, settings) for k in range(KIND_COUNT)]
    signature = np.stack(means)
    if not law.together:
        signature = np.sign(signature) * _SINGLE_SHIFT * (np.abs(signature) > _TOUCHED)
    return replace(law, signature=signature)


def _mean_shift(scores: Floats, weights: Floats, law: Law, settings: Settings) -> Floats:
    """Fit the mean shift (R,) of one kind by EM over signs and cases that show nothing."""
    signs = (1.0, -1.0) if law.either_sign else (1.0,)
    prior = settings.spread**-2.0
    start = scores / (weights + _PRIOR_SHIFT**-2.0)
    mean = start.mean(axis=0)
    if law.either_sign:
        direction: Floats = np.asarray(np.linalg.eigh(start.T @ start)[1][:, -1], dtype=np.float64)
        mean = direction * np.sqrt(((start @ direction) ** 2).mean())
    nothing = 0.0 if settings.clean else 0.3
    for _ in range(25):
        logs = list[Floats]()
        shifts = [(scores + sign * mean * prior) / (weights + prior) for sign in signs]
        for shift in shifts:
            gained = shift**2 * (weights + prior) - mean**2 * prior - np.log1p(weights / prior)
            logs.append(gained.sum(axis=1) / 2.0 + np.log((1.0 - nothing) / len(signs)))
        everything = np.stack([*logs, np.full(len(scores), np.log(nothing) if nothing else -np.inf)])
        chance = np.exp(everything - np.logaddexp.reduce(everything, axis=0))
        total = sum((c[:, None] * s * shift).sum(axis=0) for c, s, shift in zip(chance, signs, shifts, strict=False))
        shown = chance[:-1].sum()
        mean = prior * np.asarray(total) / (prior * shown + _PRIOR_SHIFT**-2.0)
        nothing = 0.0 if settings.clean else float(np.clip(chance[-1].mean(), 0.02, 0.8))
    return mean


def validated(law: Law, cases: ArchivedCases, settings: Settings) -> float:
    """Return the log likelihood of reported kinds, `KIND_COUNT` for cleared, in archived cases left out of the fit."""
    total, fold = 0.0, np.arange(len(cases.y)) % _FOLDS
    for number in range(_FOLDS):
        fitted = fit_signatures(law, _some(cases, fold != number), settings)
        if not fitted.signature.any():
            return -np.inf
        left_out = _some(cases, fold == number)
        y = _adjusted(left_out.y, left_out.facts.growth * GROWTH_UNIT, law.model)
        found = log_evidence(fitted, y, np.full(len(y), -1), left_out.facts)[:, :, 0]
        reported = np.where(left_out.kind < 0, KIND_COUNT, left_out.kind)
        share = (np.bincount(reported, minlength=KIND_COUNT + 1) + 1.0) / (len(reported) + KIND_COUNT + 1.0)
        logs = np.column_stack([found, np.zeros(len(y))]) + np.log(share)
        logs -= np.logaddexp.reduce(logs, axis=1)[:, None]
        chance = (1.0 - settings.doubt) * np.exp(logs) + settings.doubt * share
        total += float(np.log(chance[np.arange(len(y)), reported]).sum())
    return total


def _some(cases: ArchivedCases, which: Any) -> ArchivedCases:
    return ArchivedCases(cases.y[which], cases.facts.at(which), cases.kind[which])


def screen(fields: Mapping[str, Any], settings: Settings) -> JsonObject:
    """Assess all companies under the course that predicts the archive best."""
    accounts, cases = read_accounts(fields), read_archive(fields)
    model = estimate(accounts)
    laws = [course_law(course, model, settings) for course in settings.courses]
    law = max(laws, key=lambda each: validated(each, cases, settings))
    return answer(fields, probabilities(fields, accounts, fit_signatures(law, cases, settings), settings))


def probabilities(fields: Mapping[str, Any], accounts: Accounts, law: Law, settings: Settings) -> Floats:
    """Return the probability (n, K) of each kind, averaged over the strengths of today's traces by their likelihood.

    Base rates are shrunk; shares of kinds are found by EM.
    """
    tried = [_at_scale(fields, accounts, law, scale, settings.trust) for scale in settings.scales]
    logs = np.array([log for _, log in tried])
    weights = np.exp(logs - np.logaddexp.reduce(logs))
    return np.einsum("s,snk->nk", weights, np.array([p for p, _ in tried]))


def _at_scale(
    fields: Mapping[str, Any], accounts: Accounts, law: Law, scale: float, trust: float
) -> tuple[Floats, float]:
    """Return the probability (n, K) of each kind if today's traces have a strength, and the log likelihood of it."""
    law = replace(
        law, signature=law.signature * (1.0 if law.form == "smoothing" else scale), damping=law.damping**scale
    )
    y = _adjusted(accounts.y, accounts.growth, law.model)
    found = np.logaddexp.reduce(log_evidence(law, y, accounts.changed, accounts.facts), axis=2) - np.log(WINDOW)
    counts: pl.DataFrame = fields["examinations"].frame
    examined, positive = counts["examined"].to_numpy(), counts["found"].to_numpy()
    pooled = positive.sum() / examined.sum()
    rates = dict(zip(counts["industry"], (positive + 25.0 * pooled) / (examined + 25.0), strict=True))
    rate = np.array([rates[INDUSTRIES[place]] for place in accounts.facts.industry])
    shares, p, total = np.full(KIND_COUNT, 1.0 / KIND_COUNT), np.zeros((len(y), KIND_COUNT)), np.zeros(len(y))
    for _ in range(30):
        logs = np.log(rate)[:, None] + np.log(shares) + trust * found
        total = np.logaddexp(np.log1p(-rate), np.logaddexp.reduce(logs, axis=1))
        p = np.exp(logs - total[:, None])
        shares = (p.sum(axis=0) + 3.0) / (p.sum() + 3.0 * KIND_COUNT)
    return p, float(total.sum())


def answer(fields: Mapping[str, Any], p: Floats) -> JsonObject:
    return assessments_of(fields["companies"].frame["company"].to_list(), p.sum(axis=1), p.argmax(axis=1))


def textbook(fields: Mapping[str, Any]) -> JsonObject:
    """Suspect companies whose innovations are large in the window, and name the commonest kind of the archive."""
    accounts = read_accounts(fields)
    model = estimate(accounts)
    change = (accounts.y[:, 1:] - model.persistence * accounts.y[:, :-1]) / model.deviation
    change = change - change[:, : _BEFORE_WINDOW - 1].mean(axis=1, keepdims=True)
    large = (change[:, -WINDOW:] ** 2).mean(axis=(1, 2))
    kind = read_archive(fields).kind
    commonest = int(np.bincount(kind[kind >= 0]).argmax())
    suspected = np.where(large > 1.5 * np.median(large), 0.7, 0.05)
    p = suspected[:, None] * (np.arange(KIND_COUNT) == commonest)
    return answer(fields, p)
