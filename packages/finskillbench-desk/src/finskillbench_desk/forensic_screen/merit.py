"""The expected merit of an answer under the exact posterior, and the score made of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from finskillbench.arrays import Booleans, Floats, Integers
from finskillbench.episode import JsonObject
from finskillbench.scoring.values import array, mapping, number, numbers, objects, text
from finskillbench_desk.forensic_screen.dials import FLOOR, KIND_NAMES
from finskillbench_desk.share import share

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
