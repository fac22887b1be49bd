"""Frames between the runner and its warm server: a JSON header and a body of bytes, each with its length before it.

Standard library only: the warm process imports it.
"""

import json
import struct
from typing import Any

_LENGTHS = struct.Struct("!IQ")

Header = dict[str, Any]


def encode(header: Header, body: bytes = b"") -> bytes:
    """One frame: lengths of header and body, then both."""
    head = json.dumps(header).encode()
    return b"".join((_LENGTHS.pack(len(head), len(body)), head, body))


class FrameReader:
    """Cuts a stream of bytes back into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[Header, bytes]]:
        """The frames that are complete once `data` has arrived, in order."""
        self._buffer += data
        frames: list[tuple[Header, bytes]] = []
        while len(self._buffer) >= _LENGTHS.size:
            head, body = _LENGTHS.unpack_from(self._buffer)
            start, end = _LENGTHS.size + head, _LENGTHS.size + head + body
            if len(self._buffer) < end:
                break
            frames.append((json.loads(self._buffer[_LENGTHS.size : start]), bytes(self._buffer[start:end])))
            del self._buffer[:end]
        return frames
