"""Plays episodes with the real Hermes Agent, inside Hermes's interpreter, many at once.

Started by path with `python -I`; imports the standard library and Hermes only. Orders arrive as JSON lines on standard
input, events leave as JSON lines on standard output. Model requests and tool calls go to one loopback address of the
harness. The process ends with its standard input and removes its folder.
"""

import contextlib
import http.client
import json
import os
import shutil
import sys
import threading
import time
from contextvars import ContextVar
from importlib import import_module, metadata
from typing import Any

_SKILL_TOOLS = ("skills_list", "skill_view")
_PRIVATE = ("_persist_disabled", "_cached_system_prompt", "_handle_max_iterations")
"""Private attributes that the worker sets because no public option exists."""
_STARTS_A_PROCESS = frozenset({"subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"})
_HAS_AN_ADDRESS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_NAMES_A_HOST = frozenset({"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"})
_LOOPBACK = "127.0.0.1"


class HarnessLink:
    """Connection to the harness: lines to its pipe, requests to its address."""

    def __init__(self, port: int, token: str) -> None:
        self.port, self.token = port, token
        # Prints of Hermes must not mix with the lines.
        self._pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        self._one_at_a_time = threading.Lock()

    def send(self, **fields: object) -> None:
        with self._one_at_a_time:
            self._pipe.write(json.dumps(fields) + "\n")
            self._pipe.flush()

    def request(self, episode: str, what: str, payload: object) -> Any:
        """Send a request about an episode and return the answer."""
        connection = http.client.HTTPConnection(_LOOPBACK, self.port)
        try:
            headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
            connection.request("POST", f"/{episode}/{what}", json.dumps(payload), headers)
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != http.client.OK:
                raise ConnectionError(f"{what}: status {answer.status}")
            return json.loads(body)
        finally:
            connection.close()

    def guard(self) -> None:
        """Refuse processes and all addresses but that of the harness, and report each refusal.

        An audit hook cannot be removed, and it sees the calls of every module of this interpreter.
        """

        def refuse(event: str, what: object) -> None:
            self.send(refused=f"{event} {what}"[:200])
            raise PermissionError(f"{event} is not allowed under the benchmark")

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if event in _STARTS_A_PROCESS:
                refuse(event, arguments[0] if arguments else "")
            elif event in _NAMES_A_HOST:
                if arguments[0] not in (_LOOPBACK, None):
                    refuse(event, arguments[0])
            elif event in _HAS_AN_ADDRESS:
                address = arguments[1]
                if address is not None and tuple(address[:2]) != (_LOOPBACK, self.port):
                    refuse(event, address)

        sys.addaudithook(hook)


