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


_COLUMNS = {
    "specific": "specific_volatility",
    "prior": "equilibrium_return",
    "current": "current_weight",
    "benchmark": "benchmark_weight",
    "linear": "linear_cost",
    "quadratic": "quadratic_cost",
}
"""Columns of the table of names by the book's field."""


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


def visible_book(task_input: Mapping[str, Any]) -> AllocationBook:
    """Read the book from the tables of a task input."""
    names, factors = task_input["names"].frame, task_input["factor_covariance"]
    columns = {name: names[column].to_numpy() for name, column in _COLUMNS.items()}
    return AllocationBook(
        tickers=tuple(names["ticker"].to_list()),
        groups=tuple(dict.fromkeys(names["industry"].to_list())),
        loadings=names.select(factors["factors"]).to_numpy(),
        factor_covariance=np.array(factors["matrix"]),
        **columns,
    )


def effect_covariance_json(doubt: Floats, size: int = GROUP_SIZE) -> list[list[list[float]]]:
    """Return the covariance of effects as blocks of `size` consecutive names, by default one per industry."""
    blocks = [slice(first, first + size) for first in range(0, NAMES, size)]
    return [doubt[block, block].tolist() for block in blocks]


def effect_covariance_from_json(stated: list[list[list[float]]]) -> Floats:
    doubt, first = np.zeros((NAMES, NAMES)), 0
    for block in stated:
        inside = slice(first, first + len(block))
        doubt[inside, inside] = block
        first += len(block)
    return doubt


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
        untested = dict.fromkeys(known["misread"], "untested")
        return Score(0.0, {"weights": "absent, or not numbers by ticker of the universe", "traps": untested})
    utility, broken = problem.utility(weights), problem.excesses(weights)
    merit = utility - PENALTY * exact_sum(broken.values())
    value = share_of_gain(merit, known["textbook_utility"], known["attainable_utility"])
    best = np.array([truth.expected_output["weights"].get(ticker, 0.0) for ticker in known["book"]["tickers"]])
    traps = {
        name: weights_verdict(weights, best, np.array(wrong), problem.held) for name, wrong in known["misread"].items()
    }
    if value == 0.0:
        traps = {name: "untested" if verdict == "avoided" else verdict for name, verdict in traps.items()}
    details = {
        "utility": utility,
        "charged": utility - merit,
        "broken": {name: excess for name, excess in broken.items() if excess > 0},
        "turnover": float(np.abs(weights - problem.held).sum()) / 2,
        "traps": traps,
    }
    return Score(value, details)


def weights_verdict(weights: Floats, best: Floats, wrong: Floats, held: Floats) -> str:
    """Classify weights as "fallen", "avoided" or "untested", by their position between optimum and mistake.

    Weights nearer to the current book `held` than to the mistake have not fallen for it.
    """
    moved = wrong - best
    order = np.argsort(-np.abs(moved))
    heavy = np.cumsum(moved[order] ** 2) <= _CONCENTRATED * float(moved @ moved)
    names = order[: int(heavy.sum()) + 1]
    away, along = (weights - best)[names], moved[names]
    length = float(along @ along)
    part = float(away @ along) / length
    perpendicular = away - part * along
    if float(perpendicular @ perpendicular) > length or _AVOIDED < part < _FALLEN:
        return "untested"
    if part < _FALLEN:
        return "avoided"
    to_wrong, to_held = (float(np.square(weights - other)[names].sum()) for other in (wrong, held))
    return "fallen" if to_wrong < to_held else "untested"


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
    "industry_band": "an industry's weight is within its benchmark weight +- industry_band, and not below 0",
    "breaking_a_limit": "each unit of NAV by which a limit is broken, summed over budget, names, industries and "
    "turnover, costs price_of_breaking of utility; no breach is worth that",
}

