"""Texts of a case whose law is not disclosed: the memo at disclosure `data` and `described`.

`data` is a dictionary of columns with costs, limits, objective and score. `described` adds in words how such markets
behave and what to check. Neither has a number, formula or functional form of the generator.
"""

from __future__ import annotations

from finskillbench.episode import Disclosure, Prompt
from finskillbench_desk.trade_over_time.law_world import LawWorld
from finskillbench_desk.trade_over_time.laws import BLOCK
from finskillbench_desk.trade_over_time.optimum import TradingSetup
from finskillbench_desk.trade_over_time.world import DECISIONS, OUTAGE, TOLERANCE, WEEKS

_DATA = """\
# Memo: the overlay book

The book holds swaps on {names} names in {sectors} sectors. There are {decisions} decisions, one at the start of each
week. A decision changes the book from `holding` to `holding + trade`; that book is kept until the next decision.
Amounts are millions at reference prices and change only by trades; profits, losses and costs are paid outside of the
book. Short positions are allowed.

## Tables
- `history`: one row per week (1 to {weeks}) and name: week, date, ticker, sector, the signals s01 to s30 as delivered
  at the start of the week, in hundredths of a standard deviation, and `next_return`, the return of that week in
  thousandths of a percent (-1500 means -1.5 %).
- `factor_returns`: returns of the factors, by week, as fractions. A name's exposures times factor returns are the part
  of its return that factors explain. The expected return of a factor is 0. Exposures are `market_beta` to market, one
  to the name's own sector, and the columns size, value and momentum. The column size is an exposure, not the size of
  the company.
- `names`: ticker, sector, benchmark_weight, impact (basis points), specific_volatility (weekly standard deviation of
  the part of returns that factors do not explain), exposures. A company's size is its benchmark_weight. Sectors count
  as related in these groups: {groups}.
- `factors`: weekly standard deviation of each factor; factors are independent.
- `signals`: the vendor of each signal, and `since`, the week from which the vendor has delivered live (1 if always).
  It supplied earlier values later, when it signed and the returns were known.
- `current`: holding before the trades, and the newest signals, which precede the returns of the coming week.
- `news`: rows of the weeks completed since the previous decision, with the columns of `history`; `news_factors`
  likewise. If the file delivery fails, `current` repeats the last signals and `news` is empty until the missed rows
  arrive at once; such failures last {outage} weeks. `state` has the week of the signals.

## Costs
A trade of {clip:g} millions in a name loses `impact` basis points of the amount traded; a trade of another size loses
basis points in proportion to its size. A notice may change costs for the rest of the episode; each decision is judged
as if the costs known on its day stayed in force.

## Capital, aversion, limits
Capital in millions by decision, known in advance: {capital}. Aversion to risk per million, by decision: {aversion}.
From decision {limit} on, after the trades, the holdings of every sector must add up to the capital times the sum of its
benchmark weights. Orders that miss this by more than {tolerance:g} millions are refused and nothing changes; smaller
misses are settled with the cheapest trades. A flow changes the capital, not the holdings.

Trades are placed with `advance`, once for each decision. Facts that become known later appear in `notices`.

## Objective
Each week contributes

    holding' alpha - (aversion / 2) * active' Sigma active - cost of the trades

where alpha is the expected return of the coming week, active = holding - capital * benchmark_weight, and
Sigma = B diag(factor deviations^2) B' + diag(specific_volatility^2). Weeks are summed without discounting, to the week
after the last decision; the book has no value after that.

## Score
Each decision is judged by its loss against the best that could be expected on its day, from the book that you held, by
an investor who knows the law by which signals and returns are connected in this market (not its hidden state) and has
seen the same data. Realised returns do not count. 1 is no loss. 0 is the loss of the better of two answers: holding
still (flows traded in proportion to the benchmark, limits met with the cheapest trades), and the best trades for an
investor who expects nothing from any signal. Losses above that count as 0. A decision that is not taken counts as
holding still.
"""

_DESCRIBED = """
## What is known of such markets
Most signals are worth nothing, and some vendors resell others' signals with noise. What a vendor knows need not be in
the level of one signal: it may be in how far a signal has moved of late, in the difference between two series of the
vendor, or in two series together, one of which says when or which way the other counts. News may be in prices at once
or arrive there only after some weeks. An edge may work for all names, in a few related sectors, or among names of one
kind only, such as small or volatile ones; different names may then follow different signals. Edges that live at one
time are of one order of size, because larger ones are traded away; in some markets high values are good by convention,
in others a signal may point the wrong way for as long as it works.

Edges do not last. Some end for good, each on its own day; some fade after they have become known; some come and go, and
may do so while you trade; and at times a whole market changes at once. Large surprises are more frequent in some
markets than in others, and they count as less evidence there. Each signal moves back to its mean at its own speed, so
that forecasts reach differently far.

Check, before you trust an edge: how many you have looked at; whether it holds in the part of the record that matters
now; whether it is a copy of another; whether values were filled in afterwards; how much an estimate must be shrunk; how
long the forecast lasts against what it costs to trade; and, as weeks arrive, whether it is still there.
"""


def law_memo(case: LawWorld, disclosure: Disclosure) -> str:
    """Write the memo of a case; the law is not used."""
    world = case.world
    plan = TradingSetup.of(world).plan
    text = _DATA.format(
        names=len(world.tickers),
        sectors=len(world.sectors),
        groups="; ".join(
            ", ".join(world.sectors[place : place + BLOCK]) for place in range(0, len(world.sectors), BLOCK)
        ),
        decisions=DECISIONS,
        weeks=WEEKS,
        outage=OUTAGE,
        clip=world.book.clip,
        capital=", ".join(f"{each:g}" for each in plan.capital),
        aversion=", ".join(f"{each:g}" for each in plan.aversion),
        limit=plan.limit_from + 1,
        tolerance=TOLERANCE,
    )
    return text + (_DESCRIBED if disclosure == "described" else "")


LAW_PROMPT = Prompt(
    "Run the overlay book of the memo (field `memo`, read all of it) for twelve weeks: each week decide what to trade, "
    "with one call of `advance`. How signals and returns are connected is not stated; the tables are the evidence. "
    "Every trade costs, and some facts become known only on the day of a decision (field `notices`). `history` is too "
    "long to be read.",
    "After the twelfth decision submit a JSON object with `decisions`, the number of decisions taken. The score "
    "measures the losses of your decisions, each against the best that could be expected from the book that you held "
    "by an investor who knows how signals and returns are connected in this market (realised returns do not count). "
    "1 is no loss. 0 is the loss of the better of two answers: holding still, with trades only for cash flows and "
    "limits, or the best trades for an investor who expects nothing from any signal. A decision that is not taken "
    "counts as holding still.",
)
