"""What the second derivation reads of each company, read from the raw files when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import polars as pl

from finskillbench.domains.fundamental.second.filed import AsFiled, FiledRow
from finskillbench.domains.fundamental.second.segments import RawSegments
from finskillbench.sources.edgar.collection import FilingsData
from finskillbench.sources.edgar.numerals import STATEMENT_TAGS

Value = TypeVar("Value")

_KEPT = 600
"""Companies whose figures are kept: the three subtasks ask for them in the same order, and one company's take a
megabyte. Where there are more, those of the others are read again for each subtask."""


class RawCompanies:
    """The figures and the breakdowns of revenue of companies by symbol, as `finskillbench...second` reads them."""

    def __init__(self, filings: FilingsData) -> None:
        self._filings = filings
        self.filed = _Kept(lambda symbol: AsFiled(filings.companies[symbol].facts.select(FiledRow._fields).iter_rows()))
        self.segments = _Kept(lambda symbol: RawSegments(filings.instances.get(symbol, ()), self._rows(symbol)))

    def _rows(self, symbol: str) -> list[dict[str, object]]:
        return self._filings.companies[symbol].facts.filter(pl.col("tag").is_in(STATEMENT_TAGS)).rows(named=True)


class _Kept(Generic[Value]):
    """Values by symbol, each made when it is asked for; the first ones are kept, and of the rest the last."""

    def __init__(self, make: Callable[[str], Value]) -> None:
        self._make = make
        self._first: dict[str, Value] = {}
        self._last: dict[str, Value] = {}

    def __getitem__(self, symbol: str) -> Value:
        if symbol in self._first:
            return self._first[symbol]
        if symbol not in self._last:
            self._last.clear()  # before the next is made: one of them is in memory at a time
            made = self._make(symbol)
            (self._first if len(self._first) < _KEPT else self._last)[symbol] = made
            return made
        return self._last[symbol]
