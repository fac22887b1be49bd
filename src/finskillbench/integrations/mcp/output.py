"""What a command leaves beside its tool calls: bounded output without secrets, and what it says it has spent."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from finskillbench.harness.model import Usage
from finskillbench.redaction import logger, redactor_of_process

KEPT_CHARS = 65_536
"""Of a command's output, its last words."""
_MARGIN = 16_384
"""Longer than any secret: as much is cut off at the front, where the bound may have halved one."""
_KEPT_BYTES = 4 * (KEPT_CHARS + _MARGIN)
_CHUNK = 65_536
_BREATH = 0.01
"""Seconds between two reads, so that a flood holds up nobody but who makes it."""
_LATE_SECONDS = 0.5
"""How long output is still read when the command has ended: a process that left its group may hold it open for ever."""
_MOST_USAGE = 1 << 20

_log = logger(__name__)


class Output:
    """The last words of a command."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._cut = False
        self._end = -1

    @contextmanager
    def pipe(self) -> Generator[int]:
        """The end of a pipe for the command to write to, which is closed here once it is started."""
        self._end, given = os.pipe()
        try:
            yield given
        except BaseException:
            os.close(self._end)
            raise
        finally:
            os.close(given)

    async def read(self) -> None:
        """Read until nobody holds the other end."""
        reader = asyncio.StreamReader(limit=_CHUNK)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(self._end, "rb", buffering=0)
        )
        try:
            while chunk := await reader.read(_CHUNK):
                self._kept += chunk
                if len(self._kept) > 2 * _KEPT_BYTES:
                    del self._kept[:-_KEPT_BYTES]
                    self._cut = True
                if len(chunk) == _CHUNK:
                    await asyncio.sleep(_BREATH)
        finally:
            transport.close()

    async def finish(self, reading: asyncio.Future[None]) -> None:
        """Read what is still in the pipe, but do not wait for more."""
        await asyncio.wait({reading}, timeout=_LATE_SECONDS)
        reading.cancel()

    @property
    def text(self) -> str:
        """The last words, without the secrets of this process."""
        kept = self._kept[-_KEPT_BYTES:]
        cut = self._cut or len(self._kept) > len(kept)
        text = redactor_of_process()(kept.decode("utf-8", "replace"))[_MARGIN if cut else 0 :]
        return f"[...]{text[-KEPT_CHARS:]}" if cut or len(text) > KEPT_CHARS else text

    @property
    def last_line(self) -> str:
        """The last line that says anything, as `: words`, or nothing."""
        lines = [line for line in self.text.splitlines() if line.strip()]
        return f": {lines[-1].strip()[:300]}" if lines else ""


class _Spent(msgspec.Struct, forbid_unknown_fields=True):
    """One line of a usage file."""

    input_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    model: str | None = None


def read_usage(path: Path) -> Iterator[tuple[Usage, str | None]]:
    """What a command says it has spent: a line of JSON for each model call, or one for all of them.

    A line that is no such thing is an unknown price.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(_MOST_USAGE) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except OSError:
        return
    for line in data.splitlines():
        try:
            spent = msgspec.json.decode(line, type=_Spent)
        except msgspec.MsgspecError as error:
            _log.warning("%s: no line of usage (%s)", path.name, error)
            yield Usage(), None
        else:
            counts = msgspec.structs.asdict(spent)
            yield Usage(**{name: value for name, value in counts.items() if name != "model"}), spent.model
