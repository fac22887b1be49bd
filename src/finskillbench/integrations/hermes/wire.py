"""HTTP endpoint between Hermes and our models: reads and checks requests, and streams answers.

Hermes controls the conversation, and the model reads what Hermes sends. Every request is checked for parts that Hermes
must not change: tools, system prompt, task, tool results. The address is on loopback and requires a random token.
Hermes probes a local address for known servers (`GET /models` and similar) and gets status 404.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import AsyncGenerator, Generator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import msgspec
import orjson

from finskillbench.errors import InternalError
from finskillbench.harness.model import Message, ToolCall, ToolSpec, Turn
from finskillbench.harness.prompts.compose import REMINDER
from finskillbench.scoring.values import is_object

SKILL_TOOLS = {
    "skill_view": "a292e49c9d4f6af8db60d84ef7a74ba726a14e4e58152140130f5d29171c4099",
    "skills_list": "46188b2dddc24dae5ff51e6b79d0f708315ba0f654159469c748dd8e69e54bf2",
}
"""Hermes's enabled tools, present with skills only: SHA-256 of each description in 0.19.0."""
_OPTIONS = orjson.OPT_SORT_KEYS
_FINISH = {"done": "stop", "max_tokens": "length", "refused": "content_filter"}


class _Function(msgspec.Struct):
    name: str
    arguments: str = ""
    description: str = ""
    parameters: dict[str, Any] = {}


class _Call(msgspec.Struct):
    id: str
    function: _Function


class _Tool(msgspec.Struct):
    function: _Function


class _Message(msgspec.Struct):
    role: str
    content: str | None = None
    tool_calls: list[_Call] = []
    tool_call_id: str | None = None


class ChatRequest(msgspec.Struct):
    """Relevant fields of a chat completion request; the model layer sets the others itself."""

    model: str
    messages: list[_Message]
    stream: bool = False
    tools: list[_Tool] = []


@dataclass(frozen=True, slots=True)
class ExpectedRequest:
    """Required content of every request of an episode: model, first two messages, tools."""

    model: str
    system: str
    prompt: str
    tools: Sequence[ToolSpec]
    skills: bool

    def check(self, request: ChatRequest, results: Mapping[str, str]) -> tuple[ToolSpec, ...]:
        """Check a request and return its tools; `results` are served tool results by call id.

        Raises
        ------
        InternalError : Hermes deviates from its settings; the message names the difference.
        """
        if request.model != self.model or not request.stream:
            _deviates(f"asks for {request.model!r}{'' if request.stream else ' without a stream'}, not {self.model!r}")
        system = [message.content for message in request.messages if message.role in ("system", "developer")]
        if system != [self.system] or request.messages[0].role != "system":
            _deviates(f"has another system prompt: {_difference(system, self.system)}")
        task_text = next((message.content for message in request.messages if message.role == "user"), None) or ""
        # After an abandoned turn, Hermes merges the following reminder into the previous message.
        if not task_text.startswith(self.prompt) or task_text[len(self.prompt) :].replace(REMINDER, "").strip():
            _deviates(f"has another task: {_difference([task_text], self.prompt)}")
        for message in request.messages:
            if message.role == "tool" and results.get(message.tool_call_id or "", message.content) != message.content:
                _deviates(f"has changed the result of the call {message.tool_call_id}")
        functions = [each.function for each in request.tools]
        offered = tuple(ToolSpec(each.name, each.description, each.parameters) for each in functions)
        self._check_tools(offered)
        return offered

    def _check_tools(self, offered: Sequence[ToolSpec]) -> None:
        ours = {tool.name: tool for tool in self.tools}
        natives = SKILL_TOOLS if self.skills else {}
        names = [tool.name for tool in offered]
        if extra := [name for name in names if name not in ours and name not in natives]:
            _deviates(f"offers its model the tool {extra[0]!r}, which is not on")
        if missing := [name for name in (*ours, *natives) if name not in names]:
            _deviates(f"does not offer its model the tool {missing[0]!r}")
        if len(set(names)) < len(names):
            _deviates(f"offers its model a tool twice: {', '.join(names)}")
        for tool in offered:
            wanted = _digest(ours[tool.name]) if tool.name in ours else natives[tool.name]
            if _digest(tool) != wanted:
                _deviates(f"describes the tool {tool.name!r} in other words")


def _digest(tool: ToolSpec) -> str:
    """Return SHA-256 of name, description and parameters, without empty lists, which Hermes adds or omits."""
    content = [tool.name, tool.description, _without_empty(tool.parameters)]
    return hashlib.sha256(orjson.dumps(content, option=_OPTIONS)).hexdigest()


def _without_empty(node: Any) -> Any:
    if not is_object(node):
        return node
    return {key: _without_empty(value) for key, value in node.items() if value or key not in ("properties", "required")}


def read_request(body: bytes) -> ChatRequest:
    """Decode a request.

    Raises
    ------
    InternalError : the body is not a request.
    """
    try:
        return msgspec.json.decode(body, type=ChatRequest)
    except (ValueError, RecursionError) as error:
        raise InternalError(f"Hermes sends its model a request that cannot be read: {error}") from None


def to_messages(request: ChatRequest, turns: Mapping[tuple[str, ...], Turn]) -> list[Message]:
    """Convert the conversation for the model layer; `turns` are the model's turns with calls, by call ids.

    The provider's native form of a turn is replayed only if Hermes left the turn unchanged.
    """
    return [_to_message(message, turns) for message in request.messages]


