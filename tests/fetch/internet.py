"""A loopback server that answers as the public sources do, writes down what it was asked, and fails as it is told.

What it says comes from a `World`; how it says it comes from the sources' own documentation: status, headers,
conditional requests, and, as a fault, everything that goes wrong between two machines.
"""

from __future__ import annotations

import gzip
import hashlib
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

PATIENT = "timeout_seconds = 60\ndeadline_seconds = 120"
IMPATIENT = "timeout_seconds = 1\ndeadline_seconds = 2\nattempts = 3"
SLOW = ("silent", "drip")
"""Faults that only who is impatient takes for one; on a busy machine he takes others for one too."""
PAGE = b"<!DOCTYPE html><html><head><title>Busy</title></head><body><h1>We are down for maintenance</h1></body></html>"
THRESHOLD = b"<html><head><title>SEC.gov | Request Rate Threshold Exceeded</title></head><body>Reduce it</body></html>"


@dataclass(frozen=True)
class Served:
    """What a source says."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """What the server was asked, and how it answered; `fault` names what went wrong, if anything did."""

    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    when: float
    fault: str = ""
    status: int = 0

    @property
    def url(self) -> str:
        return self.path + ("?" + "&".join(f"{k}={v}" for k, v in self.query.items()) if self.query else "")


Answers = Callable[[str, Mapping[str, str], Mapping[str, str]], Served]
"""What is said to a path, its query and its headers."""


class Internet:
    """The server; `url` is its address, `asked` what it was asked, `fault` decides what goes wrong with a request."""

    def __init__(self, answers: Answers, fault: Callable[[str, int], str] = lambda url, times: "") -> None:
        self.answers, self.fault = answers, fault
        self.patience = PATIENT
        self.asked: list[Asked] = []
        self._times: dict[str, int] = {}
        self._lock = threading.Lock()
        internet = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 10

            def do_GET(self) -> None:
                internet.answer(self)

            def log_message(self, *args: Any) -> None:
                del args

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, request: Any, client_address: Any) -> None:
                del request, client_address  # whoever hangs up is part of the play

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def configuration(self, folder: Path, more: str = "") -> Path:
        """A configuration file with every address at this server, and hardly a wait between attempts."""
        names = {name: f"{self.url}/{name}" for name in ("sec", "sec_data", "french", "fred", "yahoo", "tiingo")}
        names |= {"constituents": f"{self.url}/constituents/constituents.csv"}
        lines = ["[addresses]", *(f'{name} = "{address}"' for name, address in names.items())]
        lines += ["[requests]", "first_wait_seconds = 0.001", "longest_wait_seconds = 0.01", self.patience]
        lines += ["others_per_second = 100000", "sec_per_second = 100000", more]
        path = folder / "sources.toml"
        path.write_text("\n".join(lines))
        return path

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one request, or let it go wrong."""
        parts = urlsplit(handler.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        headers = {name.lower(): value for name, value in handler.headers.items()}
        with self._lock:
            times = self._times.get(handler.path, 0)
            self._times[handler.path] = times + 1
            fault = self.fault(handler.path, times)
        served = self.answers(parts.path, query, headers)
        etag = f'"{hashlib.md5(served.body).hexdigest()}"'
        if served.status == 200 and headers.get("if-none-match") == etag:
            served = Served(304)
        with self._lock:
            status = served.status if not fault else 0
            self.asked.append(Asked(parts.path, query, headers, time.monotonic(), fault, status))
        if fault:
            _FAULTS[fault](handler, served)
            return
        more = {"ETag": etag, "Last-Modified": "Mon, 05 Oct 2026 06:00:00 GMT"} if served.status == 200 else {}
        body = served.body
        if "gzip" in headers.get("accept-encoding", "") and len(body) > 1000 and not body.startswith(b"PK"):
            body = gzip.compress(body, 1)
            more["Content-Encoding"] = "gzip"
        _send(handler, served.status, body, {**more, **served.headers})


def _send(
    handler: BaseHTTPRequestHandler, status: int, body: bytes, headers: Mapping[str, str], length: int | None = None
) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    if status != 304:
        handler.send_header("Content-Length", str(len(body) if length is None else length))
    handler.end_headers()
    if status != 304:
        handler.wfile.write(body)
    handler.wfile.flush()


def _status(status: int, body: bytes = b"", **headers: str) -> Callable[[BaseHTTPRequestHandler, Served], None]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler, _: _send(handler, status, body, named)


def _cut(handler: BaseHTTPRequestHandler, served: Served) -> None:
    """Half of what was announced, then nothing."""
    _send(handler, 200, served.body[: len(served.body) // 2], {}, length=len(served.body) + 10)
    handler.close_connection = True


def _reset(handler: BaseHTTPRequestHandler, served: Served) -> None:
    """A few bytes, then a reset."""
    _send(handler, 200, served.body[:20], {}, length=len(served.body) + 10)
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def _drip(handler: BaseHTTPRequestHandler, served: Served) -> None:
    """A byte now and then, each in time, the whole never."""
    _send(handler, 200, b"", {}, length=len(served.body) + 100)
    handler.close_connection = True
    for place in range(60):
        handler.wfile.write(served.body[place : place + 1] or b" ")
        handler.wfile.flush()
        time.sleep(0.2)


def _silent(handler: BaseHTTPRequestHandler, served: Served) -> None:
    """No answer within any patience."""
    del served
    time.sleep(3)
    handler.close_connection = True


def _garbage(handler: BaseHTTPRequestHandler, served: Served) -> None:
    """What is said to be gzip and is not."""
    del served
    _send(handler, 200, b"\x1f\x8b\x08\x00" + b"no gzip at all" * 20, {"Content-Encoding": "gzip"})


def _elsewhere(handler: BaseHTTPRequestHandler, served: Served) -> None:
    """Another machine, which is not one of the source's."""
    del served
    _send(handler, 302, b"", {"Location": "http://127.0.0.2:9/other"})


def _loop(handler: BaseHTTPRequestHandler, served: Served) -> None:
    """The same place again, for ever."""
    del served
    _send(handler, 302, b"", {"Location": handler.path})


def _other_filer(handler: BaseHTTPRequestHandler, served: Served) -> None:
    """The record of somebody else, well-formed; of what names nobody, a page."""
    body = served.body
    start = body.find(b'"cik":')
    if start < 0:
        _send(handler, 200, PAGE, {"Content-Type": "text/html"})
        return
    place = next(at for at in range(start + 6, start + 30) if body[at : at + 1].isdigit() and body[at : at + 1] != b"0")
    changed = b"8" if body[place : place + 1] != b"8" else b"7"
    _send(handler, 200, body[:place] + changed + body[place + 1 :], {})


_FAULTS: Mapping[str, Callable[[BaseHTTPRequestHandler, Served], None]] = {
    "429": _status(429, b"Too Many Requests"),
    "429 with seconds": _status(429, b"Too Many Requests", Retry_After="7"),
    "403": _status(403, THRESHOLD),
    "500": _status(500, b"Internal Server Error"),
    "503": _status(503, PAGE, Retry_After="1"),
    "page": _status(200, PAGE, Content_Type="text/html"),
    "empty": _status(200, b""),
    "cut": _cut,
    "reset": _reset,
    "drip": _drip,
    "silent": _silent,
    "garbage": _garbage,
    "elsewhere": _elsewhere,
    "loop": _loop,
    "other filer": _other_filer,
}
FAULTS = tuple(_FAULTS)
"""Everything that can go wrong with a request."""
PASSING = tuple(name for name in FAULTS if name not in ("elsewhere", "loop"))
"""Faults after which asking again may help."""


def once_each(seed: int, share: float, kinds: tuple[str, ...]) -> Callable[[str, int], str]:
    """Lets the first request of some addresses go wrong, drawn by seed; every later one is answered well."""

    def fault(url: str, times: int) -> str:
        draw = random.Random(f"{seed}/{url}")
        return draw.choice(kinds) if times == 0 and draw.random() < share else ""

    return fault
