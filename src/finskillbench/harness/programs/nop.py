"""`baseline/nop`: answers nothing, the bound of every report from below."""

from __future__ import annotations

from collections.abc import Sequence

from finskillbench.harness.model import Message, ToolSpec, Turn
from finskillbench.harness.programs.program import Program
from finskillbench.harness.programs.reading import submit, subtask_of


class Nop(Program):
    """`baseline/nop`: submits the answer's top-level keys, all null, on its first turn."""

    name = "baseline/nop"

    def respond(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        """Submit nulls; a subtask it does not know gets an empty object."""
        subtask = subtask_of(messages)
        return submit(dict.fromkeys(subtask.answer.model_fields) if subtask is not None else {})
