"""The risk exposures of a portfolio: factor tilts, sectors, names, concentration, liquidity; measured and ranked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from finskillbench.arrays import FACTORS, Floats
from finskillbench.engines.risk.portfolio import ZERO_WEIGHT, Market, Portfolio, required


class ExposureType(StrEnum):
    """The kinds of exposure, in the order that breaks ties."""

    FACTOR_TILT = "factor_tilt"
    SECTOR_CONCENTRATION = "sector_concentration"
    SINGLE_NAME = "single_name"
    CONCENTRATION = "concentration"
    LIQUIDITY_RISK = "liquidity_risk"


LIST_LENGTH = 5
"""Exposures in the ranked list."""
LEAST_TILT = 0.30
LEAST_SECTOR = 0.30
LEAST_ILLIQUID = 0.05
THRESHOLDS: Mapping[ExposureType, float] = {
    ExposureType.FACTOR_TILT: LEAST_TILT,
    ExposureType.SECTOR_CONCENTRATION: LEAST_SECTOR,
    ExposureType.LIQUIDITY_RISK: LEAST_ILLIQUID,
}
"""Magnitude from which an exposure is listed; the largest sector, the largest name and the HHI always are."""
PARTICIPATION = 0.20
"""Share of a day's volume that a seller can be without moving the price."""
HORIZON = 5
"""Sessions within which a position should be sold."""
VOLUME_WINDOW = 21
"""Sessions over which average daily volume is taken."""
NEUTRAL_BETA = 1.0
"""Market beta of a portfolio without a tilt."""
PORTFOLIO = "portfolio"
"""Subject of an exposure of the whole portfolio."""
_DECIMALS = 12
"""Magnitudes that agree to so many decimals are tied: the order of a sum must not rank them."""

CONVENTIONS: Mapping[str, str] = {
    "weights": "signed fractions of NAV; cash has no beta, sector or name",
    "factor_tilt": f"subject: the factor; magnitude |sum of weight x beta|, for {FACTORS[0]} |sum of weight x beta - "
    f"{NEUTRAL_BETA:g}|, betas by factor_exposures; listed if >= {LEAST_TILT:g}",
    "sector_concentration": "subject: the sector; magnitude its total weight, by sector_mapping; listed: every sector "
    f">= {LEAST_SECTOR:g} and, whatever its weight, the largest",
    "single_name": "subject: the ticker; magnitude |weight|; listed: the largest only, whatever its weight",
    "concentration": f'subject: "{PORTFOLIO}"; magnitude the Herfindahl index, sum of squared weights of the holdings '
    "without cash; always listed",
    "liquidity_risk": f'subject: "{PORTFOLIO}"; magnitude the illiquid share, sum over holdings of '
    f"max(0, |weight| - {HORIZON} x {PARTICIPATION:g} x average_daily_volume_usd / total_nav): what cannot be sold in "
    f"{HORIZON} sessions at {PARTICIPATION:.0%} of volume; listed if >= {LEAST_ILLIQUID:g}",
    "average_daily_volume_usd": f"mean of close x volume over the {VOLUME_WINDOW} sessions up to the date, USD",
    "ranking": f"by magnitude, descending; the first {LIST_LENGTH} are kept; ties in the order of the types above, "
    "then by subject",
}
"""The definitions of the ranked list, as the agent reads them."""


@dataclass(frozen=True, slots=True)
class Exposure:
    """One exposure: its kind, what it is to, how large it is, and both in words."""

    type: ExposureType
    subject: str
    magnitude: float
    detail: str

    @property
    def order(self) -> tuple[float, int, str]:
        """Sort key of the ranked list."""
        return -round(self.magnitude, _DECIMALS), tuple(ExposureType).index(self.type), self.subject


