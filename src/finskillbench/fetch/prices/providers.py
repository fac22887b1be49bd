"""The providers of prices by name: the item of a symbol, or the file that the user has of it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from finskillbench.errors import InputError, SourceError
from finskillbench.fetch.fetcher import Item
from finskillbench.fetch.http.addresses import Addresses
from finskillbench.fetch.http.client import Client, Question
from finskillbench.fetch.prices import fmp, stooq, tiingo, yahoo
from finskillbench.fetch.store.folder import Folder
from finskillbench.fetch.window import Window
from finskillbench.sources.fetched import Entry, Origin
from finskillbench.sources.files import read_bytes, ticker_of
from finskillbench.sources.market.prices import SUFFIXES, has_ohlcv

Provider: TypeAlias = Literal["yahoo", "fmp", "tiingo", "stooq", "csv"]
PROVIDERS: tuple[Provider, ...] = ("yahoo", "fmp", "tiingo", "stooq", "csv")
KEYS = {"fmp": fmp.KEY, "tiingo": tiingo.KEY}
"""Environment variables of those that want a key."""
_FILES = {"yahoo": yahoo.file_of, "fmp": fmp.file_of, "tiingo": tiingo.file_of, "stooq": stooq.file_of}


def key_of(provider: Provider) -> str:
    """The key of a provider from the environment; empty where it wants none.

    Raises
    ------
    InputError : it wants one and there is none.
    """
    name = KEYS.get(provider)
    if name is None:
        return ""
    key = os.environ.get(name, "").strip()
    if not key:
        raise InputError(f"--prices {provider} needs a key in the environment variable {name}; set it and try again")
    if not key.isascii() or not key.isprintable():
        raise InputError(f"the environment variable {name} holds no key: it has characters that no header may have")
    return key


def price_items(provider: Provider, window: Window, addresses: Addresses, key: str) -> Callable[[str], Item]:
    """Makes the item of a symbol, for every provider but `csv`."""
    ask: dict[str, Callable[[str, Window, Addresses], tuple[Question, ...]]] = {
        "yahoo": yahoo.questions,
        "stooq": stooq.questions,
        "fmp": partial(fmp.questions, key=key),
        "tiingo": partial(tiingo.questions, key=key),
    }
    questions, compose = ask[provider], _FILES[provider]

    def item(symbol: str) -> Item:
        return Item(
            path_of(symbol),
            questions(symbol, window, addresses),
            lambda bodies: compose(symbol, bodies, window),
        )

    return item


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
    body = read_bytes(path)
    digest = hashlib.sha256(body).hexdigest()
    entry = folder.have(target)
    if entry is None or entry.sha256 != digest:
        origin = Origin(f"own:{path.name}", digest)
        folder.write(Entry(target, retrieved=Client.now(), origins=(origin,)), body)
        return folder.journal.entries[target]
    folder.keep(target)
    return entry
