"""Rounds of tau2-bench's gym, for `benchmarks/environments.py`; runs in an environment with tau2 and gymnasium.

The argument is a domain. Reads numbers of sessions, one a line, and prints for each a JSON list: seconds of whole
sessions and of the reads, the same in CPU seconds, resident MB per open session. A round plays at least `EPISODES`
sessions; each of those at the same time has a thread. No model is called: `mock` (10 tasks) is played in solo mode, and
in `retail` (114 tasks) a stand-in for the user opens with a fixed sentence. Logging is off, which is faster than the
default.
"""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from resource import getpagesize
from typing import Any

EPISODES = 64
READS = {"mock": "get_users()", "retail": "get_order_details(order_id='#W2378156')"}
TASKS = {"mock": "create_task_1", "retail": "0"}


@cache
def gym() -> Any:
    """Return the class of tau2's environment, whose user needs no model."""
    from loguru import logger

    logger.remove()
    from tau2.data_model.message import UserMessage
    from tau2.gym.gym_agent import AgentGymEnv
    from tau2.user.user_simulator import DummyUser

    class User(DummyUser):
        def is_stop(self, message: Any) -> bool:
            return False

        def generate_next_message(self, message: Any, state: Any) -> tuple[Any, Any]:
            return UserMessage(role="user", content="Where is my order #W2378156?"), state

    class Gym(AgentGymEnv):
        def _get_user(self) -> Any:
            return User()

    return Gym


def play(domain: str, sessions: int) -> list[float]:
    """Play one round."""
    total, resident = [0.0] * 4, 0.0
    with ThreadPoolExecutor(sessions) as pool:
        for _ in range(max(1, EPISODES // sessions)):
            before = memory()
            environments = [gym()(domain, TASKS[domain], solo_mode=domain == "mock") for _ in range(sessions)]
            begun = clocks()
            list(pool.map(lambda each: each.reset(), environments))
            ready = clocks()
            seen = [step for _ in range(2) for step in pool.map(lambda each: each.step(READS[domain]), environments)]
            read = clocks()
            resident = (memory() - before) / sessions
            last = list(pool.map(lambda each: each.step("done()"), environments))
            ended = clocks()
            # Under load a step may return an older observation: the gym's flag is set before its observation.
            results = sum("_id" in step[0] for step in seen)
            if results < 0.9 * len(seen) or any(step[2] for step in seen) or not all(step[2] for step in last):
                raise SystemExit(f"a session of tau2's gym went wrong; {results} of {len(seen)} reads had results")
            spent = (ended[0] - begun[0], read[0] - ready[0], ended[1] - begun[1], read[1] - ready[1])
            total = [one + more for one, more in zip(total, spent, strict=True)]
    return [*total, resident]


def clocks() -> tuple[float, float]:
    """Return a time and the CPU time of the process, in seconds."""
    return time.perf_counter(), time.process_time()


def memory() -> float:
    """Return the resident size in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * getpagesize() / 2**20


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(play(sys.argv[1], int(line))), flush=True)
