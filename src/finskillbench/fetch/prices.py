"""Daily prices of Yahoo Finance, Tiingo and registered providers, as files for `sources.market.prices`.

Yahoo Finance, `/v8/finance/chart/SYMBOL`: undocumented, JSON of parallel lists, no key; unknown user agents get 429.
Prices are adjusted for splits only, `adjclose` for dividends too. Times are openings in seconds since 1970. A session
without trades has nulls; an unknown symbol is a 404.
Tiingo, `/tiingo/daily/SYMBOL/prices`: a JSON list of rows; the key goes into a header. `close` is as traded, `adjClose`
adjusted; `splitFactor` is 1 without a split. An unknown symbol is a 404, an exhausted quota a 429 or a 200 with a
message. Other providers register under the entry points `finskillbench.prices`; `csv_of` writes their files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote

from finskillbench.errors import InputError, SourceError
from finskillbench.extensions import PRICES, registered_extensions
from finskillbench.fetch.client import Client, SourceRequest
from finskillbench.fetch.configuration import Addresses, ContentError, NoDataError, Window, excerpt, json_of, object_of
from finskillbench.fetch.fetcher import FetchItem, Folder
from finskillbench.sources.fetched import Entry
from finskillbench.sources.files import json_list, json_object, read_bytes, ticker_of
from finskillbench.sources.market.prices import SUFFIXES, has_ohlcv

USER_FILES = "csv"
"""Value of `--prices` for the user's own files."""

_HEADER = "Date,Open,High,Low,Close,Adj Close,Volume"


@dataclass(frozen=True, slots=True)
class Session:
    """One row in USD and shares, on the basis of today's shares; None where not recorded.

    adjusted : close adjusted for splits and dividends. dividend : USD per share on the ex-dividend day.
    split : new shares per old one from this day on; 0 on other days.
    """

    day: date
    opening: float | None
    high: float | None
    low: float | None
    close: float
    adjusted: float
    volume: float | None
    dividend: float = 0.0
    split: float = 0.0


def csv_of(sessions: Iterable[Session], window: Window, *, dividends: bool = True) -> bytes:
    """Write the sessions up to the end of the window as CSV; `dividends` if the provider reports them.

    Raises
    ------
    NoDataError : no session is left. ContentError : duplicate or unsorted days.
    """
    chosen = [one for one in sessions if window.prices_from <= one.day <= window.last]
    if not chosen:
        raise NoDataError(f"no session from {window.prices_from} to {window.last}")
    for one, following in pairwise(chosen):
        if following.day <= one.day:
            raise ContentError(f"{following.day} after {one.day}: the days do not increase", final=True)
    lines = [_HEADER + (",Dividends" if dividends else "") + ",Stock Splits"]
    for one in chosen:
        cells = [one.opening, one.high, one.low, one.close, one.adjusted, one.volume]
        cells += [one.dividend, one.split] if dividends else [one.split]
        lines.append(f"{one.day.isoformat()},{','.join(map(_cell, cells))}")
    return ("\n".join(lines) + "\n").encode()


def _cell(value: float | None) -> str:
    return "" if value is None else repr(float(value))


def _number(row: Mapping[str, object], field: str) -> float | None:
    """Return a number of a row, None if absent or null; ContentError if it is anything else."""
    value = row.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ContentError(f"{field} is {value!r}")
    return float(value)


def _required(row: Mapping[str, object], field: str) -> float:
    """Return a mandatory number of a row; ContentError if it is absent."""
    value = _number(row, field)
    if value is None:
        raise ContentError(f"a row without {field}: {str(dict(row))[:80]}")
    return value


def day_of(text: object) -> date:
    """Parse the day of an ISO date or time; ContentError if it is invalid."""
    try:
        return date.fromisoformat(str(text)[:10])
    except ValueError:
        raise ContentError(f"{text!r} is not a date") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceProvider:
    """A provider of prices.

    requests : of a symbol, from symbol, window, addresses and key. file_of : the price file, from symbol, response
        bodies and window. key : environment variable with the key, or empty.
    """

    requests: Callable[[str, Window, Addresses, str], tuple[SourceRequest, ...]]
    file_of: Callable[[str, Sequence[bytes], Window], bytes]
    key: str = ""

    def item(self, symbol: str, window: Window, addresses: Addresses) -> FetchItem:
        """Return the price file of a symbol as an item to fetch."""
        requests = self.requests(symbol, window, addresses, self.secret())
        return FetchItem(path_of(symbol), requests, lambda bodies: self.file_of(symbol, bodies, window))

    def secret(self) -> str:
        """Return the key from the environment, empty if none is needed; InputError if it is missing or invalid."""
        if not self.key:
            return ""
        secret = os.environ.get(self.key, "").strip()
        if not secret:
            raise InputError(f"prices need a key in the environment variable {self.key}; set it and try again")
        if not secret.isascii() or not secret.isprintable():
            raise InputError(
                f"the environment variable {self.key} has characters that an HTTP header cannot hold; correct it"
            )
        return secret


