"""Tiingo, `/tiingo/daily/SYMBOL/prices`: a JSON list of rows by day; the key goes into a header.

`close` is as traded, `adjClose` adjusted for splits and dividends; `splitFactor` is 1 on days without a split. An
unknown symbol is a 404 with `{"detail": ...}`; an exhausted allowance is a 429, or a 200 with words in place of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from finskillbench.fetch.http.addresses import Addresses
from finskillbench.fetch.http.client import Question
from finskillbench.fetch.http.contents import ContentError, NothingError, first_words, json_of
from finskillbench.fetch.prices.table import Session, csv_of, day_of, number, required
from finskillbench.fetch.window import Window
from finskillbench.sources.records import as_list, as_object

KEY = "TIINGO_API_KEY"


def questions(symbol: str, window: Window, addresses: Addresses, key: str) -> tuple[Question, ...]:
    """The one question about a symbol. Rows to this day are asked for: a later split changes what earlier ones are."""
    url = (
        f"{addresses.tiingo}/tiingo/daily/{quote(symbol.lower())}/prices?startDate={window.prices_from}"
        f"&endDate={window.last}&format=json"
    )
    headers = {"Authorization": f"Token {key}", "Accept": "application/json"}
    return (Question("tiingo", url, lambda body: _refuse(body), headers),)


def file_of(symbol: str, bodies: Sequence[bytes], window: Window) -> bytes:
    """The price file of an answer."""
    del symbol  # rows do not name theirs
    rows = _rows(bodies[0])
    sessions: list[Session] = []
    factor = 1.0
    for row in reversed(rows):
        split = number(row, "splitFactor") or 1.0
        volume, paid = number(row, "volume"), number(row, "divCash") or 0.0
        sessions.append(
            Session(
                day_of(row.get("date")),
                _over(number(row, "open"), factor),
                _over(number(row, "high"), factor),
                _over(number(row, "low"), factor),
                required(row, "close") / factor,
                required(row, "adjClose"),
                _over(volume, 1 / factor),
                paid / factor,
                0.0 if split == 1.0 else split,
            )
        )
        # What the shares were before this day is divided by its split and by all later ones.
        factor *= split
    return csv_of(reversed(sessions), window)


def _over(value: float | None, factor: float) -> float | None:
    return None if value is None else value / factor


def _refuse(body: bytes) -> None:
    for row in _rows(body):
        day_of(row.get("date"))
        required(row, "close")
        required(row, "adjClose")


def _rows(body: bytes) -> list[dict[str, object]]:
    rows = as_list(json_of(body))
    if rows is None:
        # An allowance that is used up is told in an object with `detail`, or as a text, with 200.
        raise ContentError(f"no list of rows: {first_words(body)!r}", hopeless=True)
    found = [record for record in map(as_object, rows) if record is not None]
    if len(found) != len(rows):
        raise ContentError("a row that is no object")
    if not found:
        raise NothingError("no rows")
    return found
