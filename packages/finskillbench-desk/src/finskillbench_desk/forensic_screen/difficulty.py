"""Settings of a screening world (sizes, ratios, kinds of management, tiers), and the expected merit and score of an
answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from finskillbench.arrays import Booleans, Floats, Integers
from finskillbench.episode import JsonObject
from finskillbench.scoring.values import as_array, as_number, as_object, as_text, numbers, objects
from finskillbench_desk.share import share_of_gain

COMPANIES = 200
QUARTERS = 40
WINDOW = 12
"""Management begins, if at all, in one of this many last quarters."""
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
"""Archive industry that is not screened, because its ratios are not comparable."""


class RatioSpec(NamedTuple):
    """Definition of a ratio and centres of its parameters, all for its natural logarithm.

    `level` is the usual ratio; `innovation` and `season` are standard deviations. `growth` is the effect of quarterly
    growth of 1 in log revenue, `lease` that of the lease standard.
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
    RatioSpec("receivables", "receivables_gross", "net_revenue", 0.72, 0.72, 0.050, 0.90, 0.0, 0.10),
    RatioSpec("inventory", "inventory", "cost_of_sales", 0.95, 0.76, 0.055, 0.70, 0.0, 0.12),
    RatioSpec("cost_of_sales", "cost_of_sales", "net_revenue", 0.58, 0.70, 0.018, -0.08, 0.0, 0.03),
    RatioSpec("returns", "returns_and_allowances", "net_revenue", 0.04, 0.62, 0.080, 0.80, 0.0, 0.12),
    RatioSpec("deferral", "deferred_revenue", "net_revenue", 0.22, 0.74, 0.065, -0.70, 0.0, 0.10),
    RatioSpec("allowance", "allowance_for_doubtful_accounts", "receivables_gross", 0.05, 0.78, 0.060, -0.40, 0.0, 0.05),
    RatioSpec("provisions", "provisions", "net_revenue", 0.12, 0.78, 0.065, -0.60, 0.0, 0.06),
    RatioSpec(
        "capitalisation", "development_capitalised", "research_and_development", 0.35, 0.66, 0.075, 0.30, 0.12, 0.10
    ),
    RatioSpec("depreciation", "depreciation", "ppe_gross", 0.022, 0.74, 0.040, 0.20, -0.22, 0.03),
    RatioSpec("leases", "lease_liabilities", "ppe_gross", 0.18, 0.80, 0.045, 0.10, 0.30, 0.03),
)
NAMES = tuple(ratio.name for ratio in RATIOS)
MEASURES = len(RATIOS)


class KindSpec(NamedTuple):
    """One kind of management: a direction by ratio, in standard deviations of innovations before scaling.

    `profiles` are possible time profiles, multiples of the shift from the first managed quarter on.
    """

    name: str
    description: str
    direction: tuple[float, ...]
    profiles: tuple[tuple[float, ...], ...]


KINDS = (
    KindSpec(
        "early_revenue",
        "revenue recognised before it is earned",
        (1.0, 0.0, -0.4, 0.2, -0.8, -0.4, 0.0, 0.0, 0.0, 0.0),
        ((1, 1, 1, 1, 1, 1, 1, 1), (0.6, 0.8, 1, 1, 1, 1, 1, 1), (1, 1, 1, 1, 1, 1, 0.5, 0.5)),
    ),
    KindSpec(
        "channel_stuffing",
        "sales pushed into the channel",
        (0.8, -0.7, 0.0, 0.9, 0.0, -0.3, 0.3, 0.0, 0.0, 0.0),
        ((1, 1, 1, 1, -0.5, -0.5, -0.5, -0.5), (1.2, 1, 1, -0.4, -0.4, -0.4, 1, 1), (1, 1, 1, 1, 1, -1, -1)),
    ),
    KindSpec(
        "capitalised_costs",
        "running costs capitalised",
        (0.0, 0.0, -0.5, 0.0, 0.0, 0.0, -0.2, 1.0, 0.4, 0.0),
        ((0.8,) * 12, (1, 1, 1, 1, 0.8, 0.8, 0.8, 0.8), (0.5, 0.7, 0.9, 1, 1, 1, 1, 1, 1)),
    ),
    KindSpec(
        "inventory_overstatement",
        "inventory overstated and cost of sales understated",
        (0.0, 1.0, -0.9, 0.0, 0.0, 0.0, 0.2, 0.0, 0.0, 0.0),
        ((0.4, 0.6, 0.8, 1, 1, 1, 1, 1), (1, 1, 1, 1, 1, 1, 1), (0.8, 0.8, 0.8, 1.2, 0.8, 0.8, 0.8, 1.2)),
    ),
    KindSpec(
        "cookie_jar_reserves",
        "reserves built in good quarters and released later",
        (0.0, 0.0, 0.3, 0.2, 0.4, 0.6, 1.0, 0.0, 0.0, 0.0),
        ((1, 1, 1, 1, 0, 0, -1, -1), (1.2, 1.2, 1, 0, -1, -1, -1), (1, 1, 1, 1, -0.5, -0.5, -0.5, -0.5)),
    ),
    KindSpec(
        "asset_lives",
        "useful lives and lease terms stretched",
        (0.0, 0.0, -0.3, 0.0, 0.0, 0.0, 0.0, 0.3, -1.0, -0.6),
        ((1.6, 1.4, 1.2, 1, 0.8), (1.8, 1.4, 1, 0.6), (1, 1, 1, 1, 1, 1)),
    ),
)
KIND_NAMES = tuple(kind.name for kind in KINDS)


