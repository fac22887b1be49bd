"""What a judge knows of a case: read from the withheld truth, so that no table is needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from finskillbench.episode import JsonObject, Truth
from finskillbench.scoring.values import mapping, numbers, objects
from finskillbench_desk.committee_case.ledger.nouns import Planted
from finskillbench_desk.engines.books.figures import Risk
from finskillbench_desk.engines.guidelines.book import FUTURES, Book, Instrument, Position, Trading
from finskillbench_desk.engines.guidelines.cure import Terms
from finskillbench_desk.engines.guidelines.language import Rule
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