def candidates(portfolio: Portfolio, market: Market) -> tuple[Exposure, ...]:
    """Every exposure that could be listed, whatever its size: six factors, sectors and names held, HHI, illiquid share.

    Liquidity is left out where the market gives no volume.
    """
    found = [_tilt(factor, beta) for factor, beta in factor_exposures(portfolio.weights, market).items()]
    held = np.abs(portfolio.weights) > ZERO_WEIGHT
    sectors = {sector for sector, own in zip(market.sectors, held, strict=True) if own}
    found += [
        Exposure(ExposureType.SECTOR_CONCENTRATION, sector, weight, f"{sector} sector {weight:.1%}")
        for sector, weight in sector_weights(portfolio.weights, market).items()
        if sector in sectors
    ]
    found += [
        Exposure(ExposureType.SINGLE_NAME, ticker, abs(float(weight)), f"{ticker} at {weight:.1%}")
        for ticker, weight, own in zip(market.tickers, portfolio.weights, held, strict=True)
        if own
    ]
    index = hhi(portfolio.weights)
    detail = f"HHI {index:.4f}, five largest names {top(portfolio.weights, 5):.1%}"
    found.append(Exposure(ExposureType.CONCENTRATION, PORTFOLIO, index, detail))
    if market.dollar_volume is not None:
        share, days = illiquid_share(portfolio, market), days_to_liquidate(portfolio, market)
        slowest = market.tickers[int(np.argmax(days))]
        detail = f"{share:.1%} of NAV not sold in {HORIZON} sessions; {slowest} takes {days.max():.1f}"
        found.append(Exposure(ExposureType.LIQUIDITY_RISK, PORTFOLIO, share, detail))
    return tuple(found)


def ranked(portfolio: Portfolio, market: Market, k: int = LIST_LENGTH) -> tuple[Exposure, ...]:
    """The first k of the exposures that are listed, by magnitude."""
    every = candidates(portfolio, market)
    largest = {
        kind: min((one for one in every if one.type is kind), key=lambda one: one.order, default=None)
        for kind in (ExposureType.SECTOR_CONCENTRATION, ExposureType.SINGLE_NAME)
    }
    listed = [
        one
        for one in every
        if one is largest.get(one.type)
        or one.type is ExposureType.CONCENTRATION
        or round(one.magnitude, _DECIMALS) >= THRESHOLDS.get(one.type, np.inf)
    ]
    return tuple(sorted(listed, key=lambda one: one.order)[:k])


def factor_exposures(weights: Floats, market: Market) -> dict[str, float]:
    """Σ w β of each factor, for (n,) weights."""
    return dict(zip(FACTORS, (weights @ market.betas).tolist(), strict=True))


def sector_weights(weights: Floats, market: Market) -> dict[str, float]:
    """Total signed weight of each sector of the universe, for (n,) weights."""
    return dict(zip(market.sector_names, (weights @ market.membership).tolist(), strict=True))


def hhi(weights: Floats) -> float:
    """Herfindahl index Σ w² of (n,) weights."""
    return float(weights @ weights)


def top(weights: Floats, k: int) -> float:
    """Total size of the k largest of (n,) weights."""
    return float(np.sort(np.abs(weights))[::-1][:k].sum())


def portfolio_returns(portfolio: Portfolio, market: Market) -> Floats:
    """(T,) returns per session of today's weights, held constant; cash returns 0."""
    return required(market.returns, "returns") @ portfolio.weights


def days_to_liquidate(portfolio: Portfolio, market: Market) -> Floats:
    """(n,) sessions to sell each position at `PARTICIPATION` of its volume; infinite for a holding nobody trades."""
    sold = PARTICIPATION * required(market.dollar_volume, "average_daily_volume_usd")
    position = np.abs(portfolio.weights) * portfolio.nav
    return np.divide(position, sold, out=np.where(position > 0, np.inf, 0.0), where=sold > 0)


def illiquid_share(portfolio: Portfolio, market: Market) -> float:
    """Fraction of NAV that cannot be sold within `HORIZON` sessions at `PARTICIPATION` of volume."""
    nav = np.array([portfolio.nav])
    return float(
        illiquid_shares(portfolio.weights[None, :], nav, required(market.dollar_volume, "average_daily_volume_usd"))[0]
    )


def illiquid_shares(weights: Floats, nav: Floats, dollar_volume: Floats) -> Floats:
    """(p,) illiquid shares of p portfolios: weights (p, n), nav (p,) and dollar_volume (n,) or (p, n) in USD."""
    sellable = HORIZON * PARTICIPATION * dollar_volume / nav[:, None]
    return np.maximum(np.abs(weights) - sellable, 0.0).sum(axis=1)


def _tilt(factor: str, beta: float) -> Exposure:
    neutral = NEUTRAL_BETA if factor == FACTORS[0] else 0.0
    against = f", {beta - neutral:+.3f} against {neutral:g}" if neutral else ""
    return Exposure(ExposureType.FACTOR_TILT, factor, abs(beta - neutral), f"{factor} beta {beta:+.3f}{against}")
