"""Log ratios of companies and of archived cases under a law, and the public facts on which management may depend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import polars as pl

from finskillbench.arrays import Floats, Integers
from finskillbench_desk.forensic_screen.difficulty import ACQUIRED, INDUSTRIES, KIND_NAMES, LEVEL_DEVIATION, NAMES
from finskillbench_desk.forensic_screen.generator.draws import BASES, LOG_UNIT
from finskillbench_desk.forensic_screen.laws import GROWTH_UNIT, Covariates, Law
from finskillbench_desk.forensic_screen.reading import YEAR_END, fiscal_quarter

CASES, CLEARED = 120, 60
"""Companies of the archive that were found to manage their accounts, and that were examined and cleared."""
BEFORE, AFTER = 20, 12
"""Quarters of an archived company before its reported first managed quarter, and from it on."""
EXAMINED = 250
"""Companies examined in the past in each industry."""
CLEAR = "cleared"
"""Entry of the archive's column `kind` for a company that was examined without a finding."""
_EARLIEST, _LATEST = 8, BEFORE + 4
"""Range of the first managed quarter of an unreported case in its record."""
_SINGLE = "USD"
"""Unit of companies that report in single dollars; all others report in thousands."""

Component = tuple[float, Floats, Floats]
"""Weight, mean (R,), and root (R, p) of the covariance at volatility 1, of a normal shift."""


def level_profile(law: Law, covariates: Covariates, start: Integers) -> Floats:
    """Return the deviation (n, T) of the log ratios for a shift of 1, from the first managed quarter (n,) on."""
    since = np.arange(int(covariates.fiscal.shape[1])) - start[:, None]
    on = (since >= 0).astype(np.float64)
    match law.form:
        case "growing":
            return on * (since + 1.0) / 4.0
        case "size":
            return on * covariates.size[:, None]
        case "year_end":
            return on * (covariates.fiscal == 3)
        case "growth":
            return on * covariates.growth
        case "reversing":
            return on * np.where(since < law.half, 1.0, -1.0) * (since < 2 * law.half)
        case "step":
            return on
        case "smoothing":
            return np.zeros_like(on)


def components(law: Law, kind: int) -> list[Component]:
    """Return the normal mixture from which the shift of a case of a kind is drawn."""
    deviation, spread = law.model.deviation, law.model.spread
    signature = law.signature[kind] * deviation
    if law.together:
        parts = [(1.0, signature, np.diag(spread * deviation))]
    else:
        which, unit = np.flatnonzero(signature), np.eye(len(deviation))
        parts = [
            (1.0 / len(which), signature * unit[ratio], spread * (deviation * unit[ratio])[:, None]) for ratio in which
        ]
    if law.either_sign:
        parts = [(weight / 2.0, sign * mean, root) for weight, mean, root in parts for sign in (1.0, -1.0)]
    return parts


def draw_managed(rng: np.random.Generator, law: Law, industry: Integers, periods: int) -> tuple[Integers, Integers]:
    """Draw kinds (n,), -1 for none, and first managed quarters (n,), `periods` for none."""
    managed = rng.random(len(industry)) < law.rates[industry]
    kind = np.where(managed, rng.choice(len(KIND_NAMES), len(industry), p=law.model.shares), -1)
    return kind, np.where(managed, rng.integers(periods - law.model.starts, periods, len(industry)), periods)


def draw_paths(
    rng: np.random.Generator, law: Law, covariates: Covariates, kind: Integers, start: Integers, acquired: Integers
) -> Floats:
    """Draw adjusted log ratios (n, T, R).

    Parameters
    ----------
    kind, start : (n,) kind, -1 for none, and first managed quarter.
    acquired : (n,) quarter of a change of level by an acquisition, -1 for none.
    """
    model = law.model
    n, periods, ratios = len(kind), int(covariates.fiscal.shape[1]), len(model.deviation)
    shape = (n, 1, ratios) if law.separate_volatility else (n, 1, 1)
    scale = np.sqrt(1.0 / rng.gamma(model.freedom / 2.0, 2.0 / model.freedom, shape))
    noise = rng.standard_normal((n, periods, ratios)) @ np.linalg.cholesky(model.correlation).T
    shocked = np.flatnonzero(rng.random(n) < law.shock)
    noise[shocked, rng.integers(1, periods, len(shocked))] *= np.sqrt(1.0 + law.shock_size**2)
    shift = np.zeros((n, 1, ratios))
    for row in np.flatnonzero(kind >= 0):
        if law.form == "smoothing":
            noise[row, max(int(start[row]), 0) :] *= np.where(law.touched[kind[row]] > 0.0, law.damping, 1.0)
            continue
        parts = components(law, int(kind[row]))
        _, mean, root = parts[rng.choice(len(parts), p=[weight for weight, _, _ in parts])]
        shift[row, 0] = mean + scale[row, 0] * (root @ rng.standard_normal(root.shape[1]))
    stationary = model.stationary / np.outer(model.deviation, model.deviation)
    x = np.empty_like(noise)
    x[:, 0] = rng.standard_normal((n, ratios)) @ np.linalg.cholesky(stationary).T
    for quarter in range(1, periods):
        x[:, quarter] = model.persistence * x[:, quarter - 1] + noise[:, quarter]
    level = LEVEL_DEVIATION * rng.standard_normal((n, 1, ratios))
    later = (acquired[:, None] >= 0) & (np.arange(periods) >= acquired[:, None])
    change = ACQUIRED * rng.standard_normal((n, 1, ratios)) * later[:, :, None]
    pushed = level_profile(law, covariates, start)[:, :, None] * shift
    return model.deviation * scale * (x + level + change) + pushed


