"""A skill package under test: its table, its scripts as modules and from the command line, its use in the loop."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from finskillbench.domains import domain_of
from finskillbench.episode import Episode, JsonObject, Prompt
from finskillbench.harness.conditions import Condition, mount
from finskillbench.harness.episode_state import EpisodeSpec, Resources
from finskillbench.harness.loop import run_episode
from finskillbench.harness.models import get_model
from finskillbench.harness.skills.loader import curated, load_package, placebo
from finskillbench.harness.skills.recipes import Recipe, find_recipe
from finskillbench.sandbox.runner import ScriptRunner
from finskillbench.sandbox.script import cli

Mend = Callable[[JsonObject], None]


@dataclass(frozen=True)
class Package:
    """One package that ships, by its name."""

    name: str

    @property
    def root(self) -> Path:
        return curated()[self.name].root

    def script(self, name: str) -> ModuleType:
        """A script of the package as a module."""
        spec = importlib.util.spec_from_file_location(f"{self.name}_{name}", self.root / "scripts" / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module

    def recipe_of(self, sub_task: str) -> Recipe:
        """The table's row for a subtask, read as the reference program reads it."""
        found = find_recipe(load_package(self.root).body, sub_task)
        assert found is not None
        return found

    def payload_of(self, sub_task: str, task: JsonObject) -> JsonObject:
        """What the runner hands the script: the injected fields and nothing else."""
        return {field: task[field] for field in self.recipe_of(sub_task).fields}

    def run(self, sub_task: str, task: JsonObject) -> JsonObject:
        """The script of a subtask on its own fields, the result through JSON."""
        module = self.script(Path(self.recipe_of(sub_task).script).stem)
        return json.loads(json.dumps(module.main(self.payload_of(sub_task, task)), allow_nan=False))

    def refusal(self, sub_task: str, task: JsonObject, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
        """The one line that the command line of a script ends with, code 2."""
        file = tmp_path / "in.json"
        file.write_text(json.dumps(self.payload_of(sub_task, task)))
        with pytest.raises(SystemExit) as ended:
            cli(self.script(Path(self.recipe_of(sub_task).script).stem).main, ["--input", str(file)])
        assert ended.value.code == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        return captured.err


def solved(sub_task: str, task: JsonObject, condition: Condition, warm: ScriptRunner, scratch: Path) -> JsonObject:
    """What `baseline/reference` submits, through the real loop, tools and runner."""
    episode = Episode(
        task_id=f"{sub_task}_test",
        skill=domain_of(sub_task).name,
        sub_task=sub_task,
        as_of_date=date(2024, 5, 1),
        difficulty="medium",
        input=task,
        prompt=Prompt("Do it.", "Respond with a JSON object."),
        metadata={},
    )
    trace = asyncio.run(
        run_episode(
            get_model("baseline/reference"),
            EpisodeSpec(episode, f"Subtask: {sub_task}\nDo it.", lambda: task, mount(condition, curated(), placebo())),
            Resources(runner=warm, scratch_root=scratch),
        )
    )
    assert trace.ended == "submitted"
    assert trace.answer is not None
    return json.loads(trace.answer)


def set_at(*path: Any, value: Any) -> Mend:
    """A change of one field of a task."""

    def change(task: JsonObject) -> None:
        place: Any = task
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change
