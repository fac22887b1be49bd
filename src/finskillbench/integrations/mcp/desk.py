"""One episode as an MCP server: the arm's tools, the task as a resource, and nothing else."""

from __future__ import annotations

import asyncio
import json
from importlib.metadata import version

from mcp import types
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from finskillbench.harness.agents import Task, Tools
from finskillbench.harness.tools.contracts import SUBMIT_ANSWER

PROMPT = "finskillbench://prompt"
"""The resource that holds the task."""
_INSTRUCTIONS = f"""\
One task of a benchmark. Its words are the resource {PROMPT}; answer it by calling `{SUBMIT_ANSWER.name}`, once, \
which ends the session."""
_ERROR = '{"error"'
"""How the text of a result begins where a tool declines or fails."""


class Desk:
    """One episode behind a server of the protocol, whoever connects to it and over which transport.

    Calls are served one at a time in the order in which they came, also those of several clients: they share the
    episode, its limits and its one submission. A call that its client gives up is finished and counted all the same,
    so that nobody undoes what it has asked. `submitted` is set once the answer is in.
    """

    def __init__(self, task: Task, tools: Tools) -> None:
        self.submitted = asyncio.Event()
        self.asked = 0
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
        """Calls that are being served or wait for it."""
        return len(self._serving)

    async def close(self) -> None:
        """Give up calls under way: the episode is over."""
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
        # As Python writes it: a NaN stays one, and is refused by the tool as it is everywhere else.
        arguments = json.dumps(params.arguments or {}, ensure_ascii=False)
        serving = asyncio.ensure_future(self._serve(params.name, arguments))
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)
        text = await asyncio.shield(serving)
        # The JSON stays a text of its own, for clients that parse it; what is left of the budget is a second one.
        content = [types.TextContent(type="text", text=each) for each in text.split("\n\n", 1)]
        return types.CallToolResult(content=[*content], is_error=text.startswith(_ERROR))

    async def _serve(self, name: str, arguments: str) -> str:
        async with self._one_at_a_time:
            self.asked += 1
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
    """All that a model would read before its first turn, as one text."""
    return f"{task.system}\n\n{task.prompt}"
