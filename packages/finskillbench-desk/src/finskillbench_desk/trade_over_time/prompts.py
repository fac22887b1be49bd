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
# Memo: the overlay book

## 1. Mandate and measure

The book holds swaps on 120 names. Amounts are millions at reference prices; profits and losses are paid out every
week, so that an amount only changes when it is traded; trading costs are also paid outside of the book. There
are twelve decisions, one at the start of each week. A
decision changes the book from `holding` to `holding + trade`; that book is kept until the next decision. Each week
contributes

    holding' alpha - (aversion / 2) * active' Sigma active - cost of the trades

where alpha is the expected return of the coming week, active = holding - capital * benchmark_weight, and Sigma is the
covariance of weekly returns of section 2. The weeks are summed without discounting, from the first decision to the
week after the twelfth; the value of the book after that does not count. Cash neither earns nor costs anything, and
the book may hold more or less than the capital unless section 5 sets a limit. Short positions are allowed."""

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
-1500 means -1.5 %. Each signal has variance one and decays by itself: next week's value is 0.5 ** (1 / half-life)
times this week's plus an independent shock, and nothing else moves it. Names of a sector share a part of the shocks,
and some vendors resell signals of others with some noise. Half-lives are 1, 2, 4, 8, 16 or 32 weeks. `signals`
gives those that have been measured; where it has null, measure the half-life. The expected return of a name is

    alpha = specific_volatility * sum over signals of (coefficient * signal)

with the signal in standard deviations and one coefficient per signal, the same for all names and for all weeks in
which the signal was delivered live and its vendor's edge held. {sound}
The coefficients of the other vendors are exactly zero. A sound vendor's coefficients are independent,
normal with mean zero and standard deviation strength * sqrt(1 - 0.5 ** (1 / half-life)). {strength}

Edges end. {ends} An edge that holds today holds to the last decision, and one that has ended does not return. {audit}

A history that a vendor supplies only when it signs was written with the returns known. The returns do not depend on
it, and how far it was fitted to them is unknown. {history}"""

_SOUND = (
    "Two or three of the ten vendors are sound: they have or had an edge. Both numbers are equally likely, and so are "
    "all sets of that many vendors.",
    "From experience, two or three of the ten vendors have or had an edge and so are sound. Both numbers are equally "
    "likely, and no vendor is more likely than another.",
)

_ENDS = (
    "With probability {0} the edge of a sound vendor still holds today. Otherwise it ended, for its three signals at "
    "once, with the last day of week {1}, each equally likely and independently of other vendors; it had no effect on "
    "the returns of later weeks.",
    "With probability {0} a sound vendor's edge still holds; if it does not, its three signals have been worth nothing "
    "since the end of week {1}, each equally likely. Vendors are independent in this.",
)
_AUDIT = (
    "On one of the coming days the firm will know for some vendors whether their edge holds, and a notice will state "
    "it.",
    "The firm is examining some of the vendors; a notice will give the findings on the day they become known.",
)
_FOUND = (
    "The firm has examined whether edges hold today. They hold for these vendors: {0}. They do not hold for these, "
    "which never had an edge or have lost it: {1}.",
    "Findings of the firm. Edge in force: {0}. No edge in force, never had or lost: {1}.",
)
_TARIFF = (
    "Dealers have changed their tariff: from this decision on every trade of the book costs {0:g} times the "
    "amount that follows from table and memo.",
    "From this decision on, trading costs {0:g} times the `impact` that the table `names` still shows.",
)
_CALM = (
    "Dealers have announced another tariff for cash equities. Swaps are traded as before.",
    "You may have read of a new tariff of our dealers: it is for clients without a contract such as ours, and changes "
    "nothing for this book.",
)
_NONE = "none of those examined"

_ONE_STRENGTH = ("The strength is {0}.", "In this market the strength has been {0} for as long as we have measured it.")
_STRENGTHS = (
    "The strength is the same for all sound vendors, but we do not know it: {0} are equally likely.",
    "One strength holds for all sound vendors; it is one of {0}, each as likely as the others.",
)

