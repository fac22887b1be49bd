"""The market of a case: the edition's names on one month-end, and own lines, funds, futures and bonds beside them."""

from __future__ import annotations

from datetime import date

import numpy as np
import polars as pl

from finskillbench.arrays import Floats
from finskillbench.domains.desk.committee_case.ledger.lines import (
    Own,
    another,
    bond,
    companies,
    cost,
    invented,
    invented_filings,
    ordinary,
    own_lines,
    rates_of_exchange,
)
from finskillbench.domains.desk.committee_case.ledger.nouns import Filing, Ledger, Listed, Quotes, Security
from finskillbench.domains.draws import permuted
from finskillbench.panels import Panels

SESSIONS = 40
"""Sessions of prices that a case shows."""
MOST_ISSUERS = 34
FILINGS = 3
"""Filings that a case shows of each issuer, the latest last."""
NOISE = 0.002
"""Largest relative difference between the two sources of a price where nothing is wrong."""
_ITEMS = {"shares_outstanding": "shares", "total_liabilities": "liabilities", "stockholders_equity": "equity"}


def draw_market(panels: Panels, as_of: date, rng: np.random.Generator) -> tuple[Ledger, Own]:
    """A ledger without positions: securities, quotes of `SESSIONS` sessions, what vendor and filings say."""
    issuers = _issuers(panels, as_of, rng)
    sessions, closes, volumes = _history(panels, as_of, issuers)
    own = own_lines(issuers, rng)
    market = _Market(rates_of_exchange(rng), rng)
    sectors = {issuer: panels.sectors[issuer] for issuer in issuers}
    betas = dict(zip(panels.symbols_at(as_of), panels.exposures(as_of)[:, 0].tolist(), strict=True))
    for issuer, path, traded in zip(issuers, closes, volumes, strict=True):
        adv = float(f"{float(np.mean(path[-21:] * traded[-21:])):.4g}")
        market.add(ordinary(issuer, sectors[issuer], adv, round(betas[issuer], 2), rng), path, traded)
    for name in (*own.classes, *own.london):
        market.another(
            name, float(rng.uniform(0.94, 1.06)) if name in own.classes else float(rng.uniform(0.985, 1.015))
        )
    made = companies(own, rng)
    for company in made.values():
        line, level = invented(company, rng)
        market.add(line, market.walk(level, 0.015), market.turnover())
    subs = {name: line.sub_sector for name, line in market.securities.items()}
    for name in own.bonds:
        market.add(bond(name, subs, rng), market.walk(float(rng.uniform(88, 108)), 0.0012))
    weights = dict(zip(panels.symbols_at(as_of), panels.weights(as_of).tolist(), strict=True))
    total = sum(weights[issuer] for issuer in issuers)
    benchmark = {issuer: (round(weights[issuer] / total, 6), sectors[issuer]) for issuer in issuers}
    constituents = _constituents(own, sorted(benchmark), rng)
    for fund in own.funds:
        line = Security(fund, "fund", fund, "USD", cost=cost(rng, 8, 20))
        market.add(line, market.basket(constituents[fund]) * float(rng.uniform(20, 240)))
    index, rate = own.futures
    whole = {name: weight for name, (weight, _) in benchmark.items()}
    path = market.basket(whole) * float(rng.uniform(2400, 5200))
    market.add(Security(index, "equity_future", "", "USD", 50.0, 1.0), path, market.turnover())
    market.add(Security(rate, "bond_future", "", "USD", 1000.0, 1.0), market.walk(118.0, 0.003), market.turnover())
    filings = _filings(panels, as_of, issuers)
    filed = {filing.issuer for filing in filings}
    filings += [cover for cover in _covers(panels, as_of) if cover.issuer in issuers and cover.issuer not in filed]
    filings += [filing for one in made.values() for filing in invented_filings(one, as_of, rng)]
    shares = _shares(panels, as_of) | {filing.issuer: filing.shares for filing in filings}
    listed = {name: _listed(sectors[name], shares[name], sessions, rng) for name in issuers}
    listed |= {name: _listed(one.sector, one.shares, sessions, rng) for name, one in made.items()}
    ledger = Ledger(
        as_of, sessions, market.fx, market.securities, market.quotes, listed, benchmark, constituents, tuple(filings)
    )
    return ledger, own


