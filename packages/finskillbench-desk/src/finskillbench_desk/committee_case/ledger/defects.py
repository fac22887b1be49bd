"""Traps in quotes and in what the vendor lists, and controls that look like them; each changes what a case shows.

What is true follows from the valuation policy in `words`; every function returns the ledger as shown and what it did.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date

import numpy as np

from finskillbench_desk.committee_case.ledger.nouns import Ledger, Planted

STALE = "stale_price"
UNIT = "currency_unit"
SECTOR = "overwritten_sector"
SHARES = "miscounted_shares"
REPEATS = 5
"""Sessions over which a close is repeated."""
_MOVED = 0.03
"""Least relative move that a stale price hides."""
_THOUSAND = 1000.0


def stale(ledger: Ledger, where: str, rng: np.random.Generator) -> tuple[Ledger, Planted]:
    """The vendor repeats an old close while units change hands; the second source has gone on."""
    quotes = ledger.quotes[where]
    move = float(rng.uniform(_MOVED, 0.09)) * (1 if rng.random() < 0.5 else -1)
    closes = quotes.closes.copy()
    closes[-REPEATS:] = np.round(closes[-1] / (1 + move), 4)
    seen = replace(quotes, closes=closes)
    units = ledger.units(where)
    planted = Planted(STALE, where, True, "price", quotes.second * units, float(closes[-1]) * units)
    return ledger.with_quotes(where, seen), planted


def suspended(ledger: Ledger, where: str, rng: np.random.Generator) -> tuple[Ledger, Planted]:
    """A close repeats because nothing was traded; the second source has an indication that is no price."""
    quotes = ledger.quotes[where]
    closes, volumes = quotes.closes.copy(), quotes.volumes.copy()
    closes[-REPEATS:], volumes[-REPEATS:] = closes[-1], 0.0
    volumes[-REPEATS] = np.round(float(rng.lognormal(12, 0.5)))  # the day of the last trade
    second = round(float(closes[-1]) * (1 + float(rng.uniform(0.03, 0.09)) * (1 if rng.random() < 0.5 else -1)), 4)
    units = ledger.units(where)
    planted = Planted(STALE, where, False, "price", float(closes[-1]) * units, second * units)
    return ledger.with_quotes(where, replace(quotes, closes=closes, volumes=volumes, second=second)), planted


def wrong_unit(ledger: Ledger, where: str, rng: np.random.Generator) -> tuple[Ledger, Planted]:
    """A line quoted in pence that the vendor's reference calls one in pounds."""
    del rng
    close, right = float(ledger.quotes[where].closes[-1]), ledger.units(where)
    line = replace(ledger.securities[where], currency="GBP")
    seen = replace(ledger, securities={**ledger.securities, where: line})
    return seen, Planted(UNIT, where, True, "price", close * right, close * seen.units(where))


def other_unit(ledger: Ledger, where: str, rng: np.random.Generator) -> tuple[Ledger, Planted]:
    """A line quoted in pence, as the vendor says; it is the second source that calls the same number pounds."""
    del rng
    quotes = ledger.quotes[where]
    close = float(quotes.closes[-1])
    planted = Planted(UNIT, where, False, "price", close * ledger.units(where), close * ledger.fx["GBP"])
    return ledger.with_quotes(where, replace(quotes, second_currency="GBP")), planted


def _another(ledger: Ledger, sector: str, rng: np.random.Generator) -> str:
    others = sorted({name for _, name in ledger.benchmark.values()} - {sector})
    return others[int(rng.integers(len(others)))]


def overwritten(ledger: Ledger, where: str, rng: np.random.Generator) -> tuple[Ledger, Planted]:
    """The vendor has changed a sector that the index has not."""
    right = ledger.benchmark[where][1]
    wrong = _another(ledger, right, rng)
    row = replace(ledger.listed[where], sector=wrong, sector_before=right, sector_since=_lately(ledger, rng))
    seen = replace(ledger, listed={**ledger.listed, where: row})
    return seen, Planted(SECTOR, where, True, "sector", right, wrong)


def reclassified(ledger: Ledger, where: str, rng: np.random.Generator) -> tuple[Ledger, Planted]:
    """The vendor has changed a sector, and the index has too: the company is in another one now."""
    right = ledger.benchmark[where][1]
    before = _another(ledger, right, rng)
    row = replace(ledger.listed[where], sector_before=before, sector_since=_lately(ledger, rng))
    seen = replace(ledger, listed={**ledger.listed, where: row})
    return seen, Planted(SECTOR, where, False, "sector", right, before)


def miscounted(ledger: Ledger, where: str, rng: np.random.Generator) -> tuple[Ledger, Planted]:
    """The vendor's new count of shares is a thousandth of what the cover of the last filing says."""
    del rng
    right = ledger.listed[where].shares
    row = replace(ledger.listed[where], shares=round(right / _THOUSAND), shares_before=right)
    seen = replace(ledger, listed={**ledger.listed, where: row})
    return seen, Planted(SHARES, where, True, "shares", right, row.shares)


def mended(ledger: Ledger, where: str, rng: np.random.Generator) -> tuple[Ledger, Planted]:
    """The vendor's count has changed a thousandfold: to what the filing says."""
    del rng
    right = ledger.listed[where].shares
    row = replace(ledger.listed[where], shares_before=round(right / _THOUSAND))
    seen = replace(ledger, listed={**ledger.listed, where: row})
    return seen, Planted(SHARES, where, False, "shares", right, row.shares_before)


def _lately(ledger: Ledger, rng: np.random.Generator) -> date:
    return ledger.sessions[-int(rng.integers(4, 15))]


Plant = Callable[[Ledger, str, np.random.Generator], tuple[Ledger, Planted]]
IN_QUOTES: dict[str, tuple[Plant, Plant]] = {
    STALE: (stale, suspended),
    UNIT: (wrong_unit, other_unit),
    SECTOR: (overwritten, reclassified),
    SHARES: (miscounted, mended),
}
"""Kind to what plants the trap, and what plants the control."""
