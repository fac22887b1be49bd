"""A real edition of three small episodes, so that commands can be driven end to end in milliseconds."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from tests.scoring.examples import EXPECTED, truth

from finskillbench.domains import domain_of
from finskillbench.edition.store import episode_row, write_lines, write_manifest
from finskillbench.episode import Episode, Prompt

SUBTASKS = {"tool_use_parameterization": "pc_tool_1", "rebalancing": "pc_rebal_1", "normalization": "fa_norm_1"}


@pytest.fixture
def edition(tmp_path: Path) -> Path:
    """The folder of an edition whose labels are the examples of the scoring tests."""
    folder = tmp_path / "edition"
    for name, task_id in SUBTASKS.items():
        episode = Episode(
            task_id, domain_of(name).name, name, date(2025, 1, 31), "easy", {}, Prompt("Do it.", "Answer as JSON.")
        )
        write_lines(folder / "episodes" / f"{name}.jsonl", [episode_row(episode)])
        write_lines(folder / "truth" / f"{name}.jsonl", [replace(truth(name), task_id=task_id)])
    write_manifest(
        folder,
        {
            "source": {"kind": "synthetic", "names": 2},
            "seed": 1,
            "universe": ["A", "B"],
            "as_of_dates": ["2025-01-31"],
            "counts": dict.fromkeys(SUBTASKS, 1),
            "parameters": {},
            "notes": ["Made for tests."],
            "versions": {"finskillbench": "0.1.0"},
        },
    )
    return folder


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    """One right answer, one that is no JSON, and none for the third episode."""
    file = tmp_path / "answers.jsonl"
    right = {"task_id": "fa_norm_1", "answer": json.dumps(EXPECTED["normalization"])}
    wrong = {"task_id": "pc_rebal_1", "answer": "I buy."}
    file.write_text(f"{json.dumps(right)}\n{json.dumps(wrong)}\n")
    return file
