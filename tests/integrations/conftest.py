"""Inspect kept away from the user's own folders, and a small edition whose truth is easy to recognise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from tests.editions import write_edition
from tests.scoring.examples import truth

from finskillbench.domains import domain_of, subtask_named
from finskillbench.edition import Edition, load_edition
from finskillbench.episode import Episode, Prompt, Truth

SUBTASKS = ("tool_use_parameterization", "rebalancing", "normalization")
PLANTED = ("PLANTED-LABEL", "0.51234567891", "PLANTED-VERIFICATION", "PLANTED-PROOF", "PLANTED-METADATA")
"""What no log may hold: parts of labels, of how they are verified and proved, and what no agent is shown."""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Inspect's traces and markers go to the test's folder, and nothing goes where it is called."""
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    yield
    assert not list(work.iterdir()), "something was written into the folder of the caller"


@pytest.fixture(scope="session")
def small_edition(tmp_path_factory: pytest.TempPathFactory) -> Edition:
    """Three subtasks with two episodes each; labels without a proof, so nothing is judged as certified."""
    day, metadata = date(2025, 1, 31), {"planted": "PLANTED-METADATA"}
    tasks: list[tuple[Episode, Truth]] = []
    for name in SUBTASKS:
        example = truth(name)
        label = {**example.expected_output, "new_weights": {"AAA": 0.51234567891}, "PLANTED-LABEL": 1}
        verification = {**example.verification, "planted": "PLANTED-VERIFICATION"}
        for number in range(2):
            task_id = f"{subtask_named(name).prefix}_{number}"
            prompt = Prompt(f"Do task {number}.", "Answer as JSON.")
            episode = Episode(task_id, domain_of(name).name, name, day, "easy", {"cash": 1}, prompt, metadata)
            tasks.append((episode, replace(example, task_id=task_id, expected_output=label, verification=verification)))
    return load_edition(write_edition(tmp_path_factory.mktemp("small") / "edition", tasks, {"kind": "PLANTED-PROOF"}))
