"""Factors of Kenneth R. French's library and series of the Federal Reserve Bank of St. Louis."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

from finskillbench.fetch.fetcher import Item
from finskillbench.fetch.http.addresses import Addresses
from finskillbench.fetch.http.client import Question
from finskillbench.fetch.http.contents import ContentError, first_words, rows_of, unzipped
from finskillbench.fetch.window import Window
from finskillbench.sources.market.fred import SERIES

_FACTOR_FILES = {
    "F-F_Research_Data_5_Factors_2x3_daily": rb"Mkt-RF,\s*SMB,\s*HML,\s*RMW,\s*CMA,\s*RF",
    "F-F_Momentum_Factor_daily": rb"Mom",
}
"""Daily files that a build reads, and the end of the header of each. They lie in archives named `..._CSV.zip`."""


def factor_items(addresses: Addresses) -> Iterator[Item]:
    """The two archives of daily factors, each unpacked. The library replaces them as a whole every month."""
    for name, header in _FACTOR_FILES.items():
        question = Question("french", f"{addresses.french}/{name}_CSV.zip", partial(_factors, header))
        yield Item(f"famafrench/{name}.csv", (question,), _unpacked)


def series_items(window: Window, addresses: Addresses) -> Iterator[Item]:
    """Every series that a build reads, from its first day to the end of the window."""
    for series in SERIES:
        url = f"{addresses.fred}/graph/fredgraph.csv?id={series}&cosd={window.prices_from}&coed={window.last}"
        headers = (f"observation_date,{series}", f"DATE,{series}")
        yield Item(f"fred/{series}.csv", (Question("fred", url, partial(_series, headers)),))


def _unpacked(bodies: Sequence[bytes]) -> bytes:
    return unzipped(bodies[0])


def _factors(header: bytes, body: bytes) -> None:
    table = unzipped(body)
    if not re.search(rb"^(Date)?\s*,\s*" + header + rb"\s*$", table, re.MULTILINE):
        raise ContentError(f"no daily factors: {first_words(table)!r}", lasting=True)
    if not re.search(rb"^\s*(\d{8}|\d{4}-\d\d-\d\d)\s*,", table, re.MULTILINE):
        raise ContentError("daily factors without a row", lasting=True)


def _series(headers: Sequence[str], body: bytes) -> None:
    rows_of(body, headers)
