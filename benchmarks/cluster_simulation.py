"""A million episodes of a thousand models on a cluster, simulated with what episodes are measured to cost.

    python benchmarks/cluster_simulation.py [--edition FOLDER] [--episodes N] [--models N]

First it measures, on a scheduler and two workers on loopback: processor time of driver, scheduler and worker for each
episode and for each model call (stand-ins for a hosted model that answer at once, in two calls and in eight), bytes of
a journal line, a trajectory and a row, and memory of the driver for each planned and each finished episode. Then events
are simulated: every model call waits for a place of its model, for the scheduler and for the worker it is on, which
each serve one thing at a time, and for the provider, whose latency is drawn log-normally; an episode has 7.5 calls, as
published. Workers die, and what was in play there begins again. The clock is the simulation's own. The episodes are of
the headline: the desk's take longer to judge, trade_over_time 0.2 s.
"""

from __future__ import annotations

import argparse
import gc
import heapq
import json
import math
import os
import random
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from distributed import Client

from cluster import SUBTASKS, busy_of, cluster
from finskillbench.cli.display.console import Progress
from finskillbench.edition import load_edition
from finskillbench.harness.model import ToolCall, Turn, Usage
from finskillbench.harness.models import ModelKey
from finskillbench.runs.execute.run import RunResult, run
from finskillbench.runs.plan.items import make_plan
from finskillbench.runs.plan.streams import default_edition, make_streams
from finskillbench.runs.store.journal import JOURNAL, read_history
from finskillbench.runs.store.rows import ROWS, to_frame

CALLS = 7.5
"""Model calls of an episode, as published for eight models."""
LATENCY, SPREAD = 8.0, 0.8
"""Seconds that a provider takes on average, and the standard deviation of their logarithm."""
LIFE_HOURS = 24.0
"""Mean life of a worker."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Processor seconds by episode and by call, and bytes by episode."""

    driver_episode: float
    driver_call: float
    scheduler_episode: float
    scheduler_call: float
    worker_episode: float
    worker_call: float
    journal: float
    trajectory: float
    rows: float
    planned: float
    finished: float


def player(calls: int) -> Any:
    """A model that asks for data until its last call; defined within, so that it travels by value."""

    class Asking:
        name = f"bench/calls-{calls}"
        provider = "bench"

        async def generate(self, messages: Any, tools: Any, tool_choice: str) -> Turn:
            done = sum(message.role == "assistant" for message in messages)
            name, said = ("submit_answer", {"answer": "{}"})
            if done < calls - 1:
                name, said = ("get_task_data", {"field": "expected_returns"})
            call = ToolCall(str(done), name, json.dumps(said))
            return Turn(tool_calls=(call,), usage=Usage(input_tokens=1_000, output_tokens=50, cost_usd=0.0))

    return Asking()


