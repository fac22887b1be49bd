"""Drawing one case: the true book, guidelines that fit it, what it breaks, and the cheapest cure.

Where a book stands against rules: what it is in breach of, and what it may not hold at all.

From holdings to the book that rules are run on: every line as an instrument, cash as a position.
"""

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
from finskillbench_desk.committee_case.ledger.case import KINDS, Draft, World, draft, papers_of, whole
from finskillbench_desk.committee_case.ledger.nouns import Holdings, Ledger, Security
from finskillbench_desk.engines.books.figures import Risk
from finskillbench_desk.engines.guidelines.book import FUTURES, Book, Instrument, Position, Trading
from finskillbench_desk.engines.guidelines.cure import Cure, Terms, after, cheapest_cure
from finskillbench_desk.engines.guidelines.evaluation import evaluate, matches
from finskillbench_desk.engines.guidelines.language import Rule
from finskillbench_desk.market import Listed as Member


def breached(rules: Sequence[Rule], book: Book) -> tuple[str, ...]:
    """Numbers of the clauses that a book is in breach of, sorted."""
    return tuple(sorted({outcome.rule.clause for outcome in evaluate(rules, book) if outcome.state == "breach"}))


def forbidden(rules: Sequence[Rule], book: Book) -> tuple[str, ...]:
    """Lines of which the rules allow none: a weight of at most 0 applies to them, whenever it is tested."""
    universe = book.universe
    found = np.zeros(len(universe.instruments), dtype=np.bool_)
    for atom in (atom for rule in rules if rule.effect == "limit" for atom in rule.atoms()):
        none = atom.measure == "weight" and atom.comparison == "at_most" and not atom.limit.relative
        if none and max(term.plus for term in atom.limit.terms) <= 0:
            found |= matches(atom.of, universe)
    out = zip(universe.instruments, found.tolist(), strict=True)
    return tuple(sorted(line.name for line, banned in out if banned and line.kind != "cash"))


CASH = Instrument("CASH", "cash", "CUSTODIAN", country="US", currency="USD")
"""All cash, accruals and payables together, with the custodian."""


def _book_of(ledger: Ledger, holdings: Holdings, trading: Trading) -> Book:
    """The book of these holdings, with every line that can be traded."""
    instruments = {name: instrument_of(line, ledger, holdings) for name, line in ledger.securities.items()}
    positions = [Position(CASH, holdings.cash)]
    for name, units in holdings.quantities.items():
        amount = units * holdings.prices[name]
        future = ledger.securities[name].kind in FUTURES
        positions.append(Position(instruments[name], *((0.0, amount) if future else (amount, 0.0))))
    held = {position.instrument.name for position in positions}
    others = tuple(each for name, each in instruments.items() if name not in held)
    return Book(tuple(positions), others, trading)


def instrument_of(line: Security, ledger: Ledger, holdings: Holdings) -> Instrument:
    """One line with what rules ask about it; the size of a company is its count of shares at its first line's price."""
    attributes: dict[str, float] = {}
    if line.kind in ("share", "preferred", "receipt"):
        attributes["market_cap"] = holdings.shares[line.issuer] * holdings.prices[line.issuer]
    given: Mapping[str, float | None] = {
        "adv": line.adv,
        "rating": line.rating,
        "maturity": line.maturity,
        "beta": line.beta,
    }
    attributes |= {name: float(value) for name, value in given.items() if value is not None}
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
"""Data traps by tier; more of them would cost less than a tenth of the book each."""
CONTROLS: Mapping[str, int] = {"easy": 2, "medium": 2, "hard": 3}
"""Places, about a third of all, where what looks like a trap is in order."""
BREACHES: Mapping[str, int] = {"easy": 6, "medium": 7, "hard": 8}
FEWEST_BREACHES = 4
FEWEST_TRADES = 8
"""Breaches and trades of a cure below which a case is drawn again: a sale or two is no program."""
CLEARLY = 0.004
"""How far, in the unit of its limit, a true book is from any limit at least: rounding decides nothing."""
NOTICED = 1e-5
"""Fraction of net asset value from which a trade is one: smaller ones are what the solver leaves."""
_TRIES, _DOCUMENTS = 20, 3
"""Books that are drawn for a case, and documents that are drawn for each."""
_PROGRAMS = 30
"""Programs after which a cure is too hard to be worth waiting for."""
_BANS = ("restricted_list", "affiliated_funds", "country_ban", "sub_sector_ban", "longest_maturity")


@dataclass(frozen=True, eq=False)
class Case:
    """One case with everything that is true of it."""

    tier: str
    world: World
    guidelines: Guidelines
    vocabulary: Vocabulary
    seed: int
    rules: tuple[Rule, ...]
    book: Book
    breaches: tuple[str, ...]
    excluded: tuple[str, ...]
    cure: Cure
    risk: Risk


def rates_of(ledger: Ledger) -> Terms:
    """What trading each line costs, as a fraction of its value."""
    return Terms({name: line.cost / 1e4 for name, line in ledger.securities.items()})


