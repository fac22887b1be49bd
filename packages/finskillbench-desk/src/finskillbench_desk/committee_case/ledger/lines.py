"""Draw the market of a case: lines of real and invented issuers, funds, futures and bonds, with their quotes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.building import permuted
from finskillbench.panels import Panels
from finskillbench_desk.committee_case.documents.vocabulary import COUNTRIES, CURRENCIES, SUB_SECTORS
from finskillbench_desk.committee_case.ledger.issuers import SESSIONS, draw_issuers, quarterly
from finskillbench_desk.committee_case.ledger.records import (
    CaseSecurity,
    FundLedger,
    IssuerRiskModel,
    Quotes,
    VendorRecord,
)
from finskillbench_desk.engines.guidelines.book import Kind
from finskillbench_desk.market import ListedName as Member

FOREIGN = 20
CLASSES, LONDON, PREFERRED, CONVERTIBLES, NOTES, GOVERNMENTS, FUNDS = 4, 8, 3, 3, 9, 5, 6
"""Further lines of issuers by type, government bonds, and funds."""
TARGETS, CHILDREN = 4, 5
"""Companies taken over, and spun off; the custodians have booked some of each."""
RESTRICTED, UNLISTED, AFFILIATED = "Restricted List", "Unlisted", "Affiliated Funds"
_CURRENCIES = {"USD": 1.0, "GBP": 1.28, "EUR": 1.1, "JPY": 0.0068, "CHF": 1.13, "CAD": 0.74, "AUD": 0.66, "HKD": 0.128}
"""Approximate dollars per unit of each currency."""
_LEVELS = {"JPY": 2600.0, "HKD": 120.0}
"""Typical prices in some currencies; about 50 in the others."""


@dataclass(frozen=True, slots=True)
class AddedLines:
    """Ids of the lines that a case adds to the universe, by type."""

    classes: tuple[str, ...]
    london: tuple[str, ...]
    foreign: tuple[str, ...]
    bonds: tuple[str, ...]
    funds: tuple[str, ...]
    futures: tuple[str, ...]
    targets: tuple[str, ...]
    children: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Company:
    issuer: str
    sector: str
    sub_sector: str
    country: str
    shares: float


def rates_of_exchange(rng: np.random.Generator) -> dict[str, float]:
    fx = {name: float(f"{level * float(rng.uniform(0.94, 1.06)):.4g}") for name, level in _CURRENCIES.items()}
    return {**fx, "USD": 1.0, "GBX": fx["GBP"] / 100}


def draw_line_ids(issuers: Sequence[str], rng: np.random.Generator) -> AddedLines:
    """Draw ids that cannot be tickers of the universe."""
    picks = iter(permuted(issuers, rng))
    numbers = iter(str(number) for number in permuted(np.arange(200, 999).tolist(), rng))
    years = rng.integers(27, 39, size=NOTES).tolist()

    def further(count: int, ending: str) -> tuple[str, ...]:
        return tuple(f"{next(picks)}:{ending}" for _ in range(count))

    def new(count: int, prefix: str) -> tuple[str, ...]:
        return tuple(f"{prefix}{next(numbers)}" for _ in range(count))

    return AddedLines(
        classes=(*further(CLASSES, "B"), *further(PREFERRED, "P")),
        london=further(LONDON, "L"),
        foreign=new(FOREIGN, "Q"),
        bonds=(*(f"{next(picks)}:N{year}" for year in years), *further(CONVERTIBLES, "C"), *new(GOVERNMENTS, "G")),
        funds=new(FUNDS, "F"),
        futures=new(2, "X"),
        targets=new(TARGETS, "Q"),
        children=new(CHILDREN, "Q"),
    )


def _companies(added: AddedLines, rng: np.random.Generator) -> dict[str, _Company]:
    codes = [code for code in COUNTRIES if code != "US"]
    places = permuted(codes, rng)[:FOREIGN]
    names = (*added.foreign, *added.targets, *added.children)
    found: dict[str, _Company] = {}
    for name, country in zip(names, (*places, *["US"] * (TARGETS + CHILDREN)), strict=True):
        sub_sector = _pick(list(SUB_SECTORS), rng)
        shares = float(rng.integers(30, 900) * 1_000_000)
        found[name] = _Company(name, SUB_SECTORS[sub_sector], sub_sector, country, shares)
    return found


def ordinary(issuer: str, sector: str, adv: float, beta: float, rng: np.random.Generator) -> CaseSecurity:
    inside = [name for name, of in SUB_SECTORS.items() if of == sector]
    sub_sector = _pick(inside, rng) if inside else ""
    return CaseSecurity(issuer, "share", issuer, "USD", cost=cost(rng, 3, 9), sub_sector=sub_sector, adv=adv, beta=beta)


def _another(name: str, first: CaseSecurity, rng: np.random.Generator) -> CaseSecurity:
    """Return a further line of an issuer: a class, a preferred share, or a depositary receipt quoted in pence."""
    kinds: dict[str, tuple[Kind, str]] = {"L": ("receipt", "GBX"), "P": ("preferred", "USD"), "B": ("share", "USD")}
    kind, currency = kinds[name[-1]]
    adv = None if first.adv is None else _round(first.adv * float(rng.uniform(0.05, 0.3)))
    charge, sub_sector = cost(rng, 6, 14), first.sub_sector
    return CaseSecurity(name, kind, first.issuer, currency, 1.0, charge, "US", sub_sector, (), adv, beta=first.beta)


def invented(company: _Company, rng: np.random.Generator) -> tuple[CaseSecurity, float]:
    """Return the line of an invented issuer, and its approximate price in its currency."""
    local = CURRENCIES.get(company.country, "USD")
    receipt = (local == "USD" and company.country != "US") or (bool(rng.integers(2)) and company.country != "US")
    currency = "USD" if receipt or local not in _CURRENCIES else local
    level = _LEVELS.get(currency, 50.0) * float(rng.uniform(0.4, 2.0))
    adv, beta = _round(float(rng.uniform(8e6, 9e7))), round(float(rng.uniform(0.6, 1.5)), 2)
    kind, name, charge = "receipt" if receipt else "share", company.issuer, cost(rng, 8, 20)
    place = (company.country, company.sub_sector)
    return CaseSecurity(name, kind, name, currency, 1.0, charge, *place, adv=adv, beta=beta), level


def bond(name: str, sub_sectors: Mapping[str, str], rng: np.random.Generator) -> CaseSecurity:
    if ":" not in name:
        maturity, rating, kind = round(float(rng.uniform(0.4, 9)), 1), 2, "government_bond"
        return CaseSecurity(name, kind, "US TREASURY", "USD", 0.01, cost(rng, 1, 4), rating=rating, maturity=maturity)
    issuer = name.split(":")[0]
    kind = "convertible" if name.endswith(":C") else "corporate_bond"
    maturity, rating = round(float(rng.uniform(1.5, 14)), 1), int(rng.integers(4, 13))
    charge, sub_sector = cost(rng, 15, 35), sub_sectors[issuer]
    return CaseSecurity(
        name, kind, issuer, "USD", 0.01, charge, sub_sector=sub_sector, rating=rating, maturity=maturity
    )


def listed_on(
    added: AddedLines, held: Sequence[str], unheld: Sequence[str], rng: np.random.Generator
) -> dict[str, tuple[str, ...]]:
    """Assign lines to lists: two held lines are restricted, and a held fund is affiliated half of the time."""
    found: dict[str, tuple[str, ...]] = dict.fromkeys(unheld[:4], (RESTRICTED,))
    for name in permuted(held, rng)[:2]:
        found[name] = (RESTRICTED,)
    fund = added.funds[0 if rng.random() < 0.5 else -1]
    for name, word in ((fund, AFFILIATED), (added.foreign[0], UNLISTED), (added.bonds[0], UNLISTED)):
        found[name] = (*found.get(name, ()), word)
    return found


def cost(rng: np.random.Generator, low: float, high: float) -> float:
    return round(float(rng.uniform(low, high)), 1)


def _pick(names: Sequence[str], rng: np.random.Generator) -> str:
    return names[int(rng.integers(len(names)))]


def _round(value: float) -> float:
    return float(f"{value:.4g}")


NOISE = 0.002
"""Largest relative difference between the two price sources without an error."""
_LATELY = 0.3
"""Share of reference file rows with a field changed in the last sessions."""


def draw_market(
    panels: Panels, members: Sequence[Member], as_of: date, rng: np.random.Generator
) -> tuple[FundLedger, AddedLines]:
    """Return a ledger without positions: securities, quotes of `SESSIONS` sessions, vendor data and filings."""
    sessions, issuers, filings = draw_issuers(panels, members, as_of, rng)
    added = draw_line_ids([issuer.name for issuer in issuers], rng)
    market = _Market(rates_of_exchange(rng), rng)
    for one in issuers:
        adv = float(f"{float(np.mean(one.closes[-21:] * one.volumes[-21:])):.4g}")
        market.add(ordinary(one.name, one.sector, adv, one.beta, rng), one.closes, one.volumes)
    for name in (*added.classes, *added.london):
        bounds = (0.94, 1.06) if name in added.classes else (0.985, 1.015)
        market.another(name, float(rng.uniform(*bounds)))
    made = _companies(added, rng)
    for company in made.values():
        line, level = invented(company, rng)
        market.add(line, market.walk(level, 0.015), market.turnover())
    subs = {name: line.sub_sector for name, line in market.securities.items()}
    for name in added.bonds:
        market.add(bond(name, subs, rng), market.walk(float(rng.uniform(88, 108)), 0.0012))
    total = math.fsum(one.size for one in issuers)
    benchmark = {one.name: (round(one.size / total, 6), one.sector) for one in issuers}
    constituents = _constituents(added, sorted(benchmark), rng)
    for fund in added.funds:
        line = CaseSecurity(fund, "fund", fund, "USD", cost=cost(rng, 8, 20))
        market.add(line, market.basket(constituents[fund]) * float(rng.uniform(20, 240)))
    index, rate = added.futures
    whole = {name: weight for name, (weight, _) in benchmark.items()}
    path = market.basket(whole) * float(rng.uniform(2400, 5200))
    market.add(CaseSecurity(index, "equity_future", "", "USD", 50.0, 1.0), path, market.turnover())
    market.add(CaseSecurity(rate, "bond_future", "", "USD", 1000.0, 1.0), market.walk(118.0, 0.003), market.turnover())
    for one in made.values():
        filings += quarterly(one.issuer, one.shares, one.shares * 40, as_of, rng)
    sectors = {one.name: one.sector for one in issuers} | {name: one.sector for name, one in made.items()}
    shares = {one.name: one.shares for one in issuers} | {filing.issuer: filing.shares for filing in filings}
    listed = {name: _listed(sector, shares[name], sessions, rng) for name, sector in sectors.items()}
    model = IssuerRiskModel({one.name: one.loadings for one in issuers}, {one.name: one.specific for one in issuers})
    quoted = (market.fx, market.securities, market.quotes)
    return FundLedger(as_of, sessions, *quoted, listed, benchmark, constituents, tuple(filings), model), added


class _Market:
    def __init__(self, fx: dict[str, float], rng: np.random.Generator) -> None:
        self.fx, self.rng = fx, rng
        self.securities: dict[str, CaseSecurity] = {}
        self.quotes: dict[str, Quotes] = {}

    def add(self, security: CaseSecurity, closes: Floats, volumes: Floats | None = None) -> None:
        """Quote a security; without `volumes` it is not exchange traded."""
        rounded, rng = np.round(closes, 4), self.rng
        noise = float(rng.uniform(0.3, 1.0) * rng.choice([-1, 1])) * NOISE
        secondary_close = round(float(rounded[-1]) * (1 + noise), 4)
        traded = np.zeros(SESSIONS) if volumes is None else volumes
        self.securities[security.security] = security
        self.quotes[security.security] = Quotes(rounded, traded, secondary_close, security.currency)

    def another(self, name: str, parity: float) -> None:
        """Add another line of an issuer, at a nearly constant ratio to its first line."""
        first = self.securities[name.split(":")[0]]
        line = _another(name, first, self.rng)
        noise = np.exp(self.rng.normal(0, 0.0008, SESSIONS))
        self.add(line, self.quotes[first.security].closes * parity * noise / self.fx[line.currency], self.turnover())

    def walk(self, level: float, volatility: float) -> Floats:
        return level * np.exp(np.cumsum(self.rng.normal(0, volatility, SESSIONS)))

    def turnover(self) -> Floats:
        return np.round(self.rng.lognormal(12, 0.5, SESSIONS))

    def basket(self, weights: dict[str, float]) -> Floats:
        """Return the value of a basket of issuers, 1 on the first session."""
        paths = {name: self.quotes[name].closes / self.quotes[name].closes[0] - 1 for name in weights}
        return 1 + np.sum([weight * paths[name] for name, weight in weights.items()], axis=0)


def _constituents(added: AddedLines, names: list[str], rng: np.random.Generator) -> dict[str, dict[str, float]]:
    """Draw weights of issuers' first lines in each fund; the rest is cash."""
    found: dict[str, dict[str, float]] = {}
    for fund in added.funds:
        chosen = sorted(permuted(names, rng)[: int(rng.integers(9, 16))])
        raw = rng.dirichlet(np.full(len(chosen), 4.0)) * float(rng.uniform(0.94, 0.99))
        found[fund] = {name: round(float(weight), 4) for name, weight in zip(chosen, raw, strict=True)}
    return found


def _listed(sector: str, shares: float, sessions: tuple[date, ...], rng: np.random.Generator) -> VendorRecord:
    """Return a vendor record without relevant changes; its change date may be recent."""
    since = date(sessions[0].year - int(rng.integers(1, 6)), int(rng.integers(1, 13)), 1)
    if rng.random() < _LATELY:
        since = sessions[-int(rng.integers(2, 20))]
    return VendorRecord(sector, sector, since, shares, shares)
