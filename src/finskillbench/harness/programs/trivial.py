"""`baseline/trivial`: for each subtask the best answer that needs no thought about the episode.

It is the floor to clear: equal weights, every constraint said to hold, the portfolio left as it is, everything
compliant, nothing unusual. It loads no skill and runs no script.
"""

from __future__ import annotations

from collections.abc import Sequence

from finskillbench.harness.model import Message, ToolSpec, Turn
from finskillbench.harness.programs.program import Program
from finskillbench.harness.programs.reading import (
    fields_read,
    naive_answer,
    read_fields,
    submit,
    subtask_of,
    turns_taken,
)


class Trivial(Program):
    """`baseline/trivial`: reads at most the fields that list the names, then submits."""

    name = "baseline/trivial"

    def respond(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        """Ask for the fields that this subtask needs, then submit its constant answer."""
        subtask = subtask_of(messages)
        naive = subtask.trivial if subtask is not None else None
        if naive is not None and naive.fields and turns_taken(messages) == 0:
            return read_fields(*naive.fields)
        return submit(naive_answer(naive, fields_read(messages)))
