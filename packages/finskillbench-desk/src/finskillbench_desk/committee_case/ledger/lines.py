"""The lines of a case: what can be held of the universe's issuers and of invented ones, with what rules ask of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from finskillbench.domains.draws import permuted
from finskillbench_desk.committee_case.documents.vocabulary import COUNTRIES, CURRENCIES, SUB_SECTORS
from finskillbench_desk.committee_case.ledger.nouns import Security

FOREIGN = 20
"""Invented issuers from abroad."""
CLASSES, LONDON, PREFERRED, CONVERTIBLES, NOTES, GOVERNMENTS, FUNDS = 4, 8, 3, 3, 9, 5, 6
"""Further lines of issuers by what they are, governments' bonds, and funds."""
TARGETS, CHILDREN = 4, 5
"""Companies that were taken over, and that were spun off; of either some are booked by the custodians already."""
RESTRICTED, UNLISTED, AFFILIATED = "Restricted List", "Unlisted", "Affiliated Funds"
_CURRENCIES = {"USD": 1.0, "GBP": 1.28, "EUR": 1.1, "JPY": 0.0068, "CHF": 1.13, "CAD": 0.74, "AUD": 0.66, "HKD": 0.128}
"""About what a unit of each currency is worth in dollars."""
_LEVELS = {"JPY": 2600.0, "HKD": 120.0}
"""Prices of about so much are usual in some currencies; in the others of about 50."""


@dataclass(frozen=True, slots=True)
class Own:
    """Ids of the lines that a case adds to the universe's, by what they are."""

    classes: tuple[str, ...]
    london: tuple[str, ...]
    foreign: tuple[str, ...]
    bonds: tuple[str, ...]
    funds: tuple[str, ...]
    futures: tuple[str, ...]
    targets: tuple[str, ...]
    children: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Company:
    """An invented issuer: sector, sub-sector, country, shares outstanding."""

    issuer: str
    sector: str
    sub_sector: str
    country: str
    shares: float


def rates_of_exchange(rng: np.random.Generator) -> dict[str, float]:
    """Dollars per unit of each currency, a penny beside the pound."""
    fx = {name: float(f"{level * float(rng.uniform(0.94, 1.06)):.4g}") for name, level in _CURRENCIES.items()}
    return {**fx, "USD": 1.0, "GBX": fx["GBP"] / 100}


def own_lines(issuers: Sequence[str], rng: np.random.Generator) -> Own:
    """Ids, none of which can be a ticker of the universe."""
    picks = iter(permuted(issuers, rng))
    numbers = iter(str(number) for number in permuted(np.arange(200, 999).tolist(), rng))
    years = rng.integers(27, 39, size=NOTES).tolist()

    def further(count: int, ending: str) -> tuple[str, ...]:
        return tuple(f"{next(picks)}:{ending}" for _ in range(count))

    def new(count: int, letter: str) -> tuple[str, ...]:
        return tuple(f"{letter}{next(numbers)}" for _ in range(count))

    return Own(
        classes=(*further(CLASSES, "B"), *further(PREFERRED, "P")),
        london=further(LONDON, "L"),
        foreign=new(FOREIGN, "Q"),
        bonds=(
            *(f"{next(picks)}:N{year}" for year in years),
            *further(CONVERTIBLES, "C"),
            *new(GOVERNMENTS, "G"),
        ),
        funds=new(FUNDS, "F"),
        futures=new(2, "X"),
        targets=new(TARGETS, "Q"),
        children=new(CHILDREN, "Q"),
    )


def companies(own: Own, rng: np.random.Generator) -> dict[str, Company]:
    """The invented issuers, by id."""
    codes = [code for code in COUNTRIES if code != "US"]
    places = permuted(codes, rng)[:FOREIGN]
    names = (*own.foreign, *own.targets, *own.children)
    found: dict[str, Company] = {}
    for name, country in zip(names, (*places, *["US"] * (TARGETS + CHILDREN)), strict=True):
        sub_sector = _pick(list(SUB_SECTORS), rng)
        shares = float(rng.integers(30, 900) * 1_000_000)
        found[name] = Company(name, SUB_SECTORS[sub_sector], sub_sector, country, shares)
    return found


