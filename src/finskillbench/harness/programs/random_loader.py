"""`baseline/random_loader`: loads random skills of the index and submits nulls, so its precision is that of chance."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from finskillbench.harness.model import Message, ToolSpec, Turn
from finskillbench.harness.programs.program import Nop, call, prompt_of, turns_taken
from finskillbench.harness.programs.reference import SKILL_IN_INDEX
from finskillbench.harness.tools.contracts import LOAD_SKILL

LOADS = 4
"""Skills to load, or all if there are fewer."""


class RandomLoader(Nop):
    """Loads skills without regard to their descriptions; the prompt seeds the choice."""

    name = "baseline/random_loader"

    def respond(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        """Load skills on the first turn, then submit nulls."""
        index = next((tool.description for tool in tools if tool.name == LOAD_SKILL), "")
        names = [name for name, _ in SKILL_IN_INDEX.findall(index)]
        if not names or turns_taken(messages):
            return super().respond(messages, tools, tool_choice)
        chosen = Random(prompt_of(messages)).sample(names, min(LOADS, len(names)))
        return Turn(tool_calls=tuple(call(LOAD_SKILL, number, skill_name=name) for number, name in enumerate(chosen)))
