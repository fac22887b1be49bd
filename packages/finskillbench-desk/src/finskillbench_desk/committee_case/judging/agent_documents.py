"""An agent's own rules and book, out of whatever JSON it submitted.

What a judge knows of a case: read from the withheld truth, so that no table is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from finskillbench.episode import JsonObject, Truth
from finskillbench.scoring.values import array, keyed_numbers, mapping, number, numbers, objects, text
from finskillbench.sums import exact_sum
from finskillbench_desk.committee_case.ledger.nouns import Planted
from finskillbench_desk.engines.books.figures import Risk
from finskillbench_desk.engines.guidelines.book import FUTURES, Book, Instrument, Position, Trading
from finskillbench_desk.engines.guidelines.cure import Terms
from finskillbench_desk.engines.guidelines.language import Rule, rule_json
from finskillbench_desk.engines.guidelines.parsing import parse_rules


def instrument_json(line: Instrument) -> dict[str, Any]:
    """An instrument as the truth keeps it."""
    return {
        "name": line.name,
        "kind": line.kind,
        "issuer": line.issuer,
        "sector": line.sector,
        "sub_sector": line.sub_sector,
        "country": line.country,
        "currency": line.currency,
        "lists": sorted(line.lists),
        "benchmark": line.benchmark,
        "attributes": dict(line.attributes),
        "holdings": dict(line.holdings),
    }


def _instrument(data: Mapping[str, Any]) -> Instrument:
    words: Mapping[str, Any] = {**data, "lists": frozenset(data["lists"])}
    return Instrument(**words)


@dataclass(frozen=True)
class Facts:
    """The truth of a case, parsed: `expected` is the true answer, `known` the rest of what a judge needs."""

    expected: JsonObject
    known: Mapping[str, Any]

    @classmethod
    def of(cls, truth: Truth) -> Facts:
        """The facts of a truth."""
        return cls(truth.expected_output, mapping(truth.verification))

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The true rules."""
        return parse_rules(self.expected["rules"])[0]

    @cached_property
    def lines(self) -> dict[str, Instrument]:
        """Every instrument by name, with its true sector and size; cash is one of them."""
        return {data["name"]: _instrument(data) for data in self.known["instruments"]}

    @cached_property
    def prices(self) -> dict[str, float]:
        """True dollars of one unit, by security."""
        return numbers(self.known["prices"])

    @cached_property
    def planted(self) -> list[Planted]:
        """Traps and controls in the data."""
        return [Planted(**data) for data in objects(self.known["planted"])]

    @cached_property
    def trading(self) -> Trading:
        """The quarter's trades before the cure."""
        return Trading(*self.known["trading"])

    @cached_property
    def terms(self) -> Terms:
        """What trading costs."""
        return Terms(numbers(self.known["rates"]))

    @cached_property
    def positions(self) -> dict[str, tuple[float, float]]:
        """True units and value by security held."""
        book = self.expected["book"]["positions"]
        return {row["security"]: (row["quantity"], row["value"]) for row in book}

    @cached_property
    def book(self) -> Book:
        """The true book."""
        values = {name: value for name, (_, value) in self.positions.items()}
        return self.book_of(values, float(self.expected["book"]["cash"]), self.lines, self.trading)

    def book_of(
        self, values: Mapping[str, float], cash: float, lines: Mapping[str, Instrument], trading: Trading
    ) -> Book:
        """A book of values (of futures notionals) by security."""
        positions = [Position(lines["CASH"], cash)]
        for name, value in values.items():
            future = lines[name].kind in FUTURES
            positions.append(Position(lines[name], *((0.0, value) if future else (value, 0.0))))
        others = tuple(line for name, line in lines.items() if name not in values and name != "CASH")
        return Book(tuple(positions), others, trading)

    @cached_property
    def risk(self) -> Risk:
        """What the figures take from the market."""
        leverage = numbers(self.known["leverage"])
        issuers = tuple(name for name, line in self.lines.items() if line.benchmark > 0)
        model = np.array([self.known["risk_model"][name] for name in issuers], dtype=np.float64)
        benchmark = np.array([self.lines[name].benchmark / 100 for name in issuers], dtype=np.float64)
        return Risk(issuers, model[:, 1:], model[:, 0], benchmark, leverage)


LARGEST = 1e15
"""Dollars beyond which a number is a typing error."""
_FIELDS = ("sector", "shares_outstanding")


