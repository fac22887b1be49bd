"""How long a server took to answer, by the kernel's own clock.

A busy process hears of an answer late, by as long as the others in its event loop, or on its machine, take. The kernel
notes when the last byte of a request went out and when the last byte of an answer came in, whoever is busy.
"""

from __future__ import annotations

import socket
import struct
from typing import Any

_TCP_INFO: int | None = getattr(socket, "TCP_INFO", None)
_LAST_SENT, _LAST_RECEIVED = 44, 52
"""Where Linux' `struct tcp_info` holds how many milliseconds ago data were last sent and received."""
_BYTES = 104
"""Of the structure as all kernels in use have it; later fields follow."""


def answer_seconds(response: Any) -> float | None:
    """Seconds from the last byte of a request to the last byte of its answer, which has just been read whole.

    Known on Linux, of HTTP/1.1 without a proxy in this process: requests that share a connection share its times.

    Parameters
    ----------
    response : of httpx or its successor, whose connection is still its own.
    """
    stream: Any = response.extensions.get("network_stream")
    connection: Any = None if stream is None else stream.get_extra_info("socket")
    if connection is None or _TCP_INFO is None or response.extensions.get("http_version") != b"HTTP/1.1":
        return None
    try:
        told = connection.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _BYTES)
        (sent,), (received,) = (struct.unpack_from("=I", told, place) for place in (_LAST_SENT, _LAST_RECEIVED))
    except (OSError, struct.error):
        return None
    # Equal times are those of an answer within a tick, or of a kernel that fills in nothing.
    return (sent - received) / 1e3 if sent > received else None
