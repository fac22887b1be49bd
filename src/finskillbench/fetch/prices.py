"""Daily prices: what each provider is asked, and how its answer becomes a file of `sources.market.prices`.

Yahoo Finance, `/v8/finance/chart/SYMBOL`: JSON of parallel lists, no key. Prices are adjusted for splits and not for
dividends, `adjclose` for both; times are those of the opening in seconds since 1970; a session without trades has
nulls; an unknown symbol is a 404 with an error in JSON. The service is for browsers: it is undocumented, and answers
429 to agents that it does not know.

Tiingo, `/tiingo/daily/SYMBOL/prices`: a JSON list of rows by day; the key goes into a header. `close` is as traded,
`adjClose` adjusted for splits and dividends; `splitFactor` is 1 on days without a split. An unknown symbol is a 404
with `{"detail": ...}`; an exhausted allowance is a 429, or a 200 with words in place of rows.

Other providers are registered under the entry points `finskillbench.prices`, and answers of theirs go through `csv_of`.
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
from finskillbench.extensions import PRICES, registered
from finskillbench.fetch.client import Client, Question
from finskillbench.fetch.configuration import (
    Addresses,
    ContentError,
    NothingError,
    Window,
    first_words,
    json_of,
    object_of,
)
from finskillbench.fetch.fetcher import Folder, Item
from finskillbench.sources.fetched import Entry
from finskillbench.sources.files import as_list, as_object, read_bytes, ticker_of
from finskillbench.sources.market.prices import SUFFIXES, has_ohlcv

OWN = "csv"
"""The name by which `--prices` takes the user's own files."""

_HEADER = "Date,Open,High,Low,Close,Adj Close,Volume"


@dataclass(frozen=True, slots=True)
class Session:
    """One row: USD and shares, all but `adjusted` on the basis of today's shares; None where nothing is recorded.

    adjusted : the close without later dividends too. dividend : USD per share, going ex on this day.
    split : new shares for one old, from this day on; 0 on other days.
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
    """The sessions of the window and of the years before it, as CSV; `dividends` where the provider tells them.

    Raises
    ------
    NothingError : there is none. ContentError : two rows of one day, or days out of order.
    """
    chosen = [one for one in sessions if window.prices_from <= one.day <= window.last]
    if not chosen:
        raise NothingError(f"no session from {window.prices_from} to {window.last}")
    for one, following in pairwise(chosen):
        if following.day <= one.day:
            raise ContentError(f"{following.day} after {one.day}: the days do not increase", lasting=True)
    lines = [_HEADER + (",Dividends" if dividends else "") + ",Stock Splits"]
    for one in chosen:
        cells = [one.opening, one.high, one.low, one.close, one.adjusted, one.volume]
        cells += [one.dividend, one.split] if dividends else [one.split]
        lines.append(f"{one.day.isoformat()},{','.join(map(_cell, cells))}")
    return ("\n".join(lines) + "\n").encode()


def _cell(value: float | None) -> str:
    return "" if value is None else repr(float(value))


def _number(row: Mapping[str, object], field: str) -> float | None:
    """A number of a row; None where it is absent or null.

    Raises
    ------
    ContentError : it is something else.
    """
    value = row.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ContentError(f"{field} is {value!r}")
    return float(value)


def _required(row: Mapping[str, object], field: str) -> float:
    """A number that must be there; ContentError where it is not."""
    value = _number(row, field)
    if value is None:
        raise ContentError(f"a row without {field}: {str(dict(row))[:80]}")
    return value


def day_of(text: object) -> date:
    """The day of an ISO date, with or without a time; ContentError where there is none."""
    try:
        return date.fromisoformat(str(text)[:10])
    except ValueError:
        raise ContentError(f"{text!r} is no date") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceProvider:
    """Who serves prices.

    questions : what is asked about a symbol, of symbol, window, addresses and key.
    file_of : the price file, of symbol, answers and window; `csv_of` writes it.
    key : name of the environment variable that holds the key; empty where none is needed.
    """

    questions: Callable[[str, Window, Addresses, str], tuple[Question, ...]]
    file_of: Callable[[str, Sequence[bytes], Window], bytes]
    key: str = ""

    def item(self, symbol: str, window: Window, addresses: Addresses) -> Item:
        """The price file of a symbol as a thing to fetch."""
        asked = self.questions(symbol, window, addresses, self.secret())
        return Item(path_of(symbol), asked, lambda bodies: self.file_of(symbol, bodies, window))

    def secret(self) -> str:
        """The key from the environment; empty where none is needed.

        Raises
        ------
        InputError : there is none, or it has characters that no header may have.
        """
        if not self.key:
            return ""
        secret = os.environ.get(self.key, "").strip()
        if not secret:
            raise InputError(f"prices need a key in the environment variable {self.key}; set it and try again")
        if not secret.isascii() or not secret.isprintable():
            raise InputError(f"the environment variable {self.key} holds no key: no header may have its characters")
        return secret


def provider(name: str) -> PriceProvider:
    """Return a provider by its name: yahoo, tiingo, or one that another package registers.

    Raises
    ------
    InputError : there is none of that name, or its entry point is broken.
    """
    if name in _PROVIDERS:
        return _PROVIDERS[name]
    others = registered(PRICES, (*_PROVIDERS, OWN))
    if name not in others:
        raise InputError(f"--prices {name!r} is unknown; choose from: {', '.join([*_PROVIDERS, OWN, *others])}")
    return others[name].load(PriceProvider)


def path_of(symbol: str) -> str:
    """Where the prices of a symbol lie in a collection."""
    return f"prices/{symbol}.csv"


def own_files(folder: Path) -> dict[str, Path]:
    """A user's own price files by ticker.

    Raises
    ------
    InputError : no such folder, nothing in it, or two files of one ticker.
    """
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


def copy_own(folder: Folder, symbol: str, path: Path | None) -> Entry:
    """Put the user's own prices of a symbol into the collection, or note that there are none."""
    target = path_of(symbol)
    if path is None:
        missing = Entry(target, retrieved=Client.now(), absent=f"no file of {symbol} among your own")
        folder.note(missing)
        return missing
    if not has_ohlcv(path):
        raise SourceError(path, "no columns Open, High, Low and Volume", line=1, remedy="export all of them")
    return folder.write_own(target, path.name, read_bytes(path))


