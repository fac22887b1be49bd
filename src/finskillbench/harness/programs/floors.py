"""The two floors to clear: `baseline/trivial` without a thought about the episode, `baseline/heuristic` with little.

They load no skill and run no script.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from finskillbench.domains import Subtask, by_name
from finskillbench.harness.model import Message, ToolSpec, Turn
from finskillbench.harness.programs.program import Program
from finskillbench.harness.programs.reading import (
    fields_read,
    naive_answer,
    printed_fields,
    read_fields,
    results_of,
    submit,
    subtask_of,
    turns_taken,
)


class Trivial(Program):
    """`baseline/trivial`: the best answer that needs no thought about the episode.

    Equal weights, every constraint said to hold, the portfolio left as it is, everything compliant, nothing unusual. It
    reads at most the fields that list the names.
    """

    name = "baseline/trivial"

    def respond(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        """Ask for the fields that this subtask needs, then submit its constant answer."""
        subtask = subtask_of(messages)
        naive = subtask.trivial if subtask is not None else None
        if naive is not None and naive.fields and turns_taken(messages) == 0:
            return read_fields(*naive.fields)
        return submit(naive_answer(naive, fields_read(results_of(messages))))


class Heuristic(Program):
    """`baseline/heuristic`: the fixed recipe that earns most, fitted on another seed by `benchmarks/heuristics.py`.

    Sums and formulas on the inputs without the work: an optimum without correlations, weights times a usual volatility.
    """

    name = "baseline/heuristic"

    def respond(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        """Read what the prompt prints and what by-hand arithmetic needs, then submit what the recipe makes of it."""
        subtask = subtask_of(messages)
        if subtask is None or not subtask.heuristic:
            return submit({})
        if turns_taken(messages) == 0:
            unprinted = subtask.by_hand.fields if subtask.by_hand is not None else ()
            return read_fields(*dict.fromkeys((*printed_fields(messages), *unprinted)))
        return _by_recipe(subtask.name, results_of(messages))


@lru_cache(maxsize=64)
def _by_recipe(sub_task: str, results: tuple[str, ...]) -> Turn:
    """Submit what the recipe makes of the results of tools; kept, since they are the same in each arm."""
    return submit(heuristic_answer(by_name(sub_task), fields_read(results)))


def heuristic_answer(subtask: Subtask, task_input: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the fitted recipe answers; nothing where an imported episode lacks what it reads."""
    if subtask.exploits is None:
        return {}
    try:
        return subtask.exploits(task_input)[subtask.heuristic]
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return {}
