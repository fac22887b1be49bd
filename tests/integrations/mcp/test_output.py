"""What is kept of a command's output, and what is believed of its usage."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from finskillbench.harness.model import Usage
from finskillbench.integrations.mcp.drive import _MARGIN, KEPT_CHARS, Output, read_usage

SECRET = "sk-" + "".join(f"{number:03}" for number in range(100))


def kept(data: bytes) -> Output:
    async def read() -> Output:
        output = Output()
        with output.pipe() as pipe:
            given = os.dup(pipe)

        def write() -> None:
            with os.fdopen(given, "wb") as file:
                file.write(data)

        reading = asyncio.ensure_future(output.read())
        await asyncio.get_running_loop().run_in_executor(None, write)
        await output.finish(reading)
        return output

    return asyncio.run(read())


@pytest.mark.parametrize("before", [0, 1, 150, 299])
def test_a_secret_that_the_bound_has_halved_is_not_kept(before: int, monkeypatch) -> None:
    monkeypatch.setenv("MY_TOKEN", SECRET)
    bound = KEPT_CHARS + _MARGIN
    monkeypatch.setattr("finskillbench.integrations.mcp.drive._KEPT_BYTES", bound)
    output = kept(b"x" * bound + SECRET.encode() + b"y" * (bound - len(SECRET) + before))
    said = output.text.removeprefix("[...]")
    assert set(said) == {"y"}
    assert KEPT_CHARS - len(SECRET) <= len(said) <= KEPT_CHARS


@pytest.mark.slow
@pytest.mark.parametrize("before", [1, 150, 299])
def test_nor_is_one_that_stands_where_the_front_is_cut_off(before: int, monkeypatch) -> None:
    monkeypatch.setenv("MY_TOKEN", SECRET)
    bound = KEPT_CHARS + _MARGIN
    monkeypatch.setattr("finskillbench.integrations.mcp.drive._KEPT_BYTES", bound)
    output = kept(b"x" * (bound + _MARGIN - before) + SECRET.encode() + b"y" * (KEPT_CHARS + before - len(SECRET)))
    assert not any(SECRET[at : at + 9] in output.text for at in range(len(SECRET) - 8))


def test_short_output_is_kept_whole() -> None:
    output = kept("one\n\n zwei ü \n\n".encode() + b"\xff\n \n")
    assert output.text == "one\n\n zwei ü \n\n�\n \n"
    assert output.last_line == ": �"
    assert kept(b"").last_line == ""


def test_usage_is_read_line_by_line_and_what_is_none_is_unknown(tmp_path) -> None:
    path = tmp_path / "usage.jsonl"
    assert list(read_usage(path)) == []
    good = {"input_tokens": 5, "output_tokens": 2, "cost_usd": 0.5, "model": "m"}
    path.write_text(f"{json.dumps(good)}\nnonsense\n" + '{"tokens": 5}\n{"input_tokens": "5"}\n')
    first, *others = read_usage(path)
    assert first == (Usage(input_tokens=5, output_tokens=2, cost_usd=0.5), "m")
    assert others == [(Usage(), None)] * 3


def test_usage_is_a_plain_file_or_nothing(tmp_path: Path) -> None:
    link, pipe, folder = (tmp_path / name for name in ("link", "pipe", "folder"))
    link.symlink_to("/etc/passwd")
    os.mkfifo(pipe)
    folder.mkdir()
    assert [list(read_usage(path)) for path in (link, pipe, folder)] == [[], [], []]
