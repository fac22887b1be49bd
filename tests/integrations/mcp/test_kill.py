"""A drive that is killed outright: its agents go with it, and the same command loses and repeats nothing."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from tests.integrations.mcp.small import AGENT, NAME
from tests.sampling import THOROUGH, thorough

from finskillbench.integrations.mcp.drive import drive_agent
from finskillbench.runs.store.journal import JOURNAL, read_history
from finskillbench.runs.store.rows import TIMINGS

pytestmark = pytest.mark.slow

MAY_DIFFER = (*TIMINGS, "commit")
"""Each process asks git anew, and somebody may commit while the test runs."""
AT_ONCE, BETWEEN, DEADLINE = 2, 3, 600.0
EPOCHS, KILLS = (3, 2) if THOROUGH else (2, 1)
EPISODES = 6 * EPOCHS
PROGRAM = """
import sys
from pathlib import Path
from finskillbench.edition import load_edition
from finskillbench.integrations.mcp.drive import drive_agent

edition, command, name, out = sys.argv[1:5]
drive_agent(load_edition(Path(edition)), command, name, conditions=["no_skill"], epochs=int(sys.argv[5]),
    max_concurrency=int(sys.argv[6]), out=Path(out))
"""


def _waiting(tickets: Path) -> list[int]:
    """Process ids of the agents that have come too late for a ticket of their run."""
    return [int(text) for path in tickets.iterdir() if path.name != "most" and (text := path.read_text())]


def _until(what: object) -> None:
    end = time.monotonic() + DEADLINE
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


@thorough
def test_killed_and_run_again(small_edition, tmp_path, monkeypatch) -> None:
    out, tickets, places = tmp_path / "run", tmp_path / "tickets", tmp_path / "places"
    tickets.mkdir()
    places.mkdir()
    monkeypatch.setenv("TMPDIR", str(places))
    command = f"{AGENT} {shlex.quote('in turn')} {{mcp_config}} {{prompt_file}} {tickets}"
    arguments = [str(small_edition.path), command, NAME, str(out), str(EPOCHS), str(AT_ONCE)]
    kept: dict = {}
    for kill in range(1, KILLS + 1):
        (tickets / "most").write_text(str(kill * BETWEEN + (kill - 1) * AT_ONCE))
        process = subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments])
        _until(
            lambda kill=kill, process=process: process.poll() is not None or len(_waiting(tickets)) == kill * AT_ONCE
        )
        assert process.poll() is None, "the drive ended before it was killed"
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        _until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in _waiting(tickets)))
        _until(lambda: not list(places.iterdir()))
        now = read_history(out).rows
        assert {item: now.get(item) for item in kept} == kept
        assert len(now) == kill * BETWEEN
        kept = now
    (tickets / "most").write_text("1000")
    options = {"epochs": EPOCHS, "max_concurrency": AT_ONCE}
    result = drive_agent(small_edition, command, NAME, conditions=["no_skill"], out=out, **options)
    assert (result.ran, result.kept) == (EPISODES - len(kept), len(kept))
    rows = read_history(out).rows
    assert {item: rows[item] for item in kept} == kept
    assert (out / JOURNAL).read_bytes().count(b"\n") == EPISODES, "an episode stands twice in the journal"
    played = len([path for path in tickets.iterdir() if path.name != "most"])
    assert played == EPISODES + KILLS * AT_ONCE, "an episode was played again that was finished"
    plain = drive_agent(small_edition, command, NAME, conditions=["no_skill"], out=tmp_path / "plain", **options)
    rows, expected = (each.rows.drop(MAY_DIFFER) for each in (result, plain))
    assert rows.equals(expected)
