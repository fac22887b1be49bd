"""What it costs to start an agent that is a program of its own: seconds per episode, against a function in Python.

    python benchmarks/agents.py [--edition EDITION] [--limit 8]

The same trivial agent, one that submits an empty answer, plays the same episodes one after another as a Python
function, as a command over stdio with `{mcp_config}` and over HTTP with `{mcp_url}`. The command is the small client of
the tests, which needs the standard library alone. Beside the seconds stands the processor time of this process and of
its children. Nothing is required: an agent that thinks takes seconds. Without `--edition` the default one is taken, and
built where it is missing.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from finskillbench.edition import Edition, load_edition
from finskillbench.integrations.mcp.drive import drive_agent
from finskillbench.runs.execute.run import RunResult, run
from finskillbench.runs.plan.streams import default_edition

AGENT = Path(__file__).resolve().parents[1] / "tests" / "integrations" / "mcp" / "agent.py"
CONDITION = "no_skill"


async def nothing(task, tools) -> str:
    """Submit an empty answer."""
    return "{}"


def ways(edition: Edition, limit: int, folder: Path) -> dict[str, Callable[[], RunResult]]:
    """Each way to play the episodes, by its name."""

    def over(place: str) -> RunResult:
        command = f"{sys.executable} -I {AGENT} submits {place}"
        name, out = place.strip("{}"), folder / place.strip("{}")
        return drive_agent(edition, command, name, [CONDITION], limit=limit, max_concurrency=1, out=out)

    def in_python() -> RunResult:
        out = folder / "python"
        return run(edition, conditions=[CONDITION], agents=[nothing], limit=limit, max_concurrency=1, out=out)

    return {
        "a Python function": in_python,
        "a command over stdio": lambda: over("{mcp_config}"),
        "a command over HTTP": lambda: over("{mcp_url}"),
    }


def processor() -> tuple[float, float]:
    """Seconds of processor time so far: of this process, and of its children that have ended."""
    mine, theirs = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return mine.ru_utime + mine.ru_stime, theirs.ru_utime + theirs.ru_stime


def main() -> None:
    """Play each way and print a line for it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--edition", type=Path)
    parser.add_argument("--limit", type=int, default=8, help="episodes of each subtask")
    arguments = parser.parse_args()
    edition = load_edition(arguments.edition or default_edition(lambda step: None))
    with tempfile.TemporaryDirectory() as folder:
        for name, play in ways(edition, arguments.limit, Path(folder)).items():
            before, started = processor(), time.perf_counter()
            result = play()
            seconds = (time.perf_counter() - started) / result.ran
            mine, theirs = ((now - then) / result.ran for now, then in zip(processor(), before, strict=True))
            print(
                f"{name:<22} {result.ran} episodes, {seconds:.3f} s each "
                f"(processor: {mine:.3f} s here, {theirs:.3f} s of the command)",
                flush=True,
            )


if __name__ == "__main__":
    main()
