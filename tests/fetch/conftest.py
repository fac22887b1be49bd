"""The synthetic collection as the public sources would serve it, and a fetch of a few of its names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import pytest_socket
from tests.fetch.internet import Internet
from tests.fetch.world import World

from finskillbench.fetch.collect import FetchOptions, FetchSummary, fetch_collection
from finskillbench.fetch.configuration import Window, read_configuration
from finskillbench.sources.fetched import read_journal

WINDOW = Window(date(2025, 10, 1), date(2025, 12, 31))
AGENT = "Jane Doe jane@example.com"
KEYS = {"tiingo": "planted-key-of-tiingo"}


@pytest.fixture(scope="session")
def world(synthetic_raw: Path) -> World:
    return World(synthetic_raw, KEYS)


@pytest.fixture
def net(world: World) -> Iterator[Internet]:
    pytest_socket.enable_socket()
    with Internet(world) as server:
        yield server


def wish(net: Internet, folder: Path, **changes: Any) -> FetchOptions:
    """A wish for the names in `folder/names.txt`, at the server."""
    given: dict[str, Any] = {
        "window": WINDOW,
        "universe": str(folder / "names.txt"),
        "agent": AGENT,
        "configuration": read_configuration(net.configuration(folder)),
    }
    return FetchOptions(**(given | changes))


def fetched(net: Internet, folder: Path, **changes: Any) -> FetchSummary:
    """Fetch into `folder/raw`."""
    return fetch_collection(folder / "raw", wish(net, folder, **changes))


def contents(raw: Path) -> Mapping[str, str]:
    """The digest of every file of a complete collection, by path."""
    journal = read_journal(raw)
    assert journal is not None
    assert journal.request.complete
    there = {path.relative_to(raw).as_posix() for path in raw.rglob("*") if path.is_file()}
    entries = {path: entry.sha256 for path, entry in journal.entries.items() if not entry.absent}
    assert there == {*entries, "provenance.jsonl", ".fetch/lock"}
    return entries
