"""A real edition of three small episodes, so that commands can be driven end to end in milliseconds."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from tests.editions import write_edition
from tests.scoring.examples import EXPECTED, truth

from finskillbench.domains import domain_of
from finskillbench.episode import Episode, Prompt

SUBTASKS = {"tool_use_parameterization": "pc_tool_1", "rebalancing": "pc_rebal_1", "normalization": "fa_norm_1"}


@pytest.fixture
def edition(tmp_path: Path) -> Path:
    """The folder of an edition whose labels are the examples of the scoring tests."""
    prompt, day = Prompt("Do it.", "Answer as JSON."), date(2025, 1, 31)
    tasks = [
        (Episode(task_id, domain_of(name).name, name, day, "easy", {}, prompt), replace(truth(name), task_id=task_id))
        for name, task_id in SUBTASKS.items()
    ]
    return write_edition(tmp_path / "edition", tasks)


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    """One right answer, one that is no JSON, and none for the third episode."""
    file = tmp_path / "answers.jsonl"
    right = {"task_id": "fa_norm_1", "answer": json.dumps(EXPECTED["normalization"])}
    wrong = {"task_id": "pc_rebal_1", "answer": "I buy."}
    file.write_text(f"{json.dumps(right)}\n{json.dumps(wrong)}\n")
    return file
