"""Message frames between runner and server: a JSON header and a binary body, each with its length.

Standard library only: the warm process imports this module.
"""

import json
import struct
from typing import Any

_LENGTHS = struct.Struct("!IQ")

Header = dict[str, Any]


def encode_frame(header: Header, body: bytes = b"") -> bytes:
    """Encode one frame: both lengths, header, body."""
    head = json.dumps(header).encode()
    return b"".join((_LENGTHS.pack(len(head), len(body)), head, body))


class FrameReader:
    """Splits a byte stream into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[Header, bytes]]:
        """Return the frames that `data` completes, in order."""
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
