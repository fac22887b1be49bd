"""What a fictional company is like, and its daily returns: six factors, its sector, itself, and its earnings news."""

from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from finskillbench.arrays import Floats
from finskillbench.sources.synthetic.calendar import session_ordinals
from finskillbench.sources.synthetic.randomness import Stream, generator
from finskillbench.sources.synthetic.rounding import on_grid, rounded
from finskillbench.sources.synthetic.sectors import PROFILES

_SPREAD = (0.17, 0.18, 0.18, 0.16, 0.16, 0.12)
_TYPICAL_VOLATILITY = 0.20
_SIZE_EFFECT = -0.12  # large companies move less on their own
_NEWS_JUMP = 0.015
_NEWS_DRIFT = 0.00025
_NEWS_SESSIONS = 40


@dataclass(frozen=True, slots=True)
class Traits:
    """A company's constants, drawn once from its own stream.

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
    """The traits of the company at `index` (in symbol order); `relative_size` is its cap over the mean cap."""
    rng = generator(seed, Stream.COMPANY, index)
    ordinals = session_ordinals()
    betas = tuple(
        on_grid(mean + spread * rng.standard_normal(), 3, -0.9, 1.9)
        for mean, spread in zip(PROFILES[sector].betas, _SPREAD, strict=True)
    )
    volatility = _TYPICAL_VOLATILITY * np.exp(0.20 * rng.standard_normal()) * relative_size**_SIZE_EFFECT
    fiscal_month = int(rng.choice([12, 12, 12, 12, 12, 12, 12, 6, 9, 3]))
    # Splits end well before the last year, so that every report a 2025 panel uses is on one basis.
    splits = rng.random() < 0.15
    session = int(np.searchsorted(ordinals, date(2017, 6, 1).toordinal() + int(rng.integers(0, 2500))))
    ratio = float(rng.choice([2.0, 2.0, 3.0, 4.0, 1.5, 10.0]))
    surprises = rounded(np.clip(rng.standard_normal(len(quarters)), -3, 3), 3)
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
    """Daily returns common to a sector, over and above the factors; the grid is 1e-7."""
    out: dict[str, Floats] = {}
    for i, sector in enumerate(sectors):
        rng = generator(seed, Stream.SECTORS, i)
        daily = PROFILES[sector].volatility / 252**0.5
        out[sector] = rounded(_fat_tails(rng, len(multiplier)) * np.sqrt(multiplier) * daily, 7)
    return out


def company_returns(
    seed: int,
    index: int,
    traits: Traits,
    factors: Floats,
    risk_free: Floats,
    sector: Floats,
    multiplier: Floats,
) -> Floats:
    """(T,) simple daily total returns of one company, decimals.

    Every drawn part is rounded to 1e-7 before it is added: mathematical libraries differ between processors in the
    last bits of logarithms, and prices multiply 2,500 returns; on a grid the product is the same everywhere.
    """
    rng = generator(seed, Stream.RETURNS, index)
    daily = traits.idiosyncratic_volatility / 252**0.5
    idiosyncratic = rounded(_fat_tails(rng, len(factors)) * np.sqrt(multiplier) * daily, 7)
    returns: Floats = risk_free + sector + idiosyncratic
    for k, beta in enumerate(traits.betas):
        returns = returns + beta * factors[:, k]
    for surprise, session in zip(traits.surprises, traits.announced, strict=True):
        if 0 <= session < len(returns):
            returns[session] += _NEWS_JUMP * surprise
            returns[session + 1 : session + 1 + _NEWS_SESSIONS] += _NEWS_DRIFT * surprise
    return rounded(np.clip(returns, -0.30, 0.30), 7)


def _fat_tails(rng: np.random.Generator, count: int) -> Floats:
    """Unit-variance Student t with 5 degrees of freedom."""
    return rng.standard_t(5, size=count) * (3 / 5) ** 0.5
