"""Build committee case tasks: input and answer types, prompt, valuation policy, truth and certificate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Literal, TypedDict, cast

from pydantic import Field

from finskillbench.domains.base import Answer
from finskillbench.domains.building import BuildContext, BuiltTask, merge_conventions
from finskillbench.domains.tables import TableReference, reference
from finskillbench.episode import Episode, Prompt, Truth
from finskillbench.errors import InputError
from finskillbench_desk.committee_case.draw import DrawnCase, draw_committee_case, rates_of
from finskillbench_desk.committee_case.judging.agent_documents import instrument_json
from finskillbench_desk.committee_case.ledger.case import LEAST_ISSUERS
from finskillbench_desk.committee_case.ledger.records import ledger_tables
from finskillbench_desk.committee_case.rules.judging import coding_truth
from finskillbench_desk.engines.books.figures import FIGURES, figures
from finskillbench_desk.engines.guidelines.cure import after
from finskillbench_desk.engines.guidelines.language import rule_json
from finskillbench_desk.engines.guidelines.parsing import SCHEMA
from finskillbench_desk.market import ListedName as Member


class CommitteeInput(TypedDict):
    """Task input of a committee case."""

    as_of: str
    documents: dict[str, str]
    custodian: TableReference
    trades: TableReference
    corporate_actions: TableReference
    prices: TableReference
    second_source: TableReference
    reference: TableReference
    benchmark: TableReference
    constituents: TableReference
    filings: TableReference
    cash_balances: dict[str, float]
    fx: dict[str, float]
    quarter_to_date: dict[str, float]
    risk_model: TableReference
    conventions: dict[str, str]


class HeldPosition(Answer):
    """One security of the true book."""

    security: str = Field(description="Name in the reference file; each security once.")
    quantity: float = Field(description="Units on trade date; negative if sold short.")
    value: float = Field(description="Dollars; for a future its notional, negative if sold.")


class Replaced(Answer):
    """One field of the reference file that the policy replaces."""

    issuer: str = Field(description="Issuer of the field.")
    field: Literal["sector", "shares_outstanding"] = Field(description="Name of the field.")
    value: str | float = Field(description="Value that counts instead: a sector, or a number of shares.")


class TrueBook(Answer):
    """The book on trade date."""

    positions: list[HeldPosition] = Field(description="Every security held, including futures, without cash.")
    cash: float = Field(description="Dollars, including receivables and payables.")
    pending_purchases: float = Field(description="Dollars of valid purchases that settle later; >= 0.")
    pending_sales: float = Field(description="Dollars of valid sales that settle later; >= 0.")
    replaced: list[Replaced] = Field(description="Empty if the reference file is right throughout.")


class CureTrade(Answer):
    """One trade of the cure."""

    security: str = Field(description="Name in the reference file; each security once.")
    value: float = Field(description="Dollars bought, negative if sold; for a future its notional.")


class _Figures(Answer):
    """The book after the cure, by the definitions in conventions."""

    tracking_error: float = Field(description="Percent a year.")
    beta: float = Field(description="Ratio.")
    largest_issuer: float = Field(description="Percent of net asset value.")
    cash: float = Field(description="Percent of net asset value.")
    turnover: float = Field(description="Percent of net asset value, for the quarter.")
    leverage: float = Field(description="Ratio.")


class CommitteeCase(Answer):
    """Answer: the case in five parts."""

    rules: list[dict[str, Any]] = Field(description="Coded rules in the language of documents.rule_language.")
    book: TrueBook = Field(description="The true book.")
    breaches: list[str] = Field(description='Numbers of clauses in breach, such as "4.2".')
    excluded: list[str] = Field(description="Securities that may be neither held nor bought.")
    trades: list[CureTrade] = Field(description="The cheapest cure.")
    figures: _Figures = Field(description="Figures of the book after the trades.")


VALUATION = """Valuation and records policy

1. The book of a fund is kept on trade date. Every line of the blotter traded on or before the day of the book is
   in it, at its price, whether or not it has settled; nothing traded later is. A line that names an earlier one
   under "replaces" takes that line's place; the earlier one is void.
2. The extracts of the two custodians, NORTH and SOUTH, are in one table and show what has settled, lot by lot;
   the fund holds the lots of both. The number of a lot is unique across the custodians: a number that is printed
   twice, by one custodian or by both, is one lot; two numbers are two lots, however similar they are. The unit cost
   of a lot is about the close of the day on which it was acquired, unless it was acquired before the first day of
   the price file.
3. A corporate action belongs to the book from its ex-date. The holder of a security at the close before the
   ex-date, on trade date, is entitled. The custodians book events with delays of days: mergers and spin-offs by
   exchanging and adding lines, splits by multiplying the units of every lot from before the ex-date by the ratio
   and dividing its unit cost by it. An event that is booked already is not booked again: it is booked if the line
   that was taken over is no longer in the extracts, or if the child is in them. Closes in the price file are as
   quoted on the day, never adjusted. "ratio" is new units for one old unit (of a split, of the child, of the
   acquirer), "cash" is an amount for one old unit in the currency of its price. Cash that is due and not yet paid
   (pay date after the day of the book) is part of cash, as are the proceeds and costs of pending trades; cash that
   was paid is in the balances.
