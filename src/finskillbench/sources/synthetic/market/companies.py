"""Invented companies with identifiers in real formats, their traits and their daily returns.

Tickers have five characters like no S&P 500 company but Alphabet's class A, without reserved endings (funds, rights,
warrants). CIKs start with 99; CUSIP issuers end in the 99x range reserved for users, with valid check digits.
"""

import re
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from finskillbench.arrays import SECTORS, Floats
from finskillbench.sources.companies.universe import SecurityRecord
from finskillbench.sources.synthetic.calendar import (
    PROFILES,
    SyntheticStream,
    generator,
    on_grid,
    round_to,
    session_ordinals,
)
from finskillbench.splits import is_reserved

_SPREAD = (0.17, 0.18, 0.18, 0.16, 0.16, 0.12)
_TYPICAL_VOLATILITY = 0.20
_SIZE_EFFECT = -0.12  # large companies have less idiosyncratic volatility
_NEWS_JUMP = 0.015
_NEWS_DRIFT = 0.00025
_NEWS_SESSIONS = 40


@dataclass(frozen=True, slots=True)
class Traits:
    """Constants of a company, drawn from a separate stream.

    betas : six loadings, three decimals. idiosyncratic_volatility : annual, calm times.
    surprises : one standardised earnings surprise per quarter; announced : session index of each, -1 if outside.
    """

    betas: tuple[float, ...]
    idiosyncratic_volatility: float
    fiscal_month: int
    price_earnings: float
    net_margin: float
    return_on_equity: float
    dividend_yield: float
    share_growth: float
    last_price: float
    turnover: float
    split: tuple[int, float] | None
    surprises: Floats
    announced: NDArray[np.int64]


def draw_traits(seed: int, index: int, sector: str, relative_size: float, quarters: tuple[date, ...]) -> Traits:
    """Draw the traits of the company at `index` (in symbol order); `relative_size` is its cap over the mean."""
    rng = generator(seed, SyntheticStream.COMPANY, index)
    ordinals = session_ordinals()
    betas = tuple(
        on_grid(mean + spread * rng.standard_normal(), 3, -0.9, 1.9)
        for mean, spread in zip(PROFILES[sector].betas, _SPREAD, strict=True)
    )
    volatility = _TYPICAL_VOLATILITY * np.exp(0.20 * rng.standard_normal()) * relative_size**_SIZE_EFFECT
    fiscal_month = int(rng.choice([12, 12, 12, 12, 12, 12, 12, 6, 9, 3]))
    # Splits end well before the last year, so that all reports of a 2025 panel are on one basis.
    splits = rng.random() < 0.15
    session = int(np.searchsorted(ordinals, date(2017, 6, 1).toordinal() + int(rng.integers(0, 2500))))
    ratio = float(rng.choice([2.0, 2.0, 3.0, 4.0, 1.5, 10.0]))
    surprises = round_to(np.clip(rng.standard_normal(len(quarters)), -3, 3), 3)
    lag = rng.integers(18, 41, size=len(quarters))
    news = np.array([(end + timedelta(days=int(d))).toordinal() for end, d in zip(quarters, lag, strict=True)])
    announced = np.where(news < ordinals[0], -1, np.searchsorted(ordinals, news))
    return Traits(
        betas=betas,
        idiosyncratic_volatility=on_grid(volatility, 4, 0.18, 0.35),
        fiscal_month=fiscal_month,
        price_earnings=on_grid(rng.uniform(14, 24), 2),
        net_margin=on_grid(rng.uniform(0.06, 0.22), 3),
        return_on_equity=on_grid(rng.uniform(0.10, 0.30), 3),
        dividend_yield=on_grid(rng.uniform(0.008, 0.032), 4) if rng.random() < 0.7 else 0.0,
        share_growth=on_grid(rng.uniform(-0.020, 0.012), 4),
        last_price=on_grid(110 * np.exp(0.6 * rng.standard_normal()), 2, 18, 900),
        turnover=on_grid(0.006 * np.exp(0.4 * rng.standard_normal()), 5),
        split=(session, ratio) if splits else None,
        surprises=surprises,
        announced=announced,
    )


def sector_returns(seed: int, sectors: tuple[str, ...], multiplier: Floats) -> dict[str, Floats]:
    """Draw daily returns of sectors in excess of the factors, on a grid of 1e-7."""
    out: dict[str, Floats] = {}
    for i, sector in enumerate(sectors):
        rng = generator(seed, SyntheticStream.SECTORS, i)
        daily = PROFILES[sector].volatility / 252**0.5
        out[sector] = round_to(_fat_tails(rng, len(multiplier)) * np.sqrt(multiplier) * daily, 7)
    return out


