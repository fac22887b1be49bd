"""A script's own command line, and the cold runner that uses it."""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from finskillbench.errors import InputError, SkillError
from finskillbench.sandbox.cold import SubprocessRunner
from finskillbench.sandbox.limits import MIB, Limits, ScriptResult
from finskillbench.sandbox.script import cli

Write = Callable[..., Path]


def main(payload: dict) -> dict:
    """A script's entry."""
    if payload.get("bad"):
        raise InputError("weights: must sum to 1")
    return {"y": payload["x"] + 1}


def test_the_result_is_printed_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.json").write_text('{"x": 1}')
    cli(main, ["--input", str(tmp_path / "in.json")])
    assert json.loads(capsys.readouterr().out) == {"y": 2}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "cannot be read as JSON"),
        ("[1]", "holds a JSON list, expected an object"),
        ('{"x": NaN}', "NaN is not a JSON number"),
        ("[" * 100_000, "cannot be read as JSON"),
        ("{}", "field 'x' is missing or unknown"),
        ('{"x": "a"}', "can only concatenate str"),
        ('{"bad": true}', "weights: must sum to 1"),
        ('{"x": 1e999}', "Out of range float"),
    ],
)
def test_bad_input_is_one_line_and_code_2(
    text: str, error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in.json").write_text(text)
    with pytest.raises(SystemExit) as ended:
        cli(main, ["--input", str(tmp_path / "in.json")])
    assert ended.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert error in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["--input"], ["--input", "nothing.json"], ["--inputs", "x", "y"]])
def test_bad_arguments_are_one_line_and_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli(main, arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


SCRIPT = """
    import json, os, sys, time
    def main(payload):
        if payload["do"] == "loop": time.sleep(60)
        if payload["do"] == "die": os.kill(os.getpid(), 9)
        if payload["do"] == "fork": os.fork()
        if payload["do"] == "allocate": bytearray(10_000_000_000)
        if payload["do"] == "connect":
            import socket; socket.create_connection(("1.1.1.1", 80), 1)
        if payload["do"] == "chatter": print("x")
        if payload["do"] == "much": print("x" * 3_000_000)
        return {"do": payload["do"], "key": "SOME_API_KEY" in os.environ}
    print(json.dumps(main(json.load(open(sys.argv[2])))))
"""


def test_the_cold_runner_has_the_same_manners(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    script = write(SCRIPT)
    limits = Limits(wall_seconds=3.0, memory_bytes=256 * MIB, result_bytes=1 * MIB)
    deeds = ["loop", "die", "fork", "allocate", "connect", "chatter", "much", "work"]

    async def everything(runner: SubprocessRunner) -> list[ScriptResult]:
        payloads = [json.dumps({"do": deed}).encode() for deed in deeds]
        return await asyncio.gather(*(runner.run(script, payload) for payload in payloads))

    with SubprocessRunner(Path(sys.executable), limits) as runner:
        results = dict(zip(deeds, asyncio.run(everything(runner)), strict=True))
        again = asyncio.run(runner.run(script, b'{"do": "work"}'))
    assert results["work"].output == again.output == {"do": "work", "key": False}
    errors = {deed: result.error or "" for deed, result in results.items()}
    assert errors["loop"] == "script exceeded 3 s of wall time and was stopped"
    assert errors["die"] == "was ended by SIGKILL before returning a result"
    assert "BlockingIOError" in errors["fork"]
    assert "used more than 256 MiB of memory" in errors["allocate"]
    assert "Error" in errors["connect"]
    assert "printed something that is not a JSON object" in errors["chatter"]
    assert errors["much"] == "returned more than the 1 MiB of JSON allowed"


def test_an_interpreter_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SkillError, match="not an interpreter"):
        SubprocessRunner(tmp_path / "python").__enter__()
