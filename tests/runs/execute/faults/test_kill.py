"""kill -9 at random moments, then the same command or one that asks for more: nothing lost, nothing run twice."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest
from tests.sampling import THOROUGH, thorough

from finskillbench.runs.store.journal import JOURNAL, read_history, read_trajectory
from finskillbench.runs.store.rows import TIMINGS

EPISODES, KILLS, STEPS = (60, 10, 10) if THOROUGH else (30, 5, 5)
MOST_BETWEEN, SEED = 7, 20250131
CONDITIONS = ["no_skill", "self_generated", "self_generated_persistent"]
AT_ONCE = {"seeds": [1], "conditions": CONDITIONS}
GROWN = {"seeds": [1, 2], "conditions": CONDITIONS, "epochs": 2, "limit": 4}

# A parent that has imported everything forks a child for each run: imports take longer than the run.
PROGRAM = """
import asyncio, importlib.util, json, os, sys, traceback
from pathlib import Path
spec = importlib.util.spec_from_file_location("parts", sys.argv[1])
parts = importlib.util.module_from_spec(spec)
spec.loader.exec_module(parts)
from finskillbench.runs.execute.run import run
from finskillbench.runs.store import version

# All children are of this code, whatever is committed meanwhile.
version.code_commit(), version.scorer_version()

class Slow(parts.Learner):
    def __init__(self, seed):
        super().__init__()
        self.arguments = {"seed": seed}

    async def generate(self, messages, tools, tool_choice):
        await asyncio.sleep(0.002)
        return await super().generate(messages, tools, tool_choice)

def child(out, log, seeds, **asked):
    log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    def report(board, row):
        if row is not None:
            os.write(log, f"{row.arguments} {row.condition} {row.task_id} {row.run_idx}\\n".encode())
    run(parts.standard_edition(int(sys.argv[2]) // 2), [*map(Slow, seeds)], out=Path(out), max_concurrency=3,
        progress=report, **asked)

for line in sys.stdin:
    asked = json.loads(line)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            child(**asked)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    print(pid, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def parent() -> Iterator[subprocess.Popen[str]]:
    parts = Path(__file__).parents[2] / "conftest.py"
    command = [sys.executable, "-c", PROGRAM, str(parts), str(EPISODES)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            assert process.stdin is not None
            process.stdin.close()


def begin(process: subprocess.Popen[str], out: Path, log: Path, asked: dict = AT_ONCE) -> int:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps({"out": str(out), "log": str(log), **asked}) + "\n")
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
def test_kill_and_resume(parent, tmp_path) -> None:
    out, log = tmp_path / "run", tmp_path / "log"
    rng = random.Random(SEED)
    kept: dict = {}
    cut = 0
    for kill in range(KILLS):
        pid = begin(parent, out, log)
        # After so many more episodes, then at a random moment within the next one; the first kill hits the start.
        wanted = reported(log) + (0 if kill == 0 else rng.randint(1, MOST_BETWEEN))
        limit = time.monotonic() + 20
        while reported(log) < wanted and time.monotonic() < limit:
            time.sleep(0.001)
        time.sleep(rng.uniform(0.0, 0.01))
        os.kill(pid, signal.SIGKILL)
        assert end(parent) == -signal.SIGKILL, "the kills must fall into the run: change MOST_BETWEEN"
        now = finished(out)
        # Every line that was there is still there, unchanged.
        assert {key: now.get(key) for key in kept} == kept
        kept = now
        streams = Counter(key.task_id[:8] for key in kept if key.condition == CONDITIONS[2])
        cut += any(0 < count < EPISODES // 2 for count in streams.values())
    total = len(CONDITIONS) * EPISODES
    assert 0 < len(kept) < total, "the kills must fall into the run: change MOST_BETWEEN"
    assert cut >= KILLS // 5, "streams must be cut in their middle: change MOST_BETWEEN"
    begin(parent, out, log)
    assert end(parent) == 0
    plain = tmp_path / "plain"
    begin(parent, plain, tmp_path / "log2")
    assert end(parent) == 0
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


def step(rng: random.Random) -> dict:
    """Some part of `GROWN`."""
    return {
        "seeds": rng.sample(GROWN["seeds"], rng.randint(1, 2)),
        "conditions": rng.sample(CONDITIONS, rng.randint(1, 3)),
        "epochs": rng.randint(1, 2),
        "limit": rng.randint(1, 4),
    }


@thorough
@pytest.mark.slow
def test_killed_while_it_grows(parent, tmp_path) -> None:
    """Each step is killed within its first episodes, and the next asks for something else."""
    out, log, plain = tmp_path / "run", tmp_path / "log", tmp_path / "plain"
    rng = random.Random(SEED)
    killed = 0
    for _ in range(STEPS):
        pid = begin(parent, out, log, step(rng))
        wanted = reported(log) + rng.randint(0, 5)
        with suppress(ProcessLookupError):  # a step that had too little left to do has ended by itself
            while reported(log) < wanted:
                os.kill(pid, 0)
                time.sleep(0.001)
            time.sleep(rng.uniform(0.0, 0.01))
            os.kill(pid, signal.SIGKILL)
        killed += end(parent) == -signal.SIGKILL
    assert 0 < len(finished(out)) < 2 * len(CONDITIONS) * 2 * 8
    assert killed >= min(STEPS // 2, 5), "the kills must fall into the run"
    for folder, logged in ((out, log), (plain, tmp_path / "log2")):
        begin(parent, folder, logged, GROWN)
        assert end(parent) == 0
    assert max(Counter(log.read_text().splitlines()).values()) == 1, "a finished episode was run again"
    rows, expected = (pl.read_parquet(folder / "rows.parquet").drop(TIMINGS) for folder in (out, plain))
    assert rows.equals(expected)
    assert rows.height == 2 * len(CONDITIONS) * 2 * 8
    for item in finished(out):
        grown, whole = (read_trajectory(folder / item.trajectory).trace for folder in (out, plain))
        assert (grown.messages, grown.saved_skills) == (whole.messages, whole.saved_skills)
    assert not list(out.rglob("*.part"))
