"""The training example with a tiny budget: it is deterministic, and training improves the reward."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from finskillbench.edition import Edition
from finskillbench.integrations.environments import EditionTasks

SCRIPT = Path(__file__).parents[2] / "examples" / "training" / "train.py"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("train", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "train", module)
    spec.loader.exec_module(module)
    return module


def test_training_is_deterministic_and_improves_the_reward(training_edition: Edition, example: ModuleType) -> None:
    source = EditionTasks(training_edition, subtasks=[example.SUBTASK])
    first, again, other = (example.train(source, source.tasks, 1, 6, seed) for seed in (0, 0, 1))
    assert {name: list(theta) for name, theta in first.items()} == {name: list(theta) for name, theta in again.items()}
    assert any(not np.array_equal(first[name], other[name]) for name in first.keys() & other.keys())
    score, raw = example.compare(source, source.tasks, example.train(source, source.tasks, 12, 6, 0))
    assert raw.after > raw.before + 0.3
    assert score.after > score.before == 0.0
