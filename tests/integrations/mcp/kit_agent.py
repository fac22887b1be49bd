"""An agent made with the official kit: reads the file that names its tools, and submits what the task's words say."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from mcp import Client
from mcp.client.stdio import StdioServerParameters


async def main(config: str, prompt_file: str) -> None:
    server = json.loads(Path(config).read_text())["mcpServers"]["finskillbench"]
    async with Client(StdioServerParameters(command=server["command"], args=server["args"])) as client:
        (resource,) = (await client.list_resources()).resources
        (content,) = (await client.read_resource(resource.uri)).contents
        assert content.text == Path(prompt_file).read_text()
        names = [tool.name for tool in (await client.list_tools()).tools]
        await client.call_tool("submit_answer", {"answer": json.dumps({"tools": names})})


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