class _Market:
    """Securities and quotes while they are being drawn."""

    def __init__(self, fx: dict[str, float], rng: np.random.Generator) -> None:
        self.fx, self.rng = fx, rng
        self.securities: dict[str, Security] = {}
        self.quotes: dict[str, Quotes] = {}

    def add(self, security: Security, closes: Floats, volumes: Floats | None = None) -> None:
        """Quote a security; what is not traded on an exchange has no volumes."""
        rounded, rng = np.round(closes, 4), self.rng
        second = round(float(rounded[-1]) * (1 + float(rng.uniform(0.3, 1.0) * rng.choice([-1, 1])) * NOISE), 4)
        traded = np.zeros(SESSIONS) if volumes is None else volumes
        self.securities[security.security] = security
        self.quotes[security.security] = Quotes(rounded, traded, second, security.currency)

    def another(self, name: str, parity: float) -> None:
        """Another line of an issuer, at a nearly constant ratio to its first one."""
        first = self.securities[name.split(":")[0]]
        line = another(name, first, self.rng)
        noise = np.exp(self.rng.normal(0, 0.0008, SESSIONS))
        self.add(line, self.quotes[first.security].closes * parity * noise / self.fx[line.currency], self.turnover())

    def walk(self, level: float, volatility: float) -> Floats:
        """Prices that wander from about a level."""
        return level * np.exp(np.cumsum(self.rng.normal(0, volatility, SESSIONS)))

    def turnover(self) -> Floats:
        """Units that change hands in each session."""
        return np.round(self.rng.lognormal(12, 0.5, SESSIONS))

    def basket(self, weights: dict[str, float]) -> Floats:
        """The value of a basket of issuers, 1 on the first session."""
        paths = {name: self.quotes[name].closes / self.quotes[name].closes[0] - 1 for name in weights}
        return 1 + np.sum([weight * paths[name] for name, weight in weights.items()], axis=0)


def _issuers(panels: Panels, as_of: date, rng: np.random.Generator) -> list[str]:
    """The universe of the day, or `MOST_ISSUERS` of it, sorted."""
    names = panels.symbols_at(as_of)
    if len(names) <= MOST_ISSUERS:
        return list(names)
    return sorted(permuted(names, rng)[:MOST_ISSUERS])


def _history(panels: Panels, as_of: date, issuers: list[str]) -> tuple[tuple[date, ...], list[Floats], list[Floats]]:
    """The last sessions with their closes and volumes, by issuer."""
    columns = [f"{field}:{name}" for field in ("close", "volume") for name in issuers]
    window = panels.prices.filter(pl.col("date") <= as_of).tail(SESSIONS).select("date", *columns)
    arrays: list[Floats] = [
        window[column].cast(pl.Float64).fill_null(strategy="forward").to_numpy().astype(np.float64)
        for column in columns
    ]
    volumes: list[Floats] = [np.asarray(np.round(one), dtype=np.float64) for one in arrays[len(issuers) :]]
    return tuple(window["date"].to_list()), arrays[: len(issuers)], volumes


def _constituents(own: Own, names: list[str], rng: np.random.Generator) -> dict[str, dict[str, float]]:
    """Weights of issuers' first lines in each fund, the rest of which is cash."""
    found: dict[str, dict[str, float]] = {}
    for fund in own.funds:
        chosen = sorted(permuted(names, rng)[: int(rng.integers(7, 11))])
        raw = rng.dirichlet(np.full(len(chosen), 4.0)) * float(rng.uniform(0.94, 0.99))
        found[fund] = {name: round(float(weight), 4) for name, weight in zip(chosen, raw, strict=True)}
    return found


def _listed(sector: str, shares: float, sessions: tuple[date, ...], rng: np.random.Generator) -> Listed:
    since = date(sessions[0].year - int(rng.integers(1, 6)), int(rng.integers(1, 13)), 1)
    return Listed(sector, sector, since, shares, shares)


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
