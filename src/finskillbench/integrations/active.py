"""The model that Inspect was told to use, as one of ours.

`finskillbench.harness.providers.hosted` makes its models itself and reads their raw answers; here the model is
Inspect's, with the user's own settings, and a tool call is what Inspect made of it: it mends broken JSON before we
see it.
"""

from __future__ import annotations

from collections.abc import Sequence

from inspect_ai.model import Model as InspectModel
from inspect_ai.model import ModelOutput
from inspect_ai.tool import ToolFunction
from inspect_ai.util import LimitExceededError

from finskillbench.errors import Cause, ProviderError, RunStoppedError
from finskillbench.harness.model import AUTO, FREE, Message, ToolSpec, Turn, Usage
from finskillbench.harness.providers.errors import is_overflow, provider_error
from finskillbench.harness.providers.inspect_words import (
    as_written,
    from_call,
    from_stop,
    from_usage,
    to_chat,
    to_tool,
)


class Active:
    """A model of Inspect behind our protocol; `name` is the one that Inspect knows it by.

    `sent` is what it was last asked, for a sample that a limit of Inspect ends in the middle.
    """

    def __init__(self, model: InspectModel) -> None:
        self.name = str(model)
        self.sent: Sequence[Message] = ()
        self._model = model
        as_written(model)

    async def generate(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        """Answer the conversation so far.

        Raises
        ------
        ProviderError : the provider failed.
        RunStoppedError : a limit of Inspect is reached; the limit's own error is its cause.
        """
        self.sent = messages
        choice = "auto" if tool_choice == AUTO else ToolFunction(tool_choice)
        try:
            output = await self._model.generate(to_chat(messages), [to_tool(tool) for tool in tools], choice)
        except LimitExceededError as limit:
            raise RunStoppedError(str(limit)) from limit
        except Exception as error:
            if is_overflow(error):
                return Turn(stop="context_overflow", usage=FREE)
            raise provider_error(error, self.name) from error
        if output.empty:
            raise ProviderError(f"{self.name}: an answer without choices", Cause.EMPTY)
        return _turn(output)


def _turn(output: ModelOutput) -> Turn:
    message = output.message
    return Turn(
        text=message.text,
        tool_calls=tuple(map(from_call, message.tool_calls or ())),
        usage=from_usage(output.usage) if output.usage is not None else Usage(),
        stop=from_stop(output),
        served_model=output.model or None,
        replay=message,
    )
