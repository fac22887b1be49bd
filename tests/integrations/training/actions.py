"""Actions for parity: for each task a call that reads data, an invalid call, and a submission of some quality."""

from __future__ import annotations

import json
from typing import Any

from finskillbench.integrations.environments import EditionTasks
from finskillbench.scoring.values import is_array, is_object

Action = tuple[str, dict[str, Any]]


def actions_of(source: EditionTasks, seed: int) -> list[Action]:
    """Return the tool calls for the task of a seed; the answer is right, empty, nearly right or malformed by turns."""
    truth = source.edition.truth(source.task_of(seed))
    answers = (json.dumps(truth.expected_output), "{}", json.dumps(_reduced(truth.expected_output)), "not JSON")
    submission: Action = ("submit_answer", {"answer": answers[seed % len(answers)]})
    return [("get_task_data", {"field": "conventions"}), ("nonsense", {}), submission]


def _reduced(value: Any) -> Any:
    """Return a value with every number below 1 in size reduced by a tenth."""
    if is_object(value):
        return {name: _reduced(each) for name, each in value.items()}
    if is_array(value):
        return [_reduced(each) for each in value]
    return 0.9 * value if isinstance(value, float) and abs(value) < 1.0 else value