4. Prices are the closes of the price file on the day of the book. If a close has not changed for three
   sessions or longer while units were traded, the feed has failed and the second source's price counts. If
   nothing was traded since, the last close counts: the second source's figure is then an indication. Otherwise
   the two sources differ by up to 0.3 % and the price file counts.
5. The currency of a line is that of the reference file. If the second source names another, of the two the one
   counts in which the line is worth within a tenth of the issuer's first line (the line with the issuer's name):
   all lines of an issuer carry the same rights. GBX is a hundredth of a pound.
6. The sector of a member of the benchmark is that of the benchmark file; all other sectors are those of the
   reference file. Shares outstanding are those on the cover of the issuer's last filing; for issuers without filings,
   those of the reference file. A recent change of a field by a vendor is no evidence of which value is right.
7. A bond's price is per cent of par and includes accrued interest. One unit at price p is worth p x multiplier in
   the currency of its price. A future is margined daily: it has no value, and its notional is what its units at
   their price would be worth; margin is part of cash. The market capitalisation of an issuer is its shares
   outstanding at the dollar price of its first line. All cash is held with CUSTODIAN, in one account that counts
   as US dollars (instrument CASH, kind cash, country US, issuer CUSTODIAN), regardless of the currency of the
   balances.
8. For the guidelines, a line quoted in GBX counts as GBP. The country, kind, rating, beta, traded value (adv,
   in dollars) and lists of a line are those of the reference file; what the guidelines call the security
   master is that file, corrected by this policy. Only the first line of an issuer has its benchmark weight. Funds
   hold the first lines of issuers as the constituents file states; the rest counts as the fund itself. Nothing in
   the book of today counts as being bought; what a cure buys does.
"""

PARTS = """Answer in five parts. Each is judged separately: a later part is compared with what follows from your
own earlier parts, so that one mistake costs once.
1. rules: code the guidelines with all amendments in force, in the language of documents.rule_language, one object
for each limit or reporting threshold of each numbered clause.
2. book: the fund's true book on trade date by documents.valuation. positions: every security held with its units
and its value in dollars (for a future its notional, negative if sold). cash: dollars, with everything due and
payable. pending_purchases, pending_sales: dollars of the valid lines of the blotter, traded by the day of
the book and settled after it, at their trade prices. replaced: every sector and number of shares of the reference
file that the policy does not accept, with the value that counts instead.
3. breaches: numbers of the clauses that the book is in breach of today. excluded: every security of the reference
file that the guidelines do not allow to be held or bought at all, whether it is held or not.
4. trades: the cheapest trades after which no clause is in breach. A trade costs cost_bp of its value (for a future,
of its notional); costs are counted and not taken out of cash. Anything in the reference file can be traded in any
amount at its true price; cash takes the other side and must not become negative, nothing may be sold short, a future
keeps its sign. Purchases and sales count as pending trades of the quarter; futures do not.
5. figures: of the book after the trades, as conventions defines them."""

CONVENTIONS = merge_conventions(
    {
        "units": "values, cash and trades are dollars; limits and weights are percent of net asset value, which is the "
        "value of all positions and cash; fx is dollars per unit of a currency; quarter_to_date is the dollars bought "
        "and sold in the quarter that have settled",
        "exposures": "shares, preferred shares and receipts count for their issuer, funds as their holdings, an equity "
        "future as its notional times the benchmark; all else carries no risk. the covariance of two issuers a year is "
        "the sum over the factors of risk_model of the products of their loadings; for an issuer with itself, its "
        "specific_variance is added",
        "rounding": "a cure keeps a limit that it exceeds by no more than 0.003 in the unit of the limit",
    },
    {f"figures.{name}": text for name, text in FIGURES.items()},
)


def _prompt(as_of: str) -> Prompt:
    return Prompt(
        f"You prepare the investment committee's case on one fund as of the close of {as_of}. The custodians' "
        "extracts, the blotter, corporate actions, two sources of prices, a vendor's reference file, the benchmark, "
        "the funds' holdings, the issuers' filings and a risk model are tables; documents holds the guidelines with "
        f"their amendments, the valuation policy and the language for coded rules.\n{PARTS}",
        "Submit one JSON object with rules, book, breaches, excluded, trades and figures. Give dollars to the cent and "
        "figures with at least 5 significant digits.",
    )


NAME, PREFIX = "committee_case", "dk_cc"
EPISODES = 40
TIERS = ("easy", "medium", "hard")


def build(context: BuildContext, objects: tuple[Member, ...]) -> Iterator[BuiltTask]:
    """Yield up to 40 cases over the edition's month-ends, cycling through the tiers; `objects` are market members."""
    panels = context.panels
    market = {each.symbol for each in objects}
    dates = [day for day in panels.month_ends if len({*panels.symbols_at(day)} | market) >= LEAST_ISSUERS]
    if not dates:
        context.notes.append(
            f"{NAME}: no episodes: no month-end has the {LEAST_ISSUERS} priced issuers that a case needs."
        )
        return
    for number in range(context.most(EPISODES)):
        rng = context.generator("desk", NAME, number)
        day, tier = dates[number % len(dates)], TIERS[number % len(TIERS)]
        try:
            yield committee_task(draw_committee_case(panels, objects, day, tier, number, rng), number)
        except InputError as error:
            context.notes.append(str(error))


