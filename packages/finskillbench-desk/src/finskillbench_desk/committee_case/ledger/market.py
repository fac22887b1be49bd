"""The market of a case: its issuers on one month-end, and own lines, funds, futures and bonds beside them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.draws import permuted
from finskillbench.panels import Panels
from finskillbench_desk.committee_case.ledger.issuers import SESSIONS, Issuer, draw_issuers, quarterly
from finskillbench_desk.committee_case.ledger.lines import (
    Own,
    another,
    bond,
    companies,
    cost,
    invented,
    ordinary,
    own_lines,
    rates_of_exchange,
)
from finskillbench_desk.committee_case.ledger.nouns import Ledger, Listed, Quotes, RiskModel, Security
from finskillbench_desk.market import Listed as Member

NOISE = 0.002
"""Largest relative difference between the two sources of a price where nothing is wrong."""
_LATELY = 0.3
"""Share of the reference file's rows in which some field was changed within the last sessions."""


def draw_market(panels: Panels, members: Sequence[Member], as_of: date, rng: np.random.Generator) -> tuple[Ledger, Own]:
    """A ledger without positions: securities, quotes of `SESSIONS` sessions, what vendor and filings say."""
    sessions, issuers, filings = draw_issuers(panels, members, as_of, rng)
    own = own_lines([issuer.name for issuer in issuers], rng)
    market = _Market(rates_of_exchange(rng), rng)
    for one in issuers:
        adv = float(f"{float(np.mean(one.closes[-21:] * one.volumes[-21:])):.4g}")
        market.add(ordinary(one.name, one.sector, adv, one.beta, rng), one.closes, one.volumes)
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
    total = math.fsum(one.size for one in issuers)
    benchmark = {one.name: (round(one.size / total, 6), one.sector) for one in issuers}
    constituents = _constituents(own, sorted(benchmark), rng)
    for fund in own.funds:
        line = Security(fund, "fund", fund, "USD", cost=cost(rng, 8, 20))
        market.add(line, market.basket(constituents[fund]) * float(rng.uniform(20, 240)))
    index, rate = own.futures
    whole = {name: weight for name, (weight, _) in benchmark.items()}
    path = market.basket(whole) * float(rng.uniform(2400, 5200))
    market.add(Security(index, "equity_future", "", "USD", 50.0, 1.0), path, market.turnover())
    market.add(Security(rate, "bond_future", "", "USD", 1000.0, 1.0), market.walk(118.0, 0.003), market.turnover())
    filings += [
        filing for one in made.values() for filing in quarterly(one.issuer, one.shares, one.shares * 40, as_of, rng)
    ]
    sectors = {one.name: one.sector for one in issuers} | {name: one.sector for name, one in made.items()}
    shares = {one.name: one.shares for one in issuers} | {filing.issuer: filing.shares for filing in filings}
    listed = {name: _listed(sector, shares[name], sessions, rng) for name, sector in sectors.items()}
    ledger = Ledger(
        as_of,
        sessions,
        market.fx,
        market.securities,
        market.quotes,
        listed,
        benchmark,
        constituents,
        tuple(filings),
        _model(issuers),
    )
    return ledger, own


def _model(issuers: Sequence[Issuer]) -> RiskModel:
    return RiskModel({one.name: one.loadings for one in issuers}, {one.name: one.specific for one in issuers})


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


def _constituents(own: Own, names: list[str], rng: np.random.Generator) -> dict[str, dict[str, float]]:
    """Weights of issuers' first lines in each fund, the rest of which is cash."""
    found: dict[str, dict[str, float]] = {}
    for fund in own.funds:
        chosen = sorted(permuted(names, rng)[: int(rng.integers(9, 16))])
        raw = rng.dirichlet(np.full(len(chosen), 4.0)) * float(rng.uniform(0.94, 0.99))
        found[fund] = {name: round(float(weight), 4) for name, weight in zip(chosen, raw, strict=True)}
    return found


def _listed(sector: str, shares: float, sessions: tuple[date, ...], rng: np.random.Generator) -> Listed:
    """What the vendor says: nothing that matters was changed, whenever the row was touched last."""
    since = date(sessions[0].year - int(rng.integers(1, 6)), int(rng.integers(1, 13)), 1)
    if rng.random() < _LATELY:
        since = sessions[-int(rng.integers(2, 20))]
    return Listed(sector, sector, since, shares, shares)
