"""The issuers of a case: the edition's names on one month-end, and names of the desk's market beside them.

The desk's market is wider than the core's universe: an issuer of it that the panels do not know is given a history, a
size and filings of its own, like those of a known one of its sector.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import polars as pl

from finskillbench.arrays import Floats
from finskillbench.domains.building import permuted
from finskillbench.panels import Panels
from finskillbench_desk.committee_case.ledger.nouns import Filing
from finskillbench_desk.market import Listed as Member

SESSIONS = 40
"""Sessions of prices that a case shows."""
FEWEST, MOST = 110, 118
"""Issuers of a case, where the market has so many."""
FACTORS = 8
"""Factors of a case's risk model: the largest of the estimated covariance, the rest of it being specific."""
FILINGS = 3
"""Filings that a case shows of each issuer, the latest last."""
_DIGITS = 5
_ITEMS = {"shares_outstanding": "shares", "total_liabilities": "liabilities", "stockholders_equity": "equity"}


@dataclass(frozen=True, slots=True, eq=False)
class Issuer:
    """An issuer of the benchmark.

    Attributes
    ----------
    size : market capitalisation, dollars.
    closes, volumes : (SESSIONS,) of its first line.
    loadings, specific : (FACTORS,) exposures and specific variance a year, as the case states them.
    """

    name: str
    sector: str
    beta: float
    size: float
    shares: float
    closes: Floats
    volumes: Floats
    loadings: tuple[float, ...]
    specific: float


def draw_issuers(
    panels: Panels, members: Sequence[Member], as_of: date, rng: np.random.Generator
) -> tuple[tuple[date, ...], list[Issuer], list[Filing]]:
    """The last sessions, the issuers by name, and what they filed."""
    wanted = int(rng.integers(FEWEST, MOST + 1))
    symbols = panels.symbols_at(as_of)
    names = sorted(permuted(symbols, rng)[:wanted])
    sessions, closes, volumes = _history(panels, as_of, names)
    counts = _shares(panels, as_of)
    sizes = _sizes(
        panels, as_of, {name: counts[name] * float(path[-1]) for name, path in zip(names, closes, strict=True)}
    )
    model = _model(panels, as_of, names)
    betas = dict(zip(symbols, panels.exposures(as_of)[:, 0].tolist(), strict=True))
    known = [
        Issuer(name, panels.sectors[name], round(betas[name], 2), sizes[name], counts[name], path, traded, *model[name])
        for name, path, traded in zip(names, closes, volumes, strict=True)
    ]
    others = [member for member in members if member.symbol not in set(symbols)]
    chosen = permuted(others, rng)[: wanted - len(known)]
    made = [_made(member, known, rng) for member in sorted(chosen, key=lambda one: one.symbol)]
    filings = _filings(panels, as_of, names)
    filed = {filing.issuer for filing in filings}
    filings += [cover for cover in _covers(panels, as_of) if cover.issuer in names and cover.issuer not in filed]
    filings += [filing for one in made for filing in quarterly(one.name, one.shares, one.size, as_of, rng)]
    return sessions, sorted([*known, *made], key=lambda one: one.name), filings


def quarterly(issuer: str, shares: float, size: float, as_of: date, rng: np.random.Generator) -> list[Filing]:
    """Three quarterly filings of an issuer that no collection knows, the last with the shares that it has."""
    equity = size * float(rng.uniform(0.15, 0.9))
    found: list[Filing] = []
    for back in (3, 2, 1):
        end = as_of - timedelta(days=91 * back)
        count = shares if back == 1 else round(shares * float(rng.uniform(0.96, 1.04)), -3)
        liabilities = round(equity * float(rng.uniform(0.4, 3.0)), -3)
        found.append(Filing(issuer, "10-Q", end, end + timedelta(days=45), count, liabilities, round(equity, -3)))
    return found


def _made(member: Member, known: Sequence[Issuer], rng: np.random.Generator) -> Issuer:
    """An issuer of the market that the panels do not know, after a known one of its sector, smaller as a rule."""
    alike = [one for one in known if one.sector == member.sector] or list(known)
    like = alike[int(rng.integers(len(alike)))]
    loadings = np.array(like.loadings) * rng.uniform(0.7, 1.2, FACTORS) + rng.normal(0, 0.02, FACTORS)
    specific = like.specific * float(rng.lognormal(0.2, 0.3))
    daily = float(np.sqrt((loadings @ loadings + specific) / 252))
    level = float(rng.uniform(15, 260))
    closes: Floats = np.asarray(level * np.exp(np.cumsum(rng.normal(0, daily, SESSIONS))), dtype=np.float64)
    size = float(np.median([one.size for one in known])) * float(rng.lognormal(-0.2, 0.7))
    shares = float(np.round(size / float(closes[-1]), -4))
    volumes = np.round(shares * rng.uniform(0.002, 0.008) * rng.lognormal(0, 0.3, SESSIONS))
    beta = round(like.beta * float(rng.uniform(0.8, 1.2)), 2)
    rounded: tuple[float, ...] = tuple(np.round(loadings, _DIGITS).tolist())
    return Issuer(member.symbol, member.sector, beta, size, shares, closes, volumes, rounded, round(specific, _DIGITS))


