"""Parse the stored truth of a case, and rules and book out of any submitted JSON; no table is needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from finskillbench.episode import JsonObject, Truth
from finskillbench.scoring.values import as_array, as_number, as_object, as_text, keyed_numbers, numbers, objects
from finskillbench.sums import exact_sum
from finskillbench_desk.committee_case.ledger.records import Planted
from finskillbench_desk.engines.books.figures import Risk
from finskillbench_desk.engines.guidelines.book import FUTURES, Book, Instrument, Position, QuarterTrades
from finskillbench_desk.engines.guidelines.cure import CureRules
from finskillbench_desk.engines.guidelines.language import Rule, rule_json
from finskillbench_desk.engines.guidelines.parsing import parse_rules


def instrument_json(line: Instrument) -> dict[str, Any]:
    return asdict(line) | {"lists": sorted(line.lists)}


@dataclass(frozen=True)
class Facts:
    """Parsed truth of a case: `expected` is the true answer, `known` the other verification data."""

    expected: JsonObject
    known: Mapping[str, Any]

    @classmethod
    def of(cls, truth: Truth) -> Facts:
        return cls(truth.expected_output, as_object(truth.verification))

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        return parse_rules(self.expected["rules"])[0]

    @cached_property
    def lines(self) -> dict[str, Instrument]:
        """All instruments by name, with true sector and size; includes cash."""
        stored: list[dict[str, Any]] = self.known["instruments"]
        known: list[dict[str, Any]] = [{**data, "lists": frozenset(data["lists"])} for data in stored]
        return {data["name"]: Instrument(**data) for data in known}

    @cached_property
    def prices(self) -> dict[str, float]:
        """True dollars per unit, by security."""
        return numbers(self.known["prices"])

    @cached_property
    def planted(self) -> list[Planted]:
        return [Planted(**data) for data in objects(self.known["planted"])]

    @cached_property
    def trading(self) -> QuarterTrades:
        return QuarterTrades(*self.known["trading"])

    @cached_property
    def trading_costs(self) -> CureRules:
        return CureRules(numbers(self.known["rates"]))

    @cached_property
    def positions(self) -> dict[str, tuple[float, float]]:
        book = self.expected["book"]["positions"]
        return {row["security"]: (row["quantity"], row["value"]) for row in book}

    @cached_property
    def book(self) -> Book:
        values = {name: value for name, (_, value) in self.positions.items()}
        return self.book_of(values, float(self.expected["book"]["cash"]), self.lines, self.trading)

    def book_of(
        self, values: Mapping[str, float], cash: float, lines: Mapping[str, Instrument], trading: QuarterTrades
    ) -> Book:
        """Return a book from values by security (notionals for futures)."""
        securities = [Position.of(lines[name], value) for name, value in values.items()]
        unheld = tuple(line for name, line in lines.items() if name not in values and name != "CASH")
        return Book((Position(lines["CASH"], cash), *securities), unheld, trading)

    @cached_property
    def risk(self) -> Risk:
        leverage = numbers(self.known["leverage"])
        issuers = tuple(name for name, line in self.lines.items() if line.benchmark > 0)
        model = np.array([self.known["risk_model"][name] for name in issuers], dtype=np.float64)
        benchmark = np.array([self.lines[name].benchmark / 100 for name in issuers], dtype=np.float64)
        return Risk(issuers, model[:, 1:], model[:, 0], benchmark, leverage)


LARGEST = 1e15
"""Dollars beyond which a number is ignored as a typing error."""
_FIELDS = ("sector", "shares_outstanding")


@dataclass(frozen=True)
class SubmittedAnswer:
    """Parsed answer of an agent, with its earlier parts in the form that later parts are scored against."""

    facts: Facts
    answer: JsonObject

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        return parse_rules(self.answer.get("rules"))[0]

    @cached_property
    def quantities(self) -> dict[str, float]:
        return self._rows("quantity")

    @cached_property
    def values(self) -> dict[str, float]:
        """Dollars by security; notionals for futures."""
        return self._rows("value")

    def _rows(self, field: str) -> dict[str, float]:
        found = keyed_numbers(as_object(self.answer.get("book")).get("positions"), "security", field)
        known = self.facts.lines
        return {name: value for name, value in found.items() if name in known and abs(value) < LARGEST and value}

    @cached_property
    def cash(self) -> float:
        return self._amount("cash")

    def _amount(self, field: str) -> float:
        value = as_number(as_object(self.answer.get("book")).get(field))
        return value if value is not None and abs(value) < LARGEST else 0.0

    @cached_property
    def replaced(self) -> dict[tuple[str, str], str | float]:
        """Replacement values by issuer and field."""
        found: dict[tuple[str, str], str | float] = {}
        for row in objects(as_object(self.answer.get("book")).get("replaced")):
            issuer, field, value = as_text(row.get("issuer")), as_text(row.get("field")), row.get("value")
            amount = as_text(value) if field == "sector" else as_number(value)
            if issuer is not None and field in _FIELDS and amount is not None:
                found[issuer, field] = amount
        return found

    @cached_property
    def lines(self) -> dict[str, Instrument]:
        """All instruments with the vendor's sectors and share counts, or the agent's replacements."""
        vendor = as_object(self.facts.known["vendor"])
        lines: dict[str, Instrument] = {}
        for name, line in self.facts.lines.items():
            vendor_row = vendor.get(line.issuer)
            if vendor_row is None:
                lines[name] = line
                continue
            sector: Any = self.replaced.get((line.issuer, "sector"), vendor_row["sector"])
            shares: Any = self.replaced.get((line.issuer, "shares_outstanding"), vendor_row["shares"])
            attributes = dict(line.attributes)
            if "market_cap" in attributes:
                attributes["market_cap"] = shares * self._price(line.issuer)
            lines[name] = replace(line, sector=sector, attributes=attributes)
        return lines

    def _price(self, security: str) -> float:
        """Return dollars per unit in the agent's book; the true price if it does not hold the security."""
        units, value = self.quantities.get(security, 0.0), self.values.get(security)
        return abs(value / units) if value is not None and units else self.facts.prices[security]

    @cached_property
    def is_true(self) -> bool:
        """True if each value of the book is within 1e-7 of net asset value of the truth."""
        nav, book = self.facts.book.nav, self.facts.book
        if abs(self.cash - float(self.facts.expected["book"]["cash"])) > 1e-7 * nav:
            return False
        truth = {name: value for name, (_, value) in self.facts.positions.items()}
        if any(abs(self.values.get(name, 0.0) - truth.get(name, 0.0)) > 1e-7 * nav for name in {*truth, *self.values}):
            return False
        return self.trading == book.trading and all(
            line.sector == real.sector
            and abs(line.attributes.get("market_cap", 1.0) / real.attributes.get("market_cap", 1.0) - 1) < 1e-6
            for line, real in zip(self.lines.values(), self.facts.lines.values(), strict=True)
        )

    @cached_property
    def trading(self) -> QuarterTrades:
        """Settled trades of the custodian and the agent's pending trades."""
        used = self.facts.trading
        pending = [abs(self._amount(field)) for field in ("pending_purchases", "pending_sales")]
        truth = (used.pending_purchases, used.pending_sales)
        near = [real if abs(stated - real) <= 0.01 else stated for stated, real in zip(pending, truth, strict=True)]
        return replace(used, pending_purchases=near[0], pending_sales=near[1])

    @cached_property
    def book(self) -> Book | None:
        """The agent's book; None unless its value is positive."""
        securities = {name: value for name, value in self.values.items() if name != "CASH"}
        worth = exact_sum(value for name, value in securities.items() if self.lines[name].kind not in FUTURES)
        if worth <= 0 or worth + self.cash <= 0:
            return None
        return self.facts.book_of(securities, self.cash, self.lines, self.trading)

    @cached_property
    def same_rules(self) -> bool:
        """True if the rules equal the true ones."""
        return sorted(map(_key, self.rules)) == sorted(map(_key, self.facts.rules))

    @cached_property
    def trades(self) -> dict[str, float]:
        found, lines = keyed_numbers(self.answer.get("trades"), "security", "value"), {*self.facts.lines} - {"CASH"}
        return {name: value for name, value in found.items() if name in lines and value and abs(value) < LARGEST}

    def names(self, field: str) -> set[str]:
        return {word for item in as_array(self.answer.get(field)) if (word := as_text(item)) is not None}


def _key(rule: Rule) -> str:
    return str(sorted(rule_json(rule).items(), key=lambda entry: entry[0]))
