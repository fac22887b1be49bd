"""Texts of a case (memo, log of sources, request) and the score: expected utility net of costs and limit penalties.

The memo at `full` states the law. `data` is a dictionary of columns with costs, limits, objective and score.
`described` adds in words how such markets behave and what to check. The last two have no number, formula or functional
form of the generator.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.episode import Disclosure, JsonObject, Prompt, Score, Truth, lowest_raw
from finskillbench.scoring.values import as_number, as_object
from finskillbench.sums import exact_sum
from finskillbench_desk.allocate.cases import AllocationCase
from finskillbench_desk.allocate.laws import BLOCK, Law, family_json
from finskillbench_desk.allocate.sources import (
    ANALYST_SHARE,
    ANALYSTS,
    BAND,
    FACTORS,
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
    book_from_json,
    vendor_of,
)
from finskillbench_desk.engines.trading.net_of_costs import TradingProblem
from finskillbench_desk.share import raw_share, share_of_gain

_LARGEST = 1e3
"""Larger weights are rejected, which keeps their squares finite."""
_FALLEN, _AVOIDED = 0.6, 0.4
"""Relative positions between the optimum (0) and the misread weights (1) that count as fallen or avoided."""
_CONCENTRATED = 0.9
"""Share of a mistake's squared weight change; the names that make it up decide the verdict."""


