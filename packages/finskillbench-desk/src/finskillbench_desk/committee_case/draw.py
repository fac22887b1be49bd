"""Draw one case: the true book, guidelines fitted to it, its breaches and exclusions, and the cheapest cure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from finskillbench.domains.building import permuted
from finskillbench.engines.optimisation.certified import InfeasibleError, UndecidedError
from finskillbench.errors import InputError
from finskillbench.panels import Panels
from finskillbench_desk.committee_case.documents.amending import draw_guidelines
from finskillbench_desk.committee_case.documents.drafting import rotation
from finskillbench_desk.committee_case.documents.rendering import Guidelines
from finskillbench_desk.committee_case.documents.vocabulary import Vocabulary
from finskillbench_desk.committee_case.ledger.case import (
    KINDS,
    CommitteeWorld,
    MarketDraft,
    draft_market,
    round_quantities,
    write_records,
)
from finskillbench_desk.committee_case.ledger.records import CaseSecurity, FundLedger, TrueHoldings
from finskillbench_desk.engines.books.figures import Risk
from finskillbench_desk.engines.guidelines.book import FUTURES, Book, Instrument, Position, QuarterTrades
from finskillbench_desk.engines.guidelines.cure import CertifiedCure, CureRules, after, cheapest_cure
from finskillbench_desk.engines.guidelines.evaluation import evaluate, matches
from finskillbench_desk.engines.guidelines.language import Rule
from finskillbench_desk.market import ListedName as Member


def breached(rules: Sequence[Rule], book: Book) -> tuple[str, ...]:
    """Return the numbers of the clauses in breach, sorted."""
    return tuple(sorted({outcome.rule.clause for outcome in evaluate(rules, book) if outcome.state == "breach"}))


def forbidden(rules: Sequence[Rule], book: Book) -> tuple[str, ...]:
    """Return the lines that the rules exclude: some rule limits their weight to at most 0, whenever it is tested."""
    universe = book.universe
    found = np.zeros(len(universe.instruments), dtype=np.bool_)
    for atom in (atom for rule in rules if rule.effect == "limit" for atom in rule.atoms()):
        none = atom.measure == "weight" and atom.comparison == "at_most" and not atom.limit.relative
        if none and max(term.plus for term in atom.limit.terms) <= 0:
            found |= matches(atom.of, universe)
    out = zip(universe.instruments, found.tolist(), strict=True)
    return tuple(sorted(line.name for line, banned in out if banned and line.kind != "cash"))


CASH = Instrument("CASH", "cash", "CUSTODIAN", country="US", currency="USD")
"""All cash, accruals and payables together, held with the custodian."""


def _book_of(ledger: FundLedger, holdings: TrueHoldings, trading: QuarterTrades) -> Book:
    instruments = {name: instrument_of(line, ledger, holdings) for name, line in ledger.securities.items()}
    positions = [Position(CASH, holdings.cash)]
    for name, units in holdings.quantities.items():
        positions.append(Position.of(instruments[name], units * holdings.prices[name]))
    held = {position.instrument.name for position in positions}
    unheld = tuple(each for name, each in instruments.items() if name not in held)
    return Book(tuple(positions), unheld, trading)


def instrument_of(line: CaseSecurity, ledger: FundLedger, holdings: TrueHoldings) -> Instrument:
    """Return a line as an instrument; market capitalisation is shares outstanding at the price of the first line."""
    attributes: dict[str, float] = {}
    if line.kind in ("share", "preferred", "receipt"):
        attributes["market_cap"] = holdings.shares[line.issuer] * holdings.prices[line.issuer]
    optional = ((name, getattr(line, name)) for name in ("adv", "rating", "maturity", "beta"))
    attributes |= {name: float(value) for name, value in optional if value is not None}
    return Instrument(
        name=line.security,
        kind=line.kind,
        issuer=line.issuer,
        sector=holdings.sectors.get(line.issuer, ""),
        sub_sector=line.sub_sector,
        country=line.country,
        currency="GBP" if line.currency == "GBX" else line.currency,
        lists=frozenset(line.lists),
        benchmark=100 * ledger.benchmark[line.security][0] if line.security in ledger.benchmark else 0.0,
        attributes=attributes,
        holdings=ledger.constituents.get(line.security, {}),
    )


TRAPS: Mapping[str, int] = {"easy": 4, "medium": 5, "hard": 6}
"""Data traps by tier; more would make each worth less than a tenth of the book score."""
CONTROLS: Mapping[str, int] = {"easy": 2, "medium": 2, "hard": 3}
"""Controls by tier, about a third of all planted items: they resemble a trap but the data is right."""
BREACHES: Mapping[str, int] = {"easy": 6, "medium": 7, "hard": 8}
FEWEST_BREACHES = 4
FEWEST_TRADES = 8
"""Fewest breaches, and trades of a cure, of an accepted case."""
LEAST_DISTANCE = 0.004
"""Least distance of the true book from any limit, in the limit's unit, so that rounding cannot decide a breach."""
SMALLEST_TRADE = 1e-5
"""Smallest trade that counts, as a fraction of net asset value; smaller ones are solver residue."""
_TRIES, _DOCUMENTS = 20, 3
"""Books drawn for a case, and documents drawn for each book."""
_PROGRAMS = 30
"""Most linear programs that a cure may take."""
_BANS = ("restricted_list", "affiliated_funds", "country_ban", "sub_sector_ban", "longest_maturity")