def ordinary(issuer: str, sector: str, adv: float, beta: float, rng: np.random.Generator) -> Security:
    """The first line of an issuer of the universe."""
    inside = [name for name, of in SUB_SECTORS.items() if of == sector]
    sub_sector = _pick(inside, rng) if inside else ""
    return Security(issuer, "share", issuer, "USD", cost=cost(rng, 3, 9), sub_sector=sub_sector, adv=adv, beta=beta)


def another(name: str, first: Security, rng: np.random.Generator) -> Security:
    """A further line of an issuer: a class, a preferred share, a depositary receipt quoted in pence."""
    kind, currency = ("receipt", "GBX") if name.endswith(":L") else ("share", "USD")
    if name.endswith(":P"):
        kind = "preferred"
    adv = None if first.adv is None else _round(first.adv * float(rng.uniform(0.05, 0.3)))
    return Security(
        name, kind, first.issuer, currency, 1.0, cost(rng, 6, 14), "US", first.sub_sector, (), adv, beta=first.beta
    )


def invented(company: Company, rng: np.random.Generator) -> tuple[Security, float]:
    """The line of an invented issuer, and about what a unit of it costs in its currency."""
    local = CURRENCIES.get(company.country, "USD")
    receipt = (local == "USD" and company.country != "US") or (bool(rng.integers(2)) and company.country != "US")
    currency = "USD" if receipt or local not in _CURRENCIES else local
    level = _LEVELS.get(currency, 50.0) * float(rng.uniform(0.4, 2.0))
    adv = _round(float(rng.uniform(8e6, 9e7)))
    beta = round(float(rng.uniform(0.6, 1.5)), 2)
    line = Security(
        company.issuer,
        "receipt" if receipt else "share",
        company.issuer,
        currency,
        1.0,
        cost(rng, 8, 20),
        company.country,
        company.sub_sector,
        adv=adv,
        beta=beta,
    )
    return line, level


def bond(name: str, sub_sectors: Mapping[str, str], rng: np.random.Generator) -> Security:
    """A bond of an issuer, a convertible, or a government's."""
    if ":" not in name:
        maturity, rating, kind = round(float(rng.uniform(0.4, 9)), 1), 2, "government_bond"
        return Security(name, kind, "US TREASURY", "USD", 0.01, cost(rng, 1, 4), rating=rating, maturity=maturity)
    issuer = name.split(":")[0]
    kind = "convertible" if name.endswith(":C") else "corporate_bond"
    maturity, rating = round(float(rng.uniform(1.5, 14)), 1), int(rng.integers(4, 13))
    return Security(
        name,
        kind,
        issuer,
        "USD",
        0.01,
        cost(rng, 15, 35),
        sub_sector=sub_sectors[issuer],
        rating=rating,
        maturity=maturity,
    )


def listed_on(
    own: Own, held: Sequence[str], unheld: Sequence[str], rng: np.random.Generator
) -> dict[str, tuple[str, ...]]:
    """Which lines stand on which list; of what is held two lines are restricted, half of the time a fund affiliated."""
    found: dict[str, tuple[str, ...]] = dict.fromkeys(unheld[:4], (RESTRICTED,))
    for name in permuted(held, rng)[:2]:
        found[name] = (RESTRICTED,)
    fund = own.funds[0 if rng.random() < 0.5 else -1]
    for name, word in ((fund, AFFILIATED), (own.foreign[0], UNLISTED), (own.bonds[0], UNLISTED)):
        found[name] = (*found.get(name, ()), word)
    return found


def cost(rng: np.random.Generator, low: float, high: float) -> float:
    """Basis points."""
    return round(float(rng.uniform(low, high)), 1)


def _pick(names: Sequence[str], rng: np.random.Generator) -> str:
    return names[int(rng.integers(len(names)))]


def _round(value: float) -> float:
    return float(f"{value:.4g}")
