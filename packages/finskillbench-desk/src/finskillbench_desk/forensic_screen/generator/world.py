"""A screening world: 200 companies with forty quarters of statements, events, industry tables and the archive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from finskillbench.arrays import Floats, Integers
from finskillbench_desk.engines.posterior.model import Prediction, RatioModel
from finskillbench_desk.forensic_screen.difficulty import (
    COMPANIES,
    INDUSTRIES,
    MEASURES,
    NAMES,
    QUARTERS,
    RATIOS,
    TIERS,
)
from finskillbench_desk.forensic_screen.generator.draws import (
    LOG_UNIT,
    Background,
    drawn_archive,
    drawn_background,
    drawn_model,
)
from finskillbench_desk.forensic_screen.generator.lines import (
    LOCAL,
    SPURT,
    SPURT_QUARTERS,
    CommonParts,
    Lines,
    Paths,
    PitfallModel,
    StatementPitfall,
    drawn_paths,
    drawn_pitfalls,
    live_path,
    statements,
)
from finskillbench_desk.forensic_screen.reading import (
    ACQUISITION,
    BALANCE,
    LAYOUT,
    LEASE,
    SLIP,
    YEAR_END,
    Rules,
    fiscal_quarter,
    read_archive,
)

DEFERRED, PROPOSED = "lease standard deferred", "year end change proposed"
_NOISE = (
    "auditor rotated",
    "chief financial officer left",
    "plant closed",
    "dividend raised",
    "rating affirmed",
    "buyback announced",
)
"""Events without information, as the memo states."""
_ENDS = {"1": "{}-03-31", "2": "{}-06-30", "3": "{}-09-30", "4": "{}-12-31"}
_SINGLE, _THOUSAND = "USD", "USD thousand"


@dataclass(frozen=True, slots=True, eq=False)
class ScreeningWorld:
    """A complete world; `paths` and `pitfalls` are hidden, `tables` visible, `model` and `rules` disclosed in the task
    input.

    `prediction` is the shift of a new case given the archive.
    """

    tables: dict[str, pl.DataFrame]
    model: RatioModel
    rules: Rules
    prediction: Prediction
    paths: Paths
    pitfalls: list[StatementPitfall]
    orderly_archive: bool


def drawn_world(rng: np.random.Generator, tier: str, quarters: list[str]) -> ScreeningWorld:
    """Draw a world of a tier; `quarters` are forty names such as "2015Q1"."""
    settings = TIERS[tier]
    model = drawn_model(rng, settings)
    background = drawn_background(rng, model)
    orderly = bool(rng.random() < 1 / 3)
    archive = drawn_archive(rng, model, settings, orderly)
    prediction = read_archive(archive, model)
    rules = Rules(float(rng.integers(5, 13)))
    common = drawn_common(rng, background, quarters)
    pitfalls = drawn_pitfalls(rng, LOCAL, settings.trapped, PitfallModel(model, prediction, common))
    acquired = drawn_acquisitions(rng, pitfalls)
    paths = drawn_paths(rng, model, prediction, acquired)
    for number, place in enumerate(pitfalls):
        if place.planted:
            live, live_paths = live_path(rng, place, PitfallModel(model, prediction, common))
            pitfalls[number] = live
            for part, value in zip(paths, live_paths, strict=True):
                part[live.company] = value[0]
            if live.kind == "acquisition":
                acquired[live.company] = live.quarter
    maker = TableMaker(rng, model, rules, common, quarters, pitfalls, acquired)
    tables = maker.tables(paths.y, maker.revenue()) | {"archive": archive}
    return ScreeningWorld(tables, model, rules, prediction, paths, pitfalls, orderly)


def drawn_common(rng: np.random.Generator, background: Background, quarters: list[str]) -> CommonParts:
    """Draw industries and year ends of the companies."""
    year_end = rng.choice([12, 12, 12, 3, 6, 9], COMPANIES)
    return CommonParts(
        background,
        rng.permutation(np.arange(COMPANIES) % len(INDUSTRIES)),
        year_end,
        (year_end + 3 * rng.integers(1, 4, COMPANIES) - 1) % 12 + 1,
        np.array([3 * int(name[-1]) for name in quarters]),
    )


def drawn_acquisitions(rng: np.random.Generator, pitfalls: list[StatementPitfall]) -> Integers:
    """Draw quarters (n,) of material acquisitions by three companies without a pitfall, -1 for none."""
    acquired = np.full(COMPANIES, -1)
    free = np.setdiff1d(np.arange(COMPANIES), [place.company for place in pitfalls])
    acquired[rng.choice(free, 3, replace=False)] = rng.integers(4, QUARTERS - 4)
    return acquired


@dataclass(frozen=True, slots=True, eq=False)
class TableMaker:
    """Builder of a world's tables."""

    rng: np.random.Generator
    model: RatioModel
    rules: Rules
    common: CommonParts
    quarters: list[str]
    pitfalls: list[StatementPitfall]
    acquired: Integers

    def tables(self, y: Floats, revenue: Integers) -> dict[str, pl.DataFrame]:
        """Build all tables but the archive from log ratios (n, T, R) and net revenue (n, T + 1)."""
        growth = np.diff(np.log(revenue), axis=1)
        growth[:, 0] = 0.0
        logs = y + growth[:, :, None] * self.model.growth
        for place in self._planted("lease_standard"):
            logs[place.company, place.quarter :] += self.model.lease
        fiscal = self.fiscal_quarters()
        which, background = self.common.industry, self.common.background
        logs = logs + (background.paths[which] + background.seasons[which[:, None], fiscal]) * LOG_UNIT
        names = [
            f"K{number:03d}" for number in np.sort(self.rng.choice(np.arange(100, 1000), COMPANIES, replace=False))
        ]
        companies: dict[str, Any] = {
            "company": names,
            "industry": [INDUSTRIES[number] for number in which],
            "year_end_month": self.common.year_end.astype(np.int8),
        }
        return {
            "statements": self._statements(names, revenue, logs),
            "companies": pl.DataFrame(companies),
            "events": self._events(names),
            "industry_paths": _by_industry(background.paths, "quarter", self.quarters),
            "seasons": _by_industry(background.seasons, "fiscal_quarter", [1, 2, 3, 4]),
        }

    def fiscal_quarters(self) -> Integers:
        """Return the fiscal quarters (n, T), from 0, with the changes of year ends."""
        year_ends = np.repeat(self.common.year_end[:, None], QUARTERS, axis=1)
        for place in self._planted("fiscal_year"):
            year_ends[place.company, place.quarter :] = self.common.new_year_end[place.company]
        return fiscal_quarter(self.common.months, year_ends)

    def _planted(self, kind: str, planted: bool = True) -> list[StatementPitfall]:
        return [place for place in self.pitfalls if place.kind == kind and place.planted == planted]

    def revenue(self) -> Integers:
        """Draw net revenue (n, T + 1) in thousands, including the quarter before the first."""
        rng, shape = self.rng, (COMPANIES, QUARTERS + 1)
        season = rng.normal(0.0, 0.08, (len(INDUSTRIES), 4))
        steps = rng.normal(0.012, 0.01, (COMPANIES, 1)) + 0.03 * rng.standard_normal(shape)
        for place in self.pitfalls:
            if place.kind == "growth":  # a look-alike spurt ends long before the window
                first = place.quarter + 1 if place.planted else 4
                steps[place.company, first : first + SPURT_QUARTERS] += SPURT
        months = np.concatenate([[self.common.months[-1]], self.common.months])
        seasonal = season[self.common.industry][:, months // 3 - 1]
        return np.rint(np.exp(rng.normal(14.7, 0.8, (COMPANIES, 1)) + np.cumsum(steps, axis=1) + seasonal)).astype(
            np.int64
        )

    def _statements(self, names: list[str], revenue: Integers, logs: Floats) -> pl.DataFrame:
        bought = np.zeros(revenue.shape)
        for company, quarter in enumerate(self.acquired):
            if quarter >= 0:
                bought[company, quarter + 1] = self.rng.uniform(0.5, 1.5)
        seed = int(self.rng.integers(2**62))
        true = _lines(revenue, logs, bought, seed)
        units = np.full(COMPANIES, _THOUSAND, dtype=object)
        for place in self._planted("unit_slip"):
            for name in BALANCE:
                true[name][place.company, place.quarter] *= SLIP
        for place in self._planted("unit_slip", planted=False):
            units[place.company] = _SINGLE
            for values in true.values():
                values[place.company] *= SLIP
        first = self._first_versions(revenue, logs, bought, seed)
        restated = np.zeros((COMPANIES, QUARTERS), dtype=bool)
        for place in self.pitfalls:
            if place.kind == "restatement":
                restated[place.company, place.quarter :] = True
        rows = [_rows(names, self.quarters, true, units, np.where(restated, 2, 1))]
        if restated.any():
            rows.append(_rows(names, self.quarters, first, units, np.where(restated, 1, 0)))
        return pl.concat(rows).sort("company", "quarter", "version")

    def _first_versions(self, revenue: Integers, logs: Floats, bought: Floats, seed: int) -> Lines:
        """Return first filings: other ratios for traps, costs misclassified between two lines for look-alikes."""
        wrong = logs.copy()
        for place in self._planted("restatement"):
            wrong[place.company] += place.offset
        lines = _lines(revenue, wrong, bought, seed)
        for place in self._planted("restatement", planted=False):
            moved = lines["selling"][place.company] // 10
            lines["selling"][place.company] -= moved
            lines["marketing"][place.company] += moved
        return lines

    def _events(self, names: list[str]) -> pl.DataFrame:
        rng, found = self.rng, list[tuple[int, int, str, float]]()
        material = self.rules.material
        for company, quarter in enumerate(self.acquired):
            if quarter >= 0:
                found.append((company, int(quarter), ACQUISITION, material + float(rng.integers(2, 25))))
        for place in self.pitfalls:
            company, quarter, planted = place.company, place.quarter, place.planted
            if place.kind == "acquisition" and not planted:
                found.append((company, quarter, ACQUISITION, float(rng.integers(1, int(material)))))
            elif place.kind == "lease_standard":
                found.append((company, quarter, LEASE if planted else DEFERRED, 0.0))
            elif place.kind == "fiscal_year":
                month = float(self.common.new_year_end[company])
                found.append((company, quarter, YEAR_END if planted else PROPOSED, month))
        for company in rng.choice(COMPANIES, 60, replace=False):
            found.append((int(company), int(rng.integers(QUARTERS)), str(rng.choice(_NOISE)), 0.0))
        columns: dict[str, list[Any]] = {
            "company": [names[company] for company, _, _, _ in found],
            "quarter": [self.quarters[quarter] for _, quarter, _, _ in found],
            "event": [event for _, _, event, _ in found],
            "value": [value for _, _, _, value in found],
        }
        return pl.DataFrame(columns).sort("quarter", "company", "event")


def _lines(revenue: Integers, logs: Floats, bought: Floats, seed: int) -> Lines:
    levels = np.exp(np.concatenate([logs[:, :1], logs], axis=1))
    return statements(revenue, {ratio.name: levels[:, :, place] for place, ratio in enumerate(RATIOS)}, bought, seed)


def _rows(names: list[str], quarters: list[str], lines: Lines, units: np.ndarray, versions: np.ndarray) -> pl.DataFrame:
    """Return one row per company and quarter that has a version; second versions are filed late."""
    which = versions > 0
    company, quarter = np.nonzero(which)
    version = versions[which]
    filed = [_filed(name, 35) for name in quarters]
    head: dict[str, Any] = {
        "company": [names[number] for number in company],
        "quarter": [quarters[number] for number in quarter],
        "version": version.astype(np.int8),
        "filed": [
            _filed(quarters[-1], 80) if late > 1 else filed[at] for at, late in zip(quarter, version, strict=True)
        ],
        "unit": [units[number] for number in company],
        "period_end": [_ENDS[quarters[number][-1]].format(quarters[number][:4]) for number in quarter],
        "currency": ["USD"] * len(company),
        "standard": ["US GAAP"] * len(company),
        "scope": ["consolidated"] * len(company),
        "review": ["reviewed by the auditor"] * len(company),
    }
    body = {name: lines[name][which] for part in LAYOUT.values() for name in part}
    return pl.DataFrame(head | body)


def _filed(quarter: str, days: int) -> str:
    """Return the date that many days after the end of a quarter, in months of thirty days."""
    month = 3 * int(quarter[-1]) + 1 + days // 30
    year = int(quarter[:4]) + (month - 1) // 12
    return f"{year}-{(month - 1) % 12 + 1:02d}-{days % 30 + 1:02d}"


def _by_industry(values: Integers, key: str, keys: list[Any]) -> pl.DataFrame:
    industries, rows, _ = values.shape
    flat = values.reshape(-1, MEASURES)
    return pl.DataFrame(
        {"industry": np.repeat(INDUSTRIES, rows), key: keys * industries}
        | {name: flat[:, place] for place, name in enumerate(NAMES)}
    )
