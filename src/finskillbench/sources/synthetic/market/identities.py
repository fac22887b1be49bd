"""Invented companies: names, tickers and identifiers that belong to nobody, in the formats of the real ones.

Tickers have five letters and no S&P 500 company but Alphabet's class A does; the last letter is none of those that
mark funds, foreign shares, receipts, rights, units or warrants. CIKs start with 99, CUSIP issuers end in the 99x range
that the CUSIP bureau leaves to users, and both carry valid check digits.
"""

import re
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from finskillbench.arrays import SECTORS
from finskillbench.sources.companies.universe import Security
from finskillbench.sources.synthetic.sectors import PROFILES

_syllables = re.compile(r"[A-Za-z]+").findall
_FIRST = _syllables(
    "Va Bel Cor Dra Fen Gal Hes Jor Kel Lum Mor Nyx Or Pel Quin Ros Sol Tar Ul Ver Wex Yor Zan Bri Cal "
    "Dov Eld Fru Gry Hol Ist Jun Kry Lod Mav Nel Olv Pry Ryn Syl Tov Urb Vex Wil Zer"
)
_SECOND = _syllables("do mi ra ste vo lu ne qui sha tri gro fe ba ki wyn ca hu jo pa zo")
_THIRD = _syllables("na ria dex lon mar tis ven gen dra lis mund rok sen vik tan")
_SPECIAL_LAST = frozenset("FPQUVWXYR")
_REAL = frozenset(("GOOGL", "GOOG", "BRK-B", "BF-B"))

_CITIES = ("Albany, New York", "Boise, Idaho", "Dayton, Ohio", "Macon, Georgia", "Salem, Oregon", "Tulsa, Oklahoma")


@dataclass(frozen=True, slots=True)
class Company:
    """An invented company: its security record, headquarters and year of founding."""

    security: Security
    headquarters: str
    founded: int


def invent_companies(counts: dict[str, int], rng: np.random.Generator) -> tuple[Company, ...]:
    """Companies by sector, as many as `counts` says, sorted by symbol; tickers, CIKs and CUSIPs are unique."""
    taken: set[str] = set(_REAL)
    companies: list[Company] = []
    number = 0
    for sector in SECTORS:
        for _ in range(counts.get(sector, 0)):
            word, ticker = _word(taken, rng)
            business = PROFILES[sector].business
            ending, sub_sector = business[int(rng.integers(len(business)))]
            number += int(rng.integers(1, 11))
            cusip = _cusip(number)
            added = date(1990, 1, 1) + timedelta(days=int(rng.integers(0, 9000)))
            security = Security(
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
            companies.append(Company(security, city, added.year - int(rng.integers(2, 60))))
    return tuple(sorted(companies, key=lambda c: c.security.symbol))


def _word(taken: set[str], rng: np.random.Generator) -> tuple[str, str]:
    """An unused invented word and its ticker: four leading letters and a later one."""
    while True:
        parts = [p[int(rng.integers(len(p)))] for p in (_FIRST, _SECOND, _THIRD)]
        word = "".join(parts)
        letters = word.upper()
        if letters in taken:
            continue
        for last in letters[4:]:
            ticker = letters[:4] + last
            if last not in _SPECIAL_LAST and ticker not in taken:
                taken.update((ticker, letters))
                return word, ticker


def _cusip(number: int) -> str:
    """A CUSIP of the range reserved for users (issuer xxx99y), with its check digit."""
    alphabet = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ"
    thousands, last = divmod(number, len(alphabet))
    stem = f"{thousands % 1000:03d}99{alphabet[last]}{10 + thousands // 1000:02d}"
    return stem + cusip_check_digit(stem)


def cusip_check_digit(stem: str) -> str:
    """The ninth character of a CUSIP: digits of the values, every second one doubled, to the next ten (ANSI X9.6)."""
    total = 0
    for position, symbol in enumerate(stem):
        value = int(symbol, 36) * (1 + position % 2)
        total += value // 10 + value % 10
    return str(-total % 10)


def isin_of(cusip: str) -> str:
    """US + CUSIP + Luhn check digit over the letters' two-digit values (ISO 6166)."""
    digits = "".join(str(int(symbol, 36)) for symbol in f"US{cusip}")
    total = 0
    for position, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 - position % 2)
        total += value // 10 + value % 10
    return f"US{cusip}{-total % 10}"
