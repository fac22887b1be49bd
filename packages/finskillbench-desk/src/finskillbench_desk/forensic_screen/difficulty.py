"""Everything of a screening world that can be turned, in one place: sizes, ratios, kinds of management, three tiers.

The expected merit of an answer under the exact posterior, and the score made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from finskillbench.arrays import Booleans, Floats, Integers
from finskillbench.episode import JsonObject
from finskillbench.scoring.values import array, mapping, number, numbers, objects, text
from finskillbench_desk.share import share

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


_ROUNDING = 1e-6
"""So far beyond 0 or 1 a number is still a probability whose arithmetic rounded."""
_MANY = 10
"""Companies that a trap concerns from which on it is about how evidence is read, and not about a place."""
WEIGHTS = {"probabilities": 0.7, "kinds": 0.3}


class Judged(NamedTuple):
    """What an answer says: probabilities (n,), NaN where there is none, and kinds (n,), -1 where there is none."""

    probabilities: Floats
    kinds: Integers


def judged(answer: JsonObject, companies: list[str]) -> Judged:
    """Read an answer by company; one that comes twice with different values, or beyond [0, 1], says nothing."""
    place = {company: number for number, company in enumerate(companies)}
    said: dict[int, set[tuple[float | None, str | None]]] = {}
    for item in objects(answer.get("assessments")):
        where = place.get(text(item.get("company")) or "")
        if where is not None:
            said.setdefault(where, set()).add((number(item.get("probability")), text(item.get("kind"))))
    probabilities, kinds = np.full(len(companies), np.nan), np.full(len(companies), -1)
    for where, found in said.items():
        if len(found) > 1:
            continue
        probability, kind = next(iter(found))
        if probability is not None and -_ROUNDING <= probability <= 1.0 + _ROUNDING:
            probabilities[where] = min(max(probability, 0.0), 1.0)
        if kind in KIND_NAMES:
            kinds[where] = KIND_NAMES.index(kind)
    return Judged(probabilities, kinds)


def log_score(q: Floats, p: Floats) -> float:
    """Expected sum over companies of the logarithmic score of probabilities q where p are right (Good, 1952)."""
    q = np.clip(q, FLOOR, 1.0 - FLOOR)
    return float(p @ np.log(q) + (1.0 - p) @ np.log1p(-q))


def parts(said: Judged, posterior: Floats, base_rate: float) -> dict[str, float]:
    """Both parts in [0, 1]: the share of what is attainable beyond an answer that says the same of every company.

    Parameters
    ----------
    posterior : (n, K) probability of each kind of management.
    base_rate : what every company has where nothing is learnt, and one without an answer.
    """
    p = posterior.sum(axis=1)
    nothing, best = log_score(np.full_like(p, base_rate), p), log_score(p, p)
    given = log_score(np.where(np.isnan(said.probabilities), base_rate, said.probabilities), p)
    single, most = posterior[:, single_kind(posterior)].sum(), posterior.max(axis=1).sum()
    named = posterior[np.arange(len(p)), said.kinds][said.kinds >= 0].sum()
    return {
        "probabilities": share(given, nothing, best),
        "kinds": share(float(named), float(single), float(most)),
    }


def single_kind(posterior: Floats) -> int:
    """The kind that earns most where one is named for all: no constant tells companies apart, so it is worth nothing.

    It is taken from the posterior and not from the archive, whose frequencies say nothing of today's.
    """
    return int(posterior.sum(axis=0).argmax())


def verdict(said: Judged, posterior: Floats, trap: Mapping[str, Any], companies: list[str]) -> str:
    """Whether probabilities lie nearer to the posterior or to the answer of somebody who falls for a trap.

    Measured in log odds along the line between the two, over the companies that the trap concerns. Where it concerns
    many, how boldly or timidly an answer takes the evidence as a whole is no matter of the trap, nor is its mean,
    unless the trap is mostly one of the mean.
    """
    place = {company: number for number, company in enumerate(companies)}
    fallen = numbers(mapping(trap.get("probabilities")))
    which = np.array([place[company] for company in fallen if company in place], dtype=np.int64)
    given = said.probabilities[which]
    known: Booleans = ~np.isnan(given)
    if 2 * int(known.sum()) <= len(which):
        return "unknown"
    taken_in = np.array([amount for company, amount in fallen.items() if company in place])[known]
    right = _log_odds(posterior.sum(axis=1)[which][known])
    direction = _log_odds(taken_in) - right
    departure = _log_odds(given[known]) - right
    if len(right) > _MANY:
        direction, departure = _apart(right, direction, departure)
    length = float(direction @ direction)
    if length == 0.0:
        return "unknown"
    return "fallen" if float(departure @ direction) > length / 2.0 else "avoided"


def _apart(right: Floats, direction: Floats, departure: Floats) -> tuple[Floats, Floats]:
    """Direction and departure without what a bolder or more timid reading of the same evidence explains."""
    columns = [right - right.mean()]
    if direction.std() > abs(direction.mean()):
        columns.append(np.ones_like(right))
    basis = np.linalg.qr(np.column_stack(columns))[0]
    both = np.column_stack([direction, departure])
    both = both - basis @ (basis.T @ both)
    return both[:, 0], both[:, 1]


def stored_posterior(verification: JsonObject) -> tuple[list[str], Floats]:
    """Companies and probabilities (n, K) as the verification of a truth has them."""
    stored = mapping(verification.get("posterior"))
    rows = [[number(value) or 0.0 for value in array(row)] for row in stored.values()]
    return list(stored), np.array(rows, dtype=np.float64).reshape(len(rows), len(KIND_NAMES))


def _log_odds(probabilities: Floats) -> Floats:
    clipped = np.clip(probabilities, FLOOR, 1.0 - FLOOR)
    return np.log(clipped) - np.log1p(-clipped)
