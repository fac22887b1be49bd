"""Texts that an agent reads: the memo in varying wordings, notices, and the prompt.

The memo states the family of worlds; every decision input is in the memo, in the tables, or can be estimated.
`rederive` parses it again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import fill

import numpy as np

from finskillbench.episode import Prompt
from finskillbench_desk.trade_over_time.world import ENDS, HOLDS, OUTAGE, TOLERANCE, VENDOR_OF, VENDORS, TradingWorld

_LETTERS = tuple(VENDORS)
_WIDTH = 118

_BOOK = """\
# Desk memo: the overlay book

## 1. Mandate and measure

The book holds swaps on 120 names. Amounts are millions at reference prices; profits and losses are paid out every
week, so that an amount only changes when it is traded, and what trading costs is paid outside of the book too. There
are twelve decisions, one at the start of each week. A
decision changes the book from `holding` to `holding + trade`; that book is kept until the next decision. Each week
counts with

    holding' alpha - (aversion / 2) * active' Sigma active - cost of the trades

where alpha is the expected return of the coming week, active = holding - capital * benchmark_weight, and Sigma is the
covariance of weekly returns of section 2. The weeks are added up without discounting, from the first decision to the
week after the twelfth; what the book is worth beyond that is not counted. Cash neither earns nor costs anything, and
the book may hold more or less than the capital where section 5 does not say otherwise. Short positions are allowed."""

_RISK = """\
## 2. Risk
Sigma = B diag(v^2) B' + diag(s^2). v are the weekly standard deviations in `factors`; s is the column
`specific_volatility` of the table `names`. B has the column `market_beta`, a one for the name's sector, and the columns
size, value and momentum. The part of returns that no signal explains is normal with this Sigma and independent from
week to week. The model is known, not estimated."""

_SIGNALS = """\
## 3. Signals
Thirty signals of ten vendors, in hundredths of a standard deviation: 123 means 1.23. `history` has, for every week
and name, the signals at the start of the week and `next_return`, the return of that week, in thousandths of a percent:
-1500 means -1.5 %. Each signal decays by itself: next week's value is 0.5 ** (1 / half-life) times this week's plus
an independent shock, its variance is one, and nothing else moves it; names of a sector share a part of the shocks,
and some vendors resell what they buy from others, with some noise. Half-lives are 1, 2, 4, 8, 16 or 32 weeks. `signals`
gives those that the house has measured; where it says null, measure it. The expected return of a name is

    alpha = specific_volatility * sum over signals of (coefficient * signal)

with the signal in standard deviations and one coefficient per signal, the same for all names and for all weeks in
which the signal was delivered live and its vendor's edge held. {sound}
The coefficients of the other vendors are exactly zero. A sound vendor's coefficients are independent,
normal with mean zero and standard deviation strength * sqrt(1 - 0.5 ** (1 / half-life)). {strength}

Edges end. {ends} One that holds today holds to the last decision, and one that has ended does not come back. {audit}

