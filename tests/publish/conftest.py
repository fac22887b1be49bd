"""A small edition, three models of unlike skill that played it, and the bundles of their runs."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from tests.editions import write_edition
from tests.scoring.examples import EXPECTED, truth

from finskillbench import load_edition, run
from finskillbench.domains import domain_of
from finskillbench.edition import Edition
from finskillbench.edition.withheld import export_public
from finskillbench.episode import Episode, Prompt
from finskillbench.harness.model import Message, ToolCall, ToolSpec, Turn, Usage
from finskillbench.publish.bundle import Submitter
from finskillbench.publish.bundle.write import submit_run

SUBTASKS = ("normalization", "stress_testing", "risk_identification")
EPISODES = 12
CONDITIONS = ("no_skill", "curated")


@dataclass
class Player:
    """Answers the first `right` of the episodes of each subtask as it should, with skills two more."""

    name: str
    right: int
    extra: str = ""

    async def generate(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        found = re.search(r"Task (\w+)_(\d+)\.", messages[1].content)
        assert found is not None
        skilled = any(tool.name == "run_skill_script" for tool in tools)
        knows = int(found[2]) < self.right + 2 * skilled
        answer: dict[str, Any] = {**EXPECTED[found[1]]} if knows else {"nothing": self.extra}
        call = ToolCall("s", "submit_answer", json.dumps({"answer": json.dumps(answer)}))
        return Turn(tool_calls=(call,), usage=Usage(input_tokens=100, output_tokens=50, cost_usd=0.01))


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Edition:
    """Twelve episodes of each of three subtasks, each of a day of its own."""
    tasks = []
    for name in SUBTASKS:
        for number in range(EPISODES):
            task_id = f"{name}_{number}"
            prompt = Prompt(f"Task {name}_{number}.", "Answer as JSON.")
            day = date(2025, 1 + number, 15)
            episode = Episode(task_id, domain_of(name).name, name, day, "easy", {}, prompt)
            tasks.append((episode, replace(truth(name), task_id=task_id)))
    return load_edition(write_edition(tmp_path_factory.mktemp("small") / "edition", tasks))


@pytest.fixture(scope="session")
def public(small: Edition, tmp_path_factory: pytest.TempPathFactory) -> Edition:
    """The same without its truth."""
    return export_public(small, tmp_path_factory.mktemp("public") / "edition")


@pytest.fixture(scope="session")
def runs(small: Edition, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run of each player, and one of the baselines."""
    folder = tmp_path_factory.mktemp("runs")
    for name, right in (("lab/strong", 10), ("lab/weak", 1), ("other/middle", 9)):
        run(small, [Player(name, right)], CONDITIONS, out=folder / name)
    run(small, ["baseline/trivial", "baseline/nop"], CONDITIONS, out=folder / "baselines")
    return {
        "strong": folder / "lab/strong",
        "weak": folder / "lab/weak",
        "middle": folder / "other/middle",
        "baselines": folder / "baselines",
    }


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """SSH keys of two people."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("ann", "bob"):
        made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)]
        subprocess.run(made, check=True)
    return {name: folder / name for name in ("ann", "bob")}


Bundled = Callable[..., Path]


@pytest.fixture
def bundled(small: Edition, runs: dict[str, Path], keys: dict[str, Path], tmp_path: Path) -> Bundled:
    """Submit a run under a name; the key is Ann's unless another is named, or None."""

    def make(which: str = "strong", name: str = "Ann", key: str | None = "ann", **more: Any) -> Path:
        out = tmp_path / f"{which}-{name.lower()}.zip"
        submitter = Submitter(name=name, url=more.pop("url", None), contact=more.pop("contact", None))
        submit_run(runs[which], small, out, submitter, key=None if key is None else keys[key], **more)
        return out

    return make
