"""The warm runner as a service: many calls at once, death of either side, cancelling, clean ends."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from finskillbench.errors import SkillError
from finskillbench.sandbox import runner as runner_module
from finskillbench.sandbox.channel import Channel
from finskillbench.sandbox.limits import ScriptLimits, ScriptResult
from finskillbench.sandbox.runner import ScriptRunner

Write = Callable[..., Path]

WHO = "import os\ndef main(payload):\n    return {'server': os.getppid(), 'me': os.getpid()}\n"
SLOW = "import time\ndef main(payload):\n    time.sleep(0.4)\n    return {'n': payload.get('n')}\n"


def fresh(workers: int = 1, wall_seconds: float = 5.0) -> ScriptRunner:
    return ScriptRunner(ScriptLimits(wall_seconds=wall_seconds), workers)


def gone(pid: int) -> bool:
    """Whether the process ends within a generous time."""
    for _ in range(500):
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.02)
    return False


async def server_of(runner: ScriptRunner, who: Path) -> int:
    output = (await runner.run(who, b"{}")).output
    assert output is not None
    return output["server"]


@pytest.mark.slow
def test_two_hundred_calls_at_once_keep_their_results_apart(runner: ScriptRunner, write: Write) -> None:
    half_bad = write(
        """
        import os
        def main(payload):
            if payload["n"] % 5 == 3:
                os._exit(payload["n"] % 7)
            if payload["n"] % 5 == 4:
                raise ValueError(payload["n"])
            return {"n": payload["n"], "echo": payload["text"]}
        """
    )

    async def everything() -> list[ScriptResult]:
        payloads = [{"n": n, "text": str(n) * (n * 7 % 2000)} for n in range(200)]
        return await asyncio.gather(*(runner.run(half_bad, json.dumps(each).encode()) for each in payloads))

    for n, result in enumerate(asyncio.run(everything())):
        if n % 5 == 3:
            assert result.error == f"ended the process with exit code {n % 7} instead of returning a result"
        elif n % 5 == 4:
            assert result.error == f"raised ValueError: {n} (planted.py:7)"
        else:
            assert result.output == {"n": n, "echo": str(n) * (n * 7 % 2000)}


def test_an_edited_script_is_run_as_it_is_now(runner: ScriptRunner, write: Write) -> None:
    async def five(script: Path) -> list[object]:
        return [(await runner.run(script, b"{}")).output for _ in range(5)]

    script = write("def main(payload): return {'v': 1}\n")
    state = script.stat()
    assert asyncio.run(five(script)) == [{"v": 1}] * 5
    write("def main(payload): return {'v': 2}\n")
    os.utime(script, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert asyncio.run(five(script)) == [{"v": 2}] * 5


def test_calls_leave_nothing_behind_for_the_next(runner: ScriptRunner, write: Write) -> None:
    script = write(
        """
        import json, os
        def main(payload):
            seen = [getattr(json, "planted", 0), os.listdir()]
            json.planted = 1
            open("left", "w").close()
            return {"seen": seen}
        """
    )
    outputs = [asyncio.run(runner.run(script, b"{}")).output for _ in range(6)]
    assert outputs == [{"seen": [0, []]}] * 6


def test_a_server_killed_while_idle_is_replaced(write: Write) -> None:
    who = write(WHO)

    async def story(runner: ScriptRunner) -> tuple[int, int]:
        first = await server_of(runner, who)
        os.kill(first, signal.SIGKILL)
        return first, await server_of(runner, who)

    with fresh() as runner:
        first, second = asyncio.run(story(runner))
        assert first != second
        assert gone(first)
    assert gone(second)


@pytest.mark.slow
def test_a_call_is_blamed_when_the_server_dies_twice_under_it(write: Write) -> None:
    who, slow = write(WHO, "who.py"), write(SLOW)

    async def story(runner: ScriptRunner, kills: int) -> tuple[ScriptResult, ScriptResult]:
        server = await server_of(runner, who)
        task = asyncio.ensure_future(runner.run(slow, b'{"n": 1}'))
        for _ in range(kills):
            await asyncio.sleep(0.1)
            os.kill(server, signal.SIGKILL)
            while runner.server_pid in (server, None):
                await asyncio.sleep(0.01)
            server = runner.server_pid
        return await task, await runner.run(slow, b'{"n": 2}')

    with fresh() as runner:
        once, after_one = asyncio.run(story(runner, 1))
    with fresh() as runner:
        twice, after_two = asyncio.run(story(runner, 2))
    assert (once.output, after_one.output, after_two.output) == ({"n": 1}, {"n": 2}, {"n": 2})
    assert "ended the script runner's process" in (twice.error or "")


@pytest.mark.slow
def test_calls_beside_a_dying_server_are_run_again_alone(write: Write) -> None:
    who, slow = write(WHO, "who.py"), write(SLOW)

    async def story(runner: ScriptRunner) -> list[ScriptResult]:
        server = await server_of(runner, who)
        tasks = [asyncio.ensure_future(runner.run(slow, json.dumps({"n": n}).encode())) for n in range(3)]
        await asyncio.sleep(0.1)
        os.kill(server, signal.SIGKILL)
        return await asyncio.gather(*tasks)

    with fresh(workers=2) as runner:
        assert [result.output for result in asyncio.run(story(runner))] == [{"n": 0}, {"n": 1}, {"n": 2}]


@pytest.mark.slow
def test_a_stopped_server_is_replaced(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_module, "_HANG_SECONDS", 0.2)
    who = write(WHO, "who.py")

    async def story(runner: ScriptRunner) -> tuple[int, int]:
        first = await server_of(runner, who)
        os.kill(first, signal.SIGSTOP)
        return first, await server_of(runner, who)

    with fresh(wall_seconds=0.5) as runner:
        first, second = asyncio.run(story(runner))
        assert first != second
        assert gone(first)


def test_cancelling_a_call_stops_its_script(write: Write, tmp_path: Path) -> None:
    slow = write(
        """
        import ctypes, time
        def main(payload):
            ctypes.CDLL(None).prctl(15, b"never-ending", 0, 0, 0)
            time.sleep(3217)
        """
    )
    who = write(WHO, "who.py")

    def called(server: int) -> list[int]:
        children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
        return [int(pid) for pid in children if Path(f"/proc/{pid}/comm").read_text() == "never-ending\n"]

    async def story(runner: ScriptRunner) -> tuple[list[int], ScriptResult]:
        server = await server_of(runner, who)
        task = asyncio.ensure_future(runner.run(slow, b"{}"))
        while not (found := called(server)):
            await asyncio.sleep(0.01)
        task.cancel()
        # The only worker is free again long before the script's own time is up.
        result = await runner.run(who, b"{}")
        assert all(gone(pid) for pid in found)
        return found, result

    with fresh(wall_seconds=3000.0) as runner:
        found, result = asyncio.run(story(runner))
    assert len(found) == 1
    assert result.ok


def test_closing_answers_what_still_runs(write: Write) -> None:
    slow = write(SLOW)

    async def story() -> list[ScriptResult]:
        with fresh() as runner:
            tasks = [asyncio.ensure_future(runner.run(slow, b"{}")) for _ in range(3)]
            await asyncio.sleep(0.1)
        return await asyncio.gather(*tasks)

    assert {result.error for result in asyncio.run(story())} == {"the script runner was closed"}


@pytest.mark.slow
@pytest.mark.parametrize("held", [False, True], ids=["socket closed", "socket held by another process"])
def test_a_killed_owner_leaves_no_process_behind(held: bool, write: Write) -> None:
    owner = write(
        """
        import asyncio, os, pathlib, signal, sys, time
        from finskillbench.sandbox.runner import ScriptRunner
        async def main():
            with ScriptRunner() as runner:
                who, slow = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
                server = (await runner.run(who, b"{}")).output["server"]
                task = asyncio.ensure_future(runner.run(slow, b"{}"))
                await asyncio.sleep(0.2)
                children = pathlib.Path(f"/proc/{server}/task/{server}/children").read_text()
                holder = os.fork() if sys.argv[3] == "True" else 0
                if holder == 0 and sys.argv[3] == "True":
                    os.closerange(0, 3)
                    time.sleep(30)
                    os._exit(0)
                print(holder, server, children, runner._server.scratch, flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
        asyncio.run(main())
        """,
        "owner.py",
    )
    slow = write("import time\ndef main(payload):\n    time.sleep(3217)\n", "slow.py")
    who = write(WHO, "who.py")
    done = subprocess.run([sys.executable, owner, who, slow, str(held)], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    holder, *pids, folder = done.stdout.split()
    try:
        assert len(pids) >= 2
        assert all(gone(int(pid)) for pid in pids)
        # The last of the cleaning is done by a process of its own, after the server has gone.
        for _ in range(100):
            if not Path(folder).exists():
                break
            time.sleep(0.1)
        assert not Path(folder).exists()
    finally:
        if held:
            os.kill(int(holder), signal.SIGKILL)


def test_a_runner_that_cannot_start_says_why() -> None:
    with pytest.raises(SkillError, match="cannot start: ModuleNotFoundError: No module named 'nothing_here'"):
        ScriptRunner(preload=("nothing_here",)).__enter__()


def test_a_runner_outside_its_block_is_refused(write: Write) -> None:
    with pytest.raises(SkillError, match="inside its with block"):
        asyncio.run(fresh().run(write(WHO), b"{}"))


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf")])
def test_limits_that_limit_nothing_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match=r"Limits.wall_seconds"):
        ScriptLimits(wall_seconds=value)


@pytest.mark.slow
def test_an_owner_killed_while_its_server_starts_leaves_nothing(tmp_path: Path) -> None:
    owner = """if True:
        import os, signal
        from finskillbench.sandbox.runner import ScriptRunner
        runner = ScriptRunner(preload=("slow_start",))
        runner._start()
        while not os.path.exists("warming"):
            pass
        print(runner._server.process.pid, runner._server.scratch, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    (tmp_path / "slow_start.py").write_text(f"import time\nopen({str(tmp_path / 'warming')!r}, 'w')\ntime.sleep(0.5)\n")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", owner]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    server, folder = done.stdout.split()
    assert gone(int(server))
    assert not Path(folder).exists()


def test_the_warm_up_is_done_before_any_call_and_in_every_child(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("import os\nPIDS = []\ndef work():\n    PIDS.append(os.getpid())\n    return {}\n", "usual.py")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    script = write("import os, usual\ndef main(payload):\n    return {'pids': usual.PIDS, 'me': os.getpid()}\n")
    with ScriptRunner(warm_up=("usual:work",)) as runner:
        output = asyncio.run(runner.run(script, b"{}")).output
        assert output is not None
        assert output["pids"] == [runner.server_pid, output["me"]]


def test_a_warm_up_that_does_not_return_what_a_script_returns_is_refused() -> None:
    with pytest.raises(SkillError, match="returned int, expected an object"):
        ScriptRunner(warm_up=("gc:collect",)).__enter__()


def test_the_log_has_the_traceback_of_a_script_and_nothing_that_a_terminal_obeys(
    runner: ScriptRunner, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    script = write("def inner():\n    raise ValueError('\\x1b[2Jred')\ndef main(payload):\n    return inner()\n")
    with caplog.at_level("DEBUG", logger="finskillbench.sandbox"):
        error = asyncio.run(runner.run(script, b"{}")).error or ""
    assert "planted.py:2" in error
    assert "Traceback" not in error
    assert 'planted.py", line 2, in inner' in caplog.text
    assert "\x1b" not in caplog.messages[0]


def test_where_a_guard_is_missing_only_trusted_packages_run(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("from script_server.guards import confine\nconfine.landlock_version = lambda: 0\n", "no_landlock.py")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    who = write(WHO, "who.py")
    answers: list[ScriptResult] = []
    for trusted in ((), (tmp_path / "other",), (tmp_path,)):
        with ScriptRunner(preload=("no_landlock",), trusted=trusted) as runner:
            assert [name for name, held in runner.guards.items() if not held] == ["files"]
            answers.append(asyncio.run(runner.run(who, b"{}")))
    refused = "refused: its package is not trusted, and guards are missing here: files"
    assert [answer.error for answer in answers] == [refused, refused, None]


def test_what_lies_beside_modules_of_the_search_path_is_closed(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkout on the search path may hold an edition, and an empty part of it means the current folder."""
    for name in ("search", "here"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "truth.jsonl").write_text("x")
    write("ANSWER = 42\n", "search/helper.py")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("PYTHONPATH", f":{tmp_path / 'search'}")
    script = write(
        f"""
        import os, sys
        def main(payload):
            import helper
            seen = []
            for name in ("search", "here"):
                try:
                    seen.append(open("{tmp_path}/" + name + "/truth.jsonl").read())
                except PermissionError:
                    pass
            return {{"answer": helper.ANSWER, "seen": seen, "path": "{tmp_path}/here" in sys.path}}
        """,
        "search/package.py",
    )
    folder = tmp_path / "package"
    folder.mkdir()
    with ScriptRunner() as runner:
        result = asyncio.run(runner.run(script.rename(folder / "script.py"), b"{}"))
    assert result.output == {"answer": 42, "seen": [], "path": False}, result.error


def test_a_script_that_prints_no_more_does_not_keep_the_event_loop_busy(
    runner: ScriptRunner, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[bool] = []
    read = Channel.read_printed
    monkeypatch.setattr(Channel, "read_printed", lambda *arguments: reads.append(read(*arguments)) or reads[-1])
    script = write("import os, time\ndef main(payload):\n    os.closerange(0, 3)\n    time.sleep(0.3)\n    return {}\n")
    assert asyncio.run(runner.run(script, b"{}")).ok
    assert len(reads) < 5
