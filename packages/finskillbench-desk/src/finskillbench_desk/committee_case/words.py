"""What an agent is told: the request, the house's valuation policy, the definitions of the figures."""

from __future__ import annotations

from finskillbench.domains.building import conventions
from finskillbench.episode import Prompt
from finskillbench_desk.engines.books.figures import FIGURES

VALUATION = """Valuation and records policy

1. The book of a fund is kept on trade date. Every line of the blotter traded on or before the day of the book is
   in it, at its price, whether or not it has settled; nothing traded later is. A line that names an earlier one
   under "replaces" takes that line's place; the earlier one is void.
2. The extracts of the two custodians, NORTH and SOUTH, stand in one table and show what has settled, lot by lot;
   the fund holds what both keep. Each lot has a number of its own, whoever keeps it: a number that is printed
   twice, by one custodian or by both, is one lot, two numbers are two lots, however alike they are. The unit cost
   of a lot is about the close of the day on which it was acquired, unless it was acquired before the first day of
   the price file.
3. A corporate action belongs to the book from its ex-date. Who held a security at the close before the ex-date,
   on trade date, is entitled. The custodians book events with delays of days: mergers and spin-offs by exchanging
   and adding lines, splits by multiplying the units of every lot from before the ex-date by the ratio and
   dividing its unit cost by it. What is booked already is not booked again: a line that was taken over and is no
   more in the extracts, or a child that is in them, has been booked. Closes in the price file are as they
   were quoted on the day, never adjusted. "ratio" is new units for one old unit (of a split, of the child, of the
   acquirer), "cash" is an amount for one old unit in the currency of its price. Cash that is due and not yet paid
   (pay date after the day of the book) is part of cash, as are the proceeds and costs of pending trades; what was
   paid is in the balances.
4. Prices are the closes of the price file on the day of the book. Where a close has stood still for three
   sessions or longer while units changed hands, the feed has failed and the second source's price is taken. Where
   nothing was traded since, the last close stands: the second source's figure is then an indication. Otherwise
   the two sources differ by up to 0.3 % and the price file counts.
5. The currency of a line is that of the reference file. Where the second source names another, the one counts by
   which the line is worth within a tenth of the issuer's first line (the line that is named as the issuer is):
   all lines of an issuer carry like rights. GBX is a hundredth of a pound.
6. The sector of a member of the benchmark is that of the benchmark file, of all others that of the reference
   file. Shares outstanding are those on the cover of the issuer's last filing, for issuers without filings those
   of the reference file. That a vendor has changed a field lately says nothing about which value is right.
7. A bond's price is per cent of par and includes accrued interest. One unit at price p is worth p x multiplier in
   the currency of its price. A future is margined daily: it has no value, and its notional is what its units at
   their price would be worth; margin is part of cash. The market capitalisation of an issuer is its shares
   outstanding at the dollar price of its first line. All cash is held with CUSTODIAN, in one account that counts
   as US dollars (instrument CASH, kind cash, country US, issuer CUSTODIAN), whatever the currency of the
   balances.
8. For the guidelines, a line quoted in GBX is one in GBP; its country, kind, rating, beta and traded value (adv,
   in dollars) are those of the reference file, its lists those named there; what the guidelines call the security
   master is that file, put right by this policy. Only the first line of an issuer has its benchmark weight. Funds
   hold the first lines of issuers as the constituents file says, the rest of them being their own. Nothing in the
   book of today is being bought; what a cure buys is.
"""

PARTS = """Answer in five parts. Each is judged on its own: a later part is held against what follows from your own
earlier parts, so that one slip costs once.
1. rules: code the guidelines with all amendments in force, in the language of documents.rule_language, one object
for each limit or reporting threshold of each numbered clause.
2. book: the fund's true book on trade date by documents.valuation. positions: every security held with its units
and its value in dollars (of a future its notional, negative if sold). cash: dollars, with everything due and
payable. pending_purchases, pending_sales: dollars of the lines of the blotter that stand, traded by the day of
the book and settled after it, at their trade prices. replaced: every sector and count of shares of the reference
file that the policy does not accept, with what counts instead.
3. breaches: numbers of the clauses that the book is in breach of today. excluded: every security of the reference
file of which the guidelines allow nothing to be held or bought, held or not.
4. trades: the cheapest trades after which no clause is in breach. A trade costs cost_bp of its value (of a future
of its notional); costs are counted and not taken out of cash. Anything in the reference file can be traded in any
amount at its true price; cash takes the other side and must not become negative, nothing may be sold short, a future
keeps its sign. Purchases and sales count as pending trades of the quarter; futures do not.
5. figures: of the book after the trades, as conventions defines them."""

_UNITS = (
    "values, cash and trades are dollars; limits and weights are percent of net asset value, which is the value of all "
    "positions and cash; fx is dollars per unit of a currency; quarter_to_date is the dollars bought and sold in the "
    "quarter that have settled"
)
CONVENTIONS = conventions(
    {
        "units": _UNITS,
        "exposures": "shares, preferred shares and receipts count for their issuer, funds as what they hold, an equity "
        "future as its notional times the benchmark; all else carries no risk. the covariance of two issuers a year is "
        "the sum over the factors of risk_model of the products of their loadings, of an issuer with itself plus its "
        "specific_variance",
        "rounding": "a cure keeps a limit that it exceeds by no more than 0.003 in the unit of the limit",
    },
    {f"figures.{name}": words for name, words in FIGURES.items()},
)


def prompt(as_of: str) -> Prompt:
    """The request."""
    return Prompt(
        f"You prepare the investment committee's case on one fund as of the close of {as_of}. The custodians' "
        "extracts, the blotter, corporate actions, two sources of prices, a vendor's reference file, the benchmark, "
        "the funds' holdings, the issuers' filings and a risk model are tables; documents holds the guidelines with "
        "their amendments, the "
        f"valuation policy and the language for coded rules.\n{PARTS}",
        "Submit one JSON object with rules, book, breaches, excluded, trades and figures. Give dollars to the cent and "
        "figures with at least 5 significant digits.",
    )
