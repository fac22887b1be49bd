"""Stooq, `/q/d/l/?s=SYMBOL.us&i=d`: CSV, no key, adjusted for splits and dividends, without telling either.

Every answer is a 200: "No data" of an unknown symbol, "Exceeded the daily hits limit" when it has had enough, and since
July 2026 a page with a task for browsers in place of the CSV. None of them is worked around.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from finskillbench.fetch.http.addresses import Addresses
from finskillbench.fetch.http.client import Question
from finskillbench.fetch.http.contents import ContentError, NothingError, first_words, is_page, rows_of
from finskillbench.fetch.prices.table import day_of
from finskillbench.fetch.window import Window

_HEADER = "Date,Open,High,Low,Close,Volume"


def questions(symbol: str, window: Window, addresses: Addresses) -> tuple[Question, ...]:
    """The one question about a symbol."""
    url = (
        f"{addresses.stooq}/q/d/l/?s={quote(symbol.lower())}.us&d1={window.prices_from:%Y%m%d}"
        f"&d2={window.last:%Y%m%d}&i=d"
    )
    return (Question("stooq", url, _refuse),)


def file_of(symbol: str, bodies: Sequence[bytes], window: Window) -> bytes:
    """The price file of an answer: its rows of the window and the years before."""
    del symbol  # rows do not name theirs
    head, *rows = _lines(bodies[0])
    chosen = [row for row in rows if window.prices_from <= day_of(row.partition(",")[0]) <= window.last]
    if not chosen:
        raise NothingError(f"no session from {window.prices_from} to {window.last}")
    return ("\n".join((head, *chosen)) + "\n").encode()


def _refuse(body: bytes) -> None:
    _lines(body)


def _lines(body: bytes) -> list[str]:
    """The lines of an answer; what is no CSV is refused with its first words."""
    told = body[:200].decode("utf-8", "replace").strip()
    if told.lower().startswith("no data"):
        raise NothingError(told)
    if "limit" in told.lower() or is_page(body):
        raise ContentError(f"no CSV but {first_words(body)!r}", hopeless=True)
    return [line.strip() for line in rows_of(body, (_HEADER,)).splitlines() if line.strip()]
