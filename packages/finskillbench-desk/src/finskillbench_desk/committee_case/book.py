"""From holdings to the book that rules are run on: every line as an instrument, cash as a position."""

from __future__ import annotations

from collections.abc import Mapping

from finskillbench_desk.committee_case.ledger.nouns import Holdings, Ledger, Security
from finskillbench_desk.engines.guidelines.book import FUTURES, Book, Instrument, Position, Trading

CASH = Instrument("CASH", "cash", "CUSTODIAN", country="US", currency="USD")
"""All cash, accruals and payables together, with the custodian."""


def book_of(ledger: Ledger, holdings: Holdings, trading: Trading) -> Book:
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