def company_returns(
    seed: int, index: int, traits: Traits, factors: Floats, risk_free: Floats, sector: Floats, multiplier: Floats
) -> Floats:
    """(T,) simple daily total returns of one company, decimals.

    Parts are rounded to 1e-7 before addition, because libraries differ in the last bits of logarithms.
    """
    rng = generator(seed, SyntheticStream.RETURNS, index)
    daily = traits.idiosyncratic_volatility / 252**0.5
    idiosyncratic = round_to(_fat_tails(rng, len(factors)) * np.sqrt(multiplier) * daily, 7)
    returns: Floats = risk_free + sector + idiosyncratic
    for k, beta in enumerate(traits.betas):
        returns = returns + beta * factors[:, k]
    for surprise, session in zip(traits.surprises, traits.announced, strict=True):
        if 0 <= session < len(returns):
            returns[session] += _NEWS_JUMP * surprise
            returns[session + 1 : session + 1 + _NEWS_SESSIONS] += _NEWS_DRIFT * surprise
    return round_to(np.clip(returns, -0.30, 0.30), 7)


def _fat_tails(rng: np.random.Generator, count: int) -> Floats:
    return rng.standard_t(5, size=count) * (3 / 5) ** 0.5


_syllables = re.compile(r"[A-Za-z]+").findall
_FIRST_SYLLABLES = _syllables(
    "Va Bel Cor Dra Fen Gal Hes Jor Kel Lum Mor Nyx Or Pel Quin Ros Sol Tar Ul Ver Wex Yor Zan Bri Cal "
    "Dov Eld Fru Gry Hol Ist Jun Kry Lod Mav Nel Olv Pry Ryn Syl Tov Urb Vex Wil Zer"
)
_MIDDLE_SYLLABLES = _syllables("do mi ra ste vo lu ne qui sha tri gro fe ba ki wyn ca hu jo pa zo")
_LAST_SYLLABLES = _syllables("na ria dex lon mar tis ven gen dra lis mund rok sen vik tan")
_SPECIAL_LAST = frozenset("FPQUVWXYR")
_REAL = frozenset(("GOOGL", "GOOG", "BRK-B", "BF-B"))

_CITIES = ("Albany, New York", "Boise, Idaho", "Dayton, Ohio", "Macon, Georgia", "Salem, Oregon", "Tulsa, Oklahoma")


@dataclass(frozen=True, slots=True)
class SyntheticCompany:
    """An invented company: security record, headquarters and founding year."""

    security: SecurityRecord
    headquarters: str
    founded: int


def invent_companies(
    counts: dict[str, int], rng: np.random.Generator, *, training: bool = False
) -> tuple[SyntheticCompany, ...]:
    """Invent `counts` companies by sector, sorted by symbol, with unique tickers, CIKs and CUSIPs.

    A market for `training` has no company that is reserved for tests.
    """
    taken: set[str] = set(_REAL)
    companies: list[SyntheticCompany] = []
    number = 0
    for sector in SECTORS:
        for _ in range(counts.get(sector, 0)):
            word, ticker = _word(taken, rng, training=training)
            business = PROFILES[sector].business
            ending, sub_sector = business[int(rng.integers(len(business)))]
            number += int(rng.integers(1, 11))
            cusip = _cusip(number)
            added = date(1990, 1, 1) + timedelta(days=int(rng.integers(0, 9000)))
            security = SecurityRecord(
                symbol=ticker,
                name=f"{word} {ending} Inc.",
                cik=f"99{10_000_000 + number * 17:08d}",
                isin=isin_of(cusip),
                cusip=cusip,
                sector=sector,
                sub_sector=sub_sector,
                exchange=("NYSE", "Nasdaq")[int(rng.integers(2))],
                country="US",
                date_added=added,
            )
            city = _CITIES[int(rng.integers(len(_CITIES)))]
            companies.append(SyntheticCompany(security, city, added.year - int(rng.integers(2, 60))))
    return tuple(sorted(companies, key=lambda c: c.security.symbol))


def _word(taken: set[str], rng: np.random.Generator, *, training: bool) -> tuple[str, str]:
    """Draw an unused word and its ticker: four leading characters and a later one."""
    while True:
        parts = [p[int(rng.integers(len(p)))] for p in (_FIRST_SYLLABLES, _MIDDLE_SYLLABLES, _LAST_SYLLABLES)]
        word = "".join(parts)
        letters = word.upper()
        if letters in taken:
            continue
        for last in letters[4:]:
            ticker = letters[:4] + last
            if last not in _SPECIAL_LAST and ticker not in taken and not (training and is_reserved(ticker)):
                taken.update((ticker, letters))
                return word, ticker


def _cusip(number: int) -> str:
    """Return a CUSIP of the range reserved for users (issuer xxx99y), with its check digit."""
    alphabet = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ"
    thousands, last = divmod(number, len(alphabet))
    stem = f"{thousands % 1000:03d}99{alphabet[last]}{10 + thousands // 1000:02d}"
    return stem + cusip_check_digit(stem)


def cusip_check_digit(stem: str) -> str:
    """Return the ninth character of a CUSIP: digit sums, every second value doubled, to the next ten (ANSI X9.6)."""
    total = 0
    for position, symbol in enumerate(stem):
        value = int(symbol, 36) * (1 + position % 2)
        total += value // 10 + value % 10
    return str(-total % 10)


def isin_of(cusip: str) -> str:
    """Return the ISIN: US, CUSIP, and Luhn check digit over two-digit values of characters (ISO 6166)."""
    digits = "".join(str(int(symbol, 36)) for symbol in f"US{cusip}")
    total = 0
    for position, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 - position % 2)
        total += value // 10 + value % 10
    return f"US{cusip}{-total % 10}"
