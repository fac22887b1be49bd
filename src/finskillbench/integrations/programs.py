"""The baselines as models of Inspect: `--model finskillbench/baseline-reference`. They use no key and no network."""

from __future__ import annotations

from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    modelapi,
)
from inspect_ai.tool import ToolChoice, ToolFunction, ToolInfo

from finskillbench.errors import InputError
from finskillbench.harness.model import AUTO
from finskillbench.harness.models import BASELINES, get_model
from finskillbench.harness.providers.inspect_words import from_chat, from_tool, to_call, to_usage


@modelapi(name="finskillbench")
class ProgramAPI(ModelAPI):
    """Asks a baseline; the first dash of the name stands for the slash of ours."""

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
        """The program's next turn."""
        choice = tool_choice.name if isinstance(tool_choice, ToolFunction) else AUTO
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
