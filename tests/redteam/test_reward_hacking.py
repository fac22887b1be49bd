"""Attempts of benchmarks/reward_hacking.py on two cheap subtasks stay at the floor."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path

import pytest

from finskillbench.edition import Edition

FILE = Path(__file__).resolve().parents[2] / "benchmarks" / "reward_hacking.py"


@pytest.mark.slow
@pytest.mark.parametrize("subtask", ["rebalancing", "tool_use_parameterization"])
def test_attempts_stay_at_the_floor(edition: Edition, subtask: str) -> None:
    spec = importlib.util.spec_from_file_location("reward_hacking", FILE)
    assert spec is not None
    assert spec.loader is not None
    attempts = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(attempts)
    assert asyncio.run(attempts.examine(edition, subtask, 2)) == []
