"""Financial Modeling Prep, `/stable/`: JSON lists, the latest day first; the key goes into a header.

`historical-price-eod/full` is adjusted for splits, `historical-price-eod/dividend-adjusted` for dividends too, `splits`
has the splits. An unknown symbol is an empty list; what a plan does not cover is refused with 402 or 403, and an
exhausted allowance with 429 or an object `{"Error Message": ...}`.
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

KEY = "FMP_API_KEY"


def questions(symbol: str, window: Window, addresses: Addresses, key: str) -> tuple[Question, ...]:
    """The three questions about a symbol: prices, adjusted prices and splits."""
    base, headers = f"{addresses.fmp}/stable", {"apikey": key}
    of = f"symbol={quote(symbol)}"
    within = f"{of}&from={window.prices_from}&to={window.last}"
    return (
        Question("fmp", f"{base}/historical-price-eod/full?{within}", lambda body: _refuse(symbol, body), headers),
        Question(
            "fmp",
            f"{base}/historical-price-eod/dividend-adjusted?{within}",
            lambda body: _refuse(symbol, body),
            headers,
        ),
        Question("fmp", f"{base}/splits?{of}", lambda body: _refuse(symbol, body, empty=True), headers),
    )


def file_of(symbol: str, bodies: Sequence[bytes], window: Window) -> bytes:
    """The price file of the three answers."""
    prices, adjusted, splits = (_rows(symbol, body) for body in bodies)
    closes = {day_of(row.get("date")): required(row, "adjClose") for row in adjusted}
    ratios = {day_of(row.get("date")): required(row, "numerator") / required(row, "denominator") for row in splits}
    sessions: list[Session] = []
    for row in prices:
        day = day_of(row.get("date"))
        if day not in closes:
            raise ContentError(f"no adjusted close of {day}, which has a close", lasting=True)
        sessions.append(
            Session(
                day,
                number(row, "open"),
                number(row, "high"),
                number(row, "low"),
                required(row, "close"),
                closes[day],
                number(row, "volume"),
                split=ratios.get(day, 0.0),
            )
        )
    return csv_of(sorted(sessions, key=lambda one: one.day), window, dividends=False)


def _refuse(symbol: str, body: bytes, *, empty: bool = False) -> None:
    if not _rows(symbol, body) and not empty:
        raise NothingError("an empty list")


def _rows(symbol: str, body: bytes) -> list[dict[str, object]]:
    rows = as_list(json_of(body))
    if rows is None:
        raise ContentError(f"no list of rows: {first_words(body)!r}", hopeless=True)
    found = [record for record in map(as_object, rows) if record is not None]
    if len(found) != len(rows):
        raise ContentError("a row that is no object")
    for row in found:
        if row.get("symbol") != symbol:
            raise ContentError(f"a row of {row.get('symbol')!r} in place of {symbol}")
    return found