def _yahoo_questions(symbol: str, window: Window, addresses: Addresses, key: str) -> tuple[Question, ...]:
    """The one question about a symbol; no key is needed."""
    del key
    start, end = _seconds(window.prices_from), _seconds(window.last + timedelta(days=1))
    url = (
        f"{addresses.yahoo}/v8/finance/chart/{quote(symbol)}?period1={start}&period2={end}&interval=1d"
        "&events=div%2Csplits&includeAdjustedClose=true"
    )
    return (Question("yahoo", url, lambda body: _refuse_chart(symbol, body), absent=b"Data doesn't exist"),)


def _yahoo_file(symbol: str, bodies: Sequence[bytes], window: Window) -> bytes:
    """The price file of an answer."""
    return csv_of(_sessions(_chart(symbol, bodies[0])), window)


def _seconds(day: date) -> int:
    return int(datetime.combine(day, time(), UTC).timestamp())


def _refuse_chart(symbol: str, body: bytes) -> None:
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
    offset = int(_required(meta, "gmtoffset"))
    times = as_list(result.get("timestamp"))
    if not times:
        raise NothingError("a chart without sessions")
    quotes, adjusted = _first(indicators, "quote"), _first(indicators, "adjclose")
    columns = {name: as_list(quotes.get(name)) for name in ("open", "high", "low", "close", "volume")}
    columns["adjclose"] = as_list(adjusted.get("adjclose"))
    events = as_object(result.get("events")) or {}
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


def _tiingo_questions(symbol: str, window: Window, addresses: Addresses, key: str) -> tuple[Question, ...]:
    """The one question about a symbol. Rows to this day are asked for: a later split changes what earlier ones are."""
    url = (
        f"{addresses.tiingo}/tiingo/daily/{quote(symbol.lower())}/prices?startDate={window.prices_from}"
        f"&endDate={window.last}&format=json"
    )
    headers = {"Authorization": f"Token {key}", "Accept": "application/json"}
    return (Question("tiingo", url, lambda body: _refuse_rows(body), headers),)


def _tiingo_file(symbol: str, bodies: Sequence[bytes], window: Window) -> bytes:
    """The price file of an answer."""
    del symbol  # rows do not name theirs
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
        # What the shares were before this day is divided by its split and by all later ones.
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


_PROVIDERS = {
    "yahoo": PriceProvider(questions=_yahoo_questions, file_of=_yahoo_file),
    "tiingo": PriceProvider(questions=_tiingo_questions, file_of=_tiingo_file, key="TIINGO_API_KEY"),
}
