"""Adapters in both directions: Inspect's active model as one of ours, and our baselines as models of Inspect.

`finskillbench.harness.providers.hosted` creates models itself and reads raw answers. `ActiveModel` wraps the user's
model with the user's settings; Inspect has repaired broken JSON of tool calls before we see it. Baselines are
`--model finskillbench/baseline-reference` and so on, without key or network.
"""

from __future__ import annotations

from collections.abc import Sequence

from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    modelapi,
)
from inspect_ai.model import Model as InspectModel
from inspect_ai.tool import ToolChoice, ToolInfo
from inspect_ai.util import LimitExceededError

from finskillbench.errors import Cause, InputError, ProviderError, RunStoppedError
from finskillbench.harness.model import FREE, Message, ToolSpec, Turn, Usage
from finskillbench.harness.models import BASELINES, get_model
from finskillbench.harness.providers.errors import is_overflow, provider_error
from finskillbench.harness.providers.inspect_words import (
    disable_strict_tools,
    from_call,
    from_chat,
    from_choice,
    from_stop,
    from_tool,
    from_usage,
    to_call,
    to_chat,
    to_choice,
    to_tool,
    to_usage,
)


class ActiveModel:
    """A model of Inspect behind our protocol; `name` is Inspect's name for it.

    `sent` holds the messages of the last request, for a sample that a limit of Inspect ends midway.
    """

    def __init__(self, model: InspectModel) -> None:
        self.name = str(model)
        self.sent: Sequence[Message] = ()
        self._model = model
        disable_strict_tools(model)

    async def generate(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        """Answer the conversation so far.

        Raises
        ------
        ProviderError : the provider failed.
        RunStoppedError : a limit of Inspect is reached; the limit's own error is its cause.
        """
        self.sent = messages
        choice = to_choice(tool_choice, tools)
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


@modelapi(name="finskillbench")
class ProgramAPI(ModelAPI):
    """Inspect API of our baselines; the first dash of a name replaces the slash of ours."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008  # Inspect's own signature
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)
        name = model_name.replace("-", "/", 1)
        if name not in BASELINES:
            known = ", ".join(f"finskillbench/{each.replace('/', '-')}" for each in BASELINES)
            raise InputError(f"model 'finskillbench/{model_name}' is unknown; choose from: {known}")
        self._program = get_model(name)

    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002  # Inspect's own name
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Return the baseline's next turn."""
        choice = from_choice(tool_choice, tools)
        turn = await self._program.generate([from_chat(m) for m in input], [from_tool(t) for t in tools], choice)
        message = ChatMessageAssistant(
            content=turn.text,
            tool_calls=[to_call(call) for call in turn.tool_calls] or None,
            model=self._program.name,
            source="generate",
        )
        return ModelOutput(
            model=self._program.name,
            choices=[ChatCompletionChoice(message=message, stop_reason="tool_calls" if turn.tool_calls else "stop")],
            usage=to_usage(turn.usage),
        )
