"""Runs inside Hermes's own interpreter: plays episodes with the real Hermes Agent, many at once.

Started by its path with `python -I`; it needs the standard library and Hermes, and nothing of this package. It is told
what to play by lines of JSON on standard input, and answers with such lines on standard output. The model, the tools of
the benchmark and every count are outside, behind one address of this machine: what Hermes asks of its model and what it
calls goes there, and nowhere else. When standard input ends, so does the process, and its folder with it.
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
"""What has no public switch and is set all the same; a Hermes without it would be another agent."""
_STARTS_A_PROCESS = frozenset({"subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"})
_HAS_AN_ADDRESS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_NAMES_A_HOST = frozenset({"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"})
_LOOPBACK = "127.0.0.1"


class Outside:
    """The harness: lines to its pipe, and requests to its address."""

    def __init__(self, port: int, token: str) -> None:
        self.port, self.token = port, token
        # Whatever Hermes prints must not get between the lines.
        self._pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        self._one_at_a_time = threading.Lock()

    def say(self, **words: object) -> None:
        """One line."""
        with self._one_at_a_time:
            self._pipe.write(json.dumps(words) + "\n")
            self._pipe.flush()

    def ask(self, episode: str, what: str, words: object) -> Any:
        """The answer to a request about an episode."""
        wire = http.client.HTTPConnection(_LOOPBACK, self.port)
        try:
            headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
            wire.request("POST", f"/{episode}/{what}", json.dumps(words), headers)
            answer = wire.getresponse()
            body = answer.read()
            if answer.status != http.client.OK:
                raise ConnectionError(f"{what}: status {answer.status}")
            return json.loads(body)
        finally:
            wire.close()

    def guard(self) -> None:
        """Refuse from here on every address but that of the harness, and every process; what is refused is told.

        An audit hook cannot be taken away again, and sees what any module of this interpreter asks of it.
        """

        def refuse(event: str, what: object) -> None:
            self.say(refused=f"{event} {what}"[:200])
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
    """The agent as it is installed here."""

    def __init__(self, outside: Outside, version: str) -> None:
        self._outside = outside
        found = metadata.version("hermes-agent")
        if found != version:
            raise RuntimeError(f"hermes-agent is {found}, not {version}")
        self._registry: Any = import_module("tools.registry").registry
        self._agent: Any = import_module("run_agent").AIAgent
        self._call_id: ContextVar[str] = import_module("tools.approval")._approval_tool_call_id
        # Hermes hands its context on to threads of its own; what is bound to a thread would be lost there.
        self._here: ContextVar[tuple[str, Any]] = ContextVar("episode")
        # The registry is one for the process: another episode must not change a tool before an agent has read it.
        self._making = threading.Lock()
        self._playing: dict[str, Any] = {}
        # Threads that discard the oldest of eight cached lists of tools at once fail with a KeyError.
        tools: Any = import_module("model_tools")
        tools._TOOL_DEFS_CACHE_MAX = sys.maxsize
        self._registry.deregister("skill_manage")
        for name in _SKILL_TOOLS:
            self._watch(name)

    def _watch(self, name: str) -> None:
        """Have the harness told of each call of one of Hermes's own tools, and of its result."""
        entry = self._registry.get_entry(name)

        def handler(arguments: Any, **rest: Any) -> str:
            started = time.perf_counter()
            result = entry.handler(arguments, **rest)
            return self._tell(name, arguments, result, time.perf_counter() - started)

        self._registry.register(
            name=name, toolset=entry.toolset, schema=entry.schema, handler=handler, max_result_size_chars=float("inf")
        )

    def _offer(self, schema: dict[str, Any]) -> str:
        """Register a tool of the benchmark in its own toolset: episodes differ in their tools and their words."""
        name = schema["name"]
        toolset = f"finskillbench-{name}"

        def handler(arguments: Any, **_: Any) -> str:
            return self._tell(name, arguments)

        entry = self._registry.get_entry(name)
        if entry is None or entry.schema != schema:
            self._registry.register(
                name=name, toolset=toolset, schema=schema, handler=handler, max_result_size_chars=float("inf")
            )
        return toolset

    def _tell(self, name: str, arguments: Any, result: str | None = None, seconds: float = 0.0) -> str:
        """The result of a call, as the harness has it; a tool of the benchmark is served there."""
        episode, agent = self._here.get()
        words = {"id": self._call_id.get(), "name": name, "arguments": arguments, "result": result}
        words["seconds"] = seconds
        answer = self._outside.ask(episode, "call", words)
        if answer["over"]:
            agent.interrupt()
        return answer["result"]

    def play(self, order: dict[str, Any]) -> None:
        """Play one episode to its end."""
        episode, error = order["episode"], None
        try:
            with self._making:
                agent = self._make(order)
            self._here.set((episode, agent))
            self._playing[episode] = agent
            self._converse(agent, order)
        except BaseException as problem:  # noqa: BLE001 - told outside, where it is judged
            error = f"{type(problem).__name__}: {problem}"
        self._playing.pop(episode, None)
        self._outside.say(ended=episode, error=error)

    def stop(self, episode: str) -> None:
        """Interrupt an episode, if it is played here."""
        agent = self._playing.get(episode)
        if agent is not None:
            agent.interrupt()

    def _make(self, order: dict[str, Any]) -> Any:
        toolsets = [self._offer(schema) for schema in order["tools"]]
        agent = self._agent(
            base_url=f"http://{_LOOPBACK}:{self._outside.port}/{order['episode']}",
            api_key=self._outside.token,
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
        # Out of turns it would ask its model once more, for a summary that nobody reads.
        agent._handle_max_iterations = _nothing
        return agent

    def _converse(self, agent: Any, order: dict[str, Any]) -> None:
        """Say the task, and whatever the harness has to say each time Hermes thinks that it is done."""
        words: str | None = order["prompt"]
        history: list[Any] = []
        while words is not None:
            result = agent.run_conversation(words, conversation_history=history)
            history = result["messages"]
            words = self._outside.ask(order["episode"], "pause", {"error": result.get("error")})["say"]


def _nothing(*_: object) -> None:
    pass


def main() -> None:
    """Play what standard input orders until it ends."""
    settings = json.loads(sys.stdin.readline())
    outside = Outside(settings["port"], settings["token"])
    outside.guard()
    try:
        hermes = _Hermes(outside, settings["version"])
    except Exception as problem:  # noqa: BLE001 - whatever keeps it from starting is one line outside
        outside.say(failed=f"{type(problem).__name__}: {problem}")
        return
    outside.say(ready=settings["version"])
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
        os._exit(0)  # threads in the middle of an episode have nobody left to play for
