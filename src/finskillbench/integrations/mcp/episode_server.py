"""One episode as an MCP server: its tools, the task as a resource, and the transports.

Transports are lines over a pair of streams, a Unix socket, and HTTP on loopback.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from importlib.metadata import version
from pathlib import Path

import anyio
import uvicorn
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import types
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage

from finskillbench.errors import InputError
from finskillbench.harness.agents import Task, Tools
from finskillbench.harness.tools.contracts import SUBMIT_ANSWER
from finskillbench.redaction import logger
from finskillbench.scoring.values import as_object

HARNESS = "mcp"
"""Harness name of rows from MCP agents."""
PROMPT = "finskillbench://prompt"
"""Resource that holds the task."""
_INSTRUCTIONS = f"""\
One task of a benchmark. Its words are the resource {PROMPT}; answer it by calling `{SUBMIT_ANSWER.name}`, once, \
which ends the session."""
_ERROR = '{"error"'
"""Start of a result text if a tool declines or fails."""


class EpisodeServer:
    """MCP server of one episode, for any number of clients and any transport.

    Calls run one at a time in order of arrival, also those of several clients: they share the episode, its limits and
    its one submission. A call that its client cancels is still completed and counted. `submitted` is set once the
    answer is in.
    """

    def __init__(self, task: Task, tools: Tools) -> None:
        self.submitted = asyncio.Event()
        self.call_count = 0
        self._task, self._tools = task, tools
        self._one_at_a_time = asyncio.Lock()
        self._serving: set[asyncio.Task[str]] = set()
        self.server: Server[object] = Server(
            "finskillbench",
            version=version("finskillbench"),
            instructions=_INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_read_resource=self._read_resource,
        )

    @property
    def pending(self) -> int:
        """Number of calls that run or wait."""
        return len(self._serving)

    async def close(self) -> None:
        """Cancel running calls at the end of the episode."""
        for serving in self._serving:
            serving.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _list_tools(
        self, context: ServerRequestContext[object], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        tools = [
            types.Tool(name=tool.name, description=tool.description, input_schema=dict(tool.parameters))
            for tool in self._task.tools
        ]
        return types.ListToolsResult(tools=tools)

    async def _call_tool(
        self, context: ServerRequestContext[object], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        # Keep NaN as Python writes it, so that the tool refuses it as in other harnesses.
        arguments = json.dumps(params.arguments or {}, ensure_ascii=False)
        serving = asyncio.ensure_future(self._serve(params.name, arguments))
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)
        text = await asyncio.shield(serving)
        # The JSON stays a separate text for clients that parse it; the remaining budget is a second one.
        content = [types.TextContent(type="text", text=each) for each in text.split("\n\n", 1)]
        return types.CallToolResult(content=[*content], is_error=text.startswith(_ERROR))

    async def _serve(self, name: str, arguments: str) -> str:
        async with self._one_at_a_time:
            self.call_count += 1
            text = await self._tools.call_text(name, arguments)
        if name == SUBMIT_ANSWER.name and not text.startswith(_ERROR):
            self.submitted.set()
        return text

    async def _list_resources(
        self, context: ServerRequestContext[object], params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        prompt = types.Resource(
            uri=PROMPT, name="prompt", description="The task, and how it is answered.", mime_type="text/markdown"
        )
        return types.ListResourcesResult(resources=[prompt])

    async def _read_resource(
        self, context: ServerRequestContext[object], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        if params.uri != PROMPT:
            raise MCPError(types.INVALID_PARAMS, f"there is no resource {params.uri[:80]!r}; there is {PROMPT}")
        text = types.TextResourceContents(uri=PROMPT, mime_type="text/markdown", text=prompt_text(self._task))
        return types.ReadResourceResult(contents=[text])


def prompt_text(task: Task) -> str:
    """Return system prompt and task prompt as one text."""
    return f"{task.system}\n\n{task.prompt}"


_log = logger(__name__)

MAX_MESSAGE = 4 * 1024 * 1024
"""Maximum bytes of a message, four times the longest answer; a longer one ends a connection by lines."""
_MOST_PENDING = 64
"""Calls that wait, beyond which no further message is read."""
_MOST_REQUESTS = 128
_PENDING_SECONDS = 0.01
_LOOPBACK = "127.0.0.1"

for _name in ("mcp", "uvicorn"):
    # Without a handler, each malformed message of a client would print a traceback.
    logging.getLogger(_name).addHandler(logging.NullHandler())


async def serve_lines(
    episode_server: EpisodeServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Serve one client until it disconnects, one message per line; limit `reader` to `MAX_MESSAGE`."""
    incoming, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    replies, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_read, episode_server, reader, incoming, replies.clone())
            group.start_soon(_write, outgoing, writer)
            await episode_server.server.run(messages, replies, episode_server.server.create_initialization_options())
            group.cancel_scope.cancel()
    except* (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        _log.debug("a client has gone in the middle", exc_info=True)


async def _read(
    episode_server: EpisodeServer,
    reader: asyncio.StreamReader,
    incoming: MemoryObjectSendStream[SessionMessage | Exception],
    replies: MemoryObjectSendStream[SessionMessage],
) -> None:
    """Forward messages, and reply to malformed lines except blank ones."""
    async with incoming, replies:
        try:
            while line := await reader.readline():
                while episode_server.pending >= _MOST_PENDING:
                    await asyncio.sleep(_PENDING_SECONDS)
                try:
                    message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    if line.strip():
                        await replies.send(_refusal(line))
                else:
                    await incoming.send(SessionMessage(message))
        except ValueError:
            reason = f"a message has more than {MAX_MESSAGE:,} bytes; the connection ends"
            await replies.send(_error(types.PARSE_ERROR, None, reason))


def _refusal(line: bytes) -> SessionMessage:
    """Return the error reply to a malformed line (JSON-RPC 2.0, section 5.1)."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        return _error(types.PARSE_ERROR, None, f"not JSON: {error}")
    number = as_object(value).get("id")
    known = isinstance(number, int | str) and not isinstance(number, bool)
    return _error(
        types.INVALID_REQUEST,
        number if known else None,
        "no JSON-RPC 2.0 message: one object with jsonrpc, method and id",
    )


def _error(code: int, number: types.RequestId | None, reason: str) -> SessionMessage:
    return SessionMessage(
        types.JSONRPCError(jsonrpc="2.0", id=number, error=types.ErrorData(code=code, message=reason))
    )


async def _write(outgoing: MemoryObjectReceiveStream[SessionMessage], writer: asyncio.StreamWriter) -> None:
    async with outgoing:
        async for reply in outgoing:
            line = reply.message.model_dump_json(by_alias=True, exclude_unset=True)
            writer.write(line.encode("utf-8", "replace") + b"\n")
            await writer.drain()


@asynccontextmanager
async def on_socket(episode_server: EpisodeServer, path: Path) -> AsyncGenerator[None]:
    """Serve all clients of a Unix socket while the context is open."""
    connections: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        assert connection is not None
        connections.add(connection)
        try:
            with suppress(asyncio.CancelledError):  # cancelled below
                await serve_lines(episode_server, reader, writer)
        finally:
            connections.discard(connection)
            writer.close()

    server = await asyncio.start_unix_server(connected, path, limit=MAX_MESSAGE)
    try:
        yield
    finally:
        server.close()
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


class _Web(uvicorn.Server):
    """Web server that leaves the handling of signals to the run."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@contextmanager
def listening(port: int = 0) -> Generator[socket.socket]:
    """Hold a loopback port; 0 takes a free one.

    Raises
    ------
    InputError : the port is taken or not permitted.
    """
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((_LOOPBACK, port))
        except OSError as error:
            raise InputError(
                f"port {port} cannot be used ({error.strerror}); name another, or 0 for a free one"
            ) from None
        yield listener


@asynccontextmanager
async def on_loopback(episode_server: EpisodeServer, listener: socket.socket) -> AsyncGenerator[str]:
    """Serve streamable HTTP on a held port without sessions; yields the address, which contains a random token."""
    path = f"/{secrets.token_urlsafe(16)}/mcp"
    app = episode_server.server.streamable_http_app(
        streamable_http_path=path, json_response=True, stateless_http=True, max_request_body_size=MAX_MESSAGE
    )
    config = uvicorn.Config(
        app, log_config=None, access_log=False, ws="none", limit_concurrency=_MOST_REQUESTS, timeout_graceful_shutdown=1
    )
    web = _Web(config)
    serving = asyncio.ensure_future(web.serve(sockets=[listener]))
    try:
        while not web.started and not serving.done():
            await asyncio.sleep(_PENDING_SECONDS)
        yield f"http://{_LOOPBACK}:{listener.getsockname()[1]}{path}"
    finally:
        web.should_exit = True
        await serving
