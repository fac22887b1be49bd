"""Texts of a case (memo, log of sources, request) and the score: expected utility net of costs and limit penalties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.episode import JsonObject, Prompt, Score, Truth
from finskillbench.scoring.values import as_number, as_object
from finskillbench.sums import exact_sum
from finskillbench_desk.allocate.posterior import Family
from finskillbench_desk.allocate.sources import (
    ANALYST_SHARE,
    ANALYSTS,
    BAND,
    GROUP_SIZE,
    GROUPS,
    IS_ANALYST,
    MAX_WEIGHT,
    NAMES,
    PENALTY,
    QUARTERS,
    RISK_AVERSION,
    SIGNALS,
    SOURCE_NAMES,
    SOURCES,
    TURNOVER,
    UNIT_FACTOR,
    AllocationBook,
    vendor_of,
)
from finskillbench_desk.allocate.traps import AllocationCase
from finskillbench_desk.engines.trading.net_of_costs import TradingProblem
from finskillbench_desk.share import share_of_gain

_LARGEST = 1e3
"""Larger weights are rejected, which keeps their squares finite."""
_FALLEN, _AVOIDED = 0.6, 0.4
"""Relative positions between the optimum (0) and the misread weights (1) that count as fallen or avoided."""
_CONCENTRATED = 0.9
"""Share of a mistake's squared weight change; the names that make it up decide the verdict."""


def book_json(book: AllocationBook) -> dict[str, Any]:
    """Return the book as lists of numbers, the form in which the truth stores it."""
    values = {field.name: getattr(book, field.name) for field in fields(book)}
    return {name: value.tolist() if isinstance(value, np.ndarray) else list(value) for name, value in values.items()}


def book_from_json(stated: Mapping[str, Any]) -> AllocationBook:
    texts = ("tickers", "groups")
    values: dict[str, Any] = {
        name: tuple(value) if name in texts else np.array(value, dtype=float) for name, value in stated.items()
    }
    return AllocationBook(**values)


def effect_covariance_json(doubt: Floats) -> list[list[list[float]]]:
    """Return the covariance of effects as one block per industry."""
    return [doubt[_block(group), _block(group)].tolist() for group in range(GROUPS)]


def effect_covariance_from_json(stated: list[list[list[float]]]) -> Floats:
    doubt = np.zeros((NAMES, NAMES))
    for group, block in enumerate(stated):
        doubt[_block(group), _block(group)] = block
    return doubt


def _block(group: int) -> slice:
    return slice(group * GROUP_SIZE, (group + 1) * GROUP_SIZE)


def problem_of(verification: JsonObject) -> TradingProblem:
    book = book_from_json(verification["book"])
    return book.problem(
        np.array(verification["effects"]), effect_covariance_from_json(verification["effect_covariance"])
    )


def weights_of(answer: JsonObject, tickers: tuple[str, ...]) -> Floats | None:
    """Return the (n,) weights of an answer; None if a ticker is unknown or a value is not a number."""
    stated_weights = as_object(answer.get("weights"))
    values = {name: as_number(value) for name, value in stated_weights.items()}
    known = set(tickers)
    if not values or any(name not in known or value is None or abs(value) > _LARGEST for name, value in values.items()):
        return None
    return np.array([values.get(ticker) or 0.0 for ticker in tickers])


