"""Where a case misleads: the tables read as somebody reads them who leaves one correction out, and what he concludes.

Nothing here knows what was planted. A statement without its restatement, a list of events without the lease standard,
an archive of which every case counts: each is a case of its own, of which the posterior is asked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from finskillbench.arrays import Floats
from finskillbench_desk.forensic_screen.second.posterior import frames_of, of_paths, paths, posterior

_CERTAIN = 1e9
"""Degrees of freedom of somebody to whom the volatility before the window is the volatility."""
_LIKELIER = 0.5
_SPURT, _QUARTERS = 0.075, 3
"""Growth beyond the industry's median, and in how many quarters in a row, that is a spurt."""
Case = Mapping[str, Any]


@dataclass(frozen=True)
class _Read:
    """A table as somebody reads it."""

    frame: pl.DataFrame


def traps(case: Case) -> list[dict[str, Any]]:
    """Kind, where, and probabilities of whoever falls for it: corrections by company, the archive, the base rate."""
    y, bought = paths(case)
    clean = {company: math.fsum(row) for company, row in of_paths(y, bought, case).items()}
    found: list[dict[str, Any]] = []
    for kind, misread in _misread(case, y).items():
        where = [name for name in y if name in misread and not np.array_equal(misread[name], y[name])]
        if kind == "acquisition":
            where = [name for name in y if name in bought]
        taken_in = _in_deviations({name: misread[name] for name in where}, case)
        found += [
            {"kind": kind, "where": name, "probabilities": {name: taken_in[name]}}
            for name in where
            if clean[name] < _LIKELIER < taken_in[name]
        ]
    archive = case["archive"].frame
    sound = pl.col("basis").is_in(["court judgment", "regulator's order"]) & (pl.col("industry") != "Financials")
    if not archive.select(sound.all()).item():
        everything = archive.with_columns(basis=pl.lit("court judgment"), industry=pl.lit("any"))
        found.append(_of_all("archive", "archive", {**case, "archive": _Read(everything)}))
    memo = case["documents"]["memo"]
    start = memo.index("base rate of ") + len("base rate of ")
    even = memo[:start] + "50" + memo[memo.index(" per cent", start) :]
    found.append(_of_all("base_rate", "memo", {**case, "documents": {**case["documents"], "memo": even}}))
    return found


def _of_all(kind: str, where: str, case: Case) -> dict[str, Any]:
    return {
        "kind": kind,
        "where": where,
        "probabilities": {name: math.fsum(row) for name, row in posterior(case).items()},
    }


def _misread(case: Case, y: Mapping[str, Floats]) -> dict[str, dict[str, Floats]]:
    """Kind of correction to the paths of whoever leaves it out."""
    frames = frames_of(case)
    statements, events = frames["statements"], frames["events"]
    read: dict[str, dict[str, pl.DataFrame]] = {
        "unit_slip": {"statements": statements.with_columns(closing_cash=pl.lit(-1))},
        "restatement": {"statements": statements.filter(pl.col("version") == 1)},
        "lease_standard": {"events": events.filter(pl.col("event") != "lease standard adopted")},
        "fiscal_year": {"events": events.filter(pl.col("event") != "year end changed")},
    }
    found = {
        kind: paths({**case, **{name: _Read(frame) for name, frame in tables.items()}})[0]
        for kind, tables in read.items()
    }
    effects = np.array([ratio["growth_effect"] for ratio in case["model"]["ratios"]])
    spurts = _spurts(statements, frames["companies"])
    grown = {name: y[name] + np.outer(spurts[name], effects) for name in spurts}
    return dict(sorted({**found, "acquisition": dict(y), "growth": grown}.items()))


def _spurts(statements: pl.DataFrame, companies: pl.DataFrame) -> dict[str, Floats]:
    """Growth (T,) beyond the industry's median of companies with a spurt, 0 in all other quarters."""
    last = statements.filter(pl.col("version") == pl.col("version").max().over("company", "quarter"))
    beyond = (
        last.sort("company", "quarter")
        .select("company", "quarter", pl.col("net_revenue").log().diff().over("company").fill_null(0.0).alias("growth"))
        .join(companies.select("company", "industry"), on="company")
        .with_columns(beyond=pl.col("growth") - pl.col("growth").median().over("industry", "quarter"))
        .sort("company", "quarter")
        .with_columns(run=(pl.col("beyond") > _SPURT).rle_id().over("company"))
        .with_columns(
            spurt=pl.when((pl.col("beyond") > _SPURT) & (pl.len().over("company", "run") >= _QUARTERS))
            .then(pl.col("beyond"))
            .otherwise(0.0)
        )
    )
    found = {str(key[0]): group["spurt"].to_numpy() for key, group in beyond.group_by("company", maintain_order=True)}
    return {name: spurt for name, spurt in found.items() if spurt.any()}


def _in_deviations(y: Mapping[str, Floats], case: Case) -> dict[str, float]:
    """Probability of management of whoever counts in standard deviations of the innovations before the window."""
    model = case["model"]
    persistence = np.array([ratio["persistence"] for ratio in model["ratios"]])
    unit = np.array([ratio["innovation_sd"] for ratio in model["ratios"]])
    root = np.linalg.cholesky(np.array(model["correlation_of_innovations"]))
    scaled: dict[str, Floats] = {}
    for name, path in y.items():
        calm = path[: len(path) - model["possible_starts"]]
        moves = (calm[1:] - persistence * calm[:-1]) / unit
        white = np.asarray(np.linalg.solve(root, (moves - moves.mean(axis=0)).T), dtype=np.float64)
        scaled[name] = path / np.sqrt((white**2).sum() / ((len(moves) - 1) * len(unit)))
    certain = {**case, "model": {**model, "volatility_degrees_of_freedom": _CERTAIN}}
    return {name: math.fsum(row) for name, row in of_paths(scaled, {}, certain).items()} if scaled else {}