class Archive(NamedTuple):
    """Archived companies: adjusted log ratios (n, T, R), reported kind and true kind (n,), -1 for none."""

    covariates: Covariates
    y: Floats
    reported: Integers
    kind: Integers
    basis: Integers

    def table(self, law: Law) -> pl.DataFrame:
        """Return the visible table, quarters counted from the reported first managed one."""
        n, periods = len(self.y), int(self.y.shape[1])
        ratios = self.y + self.covariates.growth[:, :, None] * GROWTH_UNIT * law.model.growth
        rows = np.repeat(np.arange(n), periods)
        kinds, bases = np.array([*KIND_NAMES, CLEAR]), np.array([*BASES, "examination"])
        lead = {
            "case": [f"A{number + 1:03d}" for number in rows.tolist()],
            "kind": kinds[self.reported[rows]],
            "basis": bases[np.where(self.reported < 0, len(BASES), self.basis)[rows]],
            "industry": np.array(INDUSTRIES)[self.covariates.industry[rows]],
            "quarter": np.tile(np.arange(-BEFORE, AFTER, dtype=np.int8), n),
            "fiscal_quarter": self.covariates.fiscal.ravel() + 1,
            "growth": np.rint(self.covariates.growth.ravel() * GROWTH_UNIT / LOG_UNIT).astype(np.int32),
            "size": np.round(self.covariates.size[rows], 2),
        }
        whole = np.rint(ratios / LOG_UNIT).astype(np.int32).reshape(n * periods, -1)
        return pl.DataFrame(lead | {name: whole[:, place] for place, name in enumerate(NAMES)})


def draw_archive(rng: np.random.Generator, law: Law) -> Archive:
    """Draw resolved cases and cleared companies, with the errors of their labels."""
    n, periods, labels = CASES + CLEARED, BEFORE + AFTER, law.labels
    covariates = Covariates(
        (rng.integers(0, 4, n)[:, None] + np.arange(periods)) % 4,
        rng.standard_normal((n, periods)),
        rng.standard_normal(n),
        rng.integers(0, len(INDUSTRIES), n),
    )
    cleared = np.arange(n) >= CASES
    kind = rng.choice(len(KIND_NAMES), n, p=rng.dirichlet(np.full(len(KIND_NAMES), 12.0)))
    hidden = cleared & (rng.random(n) < labels.unreported)
    kind = np.where(cleared & ~hidden, -1, kind)
    start = BEFORE - rng.choice(len(labels.late), n, p=labels.late)
    start = np.where(hidden, rng.integers(_EARLIEST, _LATEST, n), np.where(kind < 0, periods, start))
    basis = rng.integers(0, len(BASES), n)
    wrong = rng.random(n) < labels.wrong[basis]
    reported = np.where(cleared, -1, np.where(wrong, labels.confused[kind], kind))
    y = draw_paths(rng, law.archived, covariates, kind, start, np.full(n, -1))
    return Archive(covariates, y, reported, kind, basis)


def draw_examinations(rng: np.random.Generator, law: Law) -> pl.DataFrame:
    """Draw how many of the companies examined in each industry were found to manage their accounts."""
    found = rng.binomial(EXAMINED, law.rates * (1.0 - law.labels.unreported))
    return pl.DataFrame({"industry": list(INDUSTRIES), "examined": [EXAMINED] * len(found), "found": found})


def read_covariates(tables: Mapping[str, pl.DataFrame]) -> Covariates:
    """Read the public facts of the companies from the tables of a case."""
    companies = tables["companies"]
    latest = (
        tables["statements"]
        .sort("company", "quarter", "version")
        .unique(["company", "quarter"], keep="last", maintain_order=True)
    )
    quarters = latest["quarter"].unique().sort().to_list()
    single = (latest["unit"].to_numpy() == _SINGLE).reshape(len(companies), len(quarters))
    revenue = latest["net_revenue"].to_numpy().reshape(single.shape) / np.where(single, 1000.0, 1.0)
    year_ends = np.repeat(companies["year_end_month"].to_numpy()[:, None], len(quarters), axis=1)
    names = companies["company"].to_list()
    for event in tables["events"].filter(pl.col("event") == YEAR_END).iter_rows(named=True):
        year_ends[names.index(event["company"]), quarters.index(event["quarter"]) :] = event["value"]
    months = np.array([3 * int(name[-1]) for name in quarters])
    industry = np.array([INDUSTRIES.index(name) for name in companies["industry"].to_list()])
    return Covariates(fiscal_quarter(months, year_ends), excess_growth(revenue, industry), sizes(revenue), industry)


def excess_growth(revenue: Floats, industry: Integers) -> Floats:
    """Return the growth of revenue (n, T) beyond the industry's median, in `GROWTH_UNIT`; 0 in the first quarter."""
    logs = np.log(revenue)
    growth = np.diff(logs, axis=1, prepend=logs[:, :1])
    for number in np.unique(industry):
        growth[industry == number] -= np.median(growth[industry == number], axis=0)
    return growth / GROWTH_UNIT


def sizes(revenue: Floats) -> Floats:
    """Return the standardised logarithms of mean revenue (n,)."""
    logs = np.log(revenue.mean(axis=1))
    return (logs - logs.mean()) / logs.std()