def certified(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """Score the share of the attainable gain; `traps` in the details holds a verdict for each pitfall."""
    del task_input
    known = truth.verification
    problem = problem_of(known)
    weights = weights_of(answer, tuple(known["book"]["tickers"]))
    if weights is None:
        unknown = dict.fromkeys(known["misread"], "unknown")
        return Score(0.0, {"weights": "absent, or not numbers by ticker of the universe", "traps": unknown})
    utility, broken = problem.utility(weights), problem.excesses(weights)
    merit = utility - PENALTY * exact_sum(broken.values())
    value = share_of_gain(merit, known["textbook_utility"], known["attainable_utility"])
    best = np.array([truth.expected_output["weights"].get(ticker, 0.0) for ticker in known["book"]["tickers"]])
    traps = {name: weights_verdict(weights, best, np.array(wrong)) for name, wrong in known["misread"].items()}
    details = {
        "utility": utility,
        "charged": utility - merit,
        "broken": {name: excess for name, excess in broken.items() if excess > 0},
        "turnover": float(np.abs(weights - problem.held).sum()) / 2,
        "traps": traps,
    }
    return Score(value, details)


def weights_verdict(weights: Floats, best: Floats, wrong: Floats) -> str:
    """Classify weights as "fallen", "avoided" or "unknown", by their position between optimum and mistake."""
    moved = wrong - best
    order = np.argsort(-np.abs(moved))
    heavy = np.cumsum(moved[order] ** 2) <= _CONCENTRATED * float(moved @ moved)
    names = order[: int(heavy.sum()) + 1]
    away, along = (weights - best)[names], moved[names]
    length = float(along @ along)
    part = float(away @ along) / length
    perpendicular = away - part * along
    if float(perpendicular @ perpendicular) > length or _AVOIDED < part < _FALLEN:
        return "unknown"
    return "fallen" if part >= _FALLEN else "avoided"


UTILITY = (
    "m'w - risk_aversion/2 * w'Vw - sum(linear_cost*|w - h|) - sum(quadratic_cost*(w - h)^2), with w the new weights, "
    "h current_weight, m and V mean and covariance of the coming quarter's returns given all that can be known"
)
CONVENTIONS: Mapping[str, str] = {
    "returns": "simple returns of one quarter; return_bp in basis points, everything else in decimals (0.01 is 1 %)",
    "utility": UTILITY,
    "turnover": "one-way: sum(|w - h|)/2",
    "score_of_a_source": "its value divided by its scale in the table sources",
    "timing": "the values in rows of quarter t were known before quarter t began, the return is that of quarter t; "
    "today holds the values for the coming quarter",
    "fully_invested": "sum(w) = 1; a name left out of the answer has weight 0",
    "industry_band": "an industry's weight lies within its benchmark weight +- industry_band, and not below 0",
    "breaking_a_limit": "each unit of NAV by which a limit is broken, summed over budget, names, industries and "
    "turnover, costs price_of_breaking of utility; no breach is worth that",
}

_NOTES: Mapping[str, Sequence[str]] = {
    "reversed": (
        "{s}: its scale was turned round at quarter {q}. Up to quarter {p} low values were the favourable ones; "
        "the history was left as it had been delivered.",
        "Quarter {q}: {s} now gives the best name the highest value. Until quarter {p} the best name had the lowest, "
        "and nobody has restated the old values.",
        "From quarter {q} on {s} has the opposite sign of what it had. Values up to quarter {p} stand as they were "
        "sent out, in the old sense.",
    ),
    "control_reversed": (
        "{s}: its scale was turned round at quarter {q}, and the whole history was restated in the new sense; the "
        "column is of one piece.",
        "Quarter {q}: {s} now gives the best name the highest value. All earlier quarters were sent again, restated on "
        "the new footing, and these are on file.",
        "From quarter {q} on {s} has the opposite sign of what it had; what is on file for earlier quarters was "
        "restated to match.",
    ),
    "control_backfill": (
        "{v} went on sale in quarter {q}, but this desk was its pilot client: every value since quarter 1 is on file "
        "as it arrived, before the quarter it speaks of, and nobody has touched it since.",
        "Archive of {v}: launched in quarter {q}; values before that were delivered to us live during a trial since "
        "quarter 1 and are filed as they came.",
        "We asked {v} about quarters 1 to {p}. They were on trial with us then, in real time; launch in quarter {q} "
        "changed nothing, and the file holds what came at the time.",
    ),
    "control_predecessor": (
        "{s} joined the house in quarter {q} and brought the whole record along: every forecast in the column is by "
        "the same person.",
        "{s} changed desks in quarter {q}. The column has been the work of this one person since quarter 1.",
        "{s}, with us since quarter {q}, wrote the forecasts of quarters 1 to {p} at another house; they were "
        "published there at the time and are the same person's.",
    ),
    "control_unit": (
        "{s}: since quarter {q} it is delivered in another unit, and our data team converts it on arrival; the column "
        "is in one unit throughout.",
        "Quarter {q}: {s} was switched to a feed in another unit. The conversion was checked, and the file shows one "
        "unit from quarter 1 to today.",
    ),
    "control_stale": (
        "{s} for the coming quarter was late and arrived on the last day; what is in today is the new delivery.",
        "The file of {s} for the coming quarter bears an old date stamp. We called: it is the new delivery, and today "
        "holds it.",
    ),
    "chatter": (
        "Quarter {q}: the invoice for {s} was disputed and settled; the data were never in question.",
        "The committee asked for a chart of {s} in quarter {q}. It has no bearing on its use.",
        "{s}: our contact for it changed in quarter {q}; what is delivered did not.",
        "A query of quarter {q} about how {s} covers the smaller names was closed: it covers all of them, as ever.",
    ),
}
"""Templates of log entries: {s} is a source, {v} a vendor, {q} the quarter of the event and {p} the one before it."""


def source_log(rng: np.random.Generator, case: AllocationCase) -> str:
    """Write the log of sources: exceptions to the memo's rules, mixed with irrelevant entries."""
    entries = list(_events(rng, case))
    order = sorted(range(len(entries)), key=lambda place: (entries[place][1], place))
    return "\n".join(f"- {_phrased(rng, *entries[place])}" for place in order)


def _events(rng: np.random.Generator, case: AllocationCase) -> Iterator[tuple[str, int, str]]:
    """Yield kind, quarter (from 0) and source or vendor of every entry."""
    sources, documented = case.world.sources, set[str]()
    for place in case.pitfalls:
        if place.kind in {"backfill", "predecessor"}:
            documented.add(place.where)
        kind = place.name.partition("@")[0]
        if kind in _NOTES:
            for where in place.where.split("+"):
                yield kind, place.quarter, where
    for column in np.flatnonzero((sources.since > 0) & (sources.start == 0)).tolist():
        where = SOURCE_NAMES[column] if IS_ANALYST[column] else vendor_of(column)
        if where not in documented:
            documented.add(where)
            kind = "control_predecessor" if IS_ANALYST[column] else "control_backfill"
            yield kind, int(sources.since[column]), where
    for column in rng.choice(np.flatnonzero(~IS_ANALYST), 4, replace=False).tolist():
        yield "chatter", int(rng.integers(2, QUARTERS)), SOURCE_NAMES[column]


def _phrased(rng: np.random.Generator, kind: str, quarter: int, where: str) -> str:
    phrases = _NOTES[kind]
    return phrases[int(rng.integers(len(phrases)))].format(s=where, v=where, q=quarter + 1, p=quarter)


def allocation_memo(family: Family) -> str:
    """Write the memo: the family of worlds, the rules for the data, and the utility of a decision."""
    signal, analyst = int(np.flatnonzero(~IS_ANALYST)[0]), int(np.flatnonzero(IS_ANALYST)[0])
    spread, of_signal, of_analyst = family.deviation[signal], family.mean[signal], family.mean[analyst]
    return f"""HOUSE MEMO: HOW WE JUDGE SOURCES AND PLACE THE BOOK

1. Returns. The return of a name in a quarter is its loadings (table names) times the factor returns of the \
quarter (table factor_returns), plus the effect of a source where there is one, plus noise that is normal, \
independent over names and quarters, with the standard deviation specific_volatility. Loadings, factor returns and \
specific volatilities are given, not to be estimated, so that residuals follow exactly. For the coming quarter \
expect equilibrium_return from the factors, with the covariance loadings * factor_covariance * loadings' plus the \
squares of specific_volatility; effects of sources come on top.

2. Effects. There are {SOURCES} sources: {SIGNALS} signals of vendors and {ANALYSTS} analysts. In each of the \
{GROUPS} industries, independently of the others, with probability {family.nothing:.0%} no source has any effect. \
Otherwise exactly one has: an analyst with probability {ANALYST_SHARE:.0%} (each equally likely), a signal \
else (each equally likely). The effect is a return per quarter of size x score for every name of the industry, the \
score being the source's value divided by its scale. Sources are delivered so that the favourable names have the \
high values (4 (f) aside), and what works is of one order of size, for larger effects are traded away: for a signal \
the size is normal with mean {of_signal:.4f}, for an analyst with mean {of_analyst:.4f}, for both with standard \
deviation {spread:.4f}. A source may have an effect in one industry and none in the others.

3. Regimes. What is said in 2 holds for a regime. With every half-year (quarters 1, 3, 5 and so on) after the first a \
new regime begins in an industry with probability {family.change:.0%}, whatever went before and whatever other \
industries do. In a new regime everything of 2 is drawn anew: whether a source has an effect, which, and its size. \
The regime of quarter {QUARTERS} goes on in the coming quarter {QUARTERS + 1}. A source picked in a regime that began \
before its valid record has its effect from the first quarter of that record.

4. What counts as evidence. The table sources gives in since the quarter in which a vendor was launched or an \
analyst took the seat. (a) Values before a vendor's launch were filled in afterwards by people who knew what came: \
they are void, and the source had no effect then. (b) An analyst's column before since is a predecessor's: void in the \
same way, and it says nothing of who sits there now. (c) Where the log says otherwise, the log is right, and the \
record is valid from quarter 1. (d) A column whose dispersion over names is, from some quarter on, {UNIT_FACTOR} \
times what it was came in a wrong unit from there, today included: divide by {UNIT_FACTOR}. Nothing else about a \
column's dispersion is an error; some analysts simply speak in large numbers, which their scale takes care of. (e) \
A source whose values in today are those of quarter {QUARTERS} for every name was not delivered: it has no effect \
in the coming quarter, while its history stands. (f) Where the log says that a scale was turned round and the \
history was not restated, values of the quarters before are to be multiplied by -1. Some signals are another \
source with noise: two that agree are not two witnesses, and by 2 at most one of them moves an industry.

5. The decision. Choose weights for the coming quarter with the greatest expected utility: {UTILITY}. What is \
unknown about effects (whether, which, how large, still alive) enters m and V as it stands after the evidence: \
risk_aversion is {RISK_AVERSION:g}. Costs are in the table names. The book is large: trading a name costs more \
than in proportion.

6. Limits. Fully invested, no short positions, no name above {MAX_WEIGHT:.1%}, every industry within {BAND:.0%} of \
its benchmark weight, one-way turnover at most {TURNOVER:.0%}. A book that breaks a limit is charged {PENALTY:g} \
of utility for each unit of NAV by which it does: 0.0001 of NAV too much costs {PENALTY * 1e-4:.5f}. Give weights \
with six decimals.
"""


PROMPT = Prompt(
    "You run a book of 120 names in twelve industries. The house memo (documents.memo) says how returns come about, "
    f"what is known of sources in general, and what a book is worth; the desk's log is documents.notes. {QUARTERS} "
    f"quarters of what {SOURCES} sources said of each name, and of what each name returned, are in the table panel; "
    "what they say now is in today. Most sources are worth nothing, some are copies of others, some were worth "
    "something once, and not all columns are what they seem. Decide where the book should be in the coming quarter.",
    "Submit a JSON object with weights: ticker to new weight, fractions of NAV with six decimals, summing to 1; a name "
    "left out weighs 0. You are judged by the book's expected utility given all that the data and the memo let one "
    "know (not by what happens next): 0 is the better of the current book and the best book that ignores all sources, "
    "1 the best that can be had. A ticker that is not in the universe, or no numbers, earns 0.",
)
