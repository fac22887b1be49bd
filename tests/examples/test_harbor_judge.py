"""The verifier that judges beside Harbor, with stand-ins for the two classes of Harbor that it uses."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from finskillbench.edition import Edition
from finskillbench.integrations.task_files import Layout
from finskillbench.integrations.task_files.write import ANSWER, PLACE, export_tasks
from finskillbench.runs.config import EpisodeSelection

SOURCE = Path(__file__).parents[2] / "examples" / "harbor" / "judge.py"


class BaseVerifier:
    """Keeps what Harbor hands to every verifier."""

    def __init__(self, *, task: Any, environment: Any, **_: Any) -> None:
        self.task, self.environment, self.logger = task, environment, logging.getLogger(__name__)


class Container:
    """The files of a container, fetched as Harbor's environments do it."""

    def __init__(self, files: dict[str, str]) -> None:
        self.files = files

    async def download_file(self, source_path: str, target_path: Path) -> None:
        if source_path not in self.files:
            raise RuntimeError(f"no such file: {source_path}")
        target_path.write_text(self.files[source_path])


@pytest.fixture
def judged(synthetic_edition: Edition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What the verifier says of a task's answer; and the truth of the task."""
    for name, content in (
        ("harbor.models.verifier.result", {"VerifierResult": SimpleNamespace}),
        ("harbor.verifier.base", {"BaseVerifier": BaseVerifier}),
    ):
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    spec = importlib.util.spec_from_file_location("judge", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    record = export_tasks(
        synthetic_edition,
        tmp_path / "tasks",
        chosen=EpisodeSelection(subtasks=["rebalancing"], limit=1),
        layout=Layout.HARBOR,
    )
    ((folder, task_id),) = record.tasks.items()
    metadata = tomllib.loads((tmp_path / "tasks" / folder / "task.toml").read_text())["metadata"]

    def verdict(files: dict[str, str], **changed: str) -> dict[str, float]:
        task = SimpleNamespace(config=SimpleNamespace(metadata={**metadata, **changed}))
        verifier = example.Judge(edition=str(synthetic_edition.path), task=task, environment=Container(files))
        return asyncio.run(verifier.verify()).rewards

    return verdict, synthetic_edition.truth(task_id).expected_output


def test_its_rewards_are_the_scores(judged: tuple[Callable[..., dict[str, float]], Any]) -> None:
    verdict, truth = judged
    right = verdict({f"{PLACE}/{ANSWER}": json.dumps(truth)})
    assert right["reward"] == right["certified"] == pytest.approx(1.0, abs=1e-6)
    assert {"paper", "strict"} <= right.keys()
    assert verdict({f"{PLACE}/{ANSWER}": "{}"})["reward"] == 0.0
    assert set(verdict({}).values()) == {0.0}


def test_a_task_of_another_edition_is_refused(judged: tuple[Callable[..., dict[str, float]], Any]) -> None:
    with pytest.raises(ValueError, match="handed out of edition 000000000000"):
        judged[0]({}, edition="0" * 64)
