"""Ranked risk exposures against the benchmark, by standalone risk.

Tilts, sectors, names, concentration and illiquidity have different units. They are ranked by the loss, a fraction of
NAV, at one annual standard deviation of each alone; the usual figure is kept as evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from finskillbench.arrays import FACTORS, Floats
from finskillbench.engines.risk.portfolio import ZERO_WEIGHT, MarketSnapshot, Portfolio, require_field


class ExposureType(StrEnum):
    """Exposure types, in tie-breaking order."""

    FACTOR_TILT = "factor_tilt"
    SECTOR_CONCENTRATION = "sector_concentration"
    SINGLE_NAME = "single_name"
    CONCENTRATION = "concentration"
    LIQUIDITY_RISK = "liquidity_risk"


LIST_LENGTH = 5
"""Maximum length of the ranked list."""
MATERIAL: Mapping[ExposureType, float] = {
    ExposureType.FACTOR_TILT: 0.02,
    ExposureType.SECTOR_CONCENTRATION: 0.04,
    ExposureType.SINGLE_NAME: 0.035,
    ExposureType.CONCENTRATION: 0.07,
    ExposureType.LIQUIDITY_RISK: 0.03,
}
"""Minimum standalone loss of a listed exposure, a fraction of NAV per year."""
LEAST_HHI = 0.06
"""Minimum Herfindahl index of a concentrated portfolio: sixteen equal names are just above."""
PARTICIPATION = 0.20
"""Maximum share of daily volume without price impact."""
HORIZON = 5
"""Liquidation horizon in sessions."""
VOLUME_WINDOW = 21
"""Sessions of the average daily volume."""
NEUTRAL_BETA = 1.0
PORTFOLIO = "portfolio"
_DECIMALS = 12
"""Decimals to which magnitudes are tied, so that summation order cannot rank them."""

CONVENTIONS: Mapping[str, str] = {
    "weights": "signed fractions of NAV; cash has no beta, sector, name or risk; w the weights, b the "
    "benchmark_weights, a = w - b the active weights of all names of the universe, S the covariance_matrix, annualised",
    "magnitude": "stand-alone risk: the loss against the benchmark (for liquidity_risk, on what is held), a "
    "fraction of NAV, at one standard deviation of a year's return of this exposure alone",
    "factor_tilt": "subject: the factor; magnitude |sum of a_i beta_i| x factor_volatility, betas by factor_exposures; "
    "evidence: sum of w_i beta_i, signed",
    "sector_concentration": "subject: the sector; magnitude sqrt(v'S v), v the active weights of the sector's "
    "names and 0 elsewhere, for a sector whose weight exceeds the benchmark's; evidence: its total weight, by "
    "sector_mapping",
    "single_name": "subject: the ticker; magnitude |a_i| sqrt(S_ii), for a name held; evidence: its weight, signed",
    "concentration": f'subject: "{PORTFOLIO}"; magnitude sqrt(sum of a_i^2 S_ii), the active risk if no two names '
    "were correlated; evidence: the Herfindahl index, sum of squared weights of the holdings without cash",
    "liquidity_risk": f'subject: "{PORTFOLIO}"; magnitude sqrt(u\'S u), u_i the part of w_i, with its sign, beyond '
    f"{HORIZON} x {PARTICIPATION:g} x average_daily_volume_usd / total_nav: what cannot be sold in {HORIZON} sessions "
    f"at {PARTICIPATION:.0%} of volume; evidence: the illiquid share, sum of |u_i|",
    "listed": "an exposure is material, and listed, if its magnitude is at least: "
    + ", ".join(f"{kind} {least:g}" for kind, least in MATERIAL.items())
    + f"; concentration only with a Herfindahl index of at least {LEAST_HHI:g}",
    "factor_volatility": "annualised standard deviation of each factor's daily returns over the 252 sessions up to the "
    "date",
    "average_daily_volume_usd": f"mean of close x volume over the {VOLUME_WINDOW} sessions up to the date, USD",
    "ranking": f"by magnitude, descending; the first {LIST_LENGTH} are kept; ties in the order of the types above, "
    "then by subject",
}
"""Definitions of the ranked list, shown to agents."""


@dataclass(frozen=True, slots=True)
class Exposure:
    """One exposure: type, subject, standalone risk, conventional figure, and description."""

    type: ExposureType
    subject: str
    magnitude: float
    evidence: float
    detail: str

    @property
    def order(self) -> tuple[float, int, str]:
        return -round(self.magnitude, _DECIMALS), tuple(ExposureType).index(self.type), self.subject

    @property
    def material(self) -> bool:
        spread = self.type is ExposureType.CONCENTRATION and round(self.evidence, _DECIMALS) < LEAST_HHI
        return round(self.magnitude, _DECIMALS) >= MATERIAL[self.type] and not spread


def candidates(portfolio: Portfolio, market: MarketSnapshot) -> tuple[Exposure, ...]:
    """Return all exposures, of any size; raise `InputError` for missing market data."""
    return tuple(_candidates(portfolio, market))


def _candidates(portfolio: Portfolio, market: MarketSnapshot) -> Iterator[Exposure]:
    weights, risk = portfolio.weights, require_field(market.risk, "covariance_matrix")
    active = weights - require_field(market.benchmark, "benchmark_weights")
    volatility = require_field(market.factor_volatility, "factor_volatility")
    for factor, tilt, beta, spread in zip(
        FACTORS, active @ market.betas, weights @ market.betas, volatility, strict=True
    ):
        description = f"{factor} beta {beta:+.3f}, {tilt:+.3f} against the benchmark"
        yield _exposure(ExposureType.FACTOR_TILT, factor, abs(tilt) * spread, beta, description)
    for sector, members in zip(market.sector_names, market.membership.T, strict=True):
        if active @ members > 0:
            weight = float(weights @ members)
            risk_alone = float(np.sqrt(risk.variance(active * members)))
            description = f"{sector} sector {weight:.1%}, {active @ members:+.1%} against the benchmark"
            yield _exposure(ExposureType.SECTOR_CONCENTRATION, sector, risk_alone, weight, description)
    deviations = np.sqrt(risk.variances)
    for place in np.flatnonzero(np.abs(weights) > ZERO_WEIGHT):
        ticker, weight = market.tickers[place], float(weights[place])
        description = f"{ticker} at {weight:.1%}, {active[place]:+.1%} against the benchmark"
        yield _exposure(ExposureType.SINGLE_NAME, ticker, abs(active[place]) * deviations[place], weight, description)
    description = f"HHI {hhi(weights):.4f}, five largest names {top(weights, 5):.1%}"
    unrelated = float(np.linalg.norm(active * deviations))
    yield _exposure(ExposureType.CONCENTRATION, PORTFOLIO, unrelated, hhi(weights), description)
    left, days = unsold(portfolio, market), days_to_liquidate(portfolio, market)
    share = float(np.abs(left).sum())
    description = f"{share:.1%} of NAV not sold in {HORIZON} sessions; {market.tickers[int(np.argmax(days))]} takes "
    description += f"{days.max():.1f} sessions"
    yield _exposure(ExposureType.LIQUIDITY_RISK, PORTFOLIO, float(np.sqrt(risk.variance(left))), share, description)


def _exposure(kind: ExposureType, subject: str, magnitude: float, evidence: float, description: str) -> Exposure:
    detail = f"{description}: {magnitude:.2%} of NAV at one standard deviation"
    return Exposure(kind, subject, float(magnitude), float(evidence), detail)


def ranked(portfolio: Portfolio, market: MarketSnapshot, k: int = LIST_LENGTH) -> tuple[Exposure, ...]:
    """Return the k largest material exposures."""
    listed = (one for one in candidates(portfolio, market) if one.material)
    return tuple(sorted(listed, key=lambda one: one.order)[:k])


def factor_betas(weights: Floats, market: MarketSnapshot) -> dict[str, float]:
    """Return Σ w β by factor, for (n,) weights."""
    return dict(zip(FACTORS, (weights @ market.betas).tolist(), strict=True))


def weights_by_sector(weights: Floats, market: MarketSnapshot) -> dict[str, float]:
    """Return signed sector weights, for (n,) weights."""
    return dict(zip(market.sector_names, (weights @ market.membership).tolist(), strict=True))


def hhi(weights: Floats) -> float:
    """Return the Herfindahl index Σ w² of (n,) weights."""
    return float(weights @ weights)


def top(weights: Floats, k: int) -> float:
    """Return the total size of the k largest of (n,) weights."""
    return float(np.sort(np.abs(weights))[::-1][:k].sum())


def days_to_liquidate(portfolio: Portfolio, market: MarketSnapshot) -> Floats:
    """(n,) Sessions to sell each position at `PARTICIPATION` of its volume; infinite without volume."""
    sold = PARTICIPATION * require_field(market.dollar_volume, "average_daily_volume_usd")
    position = np.abs(portfolio.weights) * portfolio.nav
    return np.divide(position, sold, out=np.where(position > 0, np.inf, 0.0), where=sold > 0)


def unsold(portfolio: Portfolio, market: MarketSnapshot) -> Floats:
    """(n,) Signed weights that cannot be sold within `HORIZON` sessions at `PARTICIPATION` of volume."""
    volume = require_field(market.dollar_volume, "average_daily_volume_usd")
    sellable = HORIZON * PARTICIPATION * volume / portfolio.nav
    return np.sign(portfolio.weights) * np.maximum(np.abs(portfolio.weights) - sellable, 0.0)


def illiquid_share(portfolio: Portfolio, market: MarketSnapshot) -> float:
    """Return the fraction of NAV that cannot be sold within `HORIZON` sessions at `PARTICIPATION` of volume."""
    volume = require_field(market.dollar_volume, "average_daily_volume_usd")
    return float(illiquid_shares(portfolio.weights[None, :], np.array([portfolio.nav]), volume)[0])


def illiquid_shares(weights: Floats, nav: Floats, dollar_volume: Floats) -> Floats:
    """(p,) Illiquid shares of p portfolios: weights (p, n), nav (p,) and dollar_volume (n,) or (p, n) in USD."""
    sellable = HORIZON * PARTICIPATION * dollar_volume / nav[:, None]
    return np.maximum(np.abs(weights) - sellable, 0.0).sum(axis=1)