@dataclass(frozen=True)
class Own:
    """What an answer says, its earlier parts as a judge of later ones takes them."""

    facts: Facts
    answer: JsonObject

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that can be read."""
        return parse_rules(self.answer.get("rules"))[0]

    @cached_property
    def quantities(self) -> dict[str, float]:
        """Units by security."""
        return self._rows("quantity")

    @cached_property
    def values(self) -> dict[str, float]:
        """Dollars by security that there is, of futures notionals."""
        return self._rows("value")

    def _rows(self, field: str) -> dict[str, float]:
        found = keyed_numbers(mapping(self.answer.get("book")).get("positions"), "security", field)
        known = self.facts.lines
        return {name: value for name, value in found.items() if name in known and abs(value) < LARGEST and value}

    @cached_property
    def cash(self) -> float:
        """Dollars of cash."""
        return self._amount("cash")

    def _amount(self, field: str) -> float:
        value = number(mapping(self.answer.get("book")).get(field))
        return value if value is not None and abs(value) < LARGEST else 0.0

    @cached_property
    def replaced(self) -> dict[tuple[str, str], str | float]:
        """Issuer and field to what the agent took in place of the vendor's."""
        found: dict[tuple[str, str], str | float] = {}
        for row in objects(mapping(self.answer.get("book")).get("replaced")):
            issuer, field, value = text(row.get("issuer")), text(row.get("field")), row.get("value")
            amount = text(value) if field == "sector" else number(value)
            if issuer is not None and field in _FIELDS and amount is not None:
                found[issuer, field] = amount
        return found

    @cached_property
    def lines(self) -> dict[str, Instrument]:
        """The instruments as the agent sees them: the vendor's sectors and counts of shares, and what it replaced."""
        vendor = mapping(self.facts.known["vendor"])
        lines: dict[str, Instrument] = {}
        for name, line in self.facts.lines.items():
            given = vendor.get(line.issuer)
            if given is None:
                lines[name] = line
                continue
            sector: str = self._field(line.issuer, "sector", given["sector"])
            shares: float = self._field(line.issuer, "shares_outstanding", given["shares"])
            attributes = dict(line.attributes)
            if "market_cap" in attributes:
                attributes["market_cap"] = shares * self._price(line.issuer)
            lines[name] = replace(line, sector=sector, attributes=attributes)
        return lines

    def _field(self, issuer: str, field: str, vendor: Any) -> Any:
        """A field of the reference file as the agent has it."""
        return self.replaced.get((issuer, field), vendor)

    def _price(self, security: str) -> float:
        """Dollars of a unit as the agent has it, the true one where it does not hold it."""
        units, value = self.quantities.get(security, 0.0), self.values.get(security)
        return abs(value / units) if value is not None and units else self.facts.prices[security]

    @cached_property
    def is_true(self) -> bool:
        """Whether the book is the true one to a thousandth of a basis point of its value."""
        nav, book = self.facts.book.nav, self.facts.book
        if abs(self.cash - float(self.facts.expected["book"]["cash"])) > 1e-7 * nav:
            return False
        truth = {name: value for name, (_, value) in self.facts.positions.items()}
        if any(abs(self.values.get(name, 0.0) - truth.get(name, 0.0)) > 1e-7 * nav for name in {*truth, *self.values}):
            return False
        return self.trading == book.trading and all(
            line.sector == self.facts.lines[name].sector
            and abs(
                line.attributes.get("market_cap", 1.0) / self.facts.lines[name].attributes.get("market_cap", 1.0) - 1
            )
            < 1e-6
            for name, line in self.lines.items()
        )

    @cached_property
    def trading(self) -> Trading:
        """The quarter's trades: the custodian's figures, and what the agent says is pending."""
        used = self.facts.trading
        pending = [abs(self._amount(field)) for field in ("pending_purchases", "pending_sales")]
        truth = (used.pending_purchases, used.pending_sales)
        near = [real if abs(said - real) <= 0.01 else said for said, real in zip(pending, truth, strict=True)]
        return replace(used, pending_purchases=near[0], pending_sales=near[1])

    @cached_property
    def book(self) -> Book | None:
        """The agent's book, None where it is worth nothing."""
        securities = {name: value for name, value in self.values.items() if name != "CASH"}
        worth = exact_sum(value for name, value in securities.items() if self.lines[name].kind not in FUTURES)
        if worth <= 0 or worth + self.cash <= 0:
            return None
        return self.facts.book_of(securities, self.cash, self.lines, self.trading)

    @cached_property
    def same_rules(self) -> bool:
        """Whether the rules are the true ones, word for word."""
        truth = sorted(map(_key, self.facts.rules))
        return sorted(map(_key, self.rules)) == truth

    @cached_property
    def trades(self) -> dict[str, float]:
        """Dollars to trade by security."""
        found = keyed_numbers(self.answer.get("trades"), "security", "value")
        return {
            name: value
            for name, value in found.items()
            if name in self.facts.lines and name != "CASH" and value and abs(value) < LARGEST
        }

    def names(self, field: str) -> set[str]:
        """The words of a list."""
        return {word for item in array(self.answer.get(field)) if (word := text(item)) is not None}


def _key(rule: Rule) -> str:
    return str(sorted(rule_json(rule).items(), key=lambda entry: entry[0]))