@dataclass(frozen=True, eq=False)
class DrawnCase:
    tier: str
    world: CommitteeWorld
    guidelines: Guidelines
    vocabulary: Vocabulary
    seed: int
    rules: tuple[Rule, ...]
    book: Book
    breaches: tuple[str, ...]
    excluded: tuple[str, ...]
    cure: CertifiedCure
    risk: Risk


def rates_of(ledger: FundLedger) -> CureRules:
    return CureRules({name: line.cost / 1e4 for name, line in ledger.securities.items()})


def draw_committee_case(
    panels: Panels, members: Sequence[Member], as_of: date, tier: str, number: int, rng: np.random.Generator
) -> DrawnCase:
    """Draw case `number`, again and again until its cure is certified.

    Raises
    ------
    InputError : if no case of that day has a certified cure after 20 books with 3 documents each.
    """
    for _ in range(_TRIES):
        wanted = _wanted(tier, number, rng)
        one = draft_market(panels, members, as_of, wanted, rng)
        quantities, cash = _sizes(one, rng)
        world = write_records(one, quantities, cash, rng)
        valued = [name for name in quantities if one.ledger.securities[name].kind not in FUTURES]
        nav = cash + math.fsum(quantities[name] * one.prices[name] for name in valued)
        book = _book_of(world.ledger, world.holdings, _trading(world, one.units, nav, rng))
        for _ in range(_DOCUMENTS):
            case = _with_guidelines(tier, number, world, book, risk_of(world.ledger), rng)
            if case is not None:
                return case
    raise InputError(f"committee_case: found no case with a certified cure for {as_of}; leave this date out")


def risk_of(ledger: FundLedger) -> Risk:
    """Return the risk model and the leverage by the issuers' last filings, as the figures use them."""
    issuers = tuple(name for name in ledger.securities if name in ledger.benchmark)
    loadings = np.array([ledger.risk.loadings[name] for name in issuers], dtype=np.float64)
    specific = np.array([ledger.risk.specific[name] for name in issuers], dtype=np.float64)
    benchmark = np.array([ledger.benchmark[name][0] for name in issuers], dtype=np.float64)
    leverage = {
        filing.issuer: filing.liabilities / filing.equity
        for filing in ledger.filings
        if filing.liabilities is not None and filing.equity
    }
    return Risk(issuers, loadings, specific, benchmark, leverage)


