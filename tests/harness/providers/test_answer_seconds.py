"""What the kernel says of the time that an answer took."""

import socket
import struct
from importlib.util import find_spec

import pytest
from tests.faults.hosted import served
from tests.faults.server import SUBMIT

from finskillbench.harness.providers import bounds
from finskillbench.harness.providers.bounds import answer_seconds


class Response:
    """A response over a connection of which the kernel tells something."""

    def __init__(self, told: bytes | OSError, version: bytes = b"HTTP/1.1") -> None:
        self.told = told
        self.extensions = {"network_stream": self, "http_version": version}

    def get_extra_info(self, name: str):
        assert name == "socket"
        return self

    def getsockopt(self, level: int, option: int, size: int) -> bytes:
        assert (level, option) == (socket.IPPROTO_TCP, socket.TCP_INFO)
        if isinstance(self.told, OSError):
            raise self.told
        return self.told[:size]


def info(sent: int, received: int) -> bytes:
    """`struct tcp_info` of Linux: eight bytes, then fields of four."""
    fields = [0] * 24
    fields[9], fields[11] = sent, received
    return struct.pack("=8x24I", *fields)


@pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="this kernel does not tell")
@pytest.mark.parametrize(
    ("response", "seconds"),
    [
        (Response(info(1250, 250)), 1.0),
        (Response(info(1250, 250), b"HTTP/2"), None),
        (Response(info(250, 250)), None),
        (Response(info(0, 0)), None),
        (Response(info(250, 1250)), None),
        (Response(b"short"), None),
        (Response(OSError("closed")), None),
    ],
)
def test_an_answer_took_from_the_last_byte_sent_to_the_last_received(response: Response, seconds) -> None:
    assert answer_seconds(response) == seconds


def test_without_a_connection_nothing_is_known() -> None:
    response = Response(info(1250, 250))
    response.extensions = {"http_version": b"HTTP/1.1"}
    assert answer_seconds(response) is None


@pytest.mark.slow
@pytest.mark.enable_socket
@pytest.mark.skipif(find_spec("inspect_ai") is None, reason="needs the extra llm")
@pytest.mark.parametrize("known", [0.125, None])
def test_a_turn_says_what_its_answer_took(monkeypatch: pytest.MonkeyPatch, known) -> None:
    seen = []

    def told(response):
        seen.append(response.extensions["network_stream"].get_extra_info("socket").fileno())
        return known

    monkeypatch.setattr(bounds, "answer_seconds", told)
    with served(SUBMIT) as server:
        turn = server.ask()
    assert len(seen) == 1
    assert seen[0] >= 0
    assert turn.seconds == known if known is not None else turn.seconds > 0
