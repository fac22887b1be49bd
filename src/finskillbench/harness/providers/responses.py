"""Answers of hosted models on disk, each kept under the whole request that it answered.

A run that is repeated with other scorers, another harness version or after a lost run folder asks again what was asked
before. With a cache it pays only for what is new. The key is everything that decides an answer: the model with all its
arguments, the conversation with what the provider wants back of it, the tools, the limits, and the repeat of the
episode, so that repeats stay draws of their own.

The file is a SQLite database, which processes of one machine may share. It holds answers as they are stored in
trajectories: without this process's secrets.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from finskillbench.errors import InputError
from finskillbench.harness.model import Turn
from finskillbench.redaction import logger

_LOG = logger(__name__)
_FORMAT = 1
_WAIT_SECONDS = 30.0
"""How long one process waits for another that is writing."""
_TABLE = "CREATE TABLE IF NOT EXISTS answers (request TEXT PRIMARY KEY, model TEXT, kept TEXT, turn BLOB, replay TEXT)"


class Kept(NamedTuple):
    """An answer, and the adapter's own form of it as JSON text, None where its words are all there is."""

    turn: Turn
    replay: str | None


class ResponseCache:
    """The answers in one file, which is made if absent, readable to its owner alone.

    Raises
    ------
    InputError : the file cannot be written, or is something else.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._said = False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            # A run may be started in one thread and go on in another; it calls from one at a time.
            self._store = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False)
            self._store.execute("PRAGMA journal_mode = WAL")
            # What a power cut loses is asked again.
            self._store.execute("PRAGMA synchronous = NORMAL")
            found = self._store.execute("PRAGMA user_version").fetchone()[0]
            if found not in (0, _FORMAT):
                raise InputError(f"{path}: a response cache of format {found}, not {_FORMAT}; name another file")
            self._store.execute(_TABLE)
            self._store.execute(f"PRAGMA user_version = {_FORMAT}")
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror}); name another file") from None
        except sqlite3.Error as error:
            raise InputError(f"{path}: is no response cache ({error}); name another file") from None

    def find(self, request: bytes) -> Kept | None:
        """The answer to a request, None where there is none; one that cannot be read counts as none."""
        try:
            row = self._store.execute("SELECT turn, replay FROM answers WHERE request = ?", (_key(request),)).fetchone()
            return None if row is None else Kept(msgspec.json.decode(row[0], type=Turn), row[1])
        except (sqlite3.Error, msgspec.MsgspecError) as error:
            self._say(error)
            return None

    def keep(self, model: str, request: bytes, kept: Kept) -> None:
        """Keep an answer; where another process was first, or the disk is full, it is not kept."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        line = (_key(request), model, now, msgspec.json.encode(kept.turn), kept.replay)
        try:
            self._store.execute("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?)", line)
        except sqlite3.Error as error:
            self._say(error)

    def close(self) -> None:
        """Close the file; it may be used again afterwards by another object only."""
        self._store.close()

    def _say(self, error: Exception) -> None:
        if not self._said:
            self._said = True
            _LOG.warning("%s: answers are asked anew (%s)", self.path, error)


def _key(request: bytes) -> str:
    return hashlib.sha256(request).hexdigest()
