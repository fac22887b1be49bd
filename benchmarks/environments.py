"""Steps per second of our `Environment` for 1, 64 and 512 concurrent sessions, against tau2-bench's gym.

Run: python benchmarks/environments.py [--edition EDITION] [--peer PYTHON] [--domain mock] [--rounds 3]

A session of ours is a reset, two calls of `get_task_data` (the first field and the longest) and a submission of the
trivial baseline's answer, on a task of the paper's suite; without --edition, a small one is built. A session of
tau2-bench's gym (`peers/tau2_gym.py`) is a reset, two calls of a tool that reads, and the last step, which evaluates.
PYTHON is the interpreter of an environment with tau2, gymnasium and tau2's data; its domain `mock` is the smallest.
Steps are counted over whole sessions, with reset and judging; reads alone exclude both. Rates are medians of rounds
taken in turn, per second and per CPU second of the process; the required ratio is of steps per CPU second, which other
processes change least. Memory is the growth of the resident size per open session after the reads, in the first round.
Exit code 1 if a requirement fails.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from finskillbench.domains import subtask_named
from finskillbench.edition import Edition, build_edition, load_edition
from finskillbench.episode import Episode
from finskillbench.harness.environment import Environment
from finskillbench.harness.model import ToolCall
from finskillbench.harness.programs.program import call, naive_answer
from finskillbench.integrations.environments import EditionTasks
from peers.tau2_gym import EPISODES, READS, clocks, memory

REQUIRED_RATIO, REQUIRED_MB = 10.0, 5.0


class Round(NamedTuple):
    """Seconds and CPU seconds, of whole sessions and of their reads, and MB per open session."""

    whole: float
    reads: float
    whole_cpu: float
    reads_cpu: float
    resident: float


def plan(edition: Edition, episode: Episode) -> tuple[tuple[ToolCall, ToolCall], dict[str, Any]]:
    """Return the two reads of an episode and the trivial baseline's answer."""
    data = edition.full_input(episode)
    longest = max(data, key=lambda field: len(str(data[field])))
    reads = call("get_task_data", 1, field=next(iter(data))), call("get_task_data", 2, field=longest)
    return reads, naive_answer(subtask_named(episode.sub_task).baselines.trivial, data)


class Ours:
    """Sessions of an edition's tasks, in a random order that starts again at its end."""

    def __init__(self, edition: Edition) -> None:
        self._source = EditionTasks(edition)
        tasks = random.Random(1).sample(self._source.tasks, len(self._source.tasks))
        first = [names[0] for names in self._source.by_subtask.values()]
        self._tasks = cycle([*first, *(name for name in tasks if name not in first)])
        self._plans = {episode.task_id: plan(edition, episode) for episode in edition.episodes()}
        asyncio.run(self._wave(len(first)))  # imports what judging needs

    def play(self, sessions: int) -> Round:
        """Play one round of at least `EPISODES` sessions."""
        waves = [asyncio.run(self._wave(sessions)) for _ in range(max(1, EPISODES // sessions))]
        whole, reads, whole_cpu, reads_cpu, resident = map(sum, zip(*waves, strict=True))
        return Round(whole, reads, whole_cpu, reads_cpu, resident / len(waves))

    async def _wave(self, sessions: int) -> Round:
        before, tasks = memory(), list(islice(self._tasks, sessions))
        environments = [(Environment(self._source), *self._plans[task]) for task in tasks]
        begun = clocks()
        await asyncio.gather(*(each.reset(task) for (each, _, _), task in zip(environments, tasks, strict=True)))
        ready = clocks()
        seen = await asyncio.gather(*(each.step(calls[0]) for each, calls, _ in environments))
        seen += await asyncio.gather(*(each.step(calls[1]) for each, calls, _ in environments))
        read = clocks()
        resident = (memory() - before) / sessions
        rewards = await asyncio.gather(*(each.submit(answer) for each, _, answer in environments))
        ended = clocks()
        if None in rewards or not all('"value"' in one.text for one in seen):
            raise SystemExit("a session of ours went wrong")
        return Round(ended[0] - begun[0], read[0] - ready[0], ended[1] - begun[1], read[1] - ready[1], resident)


class Peer:
    """tau2's gym, in a process of its own."""

    def __init__(self, python: Path, domain: str) -> None:
        command = [str(python), str(Path(__file__).parent / "peers" / "tau2_gym.py"), domain]
        offline = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=offline)
        self.play(1)  # imports

    def play(self, sessions: int) -> Round:
        """Play one round."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(sessions, file=self._process.stdin, flush=True)
        if not (line := self._process.stdout.readline()):
            raise SystemExit("tau2's gym ended; its error is above")
        return Round(*json.loads(line))


def summarise(name: str, sessions: int, rounds: list[Round]) -> list[float]:
    """Print a line; return steps and reads per second, then per CPU second."""
    steps, reads = 3 * max(sessions, EPISODES), 2 * max(sessions, EPISODES)
    counts = (steps, reads, steps, reads)
    rates = [median(count / one[place] for one in rounds) for place, count in enumerate(counts)]
    growth = f"{rounds[0].resident:12.2f}" if sessions >= EPISODES else ""
    print(f"{sessions:>8}  {name:<12}" + "".join(f"{rate:>12,.0f}" for rate in rates) + growth, flush=True)
    return rates


def main() -> int:
    """Print both sides and their ratios for every number of sessions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edition", type=Path)
    parser.add_argument("--peer", type=Path, help="interpreter of an environment with tau2; left out: ours alone")
    parser.add_argument("--domain", default="mock", choices=READS)
    parser.add_argument("--sessions", type=int, nargs="+", default=[512, 64, 1])
    parser.add_argument("--rounds", type=int, default=3)
    options, met = parser.parse_args(), True
    with tempfile.TemporaryDirectory() as folder:
        given = options.edition
        edition = load_edition(given) if given else build_edition(episodes=3, out=Path(folder) / "edition")
        ours, peer = Ours(edition), Peer(options.peer, options.domain) if options.peer else None
        print("sessions" + " " * 14 + "     steps/s     reads/s steps/CPU s reads/CPU s  MB/session")
        for sessions in options.sessions:
            played = [(ours.play(sessions), peer and peer.play(sessions)) for _ in range(options.rounds)]
            mine = summarise("ours", sessions, [one for one, _ in played])
            met = met and played[0][0].resident <= REQUIRED_MB
            if theirs := [one for _, one in played if one is not None]:
                rates = summarise(f"tau2 {options.domain}", sessions, theirs)
                ratios = [a / b for a, b in zip(mine, rates, strict=True)]
                print(f"{'':8}  {'ratio':<12}" + "".join(f"{ratio:>12.1f}" for ratio in ratios))
                met = met and ratios[2] >= REQUIRED_RATIO
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