_NOTES: Mapping[str, Sequence[str]] = {
    "reversed": (
        "{s}: its scale was reversed at quarter {q}. Up to quarter {p} low values were the favourable ones; "
        "the history was left as it had been delivered.",
        "Quarter {q}: {s} now gives the best name the highest value. Until quarter {p} the best name had the lowest, "
        "and the old values have not been restated.",
        "From quarter {q} on {s} has the opposite sign. Values up to quarter {p} are on file as they were first sent, "
        "with the old sign.",
    ),
    "control_reversed": (
        "{s}: its scale was reversed at quarter {q}, and the whole history was restated on the new scale; the column "
        "has one scale throughout.",
        "Quarter {q}: {s} now gives the best name the highest value. All earlier quarters were sent again, restated on "
        "the new scale, and these values are on file.",
        "From quarter {q} on {s} has the opposite sign; what is on file for earlier quarters was restated to match.",
    ),
    "control_backfill": (
        "{v} went on sale in quarter {q}, but our firm was its pilot client: every value since quarter 1 is on file "
        "as it arrived, before the quarter it applies to, and has not been changed since.",
        "Archive of {v}: launched in quarter {q}; values before that were delivered to us live during a trial since "
        "quarter 1 and are on file as received.",
        "We checked quarters 1 to {p} of {v}. We had it on trial then, in real time; the launch in quarter {q} "
        "changed nothing, and the file holds the values received at the time.",
    ),
    "control_predecessor": (
        "{s} joined the firm in quarter {q} and transferred the whole record: every forecast in the column is by the "
        "same person.",
        "{s} changed teams in quarter {q}. The column has been the work of this one person since quarter 1.",
        "{s}, with us since quarter {q}, wrote the forecasts of quarters 1 to {p} at another firm; they were "
        "published there at the time and are by the same person.",
    ),
    "control_unit": (
        "{s}: since quarter {q} it has been delivered in another unit, and our data team converts it on arrival; the "
        "column is in one unit throughout.",
        "Quarter {q}: {s} was switched to a feed in another unit. The conversion was checked, and the file has one "
        "unit from quarter 1 to today.",
    ),
    "control_stale": (
        "{s} for the coming quarter was late and arrived on the last day; today holds the new delivery.",
        "The file of {s} for the coming quarter has an old date stamp. We called: it is the new delivery, and today "
        "holds it.",
    ),
    "chatter": (
        "Quarter {q}: the invoice for {s} was disputed and settled; the data were never in question.",
        "The committee requested a chart of {s} in quarter {q}. This does not change how the source is used.",
        "{s}: our contact for it changed in quarter {q}; the data delivered did not.",
        "A query of quarter {q} about how {s} covers the smaller names was closed: it covers all of them, as before.",
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


def family_json(family: Family) -> dict[str, float]:
    """Return the numbers of the family that the memo states."""
    signal, analyst = int(np.flatnonzero(~IS_ANALYST)[0]), int(np.flatnonzero(IS_ANALYST)[0])
    return {
        "nothing": family.nothing,
        "analyst_share": ANALYST_SHARE,
        "signal_mean": float(family.mean[signal]),
        "signal_deviation": float(family.deviation[signal]),
        "analyst_mean": float(family.mean[analyst]),
        "analyst_deviation": float(family.deviation[analyst]),
        "change": family.change,
    }


def allocation_memo(family: Family) -> str:
    """Write the memo: the family of worlds, the rules for the data, and the utility of a decision."""
    signal, analyst = int(np.flatnonzero(~IS_ANALYST)[0]), int(np.flatnonzero(IS_ANALYST)[0])
    spread, of_signal, of_analyst = family.deviation[signal], family.mean[signal], family.mean[analyst]
    return f"""MEMO: HOW SOURCES ARE EVALUATED AND WEIGHTS ARE CHOSEN

1. Returns. The return of a name in a quarter is the sum of three parts: its loadings (table names) times the factor \
returns of the quarter (table factor_returns), the effect of a source where there is one, and noise. The noise is \
normal, independent over names and quarters, with the standard deviation specific_volatility. Loadings, factor returns \
and specific volatilities are given, not to be estimated, so that residuals follow exactly. For the coming quarter \
the factors give the mean equilibrium_return and the covariance loadings * factor_covariance * loadings' plus, for \
each name, the square of specific_volatility; effects of sources are added to both.

2. Effects. There are {SOURCES} sources: {SIGNALS} signals of vendors and {ANALYSTS} analysts. In each of the \
{GROUPS} industries, independently of the others, with probability {family.nothing:.0%} no source has any effect. \
Otherwise exactly one has: an analyst with probability {ANALYST_SHARE:.0%} (each equally likely), else a signal \
(each equally likely). The effect is a return per quarter of size x score for every name of the industry, where the \
score is the source's value divided by its scale. Sources are delivered so that the favourable names have the \
high values (except as in 4 (f)). Effects are of one order of size, since larger ones are traded away: for a signal \
the size is normal with mean {of_signal:.4f}, for an analyst with mean {of_analyst:.4f}, for both with standard \
deviation {spread:.4f}. A source may have an effect in one industry and none in the others.

3. Regimes. Section 2 describes one regime. At the start of every half-year (quarters 1, 3, 5 and so on) after the \
first, a new regime begins in an industry with probability {family.change:.0%}, independently of the past and of other \
industries. A new regime draws everything in 2 again: whether a source has an effect, which one, and its size. \
The regime of quarter {QUARTERS} continues in the coming quarter {QUARTERS + 1}. A source drawn in a regime that began \
before its valid record has its effect from the first quarter of that record.

4. Evidence. The column since of the table sources is the quarter in which a vendor was launched or an \
analyst started. (a) Values before a vendor's launch were filled in afterwards by people who knew the returns: \
they are void, and the source had no effect then. (b) An analyst's column before since is a predecessor's: it is void \
in the same way and is no evidence about the present analyst. (c) Where the log states otherwise, the log is right, \
and the record is valid from quarter 1. (d) If the dispersion of a column over names is, from some quarter on, \
{UNIT_FACTOR} times as large as before, its values from there on, today included, are in a wrong unit: divide them by \
{UNIT_FACTOR}. Nothing else about a column's dispersion is an error; some analysts simply use large numbers, and \
their scale corrects for that. (e) \
A source whose values in today are those of quarter {QUARTERS} for every name was not delivered: it has no effect \
in the coming quarter, but its history still counts. (f) Where the log states that a scale or sign was reversed and \
the history was not restated, multiply the values of the earlier quarters by -1. Some signals are another \
source with noise: two that agree are not independent evidence, and by 2 at most one of them has an effect in an \
industry.

5. The decision. Choose weights for the coming quarter with the greatest expected utility: {UTILITY}. The \
uncertainty about effects (whether, which, how large, whether still in force) enters m and V as it is given the \
evidence. risk_aversion is {RISK_AVERSION:g}. Costs are in the table names. The book is large: the cost of trading a \
name grows more than in proportion to the trade.

6. Limits. Fully invested, no short positions, no name above {MAX_WEIGHT:.1%}, every industry within {BAND:.0%} of \
its benchmark weight, one-way turnover at most {TURNOVER:.0%}. A book that breaks a limit is charged {PENALTY:g} \
of utility for each unit of NAV by which it does: 0.0001 of NAV too much costs {PENALTY * 1e-4:.5f}. Give weights \
with six decimals.
"""


PROMPT = Prompt(
    "You run a book of 120 names in twelve industries. The memo (documents.memo) states how returns arise, what is "
    "known of sources in general, and how a book is valued; documents.notes is the log of the sources. "
    f"The table panel holds {QUARTERS} quarters of the values of {SOURCES} sources for each name and of each name's "
    "returns; today holds their current values. Most sources are worth nothing, some are copies of others, some once "
    "had an effect and have lost it, and not all columns are what they seem. Choose the weights of the book for the "
    "coming quarter.",
    "Submit a JSON object with weights: ticker to new weight, fractions of NAV with six decimals, summing to 1; a name "
    "left out weighs 0. The score is the book's expected utility given all the information in the data and the memo "
    "(realised returns do not count): 0 is the better of the current book and the best book that ignores all sources, "
    "1 the best attainable. An answer with a ticker outside the universe, or without numbers, earns 0.",
)