def _with_guidelines(
    tier: str, number: int, world: CommitteeWorld, book: Book, risk: Risk, rng: np.random.Generator
) -> DrawnCase | None:
    """Return the case with guidelines drawn for its book; None without a usable cure, or if a limit is too near."""
    names = {name: f"{name.title()} {_ENDINGS[int(rng.integers(len(_ENDINGS)))]}" for name in world.ledger.benchmark}
    vocabulary = Vocabulary(names)
    try:
        requested = (_BANS[number % len(_BANS)], *rotation(number))
        guidelines = draw_guidelines(rng, vocabulary, world.ledger.as_of, book, BREACHES[tier], requested)
        rules = guidelines.rules()
        if any(abs(each.measured - each.limit) < LEAST_DISTANCE and each.limit != 0 for each in evaluate(rules, book)):
            return None
        found = breached(rules, book)
        if len(found) < FEWEST_BREACHES:
            return None
        cure = cheapest_cure(rules, book, rates_of(world.ledger), most_programs=_PROGRAMS)
    except (InputError, InfeasibleError, UndecidedError):
        return None
    cured = after(book, cure.trades)
    trades = sum(abs(value) > SMALLEST_TRADE * book.nav for value in cure.trades.values())
    if breached(rules, cured) or trades < FEWEST_TRADES:
        return None
    seed = int(rng.integers(2**31))
    return DrawnCase(tier, world, guidelines, vocabulary, seed, rules, book, found, forbidden(rules, book), cure, risk)


_ENDINGS = ("Group", "Holdings", "Corporation", "Industries", "International")


def _wanted(tier: str, number: int, rng: np.random.Generator) -> tuple[tuple[str, bool], ...]:
    """Return trap kinds in rotation, mixed with controls of random kinds, in random order."""
    kinds = [KINDS[(number + step) % len(KINDS)] for step in range(TRAPS[tier])]
    controls = permuted(KINDS, rng)[: CONTROLS[tier]]
    return tuple(permuted([*((kind, True) for kind in kinds), *((kind, False) for kind in controls)], rng))


def _sizes(one: MarketDraft, rng: np.random.Generator) -> tuple[dict[str, float], float]:
    nav, ledger = float(rng.uniform(1.5e9, 6e9)), one.ledger
    typical = {"fund": 0.022, "convertible": 0.005, "government_bond": 0.012, "preferred": 0.004}
    raw: dict[str, float] = {}
    for name in one.roles.held:
        line = ledger.securities[name]
        level = typical.get(line.kind, 0.006)
        if name in ledger.benchmark:
            level = 0.6 * ledger.benchmark[name][0] + 0.004
        raw[name] = level * float(rng.lognormal(0, 0.6))
    index, rate = one.added.futures
    notional = {index: float(rng.uniform(0.03, 0.07)), rate: -float(rng.uniform(0.015, 0.04))}
    cash = float(rng.uniform(0.02, 0.05))
    total = math.fsum(level for name, level in raw.items() if name not in notional)
    weights = {name: (1 - cash) * level / total for name, level in raw.items()} | notional
    units = {name: weight * nav / one.prices[name] for name, weight in weights.items()}
    return round_quantities(one, units), cash * nav


def _trading(world: CommitteeWorld, units: Mapping[str, float], nav: float, rng: np.random.Generator) -> QuarterTrades:
    """Draw the quarter's settled trades and add the pending ones of the blotter."""
    ledger, gone = world.ledger, {order.replaces for order in world.ledger.orders}
    orders = [
        one for one in ledger.orders if one.trade not in gone and one.trade_date <= ledger.as_of < one.settle_date
    ]
    pending = [one.quantity * one.price * units[one.security] for one in orders]
    used = [round(float(rng.uniform(0.01, 0.05)) * nav, 2) for _ in range(2)]
    bought, sold = math.fsum(max(one, 0.0) for one in pending), math.fsum(max(-one, 0.0) for one in pending)
    return QuarterTrades(used[0], used[1], bought, sold)