def measured(edition_path: Path, episodes: int) -> Costs:
    """What an episode costs whom."""
    edition = load_edition(edition_path)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        with cluster(place, workers=2) as address, Client(address, set_as_default=False) as client:
            workers, scheduler = list(client.run(os.getpid).values()), client.run_on_scheduler(os.getpid)
            groups = ([os.getpid()], [scheduler], workers)

            def spent(calls: int, sample: int, out: Path) -> tuple[list[float], RunResult]:
                before = [busy_of(pids) for pids in groups]
                made = run(edition, [player(calls)], ["no_skill"], SUBTASKS, sample=sample, cluster=address, out=out)
                return [busy_of(pids) - was for pids, was in zip(groups, before, strict=True)], made

            spent(2, episodes, place / "warm")  # panels are read and inputs resolved once, not by every episode
            start, _ = spent(2, 32, place / "start")
            few, _ = spent(2, episodes, place / "few")
            many, made = spent(8, episodes, place / "many")
        number = made.ran
        call = [max(b - a, 0.0) / (6 * number) for a, b in zip(few, many, strict=True)]
        # What a run takes before its first episode is no episode's; 32 of them were played beside it.
        whole = [max(a - s, 0.0) / (number - 32) - 2 * c for a, s, c in zip(few, start, call, strict=True)]
        out = place / "many"
        files = sum(path.stat().st_size for path in (out / "trajectories").rglob("*.gz"))
        finished = _memory(lambda: (history := read_history(out).rows, to_frame(history.values()))) / number
        sizes = [(out / JOURNAL).stat().st_size, files, (out / ROWS).stat().st_size]
    names = [ModelKey(f"bench/model-{number}") for number in range(100)]
    few_planned = edition.episodes()

    def planned() -> Any:
        plan = make_plan(few_planned, names, ["no_skill"], limit=40)
        streams = make_streams(plan)
        return plan, streams, frozenset(item for stream in streams for item in stream.items), {*plan.items}

    items = len(make_plan(few_planned, names, ["no_skill"], limit=40).items)
    per = [max(each, 0.0) for each in whole]
    return Costs(
        *(value for pair in zip(per, call, strict=True) for value in pair),
        *(size / number for size in sizes),
        _memory(planned) / items,
        finished,
    )


def _memory(make: Any) -> float:
    """Bytes by which this process grows while something is made and kept."""
    gc.collect()
    before = psutil.Process().memory_info().rss
    kept = make()
    gc.collect()
    grown = psutil.Process().memory_info().rss - before
    del kept
    return max(grown, 0)