class _Hermes:
    def __init__(self, harness: HarnessLink, version: str) -> None:
        self._harness = harness
        found = metadata.version("hermes-agent")
        if found != version:
            raise RuntimeError(f"hermes-agent is {found}, not {version}")
        self._registry: Any = import_module("tools.registry").registry
        self._agent: Any = import_module("run_agent").AIAgent
        self._call_id: ContextVar[str] = import_module("tools.approval")._approval_tool_call_id
        # Hermes passes its context to its threads; thread-local values would be lost.
        self._current: ContextVar[tuple[str, Any]] = ContextVar("episode")
        # The registry is global: another episode must not change a tool before an agent has read it.
        self._creation_lock = threading.Lock()
        self._playing: dict[str, Any] = {}
        # Threads that evict the oldest of eight cached tool lists at once fail with a KeyError.
        tools: Any = import_module("model_tools")
        tools._TOOL_DEFS_CACHE_MAX = sys.maxsize
        self._registry.deregister("skill_manage")
        for name in _SKILL_TOOLS:
            self._watch(name)

    def _watch(self, name: str) -> None:
        entry = self._registry.get_entry(name)

        def handler(arguments: Any, **rest: Any) -> str:
            started = time.perf_counter()
            result = entry.handler(arguments, **rest)
            return self._report_call(name, arguments, result, time.perf_counter() - started)

        self._registry.register(
            name=name, toolset=entry.toolset, schema=entry.schema, handler=handler, max_result_size_chars=float("inf")
        )

    def _offer(self, schema: dict[str, Any]) -> str:
        """Register a benchmark tool in its own toolset, since tools differ between episodes."""
        name = schema["name"]
        toolset = f"finskillbench-{name}"

        def handler(arguments: Any, **_: Any) -> str:
            return self._report_call(name, arguments)

        entry = self._registry.get_entry(name)
        if entry is None or entry.schema != schema:
            self._registry.register(
                name=name, toolset=toolset, schema=schema, handler=handler, max_result_size_chars=float("inf")
            )
        return toolset

    def _report_call(self, name: str, arguments: Any, result: str | None = None, seconds: float = 0.0) -> str:
        """Report a call to the harness and return its result; the harness serves benchmark tools."""
        episode, agent = self._current.get()
        call = {"id": self._call_id.get(), "name": name, "arguments": arguments, "result": result}
        call["seconds"] = seconds
        answer = self._harness.request(episode, "call", call)
        if answer["over"]:
            agent.interrupt()
        return answer["result"]

    def play(self, order: dict[str, Any]) -> None:
        episode, error = order["episode"], None
        try:
            with self._creation_lock:
                agent = self._make(order)
            self._current.set((episode, agent))
            self._playing[episode] = agent
            self._converse(agent, order)
        except BaseException as problem:  # noqa: BLE001 - reported to the harness
            error = f"{type(problem).__name__}: {problem}"
        self._playing.pop(episode, None)
        self._harness.send(ended=episode, error=error)

    def stop(self, episode: str) -> None:
        agent = self._playing.get(episode)
        if agent is not None:
            agent.interrupt()

    def _make(self, order: dict[str, Any]) -> Any:
        toolsets = [self._offer(schema) for schema in order["tools"]]
        agent = self._agent(
            base_url=f"http://{_LOOPBACK}:{self._harness.port}/{order['episode']}",
            api_key=self._harness.token,
            model=order["model"],
            provider="custom",
            api_mode="chat_completions",
            max_iterations=order["turns"],
            tool_delay=0.0,
            enabled_toolsets=[*toolsets, *(["skills"] if order["skills"] else [])],
            quiet_mode=True,
            skip_memory=True,
            skip_context_files=True,
            load_soul_identity=False,
            session_db=None,
            platform="batch",
        )
        missing = [name for name in _PRIVATE if not hasattr(agent, name)]
        if missing:
            raise RuntimeError(f"this Hermes has no {', '.join(missing)}")
        agent._persist_disabled = True
        agent._cached_system_prompt = order["system"]
        # After the last turn Hermes would call its model again for a summary that is not used.
        agent._handle_max_iterations = _do_nothing
        return agent

    def _converse(self, agent: Any, order: dict[str, Any]) -> None:
        """Send the task, then each reminder of the harness when Hermes stops."""
        message: str | None = order["prompt"]
        history: list[Any] = []
        while message is not None:
            result = agent.run_conversation(message, conversation_history=history)
            history = result["messages"]
            message = self._harness.request(order["episode"], "pause", {"error": result.get("error")})["say"]


def _do_nothing(*_: object) -> None:
    pass


def main() -> None:
    """Play the orders of standard input until it ends."""
    settings = json.loads(sys.stdin.readline())
    harness = HarnessLink(settings["port"], settings["token"])
    harness.guard()
    try:
        hermes = _Hermes(harness, settings["version"])
    except Exception as problem:  # noqa: BLE001 - reported to the harness
        harness.send(failed=f"{type(problem).__name__}: {problem}")
        return
    harness.send(ready=settings["version"])
    for line in sys.stdin:
        order = json.loads(line)
        if "stop" in order:
            hermes.stop(order["stop"])
        else:
            threading.Thread(target=hermes.play, args=(order,), daemon=True).start()


if __name__ == "__main__":
    home = os.environ["HERMES_HOME"]
    try:
        main()
    finally:
        with contextlib.suppress(OSError):
            shutil.rmtree(home)
        os._exit(0)  # ends threads of unfinished episodes