def effect_covariance_json(doubt: Floats, size: int) -> list[list[list[float]]]:
    """Return the covariance of effects as blocks of `size` consecutive names."""
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
        return Score(0.0, {"weights": "absent, or not numbers by ticker of the universe", "traps": untested}, -math.inf)
    utility, broken = problem.utility(weights), problem.excesses(weights)
    merit = utility - PENALTY * exact_sum(broken.values())
    gain = merit, known["textbook_utility"], known["attainable_utility"]
    value = share_of_gain(*gain)
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
    return Score(value, details, value or lowest_raw(raw_share(*gain)))


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
        "{s}: its scale was reversed at quarter {q}. Up to quarter {p} it ran the other way; "
        "the history was left as it had been delivered.",
        "Quarter {q}: {s} now gives its first choice the highest value. Until quarter {p} its first choice had the "
        "lowest, and the old values have not been restated.",
        "From quarter {q} on {s} has the opposite sign. Values up to quarter {p} are on file as they were first sent, "
        "with the old sign.",
    ),
    "control_reversed": (
        "{s}: its scale was reversed at quarter {q}, and the whole history was restated on the new scale; the column "
        "has one scale throughout.",
        "Quarter {q}: {s} now gives its first choice the highest value. All earlier quarters were sent again, restated "
        "on the new scale, and these values are on file.",
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


def allocation_memo(law: Law) -> str:
    """Write the memo of a disclosed law: the family of worlds, the rules for the data, the utility of a decision."""
    family = family_json(law)
    of_signal, of_analyst, spread = (family[name] for name in ("signal_mean", "analyst_mean", "signal_deviation"))
    return f"""MEMO: HOW SOURCES ARE EVALUATED AND WEIGHTS ARE CHOSEN

1. Returns. The return of a name in a quarter is the sum of three parts: its loadings (table names) times the factor \
returns of the quarter (table factor_returns), the effect of a source where there is one, and noise. The noise is \
normal, independent over names and quarters, with the standard deviation specific_volatility. Loadings, factor returns \
and specific volatilities are given, not to be estimated, so that residuals follow exactly. For the coming quarter \
the factors give the mean equilibrium_return and the covariance loadings * factor_covariance * loadings' plus, for \
each name, the square of specific_volatility; effects of sources are added to both.

2. Effects. There are {SOURCES} sources: {SIGNALS} signals of vendors and {ANALYSTS} analysts. In each of the \
{GROUPS} industries, independently of the others, with probability {law.nothing:.0%} no source has any effect. \
Otherwise exactly one has: an analyst with probability {ANALYST_SHARE:.0%} (each equally likely), else a signal \
(each equally likely). The effect is a return per quarter of size x score for every name of the industry, where the \
score is the source's value divided by its scale. Sources are delivered so that the favourable names have the \
high values (except as in 4 (f)). Effects are of one order of size, since larger ones are traded away: for a signal \
the size is normal with mean {of_signal:.4f}, for an analyst with mean {of_analyst:.4f}, for both with standard \
deviation {spread:.4f}. A source may have an effect in one industry and none in the others.

3. Regimes. Section 2 describes one regime. At the start of every half-year (quarters 1, 3, 5 and so on) after the \
first, a new regime begins in an industry with probability {law.change:.0%}, independently of the past and of other \
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


_DATA = """\
# Memo: the book and its data

The book holds {names} names in {industries} industries. Choose its weights for the coming quarter (quarter {coming}).

## Tables
- `panel`: one row per quarter (1 to {quarters}) and name: quarter, ticker, industry, return_bp (simple return of the
  quarter in basis points), and a column for each of {sources} sources: {signals} signals of vendors (S001, S002, ...)
  and {analysts} analysts (A01, A02, ...). Values in rows of quarter t were known before quarter t began.
- `today`: the values of the sources for the coming quarter.
- `names`: ticker, industry, loadings on the five factors {factors}, specific_volatility (standard deviation per quarter
  of the part of a return that factors do not explain), equilibrium_return (expected return of the coming quarter if no
  source is worth anything), current_weight, benchmark_weight, linear_cost, quadratic_cost. A company's size is its
  benchmark_weight. Industries count as related in these groups: {groups}.
- `factor_returns`: returns of the five factors, by quarter. Loadings times factor returns is the part of a return that
  factors explain. The column size is a loading, not the size of a company.
- `factor_covariance`: covariance of factor returns in a quarter.
- `sources`: source, kind, vendor, since (the quarter in which the vendor was launched or the analyst started; 1 if
  before the record), scale (a value divided by its scale has a standard deviation of about 1; some analysts use large
  numbers).

## How to read the data
- Values from before since were filled in afterwards by people who knew the returns, or belong to a predecessor. They
  are void, and the source had no effect then. The log (documents.notes) states exceptions; there the record is valid
  from quarter 1. Where the log and a table differ, the log is right.
- Deliveries have errors: a unit that changes, a scale that was reversed without restating the history, values that were
  not delivered. An effect belongs to the values as they should have been.
- A source was not delivered for the coming quarter if today repeats its values of quarter {quarters} for every name. It
  then has no effect in the coming quarter, alone or together with another, but its history counts.

## Objective
The greatest expected utility: {utility}. risk_aversion is {aversion:g}. Without sources, V is
loadings * factor_covariance * loadings' + diag(specific_volatility^2).

## Limits
Fully invested, no short positions, no name above {cap:.1%}, every industry within {band:.0%} of its benchmark weight
(and not below 0), one-way turnover at most {turnover:.0%}. A breach is charged {penalty:g} of utility for each unit of
NAV. Give weights with six decimals.

## Score
The score is the expected utility of the book given all that the data show; realised returns do not count. 0 is the
better of the current book and the best book that ignores all sources. 1 is the book of an investor who knows the law by
which sources and returns are connected in this market (not its present state) and has seen the same data. A book that
trades on sources without worth earns less than 0, which counts as 0.
"""

_DESCRIBED = """
## What is known of such markets
Most sources are worth nothing, and some are other sources with noise. What a source knows need not lie in its level: it
may lie in its change, its order, its direction alone or its extremes, and sometimes two series of one vendor say
something only together. A source may work in one industry, in a few related ones, among companies of one size, or
everywhere; usually one or very few work in one place at the same time. What works today need not have worked always:
effects begin and end, in one place or in all at once, fade after they become known, or come and go. Effects that are
alive at one time are of one order of size, because larger ones are traded away; in some markets high values are good by
convention, in others a source may point the wrong way for as long as it works. Large surprises are more frequent in
some markets than in others.

Check, before you trust an effect: how many you have looked at; whether it is there in the part of the record that
matters now; whether it is a copy of another; whether the values were delivered as they should be; how much its estimate
must be shrunk; and what is left after costs.
"""


def allocation_data_memo(book: AllocationBook, disclosure: Disclosure) -> str:
    """Write the memo of a case; the law is not used."""
    text = _DATA.format(
        names=len(book.tickers),
        industries=len(book.groups),
        coming=QUARTERS + 1,
        quarters=QUARTERS,
        sources=SOURCES,
        signals=SIGNALS,
        analysts=ANALYSTS,
        groups="; ".join(", ".join(book.groups[place : place + BLOCK]) for place in range(0, len(book.groups), BLOCK)),
        factors=", ".join(FACTORS),
        utility=UTILITY,
        aversion=RISK_AVERSION,
        cap=MAX_WEIGHT,
        band=BAND,
        turnover=TURNOVER,
        penalty=PENALTY,
    )
    return text + (_DESCRIBED if disclosure == "described" else "")


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
"""Request of a case whose law is disclosed."""
LAW_PROMPT = Prompt(
    "You run a book of 120 names in twelve industries. The memo (documents.memo) explains the data, the limits and how "
    "a book is valued; documents.notes is the log of the sources. "
    f"The table panel holds {QUARTERS} quarters of the values of {SOURCES} sources for each name and of each name's "
    "returns; today holds their current values. How sources and returns are connected in this market is not stated. "
    "Choose the weights of the book for the coming quarter.",
    "Submit a JSON object with weights: ticker to new weight, fractions of NAV with six decimals, summing to 1; a name "
    "left out weighs 0. The score is the book's expected utility given all that the data show (realised returns do not "
    "count): 0 is the better of the current book and the best book that ignores all sources, 1 that of an investor who "
    "knows the law of this market and has seen the data. An answer with a ticker outside the universe, or without "
    "numbers, earns 0.",
)
"""Request of a case whose law is not disclosed."""
