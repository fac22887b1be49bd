"""The file of kept answers: what is found again, what is not, and what is refused."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.faults.hosted import SERVED, TALK, TOOLS
from tests.faults.server import SUBMIT, FaultServer, answer, error

from finskillbench.errors import InputError, ProviderError
from finskillbench.harness.model import Message, ToolCall, Turn, Usage
from finskillbench.harness.models import ModelOptions, get_model
from finskillbench.harness.providers.hosted import Hosted
from finskillbench.harness.providers.replies import CachedAnswer, ResponseCache

TURN = Turn("Hm – so.", (ToolCall("1", "get_task_data", '{"a": 1.50}'),), Usage(input_tokens=7, output_tokens=2))


def test_what_is_kept_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "answers.sqlite"
    store = ResponseCache(path)
    store.store("m", b"request", CachedAnswer(TURN, '{"x": 1}'))
    store.store("m", b"request", CachedAnswer(replace(TURN, text="later"), None))
    again = ResponseCache(path)
    assert again.find(b"request") == CachedAnswer(TURN, '{"x": 1}')
    assert again.find(b"another") is None
    assert path.stat().st_mode & 0o077 == 0


def test_a_line_that_cannot_be_read_counts_as_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "answers.sqlite"
    store = ResponseCache(path)
    store.store("m", b"request", CachedAnswer(TURN, None))
    with sqlite3.connect(path) as other:
        other.execute("UPDATE answers SET turn = ?", (b'{"text": 7}',))
    assert store.find(b"request") is None
    assert "answers are requested again" in caplog.text


def test_another_file_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("Dear diary, " * 100)
    with pytest.raises(
        InputError, match=r"notes\.txt: is not a response cache \(file is not a database\); name another"
    ):
        ResponseCache(text)
    assert text.read_text().startswith("Dear diary")
    with pytest.raises(InputError, match=r"cannot be written \(Is a directory\)"):
        ResponseCache(tmp_path)
    newer = tmp_path / "newer.sqlite"
    with sqlite3.connect(newer) as store:
        store.execute("PRAGMA user_version = 9")
    with pytest.raises(InputError, match="a response cache of format 9, not 1"):
        ResponseCache(newer)


hosted = [
    pytest.mark.slow,
    pytest.mark.enable_socket,
    pytest.mark.skipif(find_spec("inspect_ai") is None, reason="the extra llm is not installed"),
]


class Asker:
    """Calls of one model that keeps its answers, and how many requests they took."""

    def __init__(self, server: FaultServer, path: Path, **options: Any) -> None:
        self.server = server
        self.model = get_model(SERVED, ModelOptions(base_url=server.url, response_cache=path, **options))
        assert isinstance(self.model, Hosted)

    def __call__(self, messages: tuple[Message, ...] = TALK, **more: Any) -> tuple[Turn, int]:
        """The turn, kept or asked, and the requests that were sent for it."""
        before = len(self.server.requests)
        asked = {"tools": TOOLS, "tool_choice": "auto", "max_tokens": None, "repeat": 0, **more}

        async def call() -> Turn:
            try:
                return self.model.recall(messages, **asked) or await self.model.generate(messages, **asked)
            finally:
                await self.model.close()

        return asyncio.run(call()), len(self.server.requests) - before


class TestHosted:
    pytestmark = hosted

    def test_the_same_request_is_asked_once(self, tmp_path: Path) -> None:
        path = tmp_path / "answers.sqlite"
        with FaultServer(lambda _: SUBMIT) as server:
            first, asked = Asker(server, path)()
            second, again = Asker(server, path)()
        assert (asked, again) == (1, 0)
        assert second.tool_calls == first.tool_calls
        assert (second.usage.reused_calls, second.usage.input_tokens, second.seconds) == (1, 1000, 0.0)

    @pytest.mark.parametrize(
        "other",
        [
            {"messages": (*TALK, Message("user", "Again."))},
            {"tools": TOOLS[:1]},
            {"tool_choice": "submit_answer"},
            {"max_tokens": 100},
            {"repeat": 1},
        ],
        ids=lambda other: next(iter(other)),
    )
    def test_another_request_is_asked(self, tmp_path: Path, other: dict[str, Any]) -> None:
        with FaultServer(lambda _: SUBMIT) as server:
            ask = Asker(server, tmp_path / "answers.sqlite")
            ask()
            _, asked = ask(**other)
        assert asked == 1

    @pytest.mark.parametrize(
        "options",
        [
            {"seed": 3},
            {"temperature": 0.5},
            {"max_tokens": 99},
            {"reasoning_effort": "low"},
            {"model_args": {"top_p": 0.5}},
        ],
        ids=lambda options: next(iter(options)),
    )
    def test_other_arguments_are_another_request(self, tmp_path: Path, options: dict[str, Any]) -> None:
        path = tmp_path / "answers.sqlite"
        with FaultServer(lambda _: SUBMIT) as server:
            Asker(server, path)()
            _, asked = Asker(server, path, **options)()
        assert asked == 1

    def test_a_conversation_goes_on_from_what_was_kept(self, tmp_path: Path) -> None:
        """What the provider wants back of its turn is part of the next request, kept or not."""
        path = tmp_path / "answers.sqlite"
        reply = answer(("get_task_data", '{"field":  "x"}'), reasoning_content="Hm, the field.")
        sent = []
        with FaultServer(lambda _: reply) as server:
            for _ in range(2):
                ask = Asker(server, path)
                turn, _ = ask()
                said = Message("assistant", turn.text, turn.tool_calls, None, turn.replay)
                talk = (*TALK, said, Message("tool", "[1]", tool_call_id="call_0"))
                sent.append(ask(talk)[1])
            other = (*TALK, replace(said, _replay=None), talk[-1])
            assert Asker(server, path)(other)[1] == 1
        assert sent == [1, 0]

    def test_another_server_is_asked(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Its address may come from the environment, and is then no argument."""
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        path, asked = (
            tmp_path / "answers.sqlite",
            {"tools": TOOLS, "tool_choice": "auto", "max_tokens": None, "repeat": 0},
        )
        found = []
        with FaultServer(lambda _: SUBMIT) as server:
            for address in (server.url, server.url, "http://127.0.0.1:9/v1"):
                monkeypatch.setenv("OPENAI_BASE_URL", address)
                model = get_model(
                    "openai/gpt-4.1", ModelOptions(response_cache=path, model_args={"responses_api": False})
                )
                found.append(model.recall(TALK, **asked) is not None)
                if address == server.url:
                    asyncio.run(model.generate(TALK, **asked))
        assert found == [False, True, False]

    def test_a_damaged_answer_is_asked_anew(self, tmp_path: Path) -> None:
        path = tmp_path / "answers.sqlite"
        with FaultServer(lambda _: SUBMIT) as server:
            Asker(server, path)()
            with sqlite3.connect(path) as store:
                store.execute("UPDATE answers SET replay = '{}'")
            assert Asker(server, path)()[1] == 1

    def test_a_failure_is_not_kept(self, tmp_path: Path) -> None:
        replies = iter([error(500, "oops"), SUBMIT])
        with FaultServer(lambda _: next(replies)) as server:
            ask = Asker(server, tmp_path / "answers.sqlite")
            with pytest.raises(ProviderError):
                ask()
            assert ask()[1] == 1

    def test_no_secret_is_written(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "answers.sqlite"
        monkeypatch.setenv("SOME_API_KEY", "sk-very-secret-0123456789")
        reply = answer(
            ("get_task_data", '{"field": "sk-very-secret-0123456789"}'), reasoning_content="sk-very-secret-0123456789"
        )
        with FaultServer(lambda _: reply) as server:
            Asker(server, path)()
        assert not any(b"sk-very-secret" in file.read_bytes() for file in tmp_path.iterdir())