@dataclass(frozen=True, slots=True)
class ScreeningTier:
    """Difficulty settings of a tier.

    `size` is the length of a kind's mean shift and `spread` the deviation of a case's shift per ratio, in standard
    deviations of innovations. `freedom` are degrees of freedom of volatilities, `trapped` companies per planted trap.
    """

    size: float
    spread: float
    freedom: float
    base_rates: tuple[float, ...]
    unusable: float
    trapped: int


TIERS = {
    "easy": ScreeningTier(1.6, 0.38, 8.0, (0.08, 0.10, 0.12), 0.50, 2),
    "medium": ScreeningTier(1.45, 0.40, 6.0, (0.07, 0.09, 0.11), 0.55, 2),
    "hard": ScreeningTier(1.35, 0.40, 5.0, (0.06, 0.08, 0.10), 0.60, 2),
}
MEAN_PRIOR = 0.6
"""Prior standard deviation of a kind's mean shift per ratio, in standard deviations of innovations."""
LEVEL_DEVIATION = 2.0
"""Standard deviation of a company's level of a log ratio, in standard deviations of its innovations."""
ACQUIRED = 3.0
"""As `LEVEL_DEVIATION`, for the change of level by an acquisition."""
FLOOR = 0.001
"""Probabilities are clipped to [FLOOR, 1 - FLOOR] before they are scored."""


_ROUNDING = 1e-6
"""Accepted rounding of probabilities beyond 0 or 1."""
_MANY = 10
"""Number of companies beyond which a trap concerns the reading of all evidence."""
_SAME = 0.05
"""Difference of log odds below which probabilities count as the same."""
_FAR = 1.5
"""Distance from posterior and misread answer, in multiples of theirs, from which an answer belongs to neither."""
WEIGHTS = {"probabilities": 0.7, "kinds": 0.3}


class ParsedAssessments(NamedTuple):
    """Probabilities (n,), NaN if missing, and kinds (n,), -1 if missing, of an answer."""

    probabilities: Floats
    kinds: Integers


def parse_assessments(answer: JsonObject, companies: list[str]) -> ParsedAssessments:
    """Parse an answer by company; contradictory duplicates and probabilities outside of [0, 1] count as missing."""
    place = {company: number for number, company in enumerate(companies)}
    stated: dict[int, set[tuple[float | None, str | None]]] = {}
    for item in objects(answer.get("assessments")):
        where = place.get(as_text(item.get("company")) or "")
        if where is not None:
            stated.setdefault(where, set()).add((as_number(item.get("probability")), as_text(item.get("kind"))))
    probabilities, kinds = np.full(len(companies), np.nan), np.full(len(companies), -1)
    for where, found in stated.items():
        if len(found) > 1:
            continue
        probability, kind = next(iter(found))
        if probability is not None and -_ROUNDING <= probability <= 1.0 + _ROUNDING:
            probabilities[where] = min(max(probability, 0.0), 1.0)
        if kind in KIND_NAMES:
            kinds[where] = KIND_NAMES.index(kind)
    return ParsedAssessments(probabilities, kinds)


