"""kill -9 at random moments, then the same command: nothing lost, nothing run twice, the same rows."""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from finskillbench.runs.journal import read_journal
from finskillbench.runs.rows import TIMINGS
from finskillbench.runs.trajectories import read_trajectory

EPISODES, KILLS, MOST_BETWEEN, SEED = 60, 6, 18, 20250131

PROGRAM = """
import asyncio, importlib.util, os, sys
from pathlib import Path
spec = importlib.util.spec_from_file_location("parts", sys.argv[2])
parts = importlib.util.module_from_spec(spec)
spec.loader.exec_module(parts)
from finskillbench.runs.run import run

log = os.open(sys.argv[3], os.O_WRONLY | os.O_CREAT | os.O_APPEND)

class Slow(parts.Oracle):
    async def generate(self, messages, tools, tool_choice):
        await asyncio.sleep(0.004)
        return await super().generate(messages, tools, tool_choice)

def report(done, total, row):
    if row is not None:
        os.write(log, f"{row['condition']} {row['task_id']}\\n".encode())

print("ready", flush=True)
run(parts.standard_edition(int(sys.argv[4]) // 2), [Slow()], ["no_skill", "self_generated"],
    out=Path(sys.argv[1]), max_concurrency=3, progress=report)
"""


def command(out: Path, log: Path) -> list[str]:
    parts = Path(__file__).with_name("conftest.py")
    return [sys.executable, "-c", PROGRAM, str(out), str(parts), str(log), str(EPISODES)]


def reported(log: Path) -> int:
    return log.read_bytes().count(b"\n") if log.exists() else 0


def finished(out: Path) -> dict:
    lines: dict = {}
    for path in sorted((out / "journal").glob("*.jsonl")):
        lines.update(read_journal(path))
    return lines


@pytest.mark.slow
def test_kill_and_resume(tmp_path) -> None:
    out, log = tmp_path / "run", tmp_path / "log"
    rng = random.Random(SEED)
    kept: dict = {}
    for kill in range(KILLS):
        process = subprocess.Popen(command(out, log), stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        # After so many more episodes, then at a random moment within the next one; the first kill hits the start.
        wanted = reported(log) + (0 if kill == 0 else rng.randint(1, MOST_BETWEEN))
        while reported(log) < wanted and process.poll() is None:
            time.sleep(0.001)
        time.sleep(rng.uniform(0.0, 0.01))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        now = finished(out) if (out / "journal").is_dir() else {}
        # Every line that was there is still there, unchanged.
        assert {key: now.get(key) for key in kept} == kept
        kept = now
    assert 0 < len(kept) < 2 * EPISODES, "the kills must fall into the run: change MOST_BETWEEN"
    subprocess.run(command(out, log), check=True, capture_output=True)
    done = finished(out)
    assert len(done) == 2 * EPISODES
    assert {key: done[key] for key in kept} == kept

    raw = [line for path in (out / "journal").glob("*.jsonl") for line in path.read_bytes().splitlines()]
    assert len(raw) == 2 * EPISODES, "an episode stands twice in the journal"
    reports = Counter(log.read_text().splitlines())
    assert max(reports.values()) == 1, "a finished episode was run again"

    plain = tmp_path / "plain"
    subprocess.run(command(plain, tmp_path / "log2"), check=True, capture_output=True)
    rows, expected = (pl.read_parquet(folder / "rows.parquet").drop(TIMINGS) for folder in (out, plain))
    assert rows.equals(expected)
    assert (out / "run.json").read_bytes() == (plain / "run.json").read_bytes()
    for item in done:
        assert read_trajectory(out / item.trajectory)["task_id"] == item.task_id
    assert not list(out.rglob("*.part"))
