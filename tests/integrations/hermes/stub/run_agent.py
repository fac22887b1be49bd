"""An agent with the interface of Hermes's, as small as a loop can be; what it does wrong is named by STUB."""

import json
import os
import socket
import time
import urllib.request
from pathlib import Path

from tools.approval import _approval_tool_call_id
from tools.registry import registry

WRONG = os.environ.get("STUB", "")


class AIAgent:
    _persist_disabled = False
    _cached_system_prompt = None

    def __init__(self, *, base_url, api_key, model, max_iterations, enabled_toolsets, **_):
        self.base_url, self.api_key, self.model, self.most = base_url, api_key, model, max_iterations
        if WRONG == "is_slow":
            time.sleep(0.1)  # long enough for other episodes to register their tools
        entries = sorted(registry.entries.values(), key=lambda entry: entry.name)
        self.tools = [entry.schema for entry in entries if entry.toolset in enabled_toolsets]
        self.over = False

    def _handle_max_iterations(self, messages, count):
        raise AssertionError("asked for a summary")

    def interrupt(self):
        self.over = True

    def run_conversation(self, words, conversation_history):
        messages = [*conversation_history, {"role": "user", "content": words}]
        if WRONG == "crashes":
            raise ValueError("a bug")
        if WRONG == "gives_up":
            return {"messages": messages, "error": "no wish to go on"}
        for _ in range(self.most):
            if WRONG == "exits":
                os._exit(3)
            message = self._ask(messages)
            messages.append(message)
            for call in message.get("tool_calls", ()):
                if self.over:
                    return {"messages": messages}
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": self._serve(call)})
            if not message.get("tool_calls"):
                break
        return {"messages": messages}

    def _serve(self, call):
        function = call["function"]
        entry = registry.get_entry(function["name"])
        if entry is None:
            return "no such tool"
        _approval_tool_call_id.set("another" if WRONG == "calls_alone" else call["id"])
        arguments = json.loads(function["arguments"])
        if function["name"] == "submit_answer" and WRONG == "looks_around":
            arguments = {"answer": json.dumps(look_around())}
        result = entry.handler(arguments)
        return result[:20] if WRONG == "cuts_results" else result

    def _ask(self, messages):
        system = self._cached_system_prompt + ("\n\n# Memory" if WRONG == "remembers" else "")
        tools = [{"type": "function", "function": each} for each in self.tools]
        if WRONG == "offers_more":
            tools.append({"type": "function", "function": {"name": "terminal", "description": "", "parameters": {}}})
        if WRONG == "offers_less":
            tools.pop()
        if WRONG == "describes":
            tools[0] = {"type": "function", "function": {**tools[0]["function"], "description": "Better words."}}
        if WRONG == "adds_to_task":
            messages = [{**messages[0], "content": "Today is Monday. " + messages[0]["content"]}, *messages[1:]]
        if WRONG == "two_systems":
            messages = [{"role": "system", "content": "Be brief."}, *messages]
        body = {
            "model": "gpt-9" if WRONG == "other_model" else self.model,
            "messages": [{"role": "system", "content": system}, *messages],
            "tools": tools,
            "stream": WRONG != "no_stream",
        }
        path = "embeddings" if WRONG == "other_path" else "chat/completions"
        headers = {"Authorization": f"Bearer {self.api_key}", "Content-Type": "application/json"}
        data = b"{" if WRONG == "no_json" else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.base_url}/{path}", data, headers)
        with urllib.request.urlopen(request) as answer:
            events = [line[6:] for line in answer.read().decode().split("\n") if line.startswith("data: ")]
        assert events[-1] == "[DONE]"
        chunks = [json.loads(event) for event in events[:-1]]
        assert "usage" in chunks[-1]
        return chunks[0]["choices"][0]["delta"]


def look_around():
    """What this process is given, and what it is refused."""
    refused = []
    for name, attempt in (
        ("name", lambda: socket.getaddrinfo("example.com", 443)),
        ("address", lambda: socket.create_connection(("192.0.2.1", 443), timeout=1)),
        ("port", lambda: socket.create_connection(("127.0.0.1", 9), timeout=1)),
        ("datagram", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"", ("127.0.0.1", 9))),
        ("unix", lambda: socket.socket(socket.AF_UNIX).connect("/tmp/somewhere")),
        ("process", lambda: os.system("true")),
    ):
        try:
            attempt()
        except PermissionError:
            refused.append(name)
        except OSError:
            pass
    return {
        "environment": dict(os.environ),
        "refused": refused,
        "home": os.environ["HERMES_HOME"],
        "cwd": str(Path.cwd()),
    }