def log_score(q: Floats, p: Floats) -> float:
    """Return the expected sum of logarithmic scores of probabilities q under true probabilities p (Good, 1952)."""
    q = np.clip(q, FLOOR, 1.0 - FLOOR)
    return float(p @ np.log(q) + (1.0 - p) @ np.log1p(-q))


def score_parts(
    parsed: ParsedAssessments, posterior: Floats, base_rate: float, share: Callable[..., float] = share_of_gain
) -> dict[str, float]:
    """Return both score parts by `share`, relative to the best answer that is the same for every company.

    `posterior` (n, K) is by kind; missing probabilities count as `base_rate`.
    """
    p = posterior.sum(axis=1)
    nothing, best = log_score(np.full_like(p, base_rate), p), log_score(p, p)
    answer_score = log_score(np.where(np.isnan(parsed.probabilities), base_rate, parsed.probabilities), p)
    single, most = posterior[:, single_kind(posterior)].sum(), posterior.max(axis=1).sum()
    named = posterior[np.arange(len(p)), parsed.kinds][parsed.kinds >= 0].sum()
    return {
        "probabilities": share(answer_score, nothing, best),
        "kinds": share(float(named), float(single), float(most)),
    }


def single_kind(posterior: Floats) -> int:
    """Return the best single kind to name for all companies, by the posterior; naming it earns 0."""
    return int(posterior.sum(axis=0).argmax())


def probabilities_verdict(
    parsed: ParsedAssessments, posterior: Floats, trap: Mapping[str, Any], companies: list[str], earned: bool
) -> str:
    """Classify an answer as "fallen", "avoided" or "untested" by its log odds between the posterior and the misread
    answer.

    An answer has tested nothing if the companies of the trap have the probability that most companies have, or if it is
    nearer to the posterior but has not `earned` a share of the gain. If a trap concerns many companies, differences in
    boldness and mean are removed first, and an answer may be far from both.
    """
    place = {company: number for number, company in enumerate(companies)}
    fallen = numbers(as_object(trap.get("probabilities")))
    which = np.array([place[company] for company in fallen if company in place], dtype=np.int64)
    stated = parsed.probabilities[which]
    known: Booleans = ~np.isnan(stated)
    if 2 * int(known.sum()) <= len(which):
        return "untested"
    every = _log_odds(parsed.probabilities[~np.isnan(parsed.probabilities)])
    usual = np.median(every)
    unmoved = (np.abs(every - usual) < _SAME).mean() > 0.5
    if unmoved and np.abs(_log_odds(stated[known]) - usual).max() < _SAME:
        return "untested"
    taken_in = np.array([amount for company, amount in fallen.items() if company in place])[known]
    right = _log_odds(posterior.sum(axis=1)[which][known])
    direction = _log_odds(taken_in) - right
    departure = _log_odds(stated[known]) - right
    elsewhere = False
    if len(right) > _MANY:
        direction, departure = _apart(right, direction, departure)
        nearest = min(np.linalg.norm(departure), np.linalg.norm(departure - direction))
        elsewhere = bool(nearest > _FAR * np.linalg.norm(direction))
    length = float(direction @ direction)
    if length == 0.0 or elsewhere:
        return "untested"
    if float(departure @ direction) > length / 2.0:
        return "fallen"
    return "avoided" if earned else "untested"


def _apart(right: Floats, direction: Floats, departure: Floats) -> tuple[Floats, Floats]:
    """Remove what a bolder or more timid reading of the same evidence explains."""
    columns = [right - right.mean()]
    if direction.std() > abs(direction.mean()):
        columns.append(np.ones_like(right))
    basis = np.linalg.qr(np.column_stack(columns))[0]
    both = np.column_stack([direction, departure])
    both = both - basis @ (basis.T @ both)
    return both[:, 0], both[:, 1]


def stored_posterior(verification: JsonObject) -> tuple[list[str], Floats]:
    """Return companies and probabilities (n, K) from the verification of a truth."""
    stored = as_object(verification.get("posterior"))
    rows = [[as_number(value) or 0.0 for value in as_array(row)] for row in stored.values()]
    return list(stored), np.array(rows, dtype=np.float64).reshape(len(rows), len(KIND_NAMES))


def _log_odds(probabilities: Floats) -> Floats:
    clipped = np.clip(probabilities, FLOOR, 1.0 - FLOOR)
    return np.log(clipped) - np.log1p(-clipped)
