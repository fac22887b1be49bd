"""Planted misbehaviour: each is reported in words, leaves no process behind, and the next call works."""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from finskillbench.sandbox.limits import ScriptLimits, ScriptResult
from finskillbench.sandbox.runner import ScriptRunner

Write = Callable[..., Path]

HOSTILE = {
    "infinite loop": ("while True: pass", "exceeded 1 s of wall time"),
    "sleeps": ("import time; time.sleep(60)", "exceeded 1 s of wall time"),
    "spins in C": ("sum(iter(lambda: 0, 1))", "exceeded 1 s of wall time"),
    "ignores signals": (
        "import signal\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\nwhile True: pass",
        "exceeded 1 s of wall time",
    ),
    "allocates 10 GB": ("x = bytearray(10_000_000_000)", "used more than 128 MiB of memory"),
    "allocates 10 GB in numpy": ("import numpy; numpy.ones(1_250_000_000)", "used more than 128 MiB of memory"),
    "allocates piecemeal": ("x = []\nwhile True: x.append(bytearray(1_000_000))", "used more than 128 MiB of memory"),
    "writes a huge file": ("open('big', 'wb').write(bytes(50_000_000))", "raised OSError: [Errno 27] File too large"),
    "exits": ("import sys; sys.exit(3)", "called sys.exit(3) instead of returning an object (planted.py:3)"),
    "exits hard": ("import os; os._exit(7)", "ended the process with exit code 7"),
    "kills itself": ("import os; os.kill(os.getpid(), 9)", "ended by SIGKILL"),
    "crashes": ("import ctypes; ctypes.string_at(0)", "ended by SIGSEGV"),
    "raises": ("raise ValueError('weights\\ndo not sum')", "raised ValueError: weights do not sum (planted.py:3)"),
    "raises what cannot be shown": (
        "class E(Exception):\n    def __str__(self): raise KeyError\nraise E",
        "raised E: an error that cannot be shown (planted.py:5)",
    ),
    "interrupts": ("raise KeyboardInterrupt", "raised KeyboardInterrupt (planted.py:3)"),
    "recurses": ("def f(): return f()\nf()", "raised RecursionError"),
    "returns NaN": ("return {'a': [{'b': float('nan')}]}", "returned nan at a[0].b, expected finite numbers"),
    "returns infinity": ("import numpy; return {'a': numpy.float64('-inf')}", "returned -inf at a"),
    "returns a list": ("return [1]", "returned list, expected an object"),
    "returns bytes": ("return {'a': {'b': b'x'}}", "returned a value of type bytes at a.b"),
    "returns an array": ("import numpy; return {'w': numpy.ones(2)}", "returned a value of type ndarray at w"),
    "returns number keys": ("return {1: 2}", "returned a key of type int at the top, expected text"),
    "returns itself": ("x = {}; x['x'] = x; return x", "nested too deeply or contains itself"),
    "returns too much": ("return {'a': 'x' * 3_000_000}", "returned 2.86 MiB of JSON, more than the 1 MiB allowed"),
    "returns half a surrogate": ("raise ValueError('\\ud800')", "raised ValueError"),
    "prints instead": ("print('{\"a\": 1}')", "printed instead of returning"),
    "returns nothing": ("pass", "returned nothing: main must return an object"),
    "prints for ever": ("while True: print('x' * 1_000_000)", "exceeded 1 s of wall time"),
    "closes its descriptors": ("import os; os.closerange(0, 64); return {}", "raised OSError|ended the process with"),
    "closes them and stays": (
        "import os, time; os.closerange(0, 64); time.sleep(60)",
        "closed its result channel before returning a result",
    ),
    "writes garbage on every descriptor": (
        "import os\nfor fd in range(64):\n    try: os.write(fd, b'\\xff' * 999)\n    except OSError: pass\nreturn {}",
        "wrote invalid data to its result channel",
    ),
    "forges a result": (
        "import os, struct; os.write(3, bytes(16) + struct.pack('!cQ', b'R', 2) + b'{}'); return {}",
        "wrote invalid data to its result channel",
    ),
    "kills its parent": (
        "import os; os.kill(os.getppid(), 9); return {}",
        "raised PermissionError|ended the script runner",
    ),
    "opens a connection": (
        "import socket; socket.create_connection(('1.1.1.1', 80), 1)",
        "raised PermissionError|raised OSError",
    ),
}


def planted(body: str) -> str:
    lines = body.split("\n")
    return "def main(payload):\n    pass\n" + "".join(f"    {line}\n" for line in lines)


def calls(runner: ScriptRunner, *scripts: Path) -> list[ScriptResult]:
    async def one_after_another() -> list[ScriptResult]:
        return [await runner.run(script, b'{"x": 20}') for script in scripts]

    return asyncio.run(one_after_another())


@pytest.fixture
def good(write: Write) -> Path:
    return write("def main(payload):\n    return {'y': payload['x'] + 1}\n", "good.py")


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_misbehaviour_is_reported_and_the_next_call_works(
    name: str, runner: ScriptRunner, write: Write, good: Path
) -> None:
    body, error = HOSTILE[name]
    bad, after = calls(runner, write(planted(body)), good)
    assert not bad.ok
    assert bad.output is None
    assert bad.error is not None
    assert "\n" not in bad.error
    assert any(part in bad.error for part in error.split("|")), bad.error
    assert after == ScriptResult(True, {"y": 21}, None, after.seconds)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("def main(payload:\n", "raised SyntaxError: "),
        ("x = 1\n", "has no function main(payload: dict) -> dict"),
        ("raise OSError('no luck')\n", "raised OSError: no luck (planted.py:1)"),
        ("import nothing_of_the_kind\n", "raised ModuleNotFoundError: "),
        ("main = 3\n", "has no function main"),
        ("x = " + "(" * 5000 + ")" * 5000 + "\n", "raised "),
    ],
)
def test_a_script_that_is_none_is_reported(
    text: str, error: str, runner: ScriptRunner, write: Write, good: Path
) -> None:
    bad, after = calls(runner, write(text), good)
    assert not bad.ok
    assert error in (bad.error or "")
    assert after.ok