A history that a vendor only hands over when it signs is written with the returns known. It has had no part in them,
and nobody can say how much of them has gone into it. {history}"""

_SOUND = (
    "Two or three of the ten vendors are sound, which is to say that they have or had an edge; the one number is as "
    "likely as the other, and any set of so many vendors as any other.",
    "Experience says that two or three of the ten vendors have or had an edge and so are sound, both numbers being "
    "equally likely, and no vendor more likely than another.",
)

_ENDS = (
    "With probability {0} the edge of a sound vendor holds to this day. Else it ended, for its three signals at once, "
    "with the last day of week {1}, each of these as likely as the others and whatever became of other vendors; the "
    "returns of later weeks owe it nothing.",
    "Of a sound vendor's edge we believe with {0} that it still holds; if it does not, the three signals have been "
    "worth nothing since the end of week {1}, equally likely which. Vendors are independent in this.",
)
_AUDIT = (
    "On one of the days to come the house will have found out of some vendors whether their edge holds, and a notice "
    "will say so.",
    "The house is looking into some of the vendors; what it finds out will be in a notice on the day that it does.",
)
_FOUND = (
    "The house has found out whether an edge holds today. It does of these vendors: {0}. It does not of these, which "
    "never had one or have lost it: {1}.",
    "Findings of the house. Edge in force: {0}. No edge in force, never had or lost: {1}.",
)
_TARIFF = (
    "Dealers have changed their tariff: from this decision on every trade of the book costs {0:g} times what table and "
    "memo say.",
    "From this decision on, trading costs {0:g} times the `impact` that the table `names` still shows.",
)
_CALM = (
    "Dealers have announced another tariff for cash equities. Swaps are traded as before.",
    "You may have read of a new tariff of our dealers: it is for clients without a contract such as ours, and changes "
    "nothing for this book.",
)
_NONE = "none of those we looked into"

_ONE_STRENGTH = (
    "The strength is {0}.",
    "For this market the strength has been {0} for as long as we have looked.",
)
_STRENGTHS = (
    "The strength is the same for all sound vendors, but we do not know it: {0} are equally likely.",
    "One strength holds for all sound vendors; it is one of {0}, each as likely as the others.",
)

_LATE = (
    "Vendor {0} delivers live since week {1}. What its columns hold before that week it supplied when it signed.",
    "The live feed of vendor {0} begins with week {1}; its earlier history came with the contract, as a file.",
    "We have taken vendor {0} into the system in week {1} and loaded the back history that it sent along.",
)
_ESCROW = (
    "Vendor {0} is a client since last year only. Its history was deposited week by week with an escrow agent at the "
    "time, and ours is the deposited one.",
    "The contract with vendor {0} is young, its history is not: every week's file was time-stamped by a third party "
    "when it was made, and we have compared them.",
)

_COSTS = (
    "A trade of {0} millions in a name loses `impact` basis points of the amount traded; a trade of another size loses "
    "basis points in proportion to its size. So the cost grows with the square of the trade.",
    "`impact` is stated for a clip of {0} millions: such a trade is done, on its whole amount, at a price that many "
    "basis points worse. Half the clip costs half the basis points, twice the clip twice; sales cost as purchases do.",
)

_PLAN = """\
## 5. What is to come
{capital} {flows} The benchmark is held in proportion to the capital: what is not invested counts as active.
{aversion}
{limit}"""

_CAPITAL = ("The capital is {0} millions at the first decision.", "We begin with a capital of {0} millions.")
_IN = (
    "A subscription of {0} millions arrives before decision {1}.",
    "Before decision {1} a client adds {0} millions.",
)
_OUT = (
    "A redemption of {0} millions is paid before decision {1}.",
    "Before decision {1} a client withdraws {0} millions.",
)
_WITHDRAWN = (
    "The flow of {0} millions that was announced for decision {1} has been called off.",
    "Disregard the {0} millions that treasury's calendar still shows for decision {1}: the client has withdrawn the "
    "notice.",
)
_AVERSION = ("The aversion to risk is {0} per million.", "Risk is charged with an aversion of {0} per million.")
_TIGHTER = (
    "From decision {0} on it is {1}.",
    "It rises to {1} with decision {0} and stays there.",
)
_LIMIT = (
    "From decision {0} on, after the trades of each decision, the holdings of every sector must add up to the capital "
    "times the sum of its benchmark weights. Before that there is no such limit.",
    "Decision {0} is the first that must leave no sector bets: from it on the sum of holdings in each sector, after "
    "trading, is the benchmark's share of the capital. Until then sectors are free.",
)

_PRACTICE = f"""\
## 6. How decisions are taken
`advance` takes the trades of a decision in millions and moves on to the next. `current` then has the holdings before
trading and the newest signals, `news` the rows of the weeks completed since, with the columns of `history`. If the bus
that carries the files fails, `current` shows the last file again until it is mended (`state` says of which week the
signals are) and `news` stays empty; such failures have lasted {OUTAGE} weeks. The missed rows then come at once. An
order that misses a sector's limit by more than {TOLERANCE:g} millions, names an unknown company or is not a number is
refused, and nothing changes; what it misses by less the dealers settle with the cheapest trades.

What is not known today comes in `notices`, on the day of a decision, and `advance` shows it too: findings about
vendors, or a tariff of the dealers that changes what trading costs. A notice holds to the last decision. A tariff is
not to be guessed beforehand: each decision is judged as if the one that is known on its day stayed.

