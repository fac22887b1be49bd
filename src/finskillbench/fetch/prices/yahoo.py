"""Yahoo Finance, `/v8/finance/chart/SYMBOL`: JSON of parallel lists, no key.

Prices are adjusted for splits and not for dividends, `adjclose` for both; times are those of the opening in seconds
since 1970; a session without trades has nulls; an unknown symbol is a 404 with an error in JSON. The service is for
browsers: it is undocumented, and answers 429 to agents that it does not know.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from urllib.parse import quote

from finskillbench.fetch.http.addresses import Addresses
from finskillbench.fetch.http.client import Question
from finskillbench.fetch.http.contents import ContentError, NothingError, object_of
from finskillbench.fetch.prices.table import Session, csv_of, number, required
from finskillbench.fetch.window import Window
from finskillbench.sources.records import as_list, as_object


def questions(symbol: str, window: Window, addresses: Addresses) -> tuple[Question, ...]:
    """The one question about a symbol."""
    start, end = _seconds(window.prices_from), _seconds(window.last + timedelta(days=1))
    url = (
        f"{addresses.yahoo}/v8/finance/chart/{quote(symbol)}?period1={start}&period2={end}&interval=1d"
        "&events=div%2Csplits&includeAdjustedClose=true"
    )
    return (Question("yahoo", url, lambda body: _refuse(symbol, body), absent=b"Data doesn't exist"),)


def file_of(symbol: str, bodies: Sequence[bytes], window: Window) -> bytes:
    """The price file of an answer."""
    return csv_of(_sessions(_chart(symbol, bodies[0])), window)


def _seconds(day: date) -> int:
    return int(datetime.combine(day, time(), UTC).timestamp())


def _refuse(symbol: str, body: bytes) -> None:
    """Refuse what is no chart of the symbol."""
    for _ in _sessions(_chart(symbol, body)):
        pass


def _chart(symbol: str, body: bytes) -> dict[str, object]:
    chart = as_object(object_of(body).get("chart")) or {}
    if error := as_object(chart.get("error")):
        raise ContentError(f"the error {error.get('code')!r}: {str(error.get('description'))[:80]}")
    results = as_list(chart.get("result"))
    if not results or (result := as_object(results[0])) is None:
        raise ContentError("no chart.result")
    meta = as_object(result.get("meta")) or {}
    if str(meta.get("symbol")).upper() != symbol:
        raise ContentError(f"the chart of {meta.get('symbol')!r} in place of {symbol}")
    # Where a range is long Yahoo may answer with months without saying so in any other place.
    if meta.get("dataGranularity", "1d") != "1d":
        raise ContentError(f"rows of {meta.get('dataGranularity')!r} in place of days", lasting=True)
    return result


def _sessions(result: Mapping[str, object]) -> Iterator[Session]:
    meta, indicators = as_object(result.get("meta")) or {}, as_object(result.get("indicators")) or {}
    offset = int(required(meta, "gmtoffset"))
    times = as_list(result.get("timestamp"))
    if not times:
        raise NothingError("a chart without sessions")
    quotes, adjusted = _first(indicators, "quote"), _first(indicators, "adjclose")
    columns = {name: as_list(quotes.get(name)) for name in ("open", "high", "low", "close", "volume")}
    columns["adjclose"] = as_list(adjusted.get("adjclose"))
    events = as_object(result.get("events")) or {}
    paid = {day: required(event, "amount") for day, event in _events(events, "dividends", offset)}
    splits = {
        day: required(event, "numerator") / required(event, "denominator")
        for day, event in _events(events, "splits", offset)
    }
    for name, values in columns.items():
        if values is None or len(values) != len(times):
            raise ContentError(f"{name} has {0 if values is None else len(values)} values for {len(times)} times")
    for place, stamp in enumerate(times):
        row = {name: (values or ())[place] for name, values in columns.items()}
        if row["close"] is None or row["adjclose"] is None:
            continue
        day = _day(stamp, offset)
        yield Session(
            day,
            number(row, "open"),
            number(row, "high"),
            number(row, "low"),
            required(row, "close"),
            required(row, "adjclose"),
            number(row, "volume"),
            paid.get(day, 0.0),
            splits.get(day, 0.0),
        )


def _first(indicators: Mapping[str, object], name: str) -> dict[str, object]:
    found = as_list(indicators.get(name))
    one = as_object(found[0]) if found else None
    if one is None:
        raise ContentError(f"no indicators.{name}")
    return one


def _events(events: Mapping[str, object], kind: str, offset: int) -> Iterator[tuple[date, dict[str, object]]]:
    for event in (as_object(events.get(kind)) or {}).values():
        if (record := as_object(event)) is not None:
            yield _day(record.get("date"), offset), record


def _day(stamp: object, offset: int) -> date:
    """The exchange's day of a time."""
    if isinstance(stamp, bool) or not isinstance(stamp, int):
        raise ContentError(f"{stamp!r} is no time")
    return datetime.fromtimestamp(stamp + offset, UTC).date()
