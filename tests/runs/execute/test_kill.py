"""kill -9 at random moments, then the same command: nothing lost, nothing run twice, the same rows."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest
from tests.sampling import THOROUGH

from finskillbench.runs.store.journal import JOURNAL, read_history
from finskillbench.runs.store.rows import TIMINGS
from finskillbench.runs.store.trajectories import read_trajectory

EPISODES, KILLS, MOST_BETWEEN, SEED = 60, 20 if THOROUGH else 6, 7, 20250131
CONDITIONS = ["no_skill", "self_generated", "self_generated_persistent"]

# A parent that has imported everything forks a child for each run: imports take longer than the run.
PROGRAM = """
import asyncio, importlib.util, os, sys, traceback
from pathlib import Path
spec = importlib.util.spec_from_file_location("parts", sys.argv[1])
parts = importlib.util.module_from_spec(spec)
spec.loader.exec_module(parts)
from finskillbench.runs.execute.run import run

class Slow(parts.Learner):
    async def generate(self, messages, tools, tool_choice):
        await asyncio.sleep(0.002)
        return await super().generate(messages, tools, tool_choice)

def child(out, logged):
    log = os.open(logged, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    def report(board, row):
        if row is not None:
            os.write(log, f"{row.condition} {row.task_id}\\n".encode())
    run(parts.standard_edition(int(sys.argv[2]) // 2), [Slow()], sys.argv[3:], out=Path(out), max_concurrency=3,
        progress=report)

for line in sys.stdin:
    out, logged = line.split()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            child(out, logged)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    print(pid, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


@contextmanager
def parent() -> Iterator[subprocess.Popen[str]]:
    parts = Path(__file__).parents[1] / "conftest.py"
    command = [sys.executable, "-c", PROGRAM, str(parts), str(EPISODES), *CONDITIONS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            assert process.stdin is not None
            process.stdin.close()


def begin(process: subprocess.Popen[str], out: Path, log: Path) -> int:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{out} {log}\n")
    process.stdin.flush()
    return int(process.stdout.readline())


def end(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


def reported(log: Path) -> int:
    return log.read_bytes().count(b"\n") if log.exists() else 0


def finished(out: Path) -> dict:
    return read_history(out).rows


@pytest.mark.slow
def test_kill_and_resume(tmp_path) -> None:
    out, log = tmp_path / "run", tmp_path / "log"
    rng = random.Random(SEED)
    kept: dict = {}
    cut = 0
    with parent() as process:
        for kill in range(KILLS):
            pid = begin(process, out, log)
            # After so many more episodes, then at a random moment within the next one; the first kill hits the start.
            wanted = reported(log) + (0 if kill == 0 else rng.randint(1, MOST_BETWEEN))
            limit = time.monotonic() + 20
            while reported(log) < wanted and time.monotonic() < limit:
                time.sleep(0.001)
            time.sleep(rng.uniform(0.0, 0.01))
            os.kill(pid, signal.SIGKILL)
            assert end(process) == -signal.SIGKILL, "the kills must fall into the run: change MOST_BETWEEN"
            now = finished(out)
            # Every line that was there is still there, unchanged.
            assert {key: now.get(key) for key in kept} == kept
            kept = now
            streams = Counter(key.task_id[:8] for key in kept if key.condition == CONDITIONS[2])
            cut += any(0 < count < EPISODES // 2 for count in streams.values())
        total = len(CONDITIONS) * EPISODES
        assert 0 < len(kept) < total, "the kills must fall into the run: change MOST_BETWEEN"
        assert cut >= KILLS // 5, "streams must be cut in their middle: change MOST_BETWEEN"
        begin(process, out, log)
        assert end(process) == 0
        plain = tmp_path / "plain"
        begin(process, plain, tmp_path / "log2")
        assert end(process) == 0
    done = finished(out)
    assert len(done) == total
    assert {key: done[key] for key in kept} == kept

    assert (out / JOURNAL).read_bytes().count(b"\n") == total, "an episode stands twice in the journal"
    reports = Counter(log.read_text().splitlines())
    assert max(reports.values()) == 1, "a finished episode was run again"

    rows, expected = (pl.read_parquet(folder / "rows.parquet").drop(TIMINGS) for folder in (out, plain))
    assert rows.equals(expected)
    assert (out / "run.json").read_bytes() == (plain / "run.json").read_bytes()
    for item in done:
        resumed, whole = (read_trajectory(folder / item.trajectory).trace for folder in (out, plain))
        assert (resumed.messages, resumed.saved_skills) == (whole.messages, whole.saved_skills)
    assert not list(out.rglob("*.part"))
