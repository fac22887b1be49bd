"""Everything of a screening world that can be turned, in one place: sizes, ratios, kinds of management, three tiers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

COMPANIES = 200
QUARTERS = 40
WINDOW = 12
"""Management begins in one of the last so many quarters, if it does."""
CASES = 300
BEFORE, AFTER = 8, 12
"""Quarters of an archived case before its first managed quarter, and from it on."""
INDUSTRIES = (
    "Apparel",
    "Building Products",
    "Electronics",
    "Food",
    "Health Devices",
    "Machinery",
    "Retail",
    "Software",
)
FINANCIALS = "Financials"
"""An industry of the archive that is not screened: its ratios mean other things."""


class RatioDial(NamedTuple):
    """One ratio: its definition and the centre of what is drawn for it, all of its natural logarithm.

    level : the usual ratio; persistence : of the quarterly autoregression; innovation : standard deviation of its
    innovations; growth : change for a quarterly growth of 1 in log revenue; lease : change on adoption of the lease
    standard; season : standard deviation of its seasonal pattern.
    """

    name: str
    numerator: str
    denominator: str
    level: float
    persistence: float
    innovation: float
    growth: float
    lease: float
    season: float


RATIOS = (
    RatioDial("receivables", "receivables_gross", "net_revenue", 0.72, 0.72, 0.050, 0.90, 0.0, 0.10),
    RatioDial("inventory", "inventory", "cost_of_sales", 0.95, 0.76, 0.055, 0.70, 0.0, 0.12),
    RatioDial("cost_of_sales", "cost_of_sales", "net_revenue", 0.58, 0.70, 0.018, -0.08, 0.0, 0.03),
    RatioDial("returns", "returns_and_allowances", "net_revenue", 0.04, 0.62, 0.080, 0.80, 0.0, 0.12),
    RatioDial("deferral", "deferred_revenue", "net_revenue", 0.22, 0.74, 0.065, -0.70, 0.0, 0.10),
    RatioDial("allowance", "allowance_for_doubtful_accounts", "receivables_gross", 0.05, 0.78, 0.060, -0.40, 0.0, 0.05),
    RatioDial("provisions", "provisions", "net_revenue", 0.12, 0.78, 0.065, -0.60, 0.0, 0.06),
    RatioDial(
        "capitalisation", "development_capitalised", "research_and_development", 0.35, 0.66, 0.075, 0.30, 0.12, 0.10
    ),
    RatioDial("depreciation", "depreciation", "ppe_gross", 0.022, 0.74, 0.040, 0.20, -0.22, 0.03),
    RatioDial("leases", "lease_liabilities", "ppe_gross", 0.18, 0.80, 0.045, 0.10, 0.30, 0.03),
)
NAMES = tuple(ratio.name for ratio in RATIOS)
MEASURES = len(RATIOS)


class KindDial(NamedTuple):
    """One kind of management: the direction in which it pushes the ratios' innovations, quarter by quarter.

    direction : by ratio, in standard deviations of innovations, before it is scaled; profiles : the time profiles of
    which a world has one, multiples of the shift from the first managed quarter on.
    """

    name: str
    words: str
    direction: tuple[float, ...]
    profiles: tuple[tuple[float, ...], ...]


KINDS = (
    KindDial(
        "early_revenue",
        "revenue recognised before it is earned",
        (1.0, 0.0, -0.4, 0.2, -0.8, -0.4, 0.0, 0.0, 0.0, 0.0),
        ((1, 1, 1, 1, 1, 1, 1, 1), (0.6, 0.8, 1, 1, 1, 1, 1, 1), (1, 1, 1, 1, 1, 1, 0.5, 0.5)),
    ),
    KindDial(
        "channel_stuffing",
        "sales pushed into the channel",
        (0.8, -0.7, 0.0, 0.9, 0.0, -0.3, 0.3, 0.0, 0.0, 0.0),
        ((1, 1, 1, 1, -0.5, -0.5, -0.5, -0.5), (1.2, 1, 1, -0.4, -0.4, -0.4, 1, 1), (1, 1, 1, 1, 1, -1, -1)),
    ),
    KindDial(
        "capitalised_costs",
        "running costs capitalised",
        (0.0, 0.0, -0.5, 0.0, 0.0, 0.0, -0.2, 1.0, 0.4, 0.0),
        ((0.8,) * 12, (1, 1, 1, 1, 0.8, 0.8, 0.8, 0.8), (0.5, 0.7, 0.9, 1, 1, 1, 1, 1, 1)),
    ),
    KindDial(
        "inventory_overstatement",
        "inventory overstated and cost of sales understated",
        (0.0, 1.0, -0.9, 0.0, 0.0, 0.0, 0.2, 0.0, 0.0, 0.0),
        ((0.4, 0.6, 0.8, 1, 1, 1, 1, 1), (1, 1, 1, 1, 1, 1, 1), (0.8, 0.8, 0.8, 1.2, 0.8, 0.8, 0.8, 1.2)),
    ),
    KindDial(
        "cookie_jar_reserves",
        "reserves built in good quarters and released later",
        (0.0, 0.0, 0.3, 0.2, 0.4, 0.6, 1.0, 0.0, 0.0, 0.0),
        ((1, 1, 1, 1, 0, 0, -1, -1), (1.2, 1.2, 1, 0, -1, -1, -1), (1, 1, 1, 1, -0.5, -0.5, -0.5, -0.5)),
    ),
    KindDial(
        "asset_lives",
        "useful lives and lease terms stretched",
        (0.0, 0.0, -0.3, 0.0, 0.0, 0.0, 0.0, 0.3, -1.0, -0.6),
        ((1.6, 1.4, 1.2, 1, 0.8), (1.8, 1.4, 1, 0.6), (1, 1, 1, 1, 1, 1)),
    ),
)
KIND_NAMES = tuple(kind.name for kind in KINDS)


@dataclass(frozen=True, slots=True)
class Tier:
    """What makes a world harder: weaker shifts, cases that are less alike, companies that are less alike.

    Attributes
    ----------
    size : length of a kind's mean shift, in standard deviations of innovations per quarter.
    spread : standard deviation of a case's shift about its kind's, per ratio and in the same unit.
    freedom : degrees of freedom of companies' volatilities; few means that companies differ much.
    base_rates : shares of managed companies of which a world has one.
    unusable : share of the archive's cases that must not be used.
    trapped : companies per planted trap.
    """

    size: float
    spread: float
    freedom: float
    base_rates: tuple[float, ...]
    unusable: float
    trapped: int


TIERS = {
    "easy": Tier(1.6, 0.38, 8.0, (0.08, 0.10, 0.12), 0.50, 2),
    "medium": Tier(1.45, 0.40, 6.0, (0.07, 0.09, 0.11), 0.55, 2),
    "hard": Tier(1.35, 0.40, 5.0, (0.06, 0.08, 0.10), 0.60, 2),
}
MEAN_PRIOR = 0.6
"""Standard deviation of a kind's mean shift before the archive, per ratio, in standard deviations of innovations."""
OWN_LEVEL = 2.0
"""Standard deviation of a company's own level of a log ratio, in standard deviations of its innovations."""
ACQUIRED = 3.0
"""As `OWN_LEVEL`, of the change of level that an acquisition brings."""
FLOOR = 0.001
"""Probabilities are clipped to [FLOOR, 1 - FLOOR] before they are scored."""
