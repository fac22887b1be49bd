"""17,820 episodes of programs on four workers of a Dask cluster, beside one process: rows, time, processor, two deaths.

    python benchmarks/cluster.py [--edition FOLDER] [--epochs N]

A scheduler and four workers run as processes of their own on loopback, as `dask scheduler` and `dask worker` start
them, and have played a few episodes before the clock starts. Each run is made by a fresh process; its clock starts
when everything is imported and the edition is loaded. Three programs play the 660 episodes of the protocol under three
conditions, three times: 17,820.

One process of ours already has its skill scripts run by a second one, so it uses more than one core. Both are shown:
one process kept to one core, and one process left alone; the requirement is on the first. Processor time counts
everybody: run, driver, scheduler, workers and their scripts.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl
import psutil
from distributed import Client

from finskillbench.cli.display.console import Progress
from finskillbench.domains import subtasks
from finskillbench.edition import load_edition
from finskillbench.runs.execute.run import run
from finskillbench.runs.plan.streams import default_edition
from finskillbench.runs.store.journal import read_events
from finskillbench.runs.store.record import Finished
from finskillbench.runs.store.rows import ROWS, TIMINGS

MODELS = ("baseline/reference", "baseline/heuristic", "baseline/trivial")
CONDITIONS = ("no_skill", "curated", "self_generated")
SUBTASKS = tuple(subtask.name for subtask in subtasks() if subtask.headline)
WORKERS, EPOCHS, REQUIRED = 4, 3, 1.8


def play(arguments: argparse.Namespace) -> None:
    """One run in this process; prints seconds and its own processor time."""
    if arguments.core:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    doomed: list[int] = json.loads(arguments.kill) if arguments.kill else []
    rows = 0

    def progress(board: Any, row: Any) -> None:
        nonlocal rows
        rows += row is not None
        if doomed and rows == board.planned // 3:
            for pid in doomed:
                os.kill(pid, signal.SIGKILL)
            doomed.clear()

    edition = load_edition(arguments.edition)
    edition.episodes()
    started, busy = time.perf_counter(), _own()
    result = run(
        *(edition, MODELS, CONDITIONS, SUBTASKS),
        limit=arguments.limit,
        epochs=arguments.epochs,
        cluster=arguments.cluster,
        out=arguments.play,
        progress=progress,
    )
    print(json.dumps({"ran": result.ran, "seconds": time.perf_counter() - started, "processor": _own() - busy}))


def _own() -> float:
    found = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in found)


@contextmanager
def cluster(folder: Path, workers: int = WORKERS) -> Iterator[str]:
    """A scheduler and its workers; yields the address."""
    file, environment = folder / "scheduler.json", os.environ | {"DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "error"}
    dask = [sys.executable, "-m", "dask"]
    scheduler = [*dask, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    worker = [*dask, "worker", "--nworkers", str(workers), "--nthreads", "1", "--host", "127.0.0.1", "--no-dashboard"]
    started: list[subprocess.Popen[bytes]] = []
    with (folder / "dask.log").open("wb") as log:
        for command in (scheduler, [*worker, "--local-directory", str(folder)]):
            command += ["--scheduler-file", str(file)]
            started.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=folder))
        try:
            while not file.exists():
                time.sleep(0.1)
            address = json.loads(file.read_text())["address"]
            with Client(address, set_as_default=False) as client:
                client.wait_for_workers(workers, timeout=120)
            yield address
        finally:
            for each in reversed(started):
                each.terminate()
                each.wait(30)


def busy_of(pids: list[int]) -> float:
    """Processor seconds of some processes and of all that they have waited for."""
    return sum(sum(psutil.Process(pid).cpu_times()[:4]) for pid in pids)


def once(folder: Path, edition: Path, epochs: int, *more: str) -> dict[str, float]:
    """One run by a fresh process."""
    command = [
        sys.executable,
        __file__,
        "--play",
        str(folder),
        "--edition",
        str(edition),
        "--epochs",
        str(epochs),
        *more,
    ]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.splitlines()[-1])


def timeless(folder: Path) -> pl.DataFrame:
    """The rows of a run without what a clock said."""
    return pl.read_parquet(folder / ROWS).drop(*TIMINGS)


def differing(found: pl.DataFrame, wanted: pl.DataFrame) -> str:
    """True if two runs have the same rows, else what differs."""
    if found.shape != wanted.shape:
        return f"False ({found.height} rows instead of {wanted.height})"
    columns = [name for name in wanted.columns if not found[name].equals(wanted[name])]
    return f"False (in {', '.join(columns)})" if columns else "True"


def measure(edition: Path, epochs: int, limit: int | None, repeats: int, place: Path) -> bool:
    """Print the table; whether everything holds that is required."""
    few = () if limit is None else ("--limit", str(limit))
    alone = once(place / "alone", edition, epochs, *few)
    cores: list[dict[str, float]] = []
    spreads: list[dict[str, float]] = []
    with cluster(place) as address, Client(address, set_as_default=False) as client:
        once(place / "warm", edition, 1, "--cluster", address, "--limit", "1")
        pids = [*client.run(os.getpid).values(), client.run_on_scheduler(os.getpid)]
        for repeat in range(repeats):  # in turn, since a machine that others use is slower at one time than at another
            cores.append(once(place / f"core-{repeat}", edition, epochs, *few, "--core"))
            before = busy_of(pids)
            spreads.append(once(place / f"spread-{repeat}", edition, epochs, *few, "--cluster", address))
            spreads[-1]["processor"] += busy_of(pids) - before
        killed = once(place / "killed", edition, epochs, *few, "--cluster", address, "--kill", json.dumps(pids[:2]))
    core, spread = (
        {key: median(each[key] for each in found) for key in ("ran", "seconds", "processor")}
        for found in (cores, spreads)
    )
    print(f"{f'medians of {repeats}':44} seconds  processor  episodes/s")
    for name, each in (
        ("one process, kept to one core", core),
        ("one process, its scripts on a second core", alone),
        (f"{WORKERS} workers, scheduler and driver", spread),
        ("the same, two workers killed at a third", killed),
    ):
        processor = f"{each['processor']:9.1f}" if each is not killed else "        -"
        print(f"{name:44} {each['seconds']:7.1f}  {processor}  {each['ran'] / each['seconds']:10.0f}")
    wanted = timeless(place / "core-0")
    same = [differing(timeless(place / name), wanted) for name in ("alone", "spread-0", "killed")]
    print("rows identical to one process: alone {}, four workers {}, two of them killed {}".format(*same))
    ends = [_ends(place / name) for name in ("core-0", "killed")]
    held = ends[0] == ends[1] and set(ends[1].values()) == {1}
    print(f"two workers killed: {killed['ran']:.0f} episodes ran, nothing lost or doubled in the journal: {held}")
    ratios = [one["seconds"] / four["seconds"] for one, four in zip(cores, spreads, strict=True)]
    ratio, beside = median(ratios), alone["seconds"] / spread["seconds"]
    print(
        f"speed-up of four workers on {len(os.sched_getaffinity(0))} cores over one process on one core: {ratio:.2f} "
        f"(required {REQUIRED}; {', '.join(f'{each:.2f}' for each in ratios)}), over one that has both {beside:.2f}"
    )
    print(
        f"processor time per episode: {1e3 * core['processor'] / core['ran']:.2f} ms in one process, "
        f"{1e3 * spread['processor'] / spread['ran']:.2f} ms on four workers"
    )
    return set(same) == {"True"} and held and ratio >= REQUIRED


def _ends(folder: Path) -> Counter[str]:
    return Counter(event.row.item.trajectory for event in read_events(folder) if isinstance(event, Finished))


def main() -> int:
    """Exit code 1 where rows differ, something was lost or doubled, or the speed-up is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--edition", type=Path, help="folder of an edition (default: the default one)")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="repeats; 3 make 17,820 episodes")
    for name in ("--play", "--cluster", "--kill"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--limit", type=int, help="episodes of each subtask, for a trial")
    parser.add_argument("--repeats", type=int, default=3, help="of what the speed-up is the median of")
    parser.add_argument("--core", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.play:
        arguments.play = Path(arguments.play)
        play(arguments)
        return 0
    with Progress() as progress:
        edition = arguments.edition or default_edition(progress)
    with tempfile.TemporaryDirectory() as folder:
        return int(not measure(edition, arguments.epochs, arguments.limit, arguments.repeats, Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
