"""A model on loopback that follows a script, in the three protocols that agents speak.

It answers Anthropic's Messages, OpenAI's Responses and chat completions, streamed where a request wants it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Call = tuple[str, dict[str, Any]]
"""Name and arguments of a tool call."""
Script = Callable[[str, Sequence[str]], Call | None]
"""Returns the next call for a whole request as text and the results so far; None ends with a text."""

_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
Events = list[tuple[str, dict[str, Any]]]


class StandIn:
    """A running model: its address, and the bodies of all requests that offered tools."""

    def __init__(self, script: Script, address: str = "") -> None:
        self.script, self.address = script, address
        self.requests: list[dict[str, Any]] = []

    def answer(self, path: str, body: dict[str, Any]) -> tuple[dict[str, Any], Events]:
        """Return a whole reply and the same as named events."""
        kind = "messages" if "/messages" in path else "responses" if "/responses" in path else "chat"
        call = None
        if body.get("tools"):
            self.requests.append(body)
            call = self.script(json.dumps(body, ensure_ascii=False), _RESULTS[kind](body))
        return _REPLIES[kind](body, call, f"call_{len(self.requests)}")


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(_text(part) for part in content)
    return content.get("text", "") if isinstance(content, dict) else str(content or "")


def _messages_results(body: dict[str, Any]) -> list[str]:
    blocks = [block for each in body["messages"] if isinstance(each["content"], list) for block in each["content"]]
    return [_text(block.get("content")) for block in blocks if block["type"] == "tool_result"]


def _messages(body: dict[str, Any], call: Call | None, number: str) -> tuple[dict[str, Any], Events]:
    start: dict[str, Any] = {"type": "text", "text": ""}
    delta: dict[str, Any] = {"type": "text_delta", "text": "Done."}
    block: dict[str, Any] = {"type": "text", "text": "Done."}
    if call is not None:
        start = {"type": "tool_use", "id": number, "name": call[0], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
        block = start | {"input": call[1]}
    stop = "end_turn" if call is None else "tool_use"
    usage = {"input_tokens": 10, "output_tokens": 5}
    whole = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": body["model"], "usage": usage}
    begun = whole | {"content": [], "stop_reason": None, "stop_sequence": None}
    events = [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": start},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]
    return begun | {"content": [block], "stop_reason": stop}, [(each["type"], each) for each in events]


def _responses_results(body: dict[str, Any]) -> list[str]:
    return [_text(item.get("output")) for item in body["input"] if item.get("type", "").endswith("_output")]


def _responses(body: dict[str, Any], call: Call | None, number: str) -> tuple[dict[str, Any], Events]:
    item: dict[str, Any] = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed"}
    item |= {"content": [{"type": "output_text", "text": "Done.", "annotations": []}]}
    if call is not None:
        namespace, _, name = call[0].rpartition("/")
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": number, "status": "completed"}
        item |= {"name": name, "arguments": json.dumps(call[1])} | ({"namespace": namespace} if namespace else {})
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    done = {"id": f"resp_{number}", "object": "response", "status": "completed", "output": [item], "usage": usage}
    events = [
        {"type": "response.created", "response": {"id": done["id"], "output": [], "status": "in_progress"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": done},
    ]
    return done, [(each["type"], each) for each in events]


def _chat_results(body: dict[str, Any]) -> list[str]:
    return [_text(each["content"]) for each in body["messages"] if each["role"] == "tool"]


def _chat(body: dict[str, Any], call: Call | None, number: str) -> tuple[dict[str, Any], Events]:
    message: dict[str, Any] = {"role": "assistant", "content": "Done."}
    if call is not None:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        message |= {"tool_calls": [{"index": 0, "id": number, "type": "function", "function": function}]}
    stop = "stop" if call is None else "tool_calls"
    whole = {"id": number, "created": 0, "model": body["model"], "usage": _USAGE}
    choice = {"index": 0, "finish_reason": stop}
    chunk = whole | {"object": "chat.completion.chunk", "choices": [choice | {"delta": message}]}
    return whole | {"object": "chat.completion", "choices": [choice | {"message": message}]}, [("", chunk)]


_RESULTS = {"messages": _messages_results, "responses": _responses_results, "chat": _chat_results}
_REPLIES = {"messages": _messages, "responses": _responses, "chat": _chat}


@contextmanager
def stand_in(script: Script) -> Generator[StandIn]:
    """Serve a model on a free port until the context is left."""
    model = StandIn(script)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
            if "count_tokens" in self.path:
                self._send("application/json", json.dumps({"input_tokens": 10}))
                return
            whole, events = model.answer(self.path, body)
            if not body.get("stream"):
                self._send("application/json", json.dumps(whole))
                return
            lines = [(f"event: {name}\n" if name else "") + f"data: {json.dumps(each)}\n\n" for name, each in events]
            self._send("text/event-stream", "".join(lines) + ("" if events[0][0] else "data: [DONE]\n\n"))

        def do_GET(self) -> None:
            self._send("application/json", json.dumps({"object": "list", "data": [], "models": []}))

        def _send(self, kind: str, text: str) -> None:
            data = text.encode()
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        model.address = f"http://127.0.0.1:{server.server_address[1]}"
        yield model
        server.shutdown()
