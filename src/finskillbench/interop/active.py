"""The model that Inspect was told to use, as one of ours, for one episode."""

from __future__ import annotations

from collections.abc import Sequence

from inspect_ai.model import ChatMessage, ModelOutput
from inspect_ai.model import Model as InspectModel
from inspect_ai.tool import ToolFunction
from inspect_ai.util import LimitExceededError

from finskillbench.errors import Cause, ProviderError, RunStoppedError
from finskillbench.harness.model import AUTO, Message, Stop, ToolSpec, Turn, Usage
from finskillbench.interop.chat import Scribe, from_call, from_usage, to_tool

_STOPS: dict[str, Stop] = {
    "max_tokens": "max_tokens",
    "model_length": "context_overflow",
    "content_filter": "refused",
}
_CAUSES = {
    401: Cause.AUTH,
    402: Cause.QUOTA,
    403: Cause.AUTH,
    404: Cause.UNKNOWN_MODEL,
    408: Cause.TIMEOUT,
    429: Cause.RATE_LIMIT,
}


class Active:
    """One conversation with a model of Inspect.

    It keeps what the model answered as Inspect gave it: some providers want their reasoning back, which our messages
    do not carry.
    """

    def __init__(self, model: InspectModel) -> None:
        self._model = model
        self._scribe = Scribe()
        self._chat: list[ChatMessage] = []

    @property
    def name(self) -> str:
        """The name under which Inspect knows the model."""
        return str(self._model)

    async def generate(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        """Answer the conversation so far, which begins with what earlier calls were given.

        Raises
        ------
        ProviderError : the provider failed.
        RunStoppedError : a limit of Inspect is reached; the limit's own error is its cause.
        """
        chat = self.follow(messages)
        choice = "auto" if tool_choice == AUTO else ToolFunction(tool_choice)
        try:
            output = await self._model.generate(chat, [to_tool(tool) for tool in tools], choice)
        except LimitExceededError as limit:
            raise RunStoppedError(str(limit)) from limit
        except Exception as error:
            raise _provider_error(error) from error
        if output.empty:
            raise ProviderError(f"{self.name}: an answer without choices", Cause.EMPTY)
        turn = _turn(output)
        if turn.stop != "context_overflow":  # the loop ends there without taking the answer in
            self._chat.append(output.message)
            self._scribe.skip(Message("assistant", turn.text, turn.tool_calls))
        return turn

    def follow(self, messages: Sequence[Message]) -> list[ChatMessage]:
        """The conversation in Inspect's words."""
        self._chat.extend(map(self._scribe.write, messages[len(self._chat) :]))
        return list(self._chat)


def _turn(output: ModelOutput) -> Turn:
    message = output.message
    return Turn(
        text=message.text,
        tool_calls=tuple(map(from_call, message.tool_calls or ())),
        usage=from_usage(output.usage) if output.usage is not None else Usage(),
        stop=_STOPS.get(output.stop_reason, "done"),
        served_model=output.model or None,
    )


def _provider_error(error: Exception) -> ProviderError:
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        cause = _CAUSES.get(status, Cause.SERVER if status >= 500 else Cause.BAD_REQUEST)
    elif isinstance(error, TimeoutError):
        cause = Cause.TIMEOUT
    elif isinstance(error, ConnectionError):
        cause = Cause.CONNECTION
    else:
        cause = Cause.ADAPTER
    return ProviderError(f"{type(error).__name__}: {error}", cause)