def draw_case(
    panels: Panels, members: Sequence[Member], as_of: date, tier: str, number: int, rng: np.random.Generator
) -> Case:
    """The case of one number, drawn again until its cure is certified.

    Raises
    ------
    InputError : the market of the day allows none after many tries.
    """
    for _ in range(_TRIES):
        wanted = _wanted(tier, number, rng)
        one = draft(panels, members, as_of, wanted, rng)
        quantities, cash = _sizes(one, rng)
        world = papers_of(one, quantities, cash, rng)
        nav = cash + math.fsum(
            units * one.prices[name]
            for name, units in quantities.items()
            if one.ledger.securities[name].kind not in FUTURES
        )
        book = _book_of(world.ledger, world.holdings, _trading(world, one.units, nav, rng))
        for _ in range(_DOCUMENTS):
            case = _judged(tier, number, world, book, risk_of(world.ledger), rng)
            if case is not None:
                return case
    raise InputError(f"committee_case: no case of {as_of} has a certified cure; leave the day out")


def risk_of(ledger: Ledger) -> Risk:
    """What the figures take from the risk model and the issuers' last filings."""
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


def _judged(tier: str, number: int, world: World, book: Book, risk: Risk, rng: np.random.Generator) -> Case | None:
    """The case with guidelines drawn for its book; None where they allow no cure, or a limit is too near."""
    names = {name: f"{name.title()} {_ENDINGS[int(rng.integers(len(_ENDINGS)))]}" for name in world.ledger.benchmark}
    vocabulary = Vocabulary(names)
    try:
        guidelines = draw_guidelines(
            rng, vocabulary, world.ledger.as_of, book, BREACHES[tier], (_BANS[number % len(_BANS)], *rotation(number))
        )
        rules = guidelines.rules()
        if any(abs(each.measured - each.limit) < CLEARLY and each.limit != 0 for each in evaluate(rules, book)):
            return None
        found = breached(rules, book)
        if len(found) < FEWEST_BREACHES:
            return None
        cure = cheapest_cure(rules, book, rates_of(world.ledger), most_programs=_PROGRAMS)
    except (InputError, InfeasibleError, UndecidedError):
        return None
    cured = after(book, cure.trades)
    trades = sum(abs(value) > NOTICED * book.nav for value in cure.trades.values())
    if breached(rules, cured) or trades < FEWEST_TRADES:
        return None
    seed = int(rng.integers(2**31))
    return Case(tier, world, guidelines, vocabulary, seed, rules, book, found, forbidden(rules, book), cure, risk)


_ENDINGS = ("Group", "Holdings", "Corporation", "Industries", "International")


def _wanted(tier: str, number: int, rng: np.random.Generator) -> tuple[tuple[str, bool], ...]:
    """Kinds of traps in turn, so that every one comes up; controls of random kinds, in random places among them."""
    kinds = [KINDS[(number + step) % len(KINDS)] for step in range(TRAPS[tier])]
    controls = permuted(KINDS, rng)[: CONTROLS[tier]]
    return tuple(permuted([*((kind, True) for kind in kinds), *((kind, False) for kind in controls)], rng))


def _sizes(one: Draft, rng: np.random.Generator) -> tuple[dict[str, float], float]:
    """True units of each line, and cash in dollars."""
    nav, ledger = float(rng.uniform(1.5e9, 6e9)), one.ledger
    typical = {
        "fund": 0.022,
        "corporate_bond": 0.006,
        "convertible": 0.005,
        "government_bond": 0.012,
        "preferred": 0.004,
    }
    raw: dict[str, float] = {}
    for name in one.roles.held:
        line = ledger.securities[name]
        level = typical.get(line.kind, 0.006)
        if name in ledger.benchmark:
            level = 0.6 * ledger.benchmark[name][0] + 0.004
        raw[name] = level * float(rng.lognormal(0, 0.6))
    index, rate = one.own.futures
    notional = {index: float(rng.uniform(0.03, 0.07)), rate: -float(rng.uniform(0.015, 0.04))}
    cash = float(rng.uniform(0.02, 0.05))
    total = math.fsum(level for name, level in raw.items() if name not in notional)
    weights = {name: (1 - cash) * level / total for name, level in raw.items()} | notional
    return whole(one, {name: weight * nav / one.prices[name] for name, weight in weights.items()}), cash * nav


def _trading(world: World, units: Mapping[str, float], nav: float, rng: np.random.Generator) -> Trading:
    """The quarter's trades: those settled are a statement of the custodian, those pending stand in the blotter."""
    ledger, gone = world.ledger, {order.replaces for order in world.ledger.orders}
    pending = [
        order.quantity * order.price * units[order.security]
        for order in ledger.orders
        if order.trade not in gone and order.trade_date <= ledger.as_of < order.settle_date
    ]
    used = [round(float(rng.uniform(0.01, 0.05)) * nav, 2) for _ in range(2)]
    bought, sold = math.fsum(max(one, 0.0) for one in pending), math.fsum(max(-one, 0.0) for one in pending)
    return Trading(used[0], used[1], bought, sold)