def _model(panels: Panels, as_of: date, names: Sequence[str]) -> dict[str, tuple[tuple[float, ...], float]]:
    """Loadings and specific variance of each name: the largest factors of the edition's estimate, the rest specific."""
    estimate = panels.covariance[as_of]
    chosen = [estimate.symbols.index(name) for name in names]
    loadings = estimate.loadings[:, chosen]
    covariance = loadings.T @ loadings + np.diag(estimate.specific[chosen])
    sizes, vectors = np.linalg.eigh(covariance)
    kept = min(FACTORS, len(names))
    factors = np.zeros((len(names), FACTORS))
    factors[:, :kept] = (vectors * np.sqrt(np.maximum(sizes, 0.0)))[:, ::-1][:, :kept]
    signs = np.where(factors.sum(axis=0) < 0, -1.0, 1.0)  # an eigenvector has no sign of its own
    factors = np.round(factors * signs, _DIGITS)
    rest = np.maximum(np.diag(covariance) - (factors**2).sum(axis=1), 1e-3)
    return {
        name: (tuple(row), round(specific, _DIGITS))
        for name, row, specific in zip(names, factors.tolist(), rest.tolist(), strict=True)
    }


def _history(panels: Panels, as_of: date, names: Sequence[str]) -> tuple[tuple[date, ...], list[Floats], list[Floats]]:
    """The last sessions with their closes and volumes, by issuer."""
    columns = [f"{field}:{name}" for field in ("close", "volume") for name in names]
    window = panels.prices.filter(pl.col("date") <= as_of).tail(SESSIONS).select("date", *columns)
    arrays: list[Floats] = [
        window[column].cast(pl.Float64).fill_null(strategy="forward").to_numpy().astype(np.float64)
        for column in columns
    ]
    volumes: list[Floats] = [np.asarray(np.round(one), dtype=np.float64) for one in arrays[len(names) :]]
    return tuple(window["date"].to_list()), arrays[: len(names)], volumes


def _sizes(panels: Panels, as_of: date, worth: Mapping[str, float]) -> dict[str, float]:
    """Dollars by issuer in proportion to capitalisation, at the scale of most of what the issuers are worth."""
    frame = panels.benchmark_weights.filter(pl.col("date") == as_of)
    sizes: dict[str, float] = dict(frame.select("symbol", "market_cap_usd").iter_rows())
    scale = float(np.median([worth[name] / sizes[name] for name in worth]))
    return {name: scale * sizes[name] for name in worth}


def _shares(panels: Panels, as_of: date) -> dict[str, float]:
    frame = panels.benchmark_weights.filter(pl.col("date") == as_of)
    return dict(frame.select("symbol", "shares").iter_rows())


def _covers(panels: Panels, as_of: date) -> list[Filing]:
    """The count of shares that was last known of each name, for issuers of whom a collection has no statements."""
    frame = panels.benchmark_weights.filter(pl.col("date") == as_of).drop_nulls(
        ["shares", "shares_as_of", "shares_known"]
    )
    columns = frame.select("symbol", "shares_as_of", "shares_known", "shares").iter_rows()
    return [Filing(name, "cover", day, known, float(shares)) for name, day, known, shares in columns]


def _filings(panels: Panels, as_of: date, issuers: list[str]) -> list[Filing]:
    """The latest filings of each issuer that give all items, each as of the latest day that the filing speaks of."""
    facts = (
        panels.facts.filter(
            pl.col("symbol").is_in(issuers) & pl.col("metric").is_in(list(_ITEMS)) & (pl.col("filed") <= as_of)
        )
        .sort("end")
        .group_by("symbol", "accession", "metric", maintain_order=True)
        .agg(pl.col("value").last(), pl.col("end").last(), pl.col("filed").last(), pl.col("form").last())
    )
    if facts.is_empty():
        return []
    ends = facts.filter(pl.col("metric") == "total_liabilities").select("symbol", "accession", "end", "filed", "form")
    wide = facts.pivot("metric", index=["symbol", "accession"], values="value")
    if any(item not in wide.columns for item in _ITEMS):
        return []
    rows = wide.drop_nulls(list(_ITEMS)).join(ends, on=["symbol", "accession"]).sort("symbol", "filed", "end")
    last = rows.group_by("symbol", maintain_order=True).tail(FILINGS)
    return [
        Filing(row["symbol"], row["form"], row["end"], row["filed"], *(float(row[item]) for item in _ITEMS))
        for row in last.iter_rows(named=True)
    ]
