"""Prices of model calls, in US dollars per million tokens: a stub until the adapter's comes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import orjson

from finskillbench.errors import InputError
from finskillbench.harness.model import Usage


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens."""

    input: float
    cached_input: float
    cache_write: float
    output: float

    def cost(self, usage: Usage) -> float:
        """Price of some usage in US dollars."""
        plain = usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens
        return (
            plain * self.input
            + usage.cached_tokens * self.cached_input
            + usage.cache_write_tokens * self.cache_write
            + usage.output_tokens * self.output
        ) / 1e6


NO_CHARGE = Price(0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class PriceTable:
    """Price by model."""

    entries: Mapping[str, Price] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def load(cls, path: Path | None) -> PriceTable:
        """Read a table."""
        if path is None:
            return cls()
        try:
            return cls({name: Price(**entry) for name, entry in orjson.loads(path.read_bytes()).items()})
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise InputError(f"{path}: not a table of prices ({error})") from None

    def of(self, model: str) -> Price | None:
        """The price of a model; None: unknown."""
        return NO_CHARGE if model.startswith("baseline/") else self.entries.get(model)
