"""What hosted models cost: a dated table beside this module, which a user's own file overrides entry by entry.

A name is priced by its exact entry, else by the longest entry that ends in `*` and matches its beginning; a name
without either has no known price. There is no rule that guesses: `openai/gpt-5` says nothing about `openai/gpt-5.9`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType

import orjson

from finskillbench.errors import InputError
from finskillbench.harness.model import Usage
from finskillbench.scoring.values import is_object, number

PROGRAMS = "baseline/"
"""Names that begin so are programs and cost nothing."""
_CATALOG = "prices.json"


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens: input, input read from a cache, input written to one, and output."""

    input: float
    cached_input: float
    cache_write: float
    output: float

    def cost(self, usage: Usage) -> float:
        """US dollars for `usage`; reasoning is part of the output and billed with it."""
        fresh = usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens
        return (
            fresh * self.input
            + usage.cached_tokens * self.cached_input
            + usage.cache_write_tokens * self.cache_write
            + usage.output_tokens * self.output
        ) / 1e6


NO_CHARGE = Price(0.0, 0.0, 0.0, 0.0)
_FIELDS = tuple(field.name for field in fields(Price))


@dataclass(frozen=True, slots=True)
class PriceTable:
    """Prices by name or by `beginning*`; `as_of` is the day of the table's figures."""

    prices: Mapping[str, Price]
    as_of: str

    @classmethod
    def load(cls, path: Path | None = None) -> PriceTable:
        """The catalog's table, in which the entries of the user's file at `path` replace those of the same name.

        The file is an object of entries, or has them under "prices" as the catalog does. An entry holds `input` and
        `output`, and may hold `cached_input` and `cache_write`, which are else as dear as input.

        Raises
        ------
        InputError : the file cannot be read, or holds an entry that is no price.
        """
        catalog = _catalog()
        if path is None:
            return catalog
        try:
            content = orjson.loads(path.read_bytes())
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror})") from None
        except orjson.JSONDecodeError as error:
            raise InputError(f"{path}: not valid JSON ({error})") from None
        return cls(MappingProxyType({**catalog.prices, **_read(content, str(path))}), catalog.as_of)

    def of(self, model: str) -> Price | None:
        """The price of `model`, None where the table does not say."""
        if model.startswith(PROGRAMS):
            return NO_CHARGE
        if model in self.prices:
            return self.prices[model]
        patterns = [name for name in self.prices if name.endswith("*") and model.startswith(name[:-1])]
        return self.prices[max(patterns, key=len)] if patterns else None


@cache
def _catalog() -> PriceTable:
    content = orjson.loads(resources.files(__package__ or "").joinpath(_CATALOG).read_bytes())
    return PriceTable(MappingProxyType(_read(content, _CATALOG)), content["as_of"])


def _read(content: object, file: str) -> dict[str, Price]:
    if not is_object(content):
        raise InputError(f"{file}: must be a JSON object of model names and their prices")
    entries = content.get("prices", content)
    if not is_object(entries):
        raise InputError(f"{file}: prices must be a JSON object of model names and their prices")
    return {name: _price(entry, f"{file}: {name}") for name, entry in entries.items()}


def _price(entry: object, where: str) -> Price:
    if not is_object(entry):
        raise InputError(f"{where} must be a JSON object with input and output in US dollars per million tokens")
    for field in entry:
        if field not in _FIELDS:
            raise InputError(f"{where}.{field} is unknown; an entry has {', '.join(_FIELDS)}")
    for field in ("input", "output"):
        if field not in entry:
            raise InputError(f"{where}.{field} is missing; give US dollars per million tokens")
    for field, value in entry.items():
        price = number(value)
        if price is None or price < 0:
            raise InputError(f"{where}.{field} is {value!r}; it must be US dollars per million tokens, not below zero")
    dear = {"cached_input": entry["input"], "cache_write": entry["input"], **entry}
    return Price(**{field: float(value) for field, value in dear.items()})