def provider(name: str) -> PriceProvider:
    """Return a provider by its name: yahoo, tiingo, or a registered one; InputError if it is unknown or broken."""
    if name in _PROVIDERS:
        return _PROVIDERS[name]
    extensions = registered_extensions(PRICES, (*_PROVIDERS, USER_FILES))
    if name not in extensions:
        raise InputError(
            f"--prices {name!r} is unknown; choose from: {', '.join([*_PROVIDERS, USER_FILES, *extensions])}"
        )
    return extensions[name].load(PriceProvider)


def path_of(symbol: str) -> str:
    return f"prices/{symbol}.csv"


def user_files(folder: Path) -> dict[str, Path]:
    """Return the user's price files by ticker; InputError if there are none, or two of one ticker."""
    if not folder.is_dir():
        raise InputError(f"--prices-dir {folder}: no such folder; name one with a file TICKER.csv for each name")
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.name.lower().endswith(SUFFIXES):
            if ticker_of(path) in found:
                raise InputError(f"{path}: a second file of {ticker_of(path)}; keep one")
            found[ticker_of(path)] = path
    if not found:
        raise InputError(
            f"--prices-dir {folder}: no files TICKER.csv or TICKER.csv.gz; docs/raw-data.md has the format"
        )
    return found


def copy_user_file(folder: Folder, symbol: str, path: Path | None) -> Entry:
    """Copy the user's prices of a symbol into the collection, or record that there are none."""
    target = path_of(symbol)
    if path is None:
        missing = Entry(target, retrieved=Client.now(), absent=f"no price file of {symbol} in the folder")
        folder.record(missing)
        return missing
    if not has_ohlcv(path):
        raise SourceError(path, "no columns Open, High, Low and Volume", line=1, remedy="export all of them")
    return folder.write_user_file(target, path.name, read_bytes(path))


def _yahoo_requests(symbol: str, window: Window, addresses: Addresses, key: str) -> tuple[SourceRequest, ...]:
    del key
    start, end = _seconds(window.prices_from), _seconds(window.last + timedelta(days=1))
    url = (
        f"{addresses.yahoo}/v8/finance/chart/{quote(symbol)}?period1={start}&period2={end}&interval=1d"
        "&events=div%2Csplits&includeAdjustedClose=true"
    )
    return (SourceRequest("yahoo", url, lambda body: _refuse_chart(symbol, body), absent=b"Data doesn't exist"),)


def _yahoo_file(symbol: str, bodies: Sequence[bytes], window: Window) -> bytes:
    return csv_of(_sessions(_chart(symbol, bodies[0])), window)


def _seconds(day: date) -> int:
    return int(datetime.combine(day, time(), UTC).timestamp())


def _refuse_chart(symbol: str, body: bytes) -> None:
    """Refuse a body that is not a valid chart of the symbol."""
    for _ in _sessions(_chart(symbol, body)):
        pass


def _chart(symbol: str, body: bytes) -> dict[str, object]:
    chart = json_object(object_of(body).get("chart")) or {}
    if error := json_object(chart.get("error")):
        raise ContentError(f"the error {error.get('code')!r}: {str(error.get('description'))[:80]}")
    results = json_list(chart.get("result"))
    if not results or (result := json_object(results[0])) is None:
        raise ContentError("no chart.result")
    meta = json_object(result.get("meta")) or {}
    if str(meta.get("symbol")).upper() != symbol:
        raise ContentError(f"the chart of {meta.get('symbol')!r} in place of {symbol}")
    # For long ranges Yahoo may return months, which only this field shows.
    if meta.get("dataGranularity", "1d") != "1d":
        raise ContentError(f"rows of {meta.get('dataGranularity')!r} in place of days", final=True)
    return result


