"""A warm runner with small limits, shared by the tests that run scripts, and a way to write a script."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from finskillbench.sandbox.limits import MIB, ScriptLimits, ScriptResult
from finskillbench.sandbox.runner import ScriptRunner

SMALL = ScriptLimits(
    wall_seconds=1.0,
    cpu_seconds=5.0,
    memory_bytes=128 * MIB,
    file_bytes=1 * MIB,
    result_bytes=1 * MIB,
    payload_bytes=2 * MIB,
)


@pytest.fixture(scope="session")
def runner() -> Iterator[ScriptRunner]:
    """One warm runner for the whole session: a test that breaks it breaks the next one."""
    with ScriptRunner(SMALL, preload=("numpy",)) as warm:
        yield warm


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    """Write a script under a name of its own."""

    def to_file(text: str, name: str = "planted.py") -> Path:
        path = tmp_path / name
        path.write_text(dedent(text), encoding="utf-8")
        return path

    return to_file


def run(runner: ScriptRunner, script: Path, payload: object = None) -> ScriptResult:
    """One call, in an event loop of its own."""
    return asyncio.run(runner.run(script, json.dumps(payload or {}).encode()))