@dataclass(slots=True)
class Cluster:
    """What is simulated: episodes of models, with so many places each, on workers that die."""

    episodes: int
    models: int
    places: int
    workers: int
    costs: Costs
    life: float = LIFE_HOURS * 3600
    seed: int = 1
    free: float = 0.0
    scheduler_free: float = 0.0
    driver_busy: float = 0.0
    scheduler_busy: float = 0.0
    worker_busy: float = 0.0
    replayed: int = 0
    most: int = 0
    _free: list[float] = field(default_factory=list[float])

    def run(self) -> float:
        """Seconds until the last episode is written."""
        draw = random.Random(self.seed)
        mean = math.log(LATENCY) - SPREAD**2 / 2
        waiting = [self.episodes // self.models + (model < self.episodes % self.models) for model in range(self.models)]
        self._free = [0.0] * self.workers
        born = [0] * self.workers
        # An event: when a call has come back, of which model, on which worker of which life, with how many calls to go.
        events: list[tuple[float, int, int, int, int]] = []
        deaths = [(draw.expovariate(1 / self.life), worker) for worker in range(self.workers)]
        heapq.heapify(deaths)
        last, turn = 0.0, 0

        def begin(now: float, model: int) -> None:
            nonlocal turn
            if not waiting[model]:
                return
            waiting[model] -= 1
            turn = (turn + 1) % self.workers
            at = self._scheduled(self._served(now, self.costs.driver_episode / 2), self.costs.scheduler_episode)
            at = self._worked(at, turn, self.costs.worker_episode)
            heapq.heappush(events, (self._call(draw, mean, at, turn), model, turn, born[turn], self._calls(draw)))

        for model in range(self.models):
            for _ in range(self.places):
                begin(0.0, model)
        self.most = len(events)
        while events:
            now, model, worker, life, calls = heapq.heappop(events)
            while deaths[0][0] <= now:
                _, dead = heapq.heappop(deaths)
                born[dead] += 1
                heapq.heappush(deaths, (now + draw.expovariate(1 / self.life), dead))
            if born[worker] != life:
                self.replayed += 1
                waiting[model] += 1
                begin(now, model)
            elif calls > 1:
                at = self._call(draw, mean, now, worker)
                heapq.heappush(events, (at, model, worker, life, calls - 1))
            else:
                last = self._served(now, self.costs.driver_episode / 2)
                begin(now, model)
        return last

    def _call(self, draw: random.Random, mean: float, now: float, worker: int) -> float:
        """When the next call comes back: the scheduler grants it, the worker makes it, the provider answers."""
        at = self._worked(self._scheduled(now, self.costs.scheduler_call), worker, self.costs.worker_call)
        return at + draw.lognormvariate(mean, SPREAD)

    @staticmethod
    def _calls(draw: random.Random) -> int:
        return int(CALLS) + (draw.random() < CALLS % 1)

    def _served(self, now: float, seconds: float) -> float:
        self.free = max(self.free, now) + seconds
        self.driver_busy += seconds
        return self.free

    def _scheduled(self, now: float, seconds: float) -> float:
        self.scheduler_free = max(self.scheduler_free, now) + seconds
        self.scheduler_busy += seconds
        return self.scheduler_free

    def _worked(self, now: float, worker: int, seconds: float) -> float:
        self._free[worker] = max(self._free[worker], now) + seconds
        self.worker_busy += seconds
        return self._free[worker]


def show(costs: Costs, episodes: int, models: int) -> None:
    """Print what was measured, what follows for so many episodes, and the simulations."""
    print("measured                         driver  scheduler   worker   ms of processor")
    print(
        f"by episode                     {1e3 * costs.driver_episode:8.2f}   {1e3 * costs.scheduler_episode:8.2f} "
        f"{1e3 * costs.worker_episode:8.2f}"
    )
    print(
        f"by model call                  {1e3 * costs.driver_call:8.2f}   {1e3 * costs.scheduler_call:8.2f} "
        f"{1e3 * costs.worker_call:8.2f}"
    )
    print(
        f"bytes by episode: journal {costs.journal:,.0f}, trajectory {costs.trajectory:,.0f}, rows.parquet "
        f"{costs.rows:,.0f}; driver's memory {costs.planned:,.0f} planned, {costs.finished:,.0f} finished"
    )
    gigabytes = [each * episodes / 1e9 for each in (costs.journal, costs.trajectory, costs.rows)]
    print(
        f"{episodes:,} episodes: journal {gigabytes[0]:.1f} GB, trajectories {gigabytes[1]:.1f} GB, rows "
        f"{gigabytes[2]:.2f} GB, driver's memory {(costs.planned + costs.finished) * episodes / 1e9:.1f} GB"
    )
    for name, one in (
        ("driver", costs.driver_episode + CALLS * costs.driver_call),
        ("scheduler", costs.scheduler_episode + CALLS * costs.scheduler_call),
    ):
        print(
            f"a {name} can serve {1 / one:,.0f} episodes of {CALLS} calls a second: {episodes * one / 3600:.1f} hours "
            f"of its processor"
        )
    print(f"\n{episodes:,} episodes of {models:,} models, calls of {LATENCY:g} s, workers live {LIFE_HOURS:g} hours")
    print("workers  places/model  in flight    hours  driver busy  scheduler busy  workers busy  replayed")
    for workers, places in ((16, 4), (64, 16), (256, 64)):
        seen = Cluster(episodes, models, places, workers, costs)
        seconds = seen.run()
        print(
            f"{workers:7}  {places:12}  {seen.most:9,}  {seconds / 3600:7.2f}  {seen.driver_busy / seconds:10.0%}  "
            f"{seen.scheduler_busy / seconds:14.0%}  "
            f"{seen.worker_busy / seconds / workers:11.0%}  {seen.replayed:8,}"
        )


def main() -> int:
    """Measure, then simulate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--edition", type=Path, help="folder of an edition (default: the default one)")
    parser.add_argument("--episodes", type=int, default=1_000_000)
    parser.add_argument("--models", type=int, default=1_000)
    parser.add_argument("--sample", type=int, default=600, help="episodes that are really played for each measurement")
    arguments = parser.parse_args()
    with Progress() as progress:
        edition = arguments.edition or default_edition(progress)
    show(measured(edition, arguments.sample), arguments.episodes, arguments.models)
    return 0


if __name__ == "__main__":
    sys.exit(main())