Each decision is judged by what it adds to or takes from the best that could be expected with what was known at that
time, in the book that you had. `advance` trades what you order and nothing else: a flow changes the capital, not the
holdings. Only decisions that are never taken, because the episode ends before, count as holding still in another way:
flows are passed on in proportion to the benchmark, and limits are met with the cheapest trades. Submit the answer once
the twelfth decision is taken, and not before."""


_Phrase = Callable[..., str]
"""Formats one of several phrases."""


def trading_memo(world: TradingWorld, rng: np.random.Generator) -> str:
    """Write the memo of a world; `rng` chooses the wordings."""

    def phrase(phrases: Sequence[str], *values: object) -> str:
        return phrases[int(rng.integers(len(phrases)))].format(*values)

    strengths = [f"{each:g}" for each in world.tier.strengths]
    if len(strengths) == 1:
        strength = phrase(_ONE_STRENGTH, strengths[0])
    else:
        strength = phrase(_STRENGTHS, f"{', '.join(strengths[:-1])} and {strengths[-1]}")
    parts = [
        _BOOK,
        _RISK,
        _SIGNALS.format(
            sound=phrase(_SOUND),
            strength=strength,
            ends=phrase(_ENDS, f"{HOLDS:g}", f"{', '.join(map(str, ENDS[:-1]))} or {ENDS[-1]}"),
            audit=phrase(_AUDIT),
            history=_history(world, phrase),
        ),
        f"## 4. Costs\n{phrase(_COSTS, f'{world.book.clip:g}')}",
        _plan(world, phrase),
        _PRACTICE,
    ]
    return "\n\n".join(map(_filled, parts)) + "\n"


def notices(world: TradingWorld, rng: np.random.Generator) -> list[tuple[int, str]]:
    """Return the notices by decision, counted from 0; `rng` chooses the wordings."""

    def phrase(phrases: Sequence[str], *values: object) -> str:
        return phrases[int(rng.integers(len(phrases)))].format(*values)

    def those(holds: bool) -> str:
        return ", ".join(_LETTERS[vendor] for vendor, found in world.news.verdicts.items() if found is holds) or _NONE

    dated = [(world.news.audit, phrase(_FOUND, those(True), those(False)))]
    if world.news.tariff is not None:
        dated.append((world.news.tariff[0], phrase(_TARIFF, world.news.tariff[1])))
    if world.controls.calm is not None:
        dated.append((world.controls.calm, phrase(_CALM)))
    return sorted(dated)


def _filled(part: str) -> str:
    """Fill the paragraphs of a section, except headings and formulas."""
    heading, _, text = part.partition("\n") if part.startswith("## ") else ("", "", part)
    paragraphs = [each if each.startswith(("    ", "#")) else fill(each, _WIDTH) for each in text.split("\n\n")]
    return "\n".join([heading] * bool(heading) + ["\n\n".join(paragraphs)])


def _history(world: TradingWorld, phrase: _Phrase) -> str:
    """Return the start of a vendor's live delivery, or the reason to trust a young contract's history."""
    late = np.flatnonzero(world.signals.live_from)
    if len(late):
        week = int(world.signals.live_from[late[0]]) + 1
        return phrase(_LATE, _LETTERS[VENDOR_OF[late[0]]], week)
    return "" if world.controls.escrow is None else phrase(_ESCROW, _LETTERS[world.controls.escrow])


def _plan(world: TradingWorld, phrase: _Phrase) -> str:
    plan = world.plan
    flows = [
        phrase(_IN if amount > 0 else _OUT, f"{abs(amount):g}", decision + 1) for decision, amount in plan.flows.items()
    ]
    if world.controls.withdrawn is not None:
        decision, amount = world.controls.withdrawn
        flows.append(phrase(_WITHDRAWN, f"{amount:+g}", decision + 1))
    aversion = phrase(_AVERSION, f"{plan.aversion[0]:g}")
    if plan.aversion[-1] != plan.aversion[0]:
        aversion += " " + phrase(_TIGHTER, plan.limit_from + 1, f"{plan.aversion[-1]:g}")
    return _PLAN.format(
        capital=phrase(_CAPITAL, f"{plan.capital[0]:g}"),
        flows=" ".join(flows),
        aversion=aversion,
        limit=phrase(_LIMIT, plan.limit_from + 1),
    )


PROMPT = Prompt(
    "Run the overlay book of the memo (field `memo`, read it whole) for twelve weeks: decide each week what to trade, "
    "by one call of `advance`. Signals decay at different speeds, most of them are worth nothing or no longer "
    "anything, every trade costs, and some things are only known on the day (field `notices`). `history` is too long "
    "to be read.",
    "After the twelfth decision submit a JSON object with `decisions`, the number of decisions taken. You are judged "
    "by what your decisions lost, each against the best that could be expected from the book that you had (not by what "
    "happens next). 1 is no loss. 0 is what the better of two textbook answers lost: to hold still, with trades only "
    "for cash flows and limits, or to trade each week to the book that would be best for one week if trades were free, "
    "with signals worth what least squares on `history` say. A decision that is not taken holds still.",
)
