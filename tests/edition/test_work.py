"""What is counted as the work of an episode."""

from __future__ import annotations

from datetime import date
from typing import Any

from finskillbench.domains.building import BuiltTask
from finskillbench.edition.parts import Work, summary, work_of
from finskillbench.episode import Episode, Prompt, Truth


def task(task_input: dict[str, Any], answer: dict[str, Any], certificate: Any = None, proof: Any = None) -> BuiltTask:
    episode = Episode("t", "s", "x", date(2025, 1, 31), "easy", task_input, Prompt("", ""))
    return BuiltTask(episode, Truth("t", "x", answer, {}, proof or {}), certificate or {})


def test_an_optimum_counts_its_limits_holdings_and_conditions() -> None:
    task_input = {"constraints": {"long_only": True, "max_weight": 0.5}, "benchmark_weights": {"A": 1.0, "B": 0.0}}
    stages = {"stage_1": {"multipliers": [0.0] * 4, "programs_solved": 3}, "stage_2": {"multipliers": [0.0] * 5}}
    found = work_of(task(task_input, {"weights": {"A": 0.5, "B": 0.5, "C": 0.0}}, stages), task_input)
    assert found == Work(reads=2, decisions=2 + 2, computations=3 * 4 + 5)


def test_filed_figures_are_read_one_by_one_and_a_matrix_at_once() -> None:
    facts = {"facts": [{"value": 1.0}] * 7, "segments": [{"value": 1.0}] * 2}
    resolved = {"symbol": "A", "filing_facts": facts, "covariance_matrix": {"matrix": [[1.0, 0.0], [0.0, 1.0]]}}
    made = task({"symbol": "A"}, {"flags": ["low"], "ratio": None, "score": 3}, {"decisions": 5}, {"numbers": 14})
    assert work_of(made, resolved) == Work(reads=3 + 9, decisions=2 + 5, computations=14)


def test_medians_stand_in_the_order_of_the_levels() -> None:
    works = [("hard", Work(9, 9, 9)), ("easy", Work(1, 2, 3)), ("easy", Work(3, 4, 5))]
    assert summary(works) == {
        "easy": {"reads": 2.0, "decisions": 3.0, "computations": 4.0},
        "hard": {"reads": 9.0, "decisions": 9.0, "computations": 9.0},
    }
    assert list(summary(works)) == ["easy", "hard"]
