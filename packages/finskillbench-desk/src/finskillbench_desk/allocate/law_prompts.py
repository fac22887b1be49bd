"""Texts of a case whose law is not disclosed: the memo at disclosure `data` and `described`, and the request.

`data` is a dictionary of columns with costs, limits, objective and score. `described` adds in words how such markets
behave and what to check. Neither has a number, formula or functional form of the generator.
"""

from __future__ import annotations

from finskillbench.domains.building import Disclosure
from finskillbench.episode import Prompt
from finskillbench_desk.allocate.laws import BLOCK
from finskillbench_desk.allocate.prompts import UTILITY
from finskillbench_desk.allocate.sources import (
    ANALYSTS,
    BAND,
    FACTORS,
    MAX_WEIGHT,
    PENALTY,
    QUARTERS,
    RISK_AVERSION,
    SIGNALS,
    SOURCES,
    TURNOVER,
    AllocationBook,
)

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
