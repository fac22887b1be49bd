"""Whether two figures stand on one basis: what a filing restates of the year before, in plain Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from itertools import pairwise
from typing import Protocol

from finskillbench.domains.fundamental.second.definitions import YEAR_APART, kind_of


class Filed(Protocol):
    """A figure of a filing."""

    @property
    def value(self) -> float: ...
    @property
    def accession(self) -> str: ...


Restated = Mapping[str, set[tuple[str, date]]]
"""Accession to the kinds and last days of the periods of which the filing says another figure than was filed before."""


def restatements_of(versions: Iterable[tuple[date | None, date, Sequence[Filed]]]) -> Restated:
    """What filings restate of one metric, from the versions of each of its periods in order of filing."""
    found: dict[str, set[tuple[str, date]]] = defaultdict(set)
    for start, end, told in versions:
        for before, after in pairwise(told):
            if another(after.value, before.value):
                found[after.accession].add((kind_of(start, end), end))
    return found


def recast(restated: Restated, accession: str, start: date | None, end: date) -> bool:
    """Whether a filing that tells a period restates the same one of the year before."""
    least, most, _ = YEAR_APART
    kind = kind_of(start, end)
    return any(kind == other and least <= (end - before).days <= most for other, before in restated.get(accession, ()))


def another(value: float, before: float) -> bool:
    """Whether two filings' figures differ by more than rounding: 0.05 %, or a unit of the last place up to 1 %."""
    return abs(value - before) > max(1.0, 0.0005 * abs(before), min(unit_of(value), 0.01 * abs(before)))


def slack(*terms: float) -> float:
    """By how much rounded figures may miss a sum: 2.5 units of the last place to which all of them are rounded."""
    return 2.5 * min(map(unit_of, terms))


def unit_of(value: float) -> float:
    """What a figure is rounded to: a million, a hundred thousand, a thousand or one."""
    return next((unit for unit in (1e6, 1e5, 1e3) if value % unit == 0), 1.0)
