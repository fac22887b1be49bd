"""Prices of hosted models: a dated table in this package, overridden entry by entry by a user's file.

A model's price is its exact entry, else the longest matching entry that ends in `*`, else unknown. Batch shares are
found likewise and default to 1. `openai/gpt-5` does not price `openai/gpt-5.9`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import orjson

from finskillbench.errors import InputError
from finskillbench.harness.model import Usage
from finskillbench.scoring.values import as_number, is_object

PROGRAMS = "baseline/"
"""Prefix of the names of programs, which cost nothing."""
_CATALOG = "prices.json"


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens: input, input read from a cache, input written to one, and output."""

    input: float
    cached_input: float
    cache_write: float
    output: float

    def cost(self, usage: Usage) -> float:
        """Return the US dollars for the known part of `usage`; reasoning is billed as output."""
        cached, written = usage.cached_tokens or 0, usage.cache_write_tokens or 0
        fresh = (usage.input_tokens or 0) - cached - written
        output = (usage.output_tokens or 0) * self.output
        return (fresh * self.input + cached * self.cached_input + written * self.cache_write + output) / 1e6

    def scaled(self, share: float) -> Price:
        """Multiply every price by `share`."""
        return Price(self.input * share, self.cached_input * share, self.cache_write * share, self.output * share)


NO_CHARGE = Price(0.0, 0.0, 0.0, 0.0)
_FIELDS = tuple(each.name for each in fields(Price))


@dataclass(frozen=True, slots=True)
class PriceTable:
    """Prices by name or by `prefix*` as of a date; `batch` is the price share, 0 to 1, of batch requests."""

    prices: Mapping[str, Price]
    as_of: str
    batch: Mapping[str, float] = field(default_factory=dict[str, float])

    def __reduce__(self) -> tuple[type[PriceTable], tuple[object, ...]]:
        """Pickle read-only mappings as dictionaries."""
        return PriceTable, (dict(self.prices), self.as_of, dict(self.batch))

    @classmethod
    def load(cls, path: Path | None = None) -> PriceTable:
        """Return the built-in table, with entries replaced by those of the user's file at `path`.

        The file is an object of entries, or has them under "prices" and batch shares under "batch". `cached_input` and
        `cache_write` default to the input price. Raises `InputError` for an unreadable file or an invalid entry.
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
        prices = MappingProxyType({**catalog.prices, **_read(content, str(path))})
        return cls(prices, catalog.as_of, MappingProxyType({**catalog.batch, **_read_batch(content, str(path))}))

    def price_of(self, model: str) -> Price | None:
        """Return the price of `model`, None if unknown."""
        return NO_CHARGE if model.startswith(PROGRAMS) else _entry(self.prices, model)

    def batched(self) -> PriceTable:
        """Return the table for batch requests."""
        shares = {name: _entry(self.batch, name.removesuffix("*")) for name in self.prices}
        prices = {
            name: price.scaled(1.0 if (share := shares[name]) is None else share) for name, price in self.prices.items()
        }
        return PriceTable(MappingProxyType(prices), self.as_of)


@cache
def _catalog() -> PriceTable:
    content = orjson.loads(resources.files(__package__ or "").joinpath(_CATALOG).read_bytes())
    batch = MappingProxyType(_read_batch(content, _CATALOG))
    return PriceTable(MappingProxyType(_read(content, _CATALOG)), content["as_of"], batch)


T = TypeVar("T")


def _entry(entries: Mapping[str, T], model: str) -> T | None:
    if model in entries:
        return entries[model]
    patterns = [name for name in entries if name.endswith("*") and model.startswith(name[:-1])]
    return entries[max(patterns, key=len)] if patterns else None


def _read(content: object, file: str) -> dict[str, Price]:
    if not is_object(content):
        raise InputError(f"{file}: must be a JSON object of model names and their prices")
    entries = content.get("prices", content)
    if not is_object(entries):
        raise InputError(f"{file}: prices must be a JSON object of model names and their prices")
    return {name: _price(entry, f"{file}: {name}") for name, entry in entries.items()}


def _read_batch(content: object, file: str) -> dict[str, float]:
    if not is_object(content) or "prices" not in content or "batch" not in content:
        return {}
    entries = content["batch"]
    if not is_object(entries):
        raise InputError(f"{file}: batch must be a JSON object of model names and shares of their price")
    shares: dict[str, float] = {}
    for name, value in entries.items():
        share = as_number(value)
        if share is None or not 0 <= share <= 1:
            raise InputError(f"{file}: batch.{name} is {value!r}; it must be a share of the price, from 0 to 1")
        shares[name] = share
    return shares


def _price(entry: object, where: str) -> Price:
    if not is_object(entry):
        raise InputError(f"{where} must be a JSON object with input and output in US dollars per million tokens")
    for name in entry:
        if name not in _FIELDS:
            raise InputError(f"{where}.{name} is unknown; an entry has {', '.join(_FIELDS)}")
    for name in ("input", "output"):
        if name not in entry:
            raise InputError(f"{where}.{name} is missing; give US dollars per million tokens")
    for name, value in entry.items():
        price = as_number(value)
        if price is None or price < 0:
            raise InputError(f"{where}.{name} is {value!r}; it must be US dollars per million tokens, not below zero")
    complete = {"cached_input": entry["input"], "cache_write": entry["input"], **entry}
    return Price(**{name: float(value) for name, value in complete.items()})
