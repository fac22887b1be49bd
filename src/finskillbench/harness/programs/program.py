"""What the baselines share: a program answers at once, costs nothing, and counts estimated tokens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from finskillbench.harness.model import Message, ToolSpec, Turn, Usage
from finskillbench.harness.words.tokens import input_tokens, output_tokens


class Program(ABC):
    """A model that is a program: stateless, every decision read off the conversation.

    Its tokens are those that a language model with the same conversation would be billed for, estimated by
    `finskillbench.harness.words.tokens`; its price is zero.
    """

    name: ClassVar[str]

    @abstractmethod
    def respond(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        """The next turn; arguments as those of `finskillbench.harness.model.Model.generate`."""

    async def generate(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        """Answer the conversation so far."""
        turn = self.respond(messages, tools, tool_choice)
        usage = Usage(input_tokens=input_tokens(messages, tools), output_tokens=output_tokens(turn), cost_usd=0.0)
        return replace(turn, usage=usage)
