"""The fictional market as one object: what is written to files, and what is true behind it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

import numpy as np

from finskillbench.arrays import SECTORS, Floats
from finskillbench.errors import InputError
from finskillbench.sources.companies.universe import Security, sector_counts
from finskillbench.sources.synthetic.calendar import PROFILES, Stream, generator, on_grid, quarter_ends, sessions
from finskillbench.sources.synthetic.filers.filer import Filer
from finskillbench.sources.synthetic.filers.history import draw_filer
from finskillbench.sources.synthetic.market.companies import (
    Company,
    Traits,
    company_returns,
    draw_traits,
    invent_companies,
    sector_returns,
)
from finskillbench.sources.synthetic.market.factors import Series, draw_factors, draw_macro, volatility_multiplier
from finskillbench.sources.synthetic.market.fundamentals import Fundamentals, draw_fundamentals

MIN_NAMES, MAX_NAMES = 15, 3000
_ANCHOR = date(2025, 6, 30)
_MEAN_CAP = 6e10
_TOP_OF_THIRTY, _LARGEST_SECTOR, _OTHER_SECTOR = 0.108, 0.21, 0.175


@dataclass(frozen=True, slots=True)
class SyntheticMarket:
    """A simulated market with what no data provider publishes.

    Attributes
    ----------
    companies, traits, fundamentals : per name, sorted by symbol.
    days : (T,) sessions.
    factors : (T, 6) daily decimals as published (exactly what drives the returns); risk_free : (T,).
    adjusted_close : (T, n) as printed in the price files (float32 values).
    macro : FRED id -> dates and values.
    """

    seed: int
    companies: tuple[Company, ...]
    traits: tuple[Traits, ...]
    fundamentals: tuple[Fundamentals, ...]
    days: tuple[date, ...]
    factors: Floats
    risk_free: Floats
    adjusted_close: Floats
    macro: Mapping[str, Series]

    @property
    def securities(self) -> tuple[Security, ...]:
        """Security records, sorted by symbol."""
        return tuple(company.security for company in self.companies)

    def draw_filer(self, index: int) -> Filer:
        """The filings of the company at `index` with the statements behind them, drawn anew: nothing is kept."""
        company, sector = self.companies[index], self.companies[index].security.sector
        rank = sum(other.security.sector == sector for other in self.companies[:index])
        return draw_filer(self.seed, index, company, self.traits[index], self.fundamentals[index], rank=rank)


def simulate(seed: int, names: int = 30) -> SyntheticMarket:
    """Draw the fictional market of a seed.

    Parameters
    ----------
    seed : any non-negative integer; another seed is another market with other companies.
    names : 15 to 3,000, split over the sectors in the proportions of the default universe.

    Raises
    ------
    InputError : a negative seed or a size out of range.
    """
    if seed < 0:
        raise InputError(f"seed={seed}: a seed is a non-negative integer")
    if not MIN_NAMES <= names <= MAX_NAMES:
        raise InputError(f"names={names}: a synthetic market has {MIN_NAMES} to {MAX_NAMES} names")
    days = sessions()
    quarters = quarter_ends(date(2015, 1, 1), date(2025, 9, 30))
    counts = sector_counts({sector: profile.count for sector, profile in PROFILES.items()}, names)
    companies = invent_companies(counts, generator(seed, Stream.NAMES))
    sectors = tuple(company.security.sector for company in companies)
    macro = draw_macro(days, generator(seed, Stream.MACRO))
    factors = draw_factors(days, generator(seed, Stream.FACTORS))
    bills = dict(zip(*macro["DGS3MO"], strict=True))
    # The data library prints the bill's daily rate with two decimals of a percent.
    risk_free = np.round([(bills[day] or 0.0) / 252 for day in days], 2) / 100
    multiplier = volatility_multiplier(days)
    caps = _market_caps(sectors, generator(seed, Stream.CAPS))
    common = sector_returns(seed, SECTORS, multiplier)
    traits = tuple(
        draw_traits(seed, i, sector, float(caps[i] / _MEAN_CAP), quarters) for i, sector in enumerate(sectors)
    )
    close = np.empty((len(days), names))
    for i, one in enumerate(traits):
        returns = company_returns(seed, i, one, factors, risk_free, common[sectors[i]], multiplier)
        path = np.cumprod(1 + returns)
        # float32, because that is the precision Yahoo computes adjusted prices in.
        close[:, i] = (path / path[-1] * one.last_price).astype(np.float32)
    anchor = max(i for i, day in enumerate(days) if day <= _ANCHOR)
    fundamentals = tuple(
        draw_fundamentals(
            one,
            close[:, i],
            days,
            quarters,
            on_grid(caps[i] / close[anchor, i], -5),
            generator(seed, Stream.CAPS, i + 1),
        )
        for i, one in enumerate(traits)
    )
    return SyntheticMarket(seed, companies, traits, fundamentals, days, factors, risk_free, close, macro)


def _market_caps(sectors: tuple[str, ...], rng: np.random.Generator) -> Floats:
    """(n,) dollars at mid-2025: lognormal, the largest name near 11 % of 30 and the largest sector near 21 %.

    Those are the proportions of the published universe (spec/data.md); concentration falls with the number of names.
    """
    count = len(sectors)
    weights = np.exp(np.round(0.55 * rng.standard_normal(count), 6))
    top = _TOP_OF_THIRTY * (30 / count) ** 0.35
    labels = np.array(sectors)
    sums = {sector: weights[labels == sector].sum() for sector in dict.fromkeys(sectors)}
    # The largest company leads the largest sector with two names or more: a sector of one cannot be 21 %.
    leader = max((sector for sector in sums if (labels == sector).sum() > 1), key=lambda sector: sums[sector])
    inside = np.flatnonzero(labels == leader)
    giant = int(inside[np.argmax(weights[inside])])
    for _ in range(60):
        weights = weights / weights.sum()
        weights = np.minimum(weights, 0.8 * top)
        weights[giant] = top
        others = labels != leader
        rest = (labels == leader) & (np.arange(count) != giant)
        weights[rest] *= (_LARGEST_SECTOR - top) / weights[rest].sum()
        for sector in sums:
            if sector != leader and (total := weights[labels == sector].sum()) > _OTHER_SECTOR:
                weights[labels == sector] *= _OTHER_SECTOR / total
        weights[others] *= (1 - _LARGEST_SECTOR) / weights[others].sum()
    return np.round(weights * count * _MEAN_CAP, -6)
