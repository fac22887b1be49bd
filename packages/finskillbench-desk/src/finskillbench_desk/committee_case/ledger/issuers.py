"""Draw the issuers of a case from the edition's universe on one month-end, and model others on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import polars as pl

from finskillbench.arrays import Floats
from finskillbench.domains.building import permuted
from finskillbench.panels import Panels
from finskillbench_desk.committee_case.ledger.records import IssuerFiling
from finskillbench_desk.market import ListedName as Member

SESSIONS = 40
FEWEST, MOST = 110, 118
"""Bounds of the number of issuers, if the market has enough."""
FACTORS = 8
"""Factors of a case's risk model: the largest of the estimated covariance; the rest is specific."""
FILINGS = 3
_DIGITS = 5
_ITEMS = {"shares_outstanding": "shares", "total_liabilities": "liabilities", "stockholders_equity": "equity"}


@dataclass(frozen=True, slots=True, eq=False)
class Issuer:
    """Issuer of the benchmark.

    Attributes
    ----------
    size : market capitalisation, dollars.
    closes, volumes : (SESSIONS,) of its first line.
    loadings, specific : (FACTORS,) exposures and specific variance a year, rounded as shown.
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
) -> tuple[tuple[date, ...], list[Issuer], list[IssuerFiling]]:
    wanted = int(rng.integers(FEWEST, MOST + 1))
    symbols = panels.symbols_at(as_of)
    names = sorted(permuted(symbols, rng)[:wanted])
    sessions, closes, volumes = _history(panels, as_of, names)
    listed = panels.benchmark_weights.filter(pl.col("date") == as_of)
    counts: dict[str, float] = dict(listed.select("symbol", "shares").iter_rows())
    sizes = _sizes(listed, {name: counts[name] * float(path[-1]) for name, path in zip(names, closes, strict=True)})
    model = _model(panels, as_of, names)
    betas = dict(zip(symbols, panels.exposures(as_of)[:, 0].tolist(), strict=True))
    known = [
        Issuer(name, panels.sectors[name], round(betas[name], 2), sizes[name], counts[name], path, traded, *model[name])
        for name, path, traded in zip(names, closes, volumes, strict=True)
    ]
    unknown = [member for member in members if member.symbol not in set(symbols)]
    chosen = permuted(unknown, rng)[: wanted - len(known)]
    made = [_made(member, known, rng) for member in sorted(chosen, key=lambda one: one.symbol)]
    filings = _filings(panels, as_of, names)
    filed = {filing.issuer for filing in filings}
    filings += [cover for cover in _covers(listed) if cover.issuer in names and cover.issuer not in filed]
    filings += [filing for one in made for filing in quarterly(one.name, one.shares, one.size, as_of, rng)]
    return sessions, sorted([*known, *made], key=lambda one: one.name), filings


def quarterly(issuer: str, shares: float, size: float, as_of: date, rng: np.random.Generator) -> list[IssuerFiling]:
    """Return three quarterly filings of an issuer without collected data; the last has its current share count."""
    equity = size * float(rng.uniform(0.15, 0.9))
    found: list[IssuerFiling] = []
    for back in (3, 2, 1):
        end = as_of - timedelta(days=91 * back)
        count = shares if back == 1 else round(shares * float(rng.uniform(0.96, 1.04)), -3)
        liabilities = round(equity * float(rng.uniform(0.4, 3.0)), -3)
        found.append(IssuerFiling(issuer, "10-Q", end, end + timedelta(days=45), count, liabilities, round(equity, -3)))
    return found


def _made(member: Member, known: Sequence[Issuer], rng: np.random.Generator) -> Issuer:
    """Model an issuer without panels on a known one of its sector; it is usually smaller."""
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
    """Return loadings and specific variance by name: the largest factors of the estimate, the rest specific."""
    estimate = panels.covariance[as_of]
    chosen = [estimate.symbols.index(name) for name in names]
    loadings = estimate.loadings[:, chosen]
    covariance = loadings.T @ loadings + np.diag(estimate.specific[chosen])
    sizes, vectors = np.linalg.eigh(covariance)
    kept = min(FACTORS, len(names))
    factors = np.zeros((len(names), FACTORS))
    factors[:, :kept] = (vectors * np.sqrt(np.maximum(sizes, 0.0)))[:, ::-1][:, :kept]
    signs = np.where(factors.sum(axis=0) < 0, -1.0, 1.0)  # the sign of an eigenvector is arbitrary
    factors = np.round(factors * signs, _DIGITS)
    rest = np.maximum(np.diag(covariance) - (factors**2).sum(axis=1), 1e-3)
    rows = zip(names, factors.tolist(), rest.tolist(), strict=True)
    return {name: (tuple(row), round(specific, _DIGITS)) for name, row, specific in rows}


def _history(panels: Panels, as_of: date, names: Sequence[str]) -> tuple[tuple[date, ...], list[Floats], list[Floats]]:
    columns = [f"{field}:{name}" for field in ("close", "volume") for name in names]
    window = panels.prices.filter(pl.col("date") <= as_of).tail(SESSIONS).select("date", *columns)
    filled = [window[column].cast(pl.Float64).fill_null(strategy="forward") for column in columns]
    arrays: list[Floats] = [column.to_numpy().astype(np.float64) for column in filled]
    volumes: list[Floats] = [np.asarray(np.round(one), dtype=np.float64) for one in arrays[len(names) :]]
    return tuple(window["date"].to_list()), arrays[: len(names)], volumes


def _sizes(listed: pl.DataFrame, worth: Mapping[str, float]) -> dict[str, float]:
    """Scale market capitalisations to the median value of the issuers' shares."""
    sizes: dict[str, float] = dict(listed.select("symbol", "market_cap_usd").iter_rows())
    scale = float(np.median([worth[name] / sizes[name] for name in worth]))
    return {name: scale * sizes[name] for name in worth}


def _covers(listed: pl.DataFrame) -> list[IssuerFiling]:
    """Return the last known share counts as filings, for issuers without collected statements."""
    known = ["shares_as_of", "shares_known", "shares"]
    covers = listed.select("symbol", *known).drop_nulls(known)
    return [IssuerFiling(name, "cover", day, known, float(shares)) for name, day, known, shares in covers.iter_rows()]


def _filings(panels: Panels, as_of: date, issuers: list[str]) -> list[IssuerFiling]:
    """Return the latest filings of each issuer that state all items, each as of its latest period end."""
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
        IssuerFiling(row["symbol"], row["form"], row["end"], row["filed"], *(float(row[item]) for item in _ITEMS))
        for row in last.iter_rows(named=True)
    ]