def _sessions(result: Mapping[str, object]) -> Iterator[Session]:
    meta, indicators = json_object(result.get("meta")) or {}, json_object(result.get("indicators")) or {}
    offset = int(_required(meta, "gmtoffset"))
    times = json_list(result.get("timestamp"))
    if not times:
        raise NoDataError("a chart without sessions")
    quotes, adjusted = _first(indicators, "quote"), _first(indicators, "adjclose")
    columns = {name: json_list(quotes.get(name)) for name in ("open", "high", "low", "close", "volume")}
    columns["adjclose"] = json_list(adjusted.get("adjclose"))
    events = json_object(result.get("events")) or {}
    paid = {day: _required(event, "amount") for day, event in _events(events, "dividends", offset)}
    splits = {
        day: _required(event, "numerator") / _required(event, "denominator")
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
            _number(row, "open"),
            _number(row, "high"),
            _number(row, "low"),
            _required(row, "close"),
            _required(row, "adjclose"),
            _number(row, "volume"),
            paid.get(day, 0.0),
            splits.get(day, 0.0),
        )


def _first(indicators: Mapping[str, object], name: str) -> dict[str, object]:
    found = json_list(indicators.get(name))
    one = json_object(found[0]) if found else None
    if one is None:
        raise ContentError(f"no indicators.{name}")
    return one


def _events(events: Mapping[str, object], kind: str, offset: int) -> Iterator[tuple[date, dict[str, object]]]:
    for event in (json_object(events.get(kind)) or {}).values():
        if (record := json_object(event)) is not None:
            yield _day(record.get("date"), offset), record


def _day(stamp: object, offset: int) -> date:
    if isinstance(stamp, bool) or not isinstance(stamp, int):
        raise ContentError(f"{stamp!r} is not a time")
    return datetime.fromtimestamp(stamp + offset, UTC).date()


def _tiingo_requests(symbol: str, window: Window, addresses: Addresses, key: str) -> tuple[SourceRequest, ...]:
    """Return the one request for a symbol, always of all rows, because later splits change earlier ones."""
    url = (
        f"{addresses.tiingo}/tiingo/daily/{quote(symbol.lower())}/prices?startDate={window.prices_from}"
        f"&endDate={window.last}&format=json"
    )
    headers = {"Authorization": f"Token {key}", "Accept": "application/json"}
    return (SourceRequest("tiingo", url, lambda body: _refuse_rows(body), headers),)


def _tiingo_file(symbol: str, bodies: Sequence[bytes], window: Window) -> bytes:
    del symbol  # rows have no symbol
    rows = _rows(bodies[0])
    sessions: list[Session] = []
    factor = 1.0
    for row in reversed(rows):
        split = _number(row, "splitFactor") or 1.0
        volume, paid = _number(row, "volume"), _number(row, "divCash") or 0.0
        sessions.append(
            Session(
                day_of(row.get("date")),
                _over(_number(row, "open"), factor),
                _over(_number(row, "high"), factor),
                _over(_number(row, "low"), factor),
                _required(row, "close") / factor,
                _required(row, "adjClose"),
                _over(volume, 1 / factor),
                paid / factor,
                0.0 if split == 1.0 else split,
            )
        )
        # Counts before this day are divided by its split and all later ones.
        factor *= split
    return csv_of(reversed(sessions), window)


def _over(value: float | None, factor: float) -> float | None:
    return None if value is None else value / factor


def _refuse_rows(body: bytes) -> None:
    for row in _rows(body):
        day_of(row.get("date"))
        _required(row, "close")
        _required(row, "adjClose")


def _rows(body: bytes) -> list[dict[str, object]]:
    rows = json_list(json_of(body))
    if rows is None:
        # An exhausted quota comes as status 200 with an object or a text.
        raise ContentError(f"not a list of rows: {excerpt(body)!r}", permanent=True)
    found = [record for record in map(json_object, rows) if record is not None]
    if len(found) != len(rows):
        raise ContentError("a row that is not an object")
    if not found:
        raise NoDataError("no rows")
    return found


_PROVIDERS = {
    "yahoo": PriceProvider(requests=_yahoo_requests, file_of=_yahoo_file),
    "tiingo": PriceProvider(requests=_tiingo_requests, file_of=_tiingo_file, key="TIINGO_API_KEY"),
}
