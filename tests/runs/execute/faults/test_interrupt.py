"""Signals: the first Ctrl-C lets episodes finish, the second drops them, and so does SIGTERM."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from finskillbench.runs.store.journal import read_events
from finskillbench.runs.store.record import Dropped

pytestmark = pytest.mark.slow

# A parent that has imported everything forks a child for each run: imports take longer than the run.
PROGRAM = """
import asyncio, importlib.util, os, signal, sys, traceback
from pathlib import Path
spec = importlib.util.spec_from_file_location("parts", sys.argv[1])
parts = importlib.util.module_from_spec(spec)
spec.loader.exec_module(parts)
from finskillbench.runs.execute.run import run

class Slow(parts.Oracle):
    def __init__(self, quick, seconds):
        super().__init__()
        self.quick, self.seconds = quick, seconds

    async def generate(self, messages, tools, tool_choice):
        turn = await super().generate(messages, tools, tool_choice)
        if self.calls > self.quick:
            print("slow", flush=True)
            await asyncio.sleep(self.seconds)
        return turn

def report(board, row):
    if board.notice and row is None:
        print("notice:", board.notice, flush=True)

def child(out, quick, seconds):
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    result = run(parts.standard_edition(6), [Slow(int(quick), float(seconds))], ["no_skill"], out=Path(out),
                 max_concurrency=3, progress=report)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers
    print(result.ran, result.kept, result.dropped, result.not_run, dict(result.stopped), result.interrupted)

for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        try:
            child(*line.split())
        except BaseException:
            traceback.print_exc(file=sys.stdout)
        sys.stdout.flush()
        os._exit(0)
    print("pid", pid, flush=True)
    os.waitpid(pid, 0)
    print("end", flush=True)
"""


class Child:
    """A run in a process of its own; what it prints comes line by line."""

    def __init__(self, parent: subprocess.Popen[str], out: Path, quick: int, seconds: float) -> None:
        assert parent.stdin is not None
        assert parent.stdout is not None
        self._lines = parent.stdout
        parent.stdin.write(f"{out} {quick} {seconds}\n")
        parent.stdin.flush()
        self.printed: list[str] = []
        self.pid = 0
        self.wait_for("pid")

    def wait_for(self, start: str, times: int = 1) -> None:
        while times:
            line = self._lines.readline().strip()
            assert line not in ("", "end"), self.printed
            self._take(line)
            times -= line.startswith(start)

    def _take(self, line: str) -> None:
        if line.startswith("pid "):
            self.pid = int(line.split()[1])
        elif line != "slow":
            self.printed.append(line)

    def rest(self) -> list[str]:
        while (line := self._lines.readline().strip()) != "end":
            assert line, self.printed
            self._take(line)
        return self.printed


@pytest.fixture(scope="module")
def parent() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", PROGRAM, str(Path(__file__).parents[2] / "conftest.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def reasons(out: Path) -> list[str]:
    return [event.why for event in read_events(out) if isinstance(event, Dropped)]


def test_the_first_interrupt_lets_episodes_in_flight_finish(parent, tmp_path) -> None:
    child = Child(parent, tmp_path, quick=4, seconds=0.5)
    child.wait_for("slow", 3)
    os.kill(child.pid, signal.SIGINT)
    assert child.rest() == [
        "notice: interrupted: finishing 3 episodes in flight; interrupt again to drop them",
        "7 0 0 5 {'run': 'interrupted'} True",
    ]
    assert pl.read_parquet(tmp_path / "rows.parquet").height == 7
    assert reasons(tmp_path) == []


@pytest.mark.parametrize("signals", [[signal.SIGINT, signal.SIGINT], [signal.SIGTERM]])
def test_the_second_drops_them_and_resuming_runs_them(parent, tmp_path, signals) -> None:
    child = Child(parent, tmp_path, quick=4, seconds=600)
    child.wait_for("slow", 3)
    for number, each in enumerate(signals):
        if number:
            child.wait_for("notice")  # two signals of a kind at once are one
        os.kill(child.pid, each)
    assert child.rest()[-1] == "4 0 3 5 {'run': 'interrupted'} True"
    assert pl.read_parquet(tmp_path / "rows.parquet").height == 4
    assert reasons(tmp_path) == ["interrupted"] * 3
    assert Child(parent, tmp_path, quick=100, seconds=0).rest() == ["8 4 0 0 {} False"]
