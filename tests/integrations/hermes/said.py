"""A model that says what a test wants said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from finskillbench.harness.model import Message, ToolCall, ToolSpec, Turn, Usage


class Said:
    """A model that says its turns one after the other."""

    def __init__(self, *turns: Turn | Exception, name: str = "model/said") -> None:
        self.name = name
        self._turns = turns
        self._asked: Counter[int] = Counter()

    async def generate(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        conversation = len(tools)  # conditions differ in their tools, and Hermes may forget turns
        turn = self._turns[min(self._asked[conversation], len(self._turns) - 1)]
        self._asked[conversation] += 1
        if isinstance(turn, Exception):
            raise turn
        return turn


def calls(*named: tuple[str, str]) -> Turn:
    """A turn of calls, whose ids are the same in every turn."""
    return Turn(tool_calls=tuple(ToolCall(f"call-{i}", *each) for i, each in enumerate(named)), usage=Usage(cost_usd=0))


SUBMIT = calls(("submit_answer", '{"answer": "{}"}'))


async def at_once(seconds: float) -> None:
    """Waits for nothing."""