_LATE = (
    "Vendor {0} has delivered live since week {1}. It supplied the earlier weeks of its columns when it signed.",
    "The live feed of vendor {0} begins with week {1}; its earlier history came with the contract, as a file.",
    "We added vendor {0} to the system in week {1} and loaded the earlier history that it supplied then.",
)
_ESCROW = (
    "We have used vendor {0} only since last year. Its history was deposited week by week with an escrow agent at the "
    "time, and our copy is the deposited one.",
    "The contract with vendor {0} is recent, but its history is not: a third party time-stamped every week's file when "
    "it was made, and we have compared the files.",
)

_COSTS = (
    "A trade of {0} millions in a name loses `impact` basis points of the amount traded; a trade of another size loses "
    "basis points in proportion to its size. So the cost grows with the square of the trade.",
    "`impact` is stated for a clip of {0} millions: such a trade is done, on its whole amount, at a price that many "
    "basis points worse. Half the clip costs half the basis points, twice the clip twice; sales cost as purchases do.",
)

_PLAN = """\
## 5. Capital, risk aversion and limits
{capital} {flows} The benchmark is held in proportion to the capital: capital that is not invested counts as active.
{aversion}
{limit}"""

_CAPITAL = ("The capital is {0} millions at the first decision.", "We begin with a capital of {0} millions.")
_IN = ("A subscription of {0} millions arrives before decision {1}.", "Before decision {1} a client adds {0} millions.")
_OUT = (
    "A redemption of {0} millions is paid before decision {1}.",
    "Before decision {1} a client withdraws {0} millions.",
)
_WITHDRAWN = (
    "The flow of {0} millions that was announced for decision {1} has been cancelled.",
    "Disregard the {0} millions that treasury's calendar still shows for decision {1}: the client has withdrawn the "
    "notice.",
)
_AVERSION = ("The aversion to risk is {0} per million.", "Risk is charged with an aversion of {0} per million.")
_TIGHTER = ("From decision {0} on it is {1}.", "It rises to {1} with decision {0} and stays there.")
_LIMIT = (
    "From decision {0} on, after the trades of each decision, the holdings of every sector must add up to the capital "
    "times the sum of its benchmark weights. Before that there is no such limit.",
    "Decision {0} is the first that must leave no sector bets: from it on the sum of holdings in each sector, after "
    "trading, must be the benchmark's share of the capital. Before it sectors have no limit.",
)

_PRACTICE = f"""\
## 6. Decisions and files
`advance` takes the trades of a decision in millions and moves on to the next. `current` then has the holdings before
trading and the newest signals, `news` the rows of the weeks completed since, with the columns of `history`. If the file
delivery fails, `current` shows the signals of the last file again until it is repaired (`state` gives the week of the
signals) and `news` stays empty; such failures have lasted {OUTAGE} weeks. The missed rows then arrive at once. An
order is refused, and nothing changes, if it misses a sector's limit by more than {TOLERANCE:g} millions, names an
unknown company or has an amount that is not a number. The dealers settle smaller misses with the cheapest trades.

New information comes in `notices`, on the day of a decision, and `advance` shows it too: findings about
vendors, or a tariff of the dealers that changes trading costs. A notice holds to the last decision. Do not anticipate
a tariff: each decision is judged as if the tariff known on its day stayed in force.

Each decision is judged by its loss against the best that could be expected with the information of that day, from
the book that you held. `advance` trades what you order and nothing else: a flow changes the capital, not the
holdings. Decisions that are not taken, because the episode ends early, differ: they count as holding still, but
flows are traded in proportion to the benchmark and limits are met with the cheapest trades. Submit the answer once
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

    dated = [(world.news.audit, phrase(_FOUND, those(True), those(False)))] if world.news.verdicts else []
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
    "Run the overlay book of the memo (field `memo`, read all of it) for twelve weeks: each week decide what to trade, "
    "with one call of `advance`. Signals decay at different speeds, most of them are worth nothing or no longer "
    "anything, every trade costs, and some facts become known only on the day of a decision (field `notices`). "
    "`history` is too long to be read.",
    "After the twelfth decision submit a JSON object with `decisions`, the number of decisions taken. The score "
    "measures the losses of your decisions, each against the best that could be expected from the book that you held "
    "(realised returns do not count). 1 is no loss. 0 is the loss of the better of two textbook answers: holding "
    "still, with trades only for cash flows and limits, or trading each week to the book that would be best for one "
    "week if trades were free, with coefficients from least squares on `history`. A decision that is not taken counts "
    "as holding still.",
)