def test_a_script_cannot_start_processes(runner: ScriptRunner, write: Write, good: Path) -> None:
    bomb = """
        import os, time
        def main(payload):
            for _ in range(200):
                if os.fork() == 0:
                    os.setsid()
                    time.sleep(3217)
            return {"escaped": True}
    """
    bad, after = calls(runner, write(bomb), good)
    assert not bad.ok
    if runner.guards["processes"]:
        assert "raised PermissionError" in (bad.error or "")
    assert after.ok


def test_what_is_printed_never_reaches_the_result(runner: ScriptRunner, write: Write) -> None:
    noisy = """
        import os, sys
        def main(payload):
            os.write(2, b"\\xff\\x00{}")
            for _ in range(100):
                sys.stdout.write("x" * 1_000_000)
            return {"a": 1}
    """
    result = calls(runner, write(noisy))[0]
    assert result.output == {"a": 1}, result.error
    assert result.printed == "\N{REPLACEMENT CHARACTER}\0{}" + "x" * 4092


def test_a_script_has_no_input_no_secrets_and_a_scratch_folder_that_goes(
    runner: ScriptRunner, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    curious = """
        import os, sys, tempfile
        def main(payload):
            os.mkdir("a", 0o300); open("a/c", "w").write("x")
            return {"stdin": sys.stdin.read(), "key": "SOME_API_KEY" in os.environ, "at": os.environ["HOME"],
                    "temporary": tempfile.gettempdir()}
    """
    with ScriptRunner(runner.limits, workers=1) as own:
        output = calls(own, write(curious))[0].output
        assert output is not None
    assert (output["stdin"], output["key"], output["temporary"]) == ("", False, output["at"])
    assert not Path(output["at"]).exists()
    assert not Path(output["at"]).parent.exists()


def test_a_script_reads_the_libraries_and_little_else(runner: ScriptRunner, write: Write, tmp_path: Path) -> None:
    if not runner.guards["files"]:
        pytest.skip("this kernel has no Landlock, and without it reading files cannot be prevented")
    secret = tmp_path / "truth.jsonl"
    secret.write_text("{}")
    secret.chmod(0o644)
    peek = """
        import json, fractions, os
        def main(payload):
            names = [payload["secret"], "/etc/passwd", f"/proc/{payload['owner']}/environ", "/etc/shadow"]
            seen = []
            for name in names:
                try:
                    open(name).close(); seen.append(name)
                except OSError:
                    pass
            return {"seen": seen, "library": os.path.isfile(json.__file__) and bool(open(json.__file__).read())}
    """
    # The script lies elsewhere than the truth: its own folder is open to it.
    folder = tmp_path / "package" / "scripts"
    folder.mkdir(parents=True)
    script = write(peek).rename(folder / "peek.py")
    payload = json.dumps({"secret": str(secret), "owner": os.getpid()}).encode()
    result = asyncio.run(runner.run(script, payload))
    assert result.output == {"seen": [], "library": True}, result.error


@pytest.mark.slow
def test_cpu_time_is_limited_apart_from_wall_time(write: Write, good: Path) -> None:
    limits = ScriptLimits(wall_seconds=20.0, cpu_seconds=1.0)
    with ScriptRunner(limits, workers=1) as own:
        bad, after = calls(own, write(planted("while True: pass")), good)
    assert bad.error == "script exceeded 1 s of CPU time and was stopped"
    assert after.ok


@pytest.mark.parametrize("payload", [b"", b"{", b"[1]", b"null", b'{"a": NaN}', b"\xff", b"[" * 100_000])
def test_a_payload_that_is_no_object_is_reported(payload: bytes, runner: ScriptRunner, good: Path) -> None:
    result = asyncio.run(runner.run(good, payload))
    assert not result.ok
    assert (result.error or "").startswith("the payload is")


def test_a_payload_over_the_limit_is_reported(runner: ScriptRunner, good: Path) -> None:
    result = asyncio.run(runner.run(good, b" " * 3_000_000))
    assert result.error == "the payload has 2.86 MiB, more than the 2 MiB allowed"


def test_a_script_file_that_is_none_is_reported(runner: ScriptRunner, tmp_path: Path, good: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "huge.py").write_bytes(b"#" * 2_000_000)
    gone, pipe, huge, folder, after = calls(
        runner, tmp_path / "gone.py", tmp_path / "pipe.py", tmp_path / "huge.py", tmp_path, good
    )
    for result in (gone, pipe, huge, folder):
        assert "the script cannot be started" in (result.error or "")
    assert after.ok


def test_results_are_what_main_returned(runner: ScriptRunner, write: Write) -> None:
    echo = write("def main(payload):\n    return payload\n")
    value: dict[str, Any] = {"ä\0\n": [1, -0.1, 1e300, True, None, "\U0001f600", {"": []}], "big": 2**60}
    result = asyncio.run(runner.run(echo, json.dumps(value).encode()))
    assert result.output == value
