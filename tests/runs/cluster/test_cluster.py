"""Episodes on four worker processes: rows as of one process, nothing lost or doubled, limits that hold across them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from distributed import LocalCluster
from tests.sampling import thorough

from finskillbench.edition import Edition
from finskillbench.errors import EditionError, InputError
from finskillbench.harness.models import ModelConfig, ModelOptions
from finskillbench.runs.cluster.worker import EDITION, open_edition
from finskillbench.runs.execute.run import RunResult, run
from finskillbench.runs.store.journal import read_events
from finskillbench.runs.store.record import Finished
from finskillbench.runs.store.rows import TIMINGS, Row

pytestmark = [pytest.mark.enable_socket, pytest.mark.slow]

PROGRAMS = ("baseline/heuristic", "baseline/trivial", "baseline/nop")


def timeless(result: RunResult) -> pl.DataFrame:
    return result.rows.drop(*TIMINGS)


def finished(folder: Path) -> Counter[str]:
    """How often the journal says that each episode has ended."""
    return Counter(event.row.item.trajectory for event in read_events(folder) if isinstance(event, Finished))


def at(number: int, act: Callable[[], None]) -> Callable[[Any, Row | None], None]:
    """A progress that acts when so many rows have come in."""
    rows = 0

    def progress(board: Any, row: Row | None) -> None:
        nonlocal rows
        rows += row is not None
        if rows == number and row is not None:
            act()

    return progress


@pytest.fixture
def killing(pids: Callable[[], list[int]]) -> Callable[[], None]:
    """Kills two workers as no program can see coming; they are chosen before the run."""
    doomed = pids()[:2]

    def kill() -> None:
        for pid in doomed:
            os.kill(pid, signal.SIGKILL)

    return kill


@thorough
def test_a_limit_of_calls_and_a_budget_hold_across_workers(
    edition: Edition, scheduler: str, paid: Callable[..., Any], tmp_path: Path
) -> None:
    calls = tmp_path / "calls"
    model = paid(calls, 0.1)
    result = run(edition, [model], ["no_skill"], limit=1, max_concurrency=3, cluster=scheduler, out=tmp_path / "run")
    times = [tuple(map(int, line.split())) for line in calls.read_text().splitlines()]
    assert len(times) == result.ran
    assert len({pid for _, _, pid in times}) > 1, "one worker played everything"
    moments = sorted([(begun, 1) for begun, _, _ in times] + [(ended, -1) for _, ended, _ in times])
    most, now = 0, 0
    for _, change in moments:
        now += change
        most = max(most, now)
    assert 1 < most <= 3
    calls.unlink()
    limited = run(
        *(edition, [model], ["no_skill"]),
        limit=1,
        max_concurrency=8,
        max_cost=0.02,
        cluster=scheduler,
        out=tmp_path / "b",
    )
    spent = 0.00105 * len(calls.read_text().splitlines())
    assert limited.not_run
    assert limited.ran
    assert spent <= 0.02
    assert "--max-cost" in limited.stopped["run"]


@thorough
def test_an_interruption_is_clean_and_another_call_finishes_without_the_cluster(
    edition: Edition, scheduler: str, writer: Callable[..., Any], tmp_path: Path
) -> None:
    agent = writer(tmp_path / "played")
    stop = at(5, lambda: os.kill(os.getpid(), signal.SIGINT))
    arguments: dict[str, Any] = {"agents": [agent], "limit": 1, "max_concurrency": 4, "out": tmp_path / "run"}
    first = run(edition, None, ["no_skill"], cluster=scheduler, progress=stop, **arguments)
    assert first.interrupted
    assert first.not_run
    assert not first.dropped
    second = run(edition, None, ["no_skill"], **arguments)
    assert second.kept == first.ran
    assert not second.not_run
    assert set(Counter((tmp_path / "played").read_text().split()).values()) == {1}


@thorough
def test_what_cannot_be_done_on_a_cluster_is_told_in_a_line(
    edition: Edition, scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(**arguments: Any) -> str:
        with pytest.raises(InputError) as refusal:
            run(edition, **{"conditions": ["no_skill"], "limit": 1, "out": tmp_path / "run", **arguments})
        assert "\n" not in str(refusal.value)
        assert not (tmp_path / "run").exists(), "something was written before the cluster was looked at"
        return str(refusal.value)

    with monkeypatch.context() as hurried:
        hurried.setattr("finskillbench.cluster.connection.CONNECT_SECONDS", 1.0)
        assert "no scheduler answers" in refused(cluster="tcp://127.0.0.1:9", models=["baseline/nop"])
    held = (tmp_path / "held").open("w")

    async def unserialisable(task: Any, tools: Any) -> str:
        return held.name

    assert "cannot be sent to workers" in refused(cluster=scheduler, models=None, agents=[unserialisable])
    monkeypatch.setenv("SOME_API_KEY", key := "sk-0123456789abcdef")

    async def leaking(task: Any, tools: Any) -> str:
        return key

    assert "holds a key" in refused(cluster=scheduler, models=None, agents=[leaking])
    named = ModelConfig("baseline/nop", ModelOptions(reasoning_effort=key))
    assert "an option of it holds a key" in refused(cluster=scheduler, models=[named])
    held.close()
    monkeypatch.setattr(Edition, "path", property(lambda _: Path("/nowhere/edition")), raising=False)
    told = refused(cluster=scheduler, models=["baseline/nop"])
    assert told.startswith("worker tcp://127.0.0.1:")
    assert "put the edition at /nowhere/edition on every worker" in told


@thorough
def test_what_was_lost_with_two_workers_is_played_once_more_and_the_rows_are_those_of_one_process(
    edition: Edition, scheduler: str, killing: Callable[[], None], writer: Callable[[Path, float], Any], tmp_path: Path
) -> None:
    before: list[str] = []

    def act() -> None:
        before.extend(finished(tmp_path / "run"))
        killing()

    agent = writer(tmp_path / "played", 0.6)
    result = run(
        *(edition, None, ["no_skill"]),
        agents=[agent],
        limit=3,
        max_concurrency=12,
        cluster=scheduler,
        out=tmp_path / "run",
        progress=at(15, act),
    )
    played = Counter((tmp_path / "played").read_text().split())
    assert played.keys() == set(result.rows["task_id"])
    assert max(played.values()) == 2, "nothing was in play where a worker was killed"
    kept = {Path(name).name.partition("__")[0] for name in before}
    assert {played[name] for name in kept} == {1}
    assert sum(played.values()) - result.ran <= 12, "only what was in play is played again"
    assert set(finished(tmp_path / "run").values()) == {1}
    alone = run(edition, None, ["no_skill"], agents=[agent], limit=3, out=tmp_path / "alone")
    assert timeless(result).equals(timeless(alone))


@thorough
def test_rows_are_those_of_one_process_also_where_two_of_four_workers_are_killed(
    edition: Edition, scheduler: str, killing: Callable[[], None], tmp_path: Path
) -> None:
    told: list[str] = []
    acting = at(20, killing)

    def progress(board: Any, row: Row | None) -> None:
        acting(board, row)
        told.append(board.notice)

    spread = run(
        edition, PROGRAMS, ["no_skill"], limit=5, cluster=scheduler, out=tmp_path / "spread", progress=progress
    )
    alone = run(edition, PROGRAMS, ["no_skill"], limit=5, out=tmp_path / "alone")
    assert spread.ran == alone.ran == spread.rows.height
    assert timeless(spread).equals(timeless(alone))
    assert set(finished(tmp_path / "spread").values()) == {1}
    assert finished(tmp_path / "spread") == finished(tmp_path / "alone")
    files = [{path.relative_to(out).as_posix() for path in out.rglob("*")} for out in (spread.folder, alone.folder)]
    assert files[0] == files[1]
    assert any("is lost" in notice for notice in told), "no worker was lost: the test killed nothing"


@thorough
def test_a_killed_driver_goes_on_with_the_cluster_and_then_without(
    edition: Edition, scheduler: str, tmp_path: Path
) -> None:
    command = [
        *(str(Path(sys.executable).parent / "finskillbench"), "run", "--edition", str(edition.path)),
        *("--condition", "no_skill", "--limit", "5", "--out", str(tmp_path / "run"), "--cluster", scheduler),
    ]
    models = [argument for name in PROGRAMS for argument in ("--model", name)]
    log = (tmp_path / "log").open("w+")
    for rows in (30, 120):
        driver = subprocess.Popen([*command, *models], stdout=log, stderr=log)
        while driver.poll() is None and len(finished(tmp_path / "run")) < rows:
            time.sleep(0.02)
        driver.kill()
        driver.wait()
    before = finished(tmp_path / "run")
    log.seek(0)
    assert before, log.read()
    last = run(edition, PROGRAMS, ["no_skill"], limit=5, out=tmp_path / "run")
    alone = run(edition, PROGRAMS, ["no_skill"], limit=5, out=tmp_path / "alone")
    assert timeless(last).equals(timeless(alone))
    assert last.kept == len(before)
    assert set(finished(tmp_path / "run").values()) == {1}


CALLING = """
import sys
from pathlib import Path
from finskillbench.edition import load_edition
from finskillbench.runs.execute.run import run
from tests.runs.cluster.conftest import paid_model
edition, scheduler, folder = sys.argv[1:]
model = paid_model(Path(folder) / "calls", 0.5, submits=False)
run(load_edition(Path(edition)), [model], ["no_skill"], cluster=scheduler, max_concurrency=6, out=Path(folder) / "run")
"""


@thorough
def test_workers_make_no_call_once_their_driver_is_killed(edition: Edition, scheduler: str, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    calls.touch()

    def count() -> int:
        return len(calls.read_text().splitlines())

    driver = subprocess.Popen([sys.executable, "-c", CALLING, str(edition.path), scheduler, str(tmp_path)])
    while driver.poll() is None and count() < 6:
        time.sleep(0.02)
    assert driver.poll() is None, "the driver ended before it was killed"
    driver.kill()
    driver.wait()
    time.sleep(1.5)
    made = count()
    time.sleep(2.0)
    assert 6 <= made == count()


@thorough
def test_rows_are_those_of_one_process_under_arms_with_scripts_code_and_a_memory(
    edition: Edition, scheduler: str, killing: Callable[[], None], tmp_path: Path
) -> None:
    arms = ["curated", "self_generated_persistent", "code"]
    models = ["baseline/reference", "baseline/trivial"]
    spread = run(edition, models, arms, limit=4, cluster=scheduler, out=tmp_path / "spread", progress=at(60, killing))
    alone = run(edition, models, arms, limit=4, out=tmp_path / "alone")
    assert timeless(spread).equals(timeless(alone))
    assert set(finished(tmp_path / "spread").values()) == {1}


def hidden(edition: Edition, folder: Path) -> Path:
    """A copy of an edition without its truth."""
    shutil.copytree(edition.path, folder, ignore=shutil.ignore_patterns("truth", "certificates"), copy_function=os.link)
    return folder


@thorough
def test_workers_play_from_a_copy_without_truth(
    edition: Edition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(EDITION, str(hidden(edition, tmp_path / "bare")))  # workers are started with it
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster:
        address = cluster.scheduler_address
        result = run(edition, ["baseline/trivial"], ["no_skill"], limit=1, cluster=address, out=tmp_path / "run")
    alone = run(edition, ["baseline/trivial"], ["no_skill"], limit=1, out=tmp_path / "alone")
    assert timeless(result).equals(timeless(alone))


@thorough
def test_a_worker_needs_no_truth_and_reads_none(
    edition: Edition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = edition.episodes()[0].task_id
    for folder in (edition.path, hidden(edition, tmp_path / "bare")):
        public = open_edition(str(folder), edition.digest)
        assert public.episodes() == edition.episodes()
        for refused in (public.truth, public.certificates):
            with pytest.raises(EditionError, match="must not read"):
                refused(task)
    with pytest.raises(EditionError, match="is another edition"):
        open_edition(str(edition.path), "0" * 64)
    monkeypatch.setenv(EDITION, str(tmp_path / "away"))
    open_edition.cache_clear()
    with pytest.raises(EditionError, match=rf"put the edition at {tmp_path / 'away'} on every worker, or set"):
        open_edition(str(edition.path), edition.digest)