def _to_message(message: _Message, turns: Mapping[tuple[str, ...], Turn]) -> Message:
    content = message.content or ""
    match message.role:
        case "tool":
            return Message("tool", content, tool_call_id=message.tool_call_id)
        case "assistant":
            calls = tuple(ToolCall(each.id, each.function.name, each.function.arguments) for each in message.tool_calls)
            turn = turns.get(tuple(call.id for call in calls))
            if turn is not None and _is_unchanged(turn, content, calls):
                return Message("assistant", turn.text, turn.tool_calls, None, turn.replay)
            return Message("assistant", content, calls)
        case "system" | "user":
            return Message(message.role, content)
        case _:
            raise InternalError(f"Hermes sends its model a message of the role {message.role[:40]!r}")


def _is_unchanged(turn: Turn, content: str, calls: Iterable[ToolCall]) -> bool:
    return turn.text.strip() == content.strip() and all(
        made.name == sent.name and same_json(made.arguments, sent.arguments)
        for made, sent in zip(turn.tool_calls, calls, strict=True)
    )


def same_json(left: str, right: str) -> bool:
    """Compare two JSON texts by value; an empty text is an empty object."""
    if left == right:
        return True
    try:
        return orjson.loads(left or "{}") == orjson.loads(right or "{}")
    except orjson.JSONDecodeError:
        return False


def stream_of(model: str, turn: Turn) -> bytes:
    """Return a turn as an event stream: content, finish reason and usage."""
    delta: dict[str, Any] = {"role": "assistant", "content": turn.text}
    if turn.tool_calls:
        delta["tool_calls"] = [_call_of(i, call) for i, call in enumerate(turn.tool_calls)]
    finish = "tool_calls" if turn.tool_calls and turn.stop == "done" else _FINISH.get(turn.stop, "stop")
    # Hermes requires numbers; records keep the turn's own usage.
    read, written = turn.usage.input_tokens or 0, turn.usage.output_tokens or 0
    usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    events: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
        {"choices": [], "usage": usage},
    ]
    head = {"id": "turn", "object": "chat.completion.chunk", "created": 0, "model": model}
    return b"".join(b"data: %b\n\n" % orjson.dumps(head | event) for event in events) + b"data: [DONE]\n\n"


def _call_of(index: int, call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"index": index, "id": call.id, "type": "function", "function": function}


def _deviates(how: str) -> None:
    raise InternalError(f"Hermes {how}")


def _difference(found: Sequence[str | None], wanted: str) -> str:
    if len(found) != 1 or found[0] is None:
        return f"{len(found)} in place of one"
    text = found[0]
    at = next((i for i, (a, b) in enumerate(zip(text, wanted, strict=False)) if a != b), min(len(text), len(wanted)))
    return f"from character {at} on {text[at : at + 60]!r} in place of {wanted[at : at + 60]!r}"


LOOPBACK = "127.0.0.1"
MAX_REQUEST_BYTES = 256 * 1024 * 1024
"""Limit of a request; a conversation of twelve turns with the longest results is shorter."""
_MAX_HEAD_BYTES = 64 * 1024
_OVER = b'{"error": {"message": "the episode is over", "type": "invalid_request_error", "code": "over"}}'


class EndpointResponse(NamedTuple):
    """Response to a request."""

    body: bytes
    status: str = "200 OK"
    kind: str = "application/json"


OVER = EndpointResponse(_OVER, "400 Bad Request")
"""Hermes repeats most failed requests, but never after this response."""
_UNAUTHORIZED = EndpointResponse(b"{}", "401 Unauthorized")
_NOT_FOUND = EndpointResponse(b"{}", "404 Not Found")


class _Served(Protocol):
    async def answer(self, what: str, body: bytes) -> EndpointResponse:
        """Answer a request; never raises."""
        ...


class Endpoint:
    """Loopback server for requests about the current episodes, by episode name."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(24)
        self.port = 0
        self._served: dict[str, _Served] = {}
        self._count = 0
        self._connections: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[None]:
        """Serve on a free port while the context is open."""
        server = await asyncio.start_server(self._connected, LOOPBACK, 0, limit=_MAX_HEAD_BYTES)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()
            for connection in self._connections:
                connection.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

    @contextmanager
    def serving(self, episode: _Served) -> Generator[str]:
        """Register an episode and yield its name."""
        self._count += 1
        name = f"episode-{self._count}"
        self._served[name] = episode
        try:
            yield name
        finally:
            del self._served[name]

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        assert connection is not None
        self._connections.add(connection)
        try:
            with suppress(OSError, EOFError, asyncio.LimitOverrunError, ValueError, asyncio.CancelledError):
                while True:
                    answer = await self._answer(*await _read(reader))
                    head = f"HTTP/1.1 {answer.status}\r\nContent-Type: {answer.kind}\r\n"
                    writer.write(f"{head}Content-Length: {len(answer.body)}\r\n\r\n".encode() + answer.body)
                    await writer.drain()
        finally:
            self._connections.discard(connection)
            writer.close()

    async def _answer(self, request_line: str, headers: dict[str, str], body: bytes) -> EndpointResponse:
        if not secrets.compare_digest(headers.get("authorization", "").encode(), f"Bearer {self.token}".encode()):
            return _UNAUTHORIZED
        method, path, _ = request_line.split(" ", 2)
        _, name, what = path.split("/", 2)
        if method != "POST":
            return _NOT_FOUND
        episode = self._served.get(name)
        return OVER if episode is None else await episode.answer(what, body)


async def _read(reader: asyncio.StreamReader) -> tuple[str, dict[str, str], bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    request_line, *lines = head.rstrip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length = int(headers.get("content-length", "0"))
    if not 0 <= length <= MAX_REQUEST_BYTES:
        raise ValueError(f"a request of {length} bytes")
    return request_line, headers, await reader.readexactly(length)
