"""A small agent that speaks MCP over stdio or HTTP, with nothing but the standard library: it starts in milliseconds.

    python agent.py BEHAVIOUR CONFIG_OR_URL [PROMPT_FILE [USAGE_FILE]]

`solve` follows a skill's document as the reference program does; the other behaviours do what no agent should. The
logic, `next_call`, reads a conversation alone, so that a model in our loop can have it too.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

VERSION = "2025-06-18"
Call = tuple[str, dict[str, Any]]


def next_call(prompt: str, index: str, results: list[tuple[str, dict[str, Any]]]) -> Call:
    """What to do next: load each skill until one has the task, run its script, submit; else submit equal weights."""
    sub_task = re.search(r"^Subtask: (\w+)$", prompt, re.MULTILINE)[1]
    loaded = [result for name, result in results if name == "load_skill"]
    for name, result in results:
        if name == "run_skill_script" and "output" in result:
            row = next(filter(None, (_row(each.get("content", ""), sub_task) for each in loaded)))
            return _submit({key: result["output"].get(key) for key in row[2]})
    for each in loaded:
        if row := _row(each.get("content", ""), sub_task):
            fields = [name for name in row[1] if f'"{name}":' in prompt] or row[1]
            arguments = {"script_path": row[0], "input_data": {}, "inject_task_fields": fields}
            return "run_skill_script", arguments
    names = re.findall(r"^- ([a-z0-9-]+):", index, re.MULTILINE)
    if len(loaded) < len(names):
        return "load_skill", {"skill_name": names[len(loaded)]}
    read = [result for name, result in results if name == "get_task_data"]
    if not read:
        return "get_task_data", {"field": "expected_returns"}
    value = read[0].get("value")
    return _submit({"weights": {name: 1 / len(value) for name in value}} if isinstance(value, dict) else {})


def _submit(answer: dict[str, Any]) -> Call:
    return "submit_answer", {"answer": json.dumps(answer)}


def _row(document: str, sub_task: str) -> tuple[str, list[str], list[str]] | None:
    for line in document.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 4 and re.sub(r"[ -]", "_", cells[0].lower()) == sub_task:
            fields, keys = ([part.strip() for part in cell.split(",")] for cell in cells[2:])
            return cells[1].strip("`"), fields, keys
    return None


class Client:
    """The client's side of the protocol."""

    def __init__(self, where: str) -> None:
        self.url = where if where.startswith("http") else None
        self.number = 0
        if self.url is None:
            server = json.loads(Path(where).read_text())["mcpServers"]["finskillbench"]
            self.server = subprocess.Popen(
                [server["command"], *server["args"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        hello = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "agent", "version": "0"}}
        self.ask("initialize", hello)
        self.tell({"method": "notifications/initialized"})

    def tell(self, message: dict[str, Any]) -> str:
        text = json.dumps({"jsonrpc": "2.0", **message})
        if self.url is not None:
            headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
            if self.number > 1:
                headers["MCP-Protocol-Version"] = VERSION
            request = urllib.request.Request(self.url, text.encode(), headers)
            with urllib.request.urlopen(request) as answer:
                return answer.read().decode()
        self.server.stdin.write(text + "\n")
        self.server.stdin.flush()
        return ""

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.number += 1
        text = self.tell({"id": self.number, "method": method, "params": params})
        answer = json.loads(text if self.url is not None else self.server.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["result"]

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        result, *left = self.ask("tools/call", {"name": name, "arguments": arguments})["content"]
        assert all("Tool calls left: " in each["text"] for each in left)
        return json.loads(result["text"])

    def prompt(self) -> str:
        (contents,) = self.ask("resources/read", {"uri": "finskillbench://prompt"})["contents"]
        return contents["text"]

    def index(self) -> str:
        tools = {tool["name"]: tool["description"] for tool in self.ask("tools/list", {})["tools"]}
        return tools.get("load_skill", "")


def solve(client: Client, prompt: str) -> None:
    index, results = client.index(), []
    while not results or results[-1][0] != "submit_answer":
        name, arguments = next_call(prompt, index, results)
        results.append((name, client.call(name, arguments)))


def misbehave(behaviour: str, client: Client) -> None:
    read = ("get_task_data", {"field": "cash"})
    answer = ("submit_answer", {"answer": '{"weights": {"T00": 1.0}}'})
    match behaviour:
        case "quits":
            client.call(*read)
        case "fails":
            client.call(*read)
            sys.exit("too hard")
        case "calls":
            print(subprocess.Popen([sys.executable, "-Ic", "import time; time.sleep(3600)"]).pid, flush=True)
            while True:
                client.call(*read)
        case "giant":
            client.call("get_task_data", {"field": "x" * 1_000_000})
            client.call("get_task_data", {"field": "x" * 5_000_000})
        case "looks":
            for process in ("self", client.server.pid):
                print(Path(f"/proc/{process}/cmdline").read_bytes(), Path(f"/proc/{process}/environ").read_bytes())
            for path in Path.cwd().iterdir():
                print(path, path.read_text() if path.is_file() else "")
            print([path.readlink() for path in Path("/proc/self/fd").iterdir() if path.exists()])
            client.call(*answer)
        case "talks":
            client.call(*answer)
            for number in range(400):
                print(number, os.environ["MY_API_KEY"], "x" * 2_000)
        case "late":
            client.call(*answer)
            assert "over" in client.call(*read)["error"]
            assert "over" in client.call(*answer)["error"]
            sys.exit("after the answer")
        case "lingers":
            client.call(*answer)
            time.sleep(3600)
        case "meets":
            client.call(*read)
            meeting = Path(sys.argv[4])
            (meeting / str(os.getpid())).touch()
            while len(list(meeting.iterdir())) < 2:
                time.sleep(0.02)
            client.call(*answer)
        case "submits":
            client.call(*answer)
        case "in turn":
            client.call(*read)
            tickets = Path(sys.argv[4])
            mine = 0
            while (tickets / str(mine)).exists() or not _took(tickets / str(mine)):
                mine += 1
            if mine >= int((tickets / "most").read_text()):
                (tickets / str(mine)).write_text(str(os.getpid()))
                time.sleep(3600)
            client.call(*answer)
        case "spends":
            client.call(*answer)
            spent = json.dumps({"input_tokens": 100, "output_tokens": 10, "cost_usd": 0.25, "model": "theirs"})
            Path(sys.argv[4]).write_text(f"{spent}\n{spent}\n")


def _took(ticket: Path) -> bool:
    try:
        ticket.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


if __name__ == "__main__":
    behaviour, where, *files = sys.argv[1:]
    if behaviour == "crashes":
        sys.exit("no key for my provider")
    if behaviour == "leaves":
        sys.exit(0)
    if behaviour == "sleeps":
        time.sleep(3600)
    client = Client(where)
    prompt = Path(files[0]).read_text() if files else client.prompt()
    assert prompt == client.prompt()
    if behaviour == "solve":
        solve(client, prompt)
    else:
        misbehave(behaviour, client)
