"""Resolve references in episode inputs to JSON: covariances, return windows, company facts."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finskillbench.domains.tables import EpisodeTable, refers_to_table
from finskillbench.errors import EditionError, InputError
from finskillbench.panels.filings.query import FactStore, FiledStore
from finskillbench.panels.reading import read_arrays, read_table
from finskillbench.panels.store import TABLES, read_panel_table
from finskillbench.scoring.values import is_array, is_object

FACTS = "panels/facts.parquet"

_KEPT_NUMBERS = 1_000_000
"""Resolved numbers cached between episodes, some 40 MB as JSON values."""


class References:
    """Files of one edition that inputs refer to, each read once; recent results are cached.

    `files` are the names in the manifest; a reference to any other file stays unresolved.
    """

    def __init__(self, folder: Path, files: Iterable[str]) -> None:
        self._folder = folder
        self._files = set(files)
        self._resolved: OrderedDict[object, dict[str, Any]] = OrderedDict()
        self._numbers = 0
        self._returns: dict[str, _Returns] = {}

    def add(self, files: Iterable[str]) -> None:
        self._files.update(files)

    def resolved(self, value: Any) -> Any:
        """Resolve a field of an input; a value that is no resolvable reference is returned unchanged.

        `{"tickers", "ref"}` names the covariance of those tickers; with `end` and `sessions` it names their simple
        returns (sessions, tickers) up to and including the session `end`, and becomes `{"tickers", "dates", "matrix"}`.
        `{"ref", "symbol", "as_of", "since"}` names a company's filings by `as_of` for periods ending on or after
        `since`,
        and becomes `{"facts", "segments"}`, rows as of `FactStore.visible`.
        `{"table", "rows", "columns"}` becomes a `Table`, which reads its file on first access to a column.

        Raises
        ------
        EditionError : naming the file, and the missing symbol or date.
        """
        if refers_to_table(value):
            return EpisodeTable(self._folder / value["table"]) if value["table"] in self._files else value
        if not is_object(value) or not isinstance(value.get("ref"), str) or value["ref"] not in self._files:
            return value
        return self._kept(self._key(value), lambda: self._read(value))

    def as_filed(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return as-filed rows, tag by tag, for a facts reference."""
        return self._kept(("as filed", self._key(value)), lambda: self._visible(value, self.filed))

    def _read(self, value: Mapping[str, Any]) -> dict[str, Any]:
        if value["ref"] == FACTS:
            return self._visible(value, self.facts)
        return self._window(value) if "end" in value else self._covariance(value)

    def _kept(self, key: object, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return the cached value for a key, or make and cache it; the least recently used values are evicted."""
        if key in self._resolved:
            self._resolved.move_to_end(key)
            return self._resolved[key]
        found = self._resolved[key] = make()
        self._numbers += _numbers(found)
        while self._numbers > _KEPT_NUMBERS and len(self._resolved) > 1:
            _, oldest = self._resolved.popitem(last=False)
            self._numbers -= _numbers(oldest)
        return found

    @cached_property
    def facts(self) -> FactStore:
        """Facts, filings and segments, read on first access; raises `EditionError` for an unreadable panel."""
        return FactStore(*(self._panel(name) for name in ("facts", "filings", "segments")))

    @cached_property
    def filed(self) -> FiledStore:
        """As-filed facts, tag by tag; read and validated like `facts`."""
        return FiledStore(*(self._panel(name) for name in ("filed", "filings", "segments")))

    def _panel(self, name: str) -> pl.DataFrame:
        path, table = self._folder / f"panels/{name}.parquet", read_panel_table(self._folder / "panels", name)
        if lacking := sorted(TABLES[name].keys() - set(table.columns)):
            raise EditionError(f"{path}: column {lacking[0]} is missing; rebuild the edition")
        for column in ("symbol", "filed"):
            if table[column].null_count():
                raise EditionError(f"{path}: column {column} has empty values; rebuild the edition")
        return table

    def _visible(self, value: Mapping[str, Any], store: FactStore) -> dict[str, Any]:
        """Return the rows of a store that a facts reference names; raises `EditionError` for a bad reference."""
        path = self._folder / FACTS
        days: list[date] = []
        for name in ("as_of", "since"):
            try:
                days.append(date.fromisoformat(value[name]))
            except (KeyError, TypeError, ValueError):
                raise EditionError(f"{path}: a reference lacks the date {name}; rebuild the edition") from None
        try:
            return store.visible(str(value.get("symbol")), *days)
        except InputError as error:
            raise EditionError(f"{path}: {error}; rebuild the edition") from None

    def _key(self, value: Mapping[str, Any]) -> object:
        if value["ref"] == FACTS:
            return FACTS, *(str(value.get(name)) for name in ("symbol", "as_of", "since"))
        tickers = value.get("tickers")
        names = tuple(map(str, tickers)) if is_array(tickers) else ()
        if "end" not in value:
            return value["ref"], names
        return value["ref"], str(value["end"]), str(value.get("sessions")), names

    def _covariance(self, value: Mapping[str, Any]) -> dict[str, Any]:
        path, tickers = self._folder / value["ref"], value.get("tickers")
        whole = read_covariance_json(path)
        if not is_array(tickers) or tickers == whole["tickers"]:
            return whole
        place = {ticker: at for at, ticker in enumerate(whole["tickers"])}
        names = [str(ticker) for ticker in tickers]
        _refuse_twice(names, path)
        if missing := [name for name in names if name not in place]:
            raise EditionError(f"{path}: no covariance of {missing[0]}; rebuild the edition")
        at = [place[name] for name in names]
        if "matrix" in whole:
            return {"tickers": names, "matrix": [[whole["matrix"][i][j] for j in at] for i in at]}
        return {
            "tickers": names,
            "loadings": [[row[j] for j in at] for row in whole["loadings"]],
            "specific": [whole["specific"][j] for j in at],
        }

    def _window(self, value: Mapping[str, Any]) -> dict[str, Any]:
        ref, tickers = value["ref"], value.get("tickers")
        path = self._folder / ref
        sessions = value.get("sessions")
        if not is_array(tickers) or not isinstance(sessions, int) or isinstance(sessions, bool):
            raise EditionError(f"{path}: a reference lacks tickers or a number of sessions; rebuild the edition")
        if ref not in self._returns:
            self._returns[ref] = _Returns(path)
        dates, matrix = self._returns[ref].window(list(map(str, tickers)), str(value["end"]), sessions)
        return {"tickers": list(tickers), "dates": [day.isoformat() for day in dates], "matrix": matrix.tolist()}


def _numbers(resolved: Mapping[str, Any]) -> int:
    tables = [table for name, table in resolved.items() if name in {"matrix", "loadings", "facts", "segments"}]
    return sum(len(table) * len(table[0]) for table in tables if table)


class _Grid(NamedTuple):
    """Sorted sessions, column of each symbol, and simple returns (T, n), NaN if missing."""

    sessions: list[date]
    columns: dict[str, int]
    simple: NDArray[np.float64]


class _Returns:
    """The returns panel as one array, read on first access."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def window(self, tickers: list[str], end: str, sessions: int) -> tuple[list[date], NDArray[np.float64]]:
        """Return dates and simple returns (sessions, tickers) up to and including `end`.

        Raises `EditionError` if `end` is no session, too few precede it, or a ticker lacks a return.
        """
        grid = self._grid
        try:
            last = date.fromisoformat(end)
        except ValueError:
            raise EditionError(f"{self._path}: {end!r} is not a date; rebuild the edition") from None
        stop = bisect_right(grid.sessions, last)
        if not stop or grid.sessions[stop - 1] != last:
            raise EditionError(f"{self._path}: {end} is not a session; rebuild the edition")
        if not 0 < sessions <= stop:
            raise EditionError(
                f"{self._path}: {sessions} sessions up to {end} are needed, {stop} available; rebuild the edition"
            )
        _refuse_twice(tickers, self._path)
        missing = next((ticker for ticker in tickers if ticker not in grid.columns), None)
        if missing is not None:
            raise EditionError(f"{self._path}: no returns of {missing}; rebuild the edition")
        dates = grid.sessions[stop - sessions : stop]
        matrix = grid.simple[stop - sessions : stop][:, [grid.columns[ticker] for ticker in tickers]]
        rows, columns = np.nonzero(~np.isfinite(matrix))
        if len(rows):
            raise EditionError(
                f"{self._path}: no return of {tickers[columns[0]]} on {dates[rows[0]]}; rebuild the edition"
            )
        return dates, matrix

    @cached_property
    def _grid(self) -> _Grid:
        table = read_table(self._path, ["symbol", "date", "simple"])
        try:
            sessions = table["date"].unique().sort()
            symbols = table["symbol"].unique().sort()
            simple = np.full((len(sessions), len(symbols)), np.nan)
            row = sessions.search_sorted(table["date"]).to_numpy()
            column = symbols.search_sorted(table["symbol"]).to_numpy()
            simple[row, column] = table["simple"].cast(pl.Float64).fill_null(np.nan).to_numpy()
        except (ValueError, TypeError, IndexError, pl.exceptions.PolarsError) as error:
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise EditionError(f"{self._path}: no returns ({reason}); rebuild the edition") from None
        return _Grid(sessions.to_list(), {symbol: at for at, symbol in enumerate(symbols.to_list())}, simple)


def read_covariance_json(path: Path) -> dict[str, Any]:
    """Read a covariance file as JSON: tickers with the dense matrix, or with loadings and specific variances."""
    arrays = read_arrays(path)
    tickers = [str(symbol) for symbol in arrays.get("symbols", np.array([])).ravel()]
    names, n = ("cov",) if "cov" in arrays else ("loadings", "specific"), len(tickers)
    found = {name: arrays.get(name, np.array([])) for name in names}
    square = {"cov": (n, n), "loadings": (len(found.get("loadings", ())), n), "specific": (n,)}
    for name, array in found.items():
        if array.dtype.kind != "f" or array.shape != square[name] or not np.isfinite(array).all():
            raise EditionError(f"{path}: no covariance ({name} of {n} symbols); rebuild the edition")
    if len(set(tickers)) != n:
        raise EditionError(f"{path}: no covariance (a symbol occurs twice); rebuild the edition")
    keys = {"cov": "matrix"}
    return {keys.get(name, name): array.tolist() for name, array in found.items()} | {"tickers": tickers}


def _refuse_twice(tickers: list[str], path: Path) -> None:
    """Refuse duplicate tickers, which would inflate the result."""
    if len(set(tickers)) != len(tickers):
        raise EditionError(f"{path}: a reference repeats a ticker; rebuild the edition")
