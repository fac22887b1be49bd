"""A server with OpenAI's files and batches beside it: what a batch holds is answered by the script of a `FaultServer`.

A batch is done the second time that somebody asks how it stands. Loopback only, in threads of its own.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.faults.server import Reply, Request


class BatchServer:
    """A context manager. `batches` are the requests of each batch that was sent, `single` those sent outside of any."""

    def __init__(self, script: Callable[[Request], Reply]) -> None:
        self.script = script
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, list[Request]] = {}
        self.single: list[str] = []
        self.asked: dict[str, int] = {}
        self.refuse = False
        """Whether every batch is rejected whole."""
        self._numbers = itertools.count(1)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def upload(self, body: bytes, kind: str) -> dict[str, Any]:
        boundary = kind.partition("boundary=")[2].strip('"').encode()
        parts = [part.partition(b"\r\n\r\n") for part in body.split(b"--" + boundary)]
        content = next(part.rstrip(b"\r\n") for head, _, part in parts if b'name="file"' in head)
        name = f"file-{next(self._numbers)}"
        self.files[name] = content
        made = {"id": name, "object": "file", "bytes": len(content), "created_at": 1, "filename": "x.jsonl"}
        return {**made, "purpose": "batch", "status": "processed"}

    def create(self, asked: dict[str, Any]) -> dict[str, Any]:
        name = f"batch-{next(self._numbers)}"
        lines = [json.loads(line) for line in self.files[asked["input_file_id"]].splitlines()]
        self.batches[name] = [Request(line["url"], {}, line["body"]) for line in lines]
        self.files[f"{name}-in"] = self.files[asked["input_file_id"]]
        self.asked[name] = 0
        return self.stand(name)

    def stand(self, name: str) -> dict[str, Any]:
        self.asked[name] += 1
        done = self.asked[name] > 2
        status = "in_progress" if not done else "failed" if self.refuse else "completed"
        made: dict[str, Any] = {
            "id": name,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "input_file_id": f"{name}-in",
            "completion_window": "24h",
            "created_at": 1,
            "status": status,
            "request_counts": {"total": len(self.batches[name]), "completed": 0, "failed": 0},
        }
        if status == "completed":
            made["output_file_id"] = f"{name}-out"
            self.files[f"{name}-out"] = b"\n".join(self.answers(name))
        if status == "failed":
            made["errors"] = {"object": "list", "data": [{"code": "token_limit_exceeded", "message": "queue is full"}]}
        return made

    def answers(self, name: str) -> list[bytes]:
        ids = [json.loads(line)["custom_id"] for line in self.files[f"{name}-in"].splitlines()]
        told: list[bytes] = []
        for each, request in zip(ids, self.batches[name], strict=True):
            reply = self.script(request)
            line: dict[str, Any] = {"id": each, "custom_id": each, "response": None, "error": None}
            if reply.manner == "never":
                line["error"] = {"code": "batch_expired", "message": "not reached within 24h"}
            else:
                line["response"] = {"status_code": reply.status, "request_id": each, "body": json.loads(reply.body)}
            told.append(json.dumps(line).encode())
        return told


def _handler(server: BatchServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            match self.path.removeprefix("/v1"):
                case "/files":
                    self.send(server.upload(body, self.headers["content-type"]))
                case "/batches":
                    self.send(server.create(json.loads(body)))
                case other:
                    server.single.append(other)
                    reply = server.script(Request(other, {}, json.loads(body)))
                    self.send(json.loads(reply.body), reply.status)

        def do_GET(self) -> None:
            parts = self.path.removeprefix("/v1/").split("/")
            if parts[0] == "files":
                self.send(server.files[parts[1]])
            else:
                self.send(server.stand(parts[1]))

        def send(self, content: Any, status: int = 200) -> None:
            body = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    return Handler