def committee_task(case: DrawnCase, number: int) -> BuiltTask:
    """Return the episode, truth, certificate and tables of one case."""
    ledger = case.world.ledger
    task_id = f"{PREFIX}_{ledger.as_of}_{number:02d}"
    frames = ledger_tables(ledger)
    task_input: CommitteeInput = {
        "as_of": ledger.as_of.isoformat(),
        "documents": {"guidelines": case.guidelines.text, "valuation": VALUATION, "rule_language": SCHEMA},
        **{name: reference(task_id, name, frame) for name, frame in frames.items()},
        "cash_balances": dict(sorted(ledger.balances.items())),
        "fx": {name: rate for name, rate in ledger.fx.items() if name != "GBX"},
        "quarter_to_date": {"purchases": case.book.trading.used_purchases, "sales": case.book.trading.used_sales},
        "conventions": CONVENTIONS,
    }  # pyright: ignore[reportAssignmentType] - the tables are those that the type names
    prompt = _prompt(ledger.as_of.isoformat())
    episode = Episode(task_id, "desk", NAME, ledger.as_of, case.tier, cast("Any", task_input), prompt)
    truth = Truth(task_id, NAME, expected_answer(case), _known(case), _proof_of(case))
    return BuiltTask(episode, truth, certificate(case), tables=frames)


def expected_answer(case: DrawnCase) -> dict[str, Any]:
    """Return the true answer in the form of `CommitteeCase`."""
    holdings, trading = case.world.holdings, case.book.trading
    replaced: list[dict[str, Any]] = []
    for issuer, row in sorted(case.world.ledger.listed.items()):
        sector, shares = holdings.sectors[issuer], holdings.shares[issuer]
        if row.sector != sector:
            replaced.append({"issuer": issuer, "field": "sector", "value": sector})
        if abs(row.shares - shares) > 1e-3 * shares:
            replaced.append({"issuer": issuer, "field": "shares_outstanding", "value": shares})
    return {
        "rules": [rule_json(rule) for rule in case.rules],
        "book": {
            "positions": [
                {"security": name, "quantity": units, "value": units * holdings.prices[name]}
                for name, units in sorted(holdings.quantities.items())
            ],
            "cash": holdings.cash,
            "pending_purchases": trading.pending_purchases,
            "pending_sales": trading.pending_sales,
            "replaced": replaced,
        },
        "breaches": list(case.breaches),
        "excluded": list(case.excluded),
        "trades": [{"security": name, "value": value} for name, value in sorted(case.cure.trades.items())],
        "figures": figures(after(case.book, case.cure.trades), case.risk),
    }


def _known(case: DrawnCase) -> dict[str, Any]:
    world, ledger = case.world, case.world.ledger
    shown: dict[str, float] = {}
    for lot in ledger.lots:
        shown[lot.security] = shown.get(lot.security, 0.0) + lot.quantity
    return {
        "instruments": sorted(map(instrument_json, case.book.universe.instruments), key=lambda line: line["name"]),
        "prices": world.holdings.prices,
        "planted": sorted(map(asdict, world.planted), key=lambda one: (one["kind"], one["where"])),
        "trading": list(case.book.trading.row),
        "rates": dict(rates_of(ledger).rates),
        "vendor": {name: {"sector": row.sector, "shares": row.shares} for name, row in ledger.listed.items()},
        "shown": shown,
        "least_cost": case.cure.cost,
        "leverage": dict(case.risk.leverage),
        "risk_model": {name: [ledger.risk.specific[name], *ledger.risk.loadings[name]] for name in case.risk.issuers},
        "coding": coding_truth(case.guidelines, case.vocabulary, case.seed),
    }


def _proof_of(case: DrawnCase) -> dict[str, Any]:
    """Return the optimality record of the cure; other cures may cost the same and score the same."""
    outcome = case.cure.certified.uniqueness.outcome
    return {
        "kind": "optimal",
        "objective": case.cure.cost,
        "lower_bound": case.cure.bound,
        "gap": case.cure.cost - case.cure.bound,
        "unique": outcome.proved,
        "uniqueness": outcome.value,
    }


def certificate(case: DrawnCase) -> dict[str, Any]:
    """Return the numbers from which the cure's bound can be recomputed."""
    proof = case.cure.certified
    return {
        "kind": "cheapest_cure",
        "programs": case.cure.programs,
        "cost": case.cure.cost,
        "bound": case.cure.bound,
        "gap": proof.optimality.gap,
        "violation": proof.optimality.violation,
        "multipliers": proof.multipliers.tolist(),
    }
