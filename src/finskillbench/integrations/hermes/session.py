"""One episode played by Hermes.

Hermes keeps the conversation and decides on calls. Each of its model requests becomes a turn of
`finskillbench.harness.loop.Conversation`, with the retries, budgets and records of our loop. The episode's toolbox
serves calls of benchmark tools in this process.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Protocol

import orjson

from finskillbench.errors import Cause, FinSkillBenchError, InternalError, ProviderError
from finskillbench.harness.conditions import Mount
from finskillbench.harness.episode_state import EpisodeSpec, EpisodeState, Resources
from finskillbench.harness.loop import Conversation
from finskillbench.harness.model import Message, Model, ToolCall, Turn
from finskillbench.harness.prompts.compose import REMINDER
from finskillbench.harness.tools.contracts import READS_SKILLS
from finskillbench.harness.trace import CallOutcome, Ended, ToolRecord, Trace
from finskillbench.integrations.hermes.wire import (
    OVER,
    SKILL_TOOLS,
    EndpointResponse,
    ExpectedRequest,
    read_request,
    same_json,
    stream_of,
    to_messages,
)
from finskillbench.redaction import logger
from finskillbench.scoring.values import is_object

HARNESS = "hermes"
"""Harness name of rows of Hermes."""
_USUAL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
"""Call ids that Hermes keeps unchanged."""
_SUBMITTED = '{"error": "the answer is submitted; the episode is over"}'
_LOG = logger(__name__)


class _SessionPool(Protocol):
    async def play(self, mounted: Mount, session: HermesSession, ended: Awaitable[Ended]) -> Ended:
        """Play an episode under a mount until `ended`; return its result or raise its exception."""
        ...


class HermesSession:
    """One episode of Hermes; parameters are those of `EpisodeState`."""

    def __init__(self, model: Model, spec: EpisodeSpec, resources: Resources) -> None:
        self.state = state = EpisodeState(model.name, HARNESS, spec, resources, getattr(model, "provider", None))
        state.tools = tuple(tool for tool in state.tools if tool.name not in READS_SKILLS)
        self.expected = ExpectedRequest(
            model.name, state.system, state.prompt, state.tools, bool(spec.mounted.loadable)
        )
        self.last_activity = resources.clock()
        self._conversation = Conversation(model, state)
        self._results: dict[str, str] = {}
        self._turns_by_calls: dict[tuple[str, ...], Turn] = {}
        self._order: list[str] = []
        self._settled = True
        self._paused_at = -1
        self._model_call: asyncio.Future[bytes | None] | None = None
        self._ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self._answers: dict[str, Callable[[bytes], Awaitable[EndpointResponse]]] = {
            "chat/completions": self._chat,
            "call": self._call,
            "pause": self._pause,
        }

    async def play(self, pool: _SessionPool) -> Trace:
        """Play the episode and return its trace; failures of Hermes, model or provider do not raise.

        Raises
        ------
        RunStoppedError : the model takes no further call; the episode counts as not begun.
        """
        state = self.state
        try:
            ended, failure = await self._conversation.outcome(pool.play(self.state.mounted, self, self._ended))
            self._close_record()
            return state.trace(ended, failure, turns=len(state.calls), busy=state.busy_seconds)
        finally:
            if self._model_call is not None:
                self._model_call.cancel()
                await asyncio.wait({self._model_call})
            state.toolbox.close()

    @property
    def is_generating(self) -> bool:
        """True while the model answers a request, so that Hermes has to wait."""
        return self._model_call is not None and not self._model_call.done()

    def fail(self, error: ProviderError) -> None:
        """End the episode with a failure of Hermes, unless it has ended."""
        if not self._ended.done():
            self.state.incidents.append(error.cause.value)
            self._ended.set_exception(error)

    async def answer(self, what: str, body: bytes) -> EndpointResponse:
        """Answer a request of the worker or of Hermes; never raises."""
        serve = self._answers.get(what)
        self.last_activity = self.state.resources.clock()
        try:
            if serve is None:
                raise InternalError(f"Hermes sent the unknown request {what[:80]!r}")
            return await serve(body)
        except FinSkillBenchError as error:  # a model's failure, counted by the conversation
            if not self._ended.done():
                self._ended.set_exception(error)
        except Exception as error:  # noqa: BLE001 - a failed request ends its episode alone
            _LOG.warning("%s: a request of Hermes failed", self.state.episode.task_id, exc_info=True)
            self.fail(ProviderError(f"Hermes: {type(error).__name__}: {error}", Cause.ADAPTER))
        finally:
            self.last_activity = self.state.resources.clock()
        return OVER

    def _end(self, ended: Ended) -> None:
        if not self._ended.done():
            self._ended.set_result(ended)

    async def _chat(self, body: bytes) -> EndpointResponse:
        if self._ended.done():
            return OVER
        if self.is_generating:
            raise InternalError("Hermes sent a model request while another one is running")
        self._model_call = asyncio.ensure_future(self._take_turn(body))
        await asyncio.wait({self._model_call})
        stream = None if self._model_call.cancelled() else self._model_call.result()
        return OVER if stream is None else EndpointResponse(stream, kind="text/event-stream")

    async def _take_turn(self, body: bytes) -> bytes | None:
        """Return the model's answer to a request of Hermes; None if the episode ended with it."""
        state, conversation = self.state, self._conversation
        request = read_request(body)
        offered = self.expected.check(request, self._results)
        self._settle()
        state.tools, state.messages = offered, state.as_sent(to_messages(request, self._turns_by_calls))
        turns = len(state.calls)
        ended = await conversation.take_turn()
        turn = conversation.turn
        if len(state.calls) > turns and turn.stop != "context_overflow":
            turn = conversation.turn = self._with_usual_ids(turn)
            state.messages[-1] = Message("assistant", turn.text, turn.tool_calls, None, turn.replay)
            self._settled = False
        if ended is not None:
            self._end(ended)
            return None
        if turn.tool_calls:
            self._turns_by_calls[tuple(call.id for call in turn.tool_calls)] = turn
        return stream_of(state.name, turn)

    def _with_usual_ids(self, turn: Turn) -> Turn:
        """Return a turn with repaired calls, whose ids are unique and kept unchanged by Hermes."""
        calls: list[ToolCall] = []
        for i, made in enumerate(turn.tool_calls):
            call = self.state.repaired(made, self.state.offered)
            usual = _USUAL_ID.fullmatch(call.id) is not None and call.id not in self._order
            calls.append(call if usual else replace(call, id=f"call_{len(self.state.calls)}_{i}"))
            self._order.append(calls[-1].id)
        if tuple(calls) == turn.tool_calls:
            return turn
        return replace(turn, tool_calls=tuple(calls), replay=None)

    async def _call(self, body: bytes) -> EndpointResponse:
        request: dict[str, Any] = orjson.loads(body)
        state, turn = self.state, len(self.state.calls)
        call = self._as_generated(ToolCall(request["id"], request["name"], orjson.dumps(request["arguments"]).decode()))
        if self._ended.done():
            state.record_not_run(turn, call)
            return _call_response(_SUBMITTED, over=True)
        if call.name in SKILL_TOOLS:
            served = request["result"], self._skill_outcome(call.name, request["result"]), float(request["seconds"])
        else:
            served = await state.serve(call, self.state.offered)
        self._results[call.id] = served[0]
        state.record_tool_call(turn, call, served)
        if state.toolbox.answer is not None:
            self._end("submitted")
        return _call_response(served[0], over=self._ended.done())

    def _as_generated(self, call: ToolCall) -> ToolCall:
        """Return the call as generated, which preserves the digits of numbers, unless Hermes has repaired it."""
        for generated in self._conversation.turn.tool_calls:
            if generated.id == call.id:
                same = generated.name == call.name and same_json(generated.arguments, call.arguments)
                return generated if same else call
        raise InternalError(f"Hermes calls {call.name[:80]!r}, which its model did not request")

    def _skill_outcome(self, name: str, text: str) -> CallOutcome:
        """Return the outcome of a call of a skill tool; a skill that was read may run its scripts."""
        result: object = orjson.loads(text)
        if not is_object(result) or result.get("success") is not True:
            self.state.incidents.append("tool_failed")
            return "tool_failed"
        skill = result.get("name")
        if name == "skill_view" and skill in self.state.toolbox.loadable:
            self.state.toolbox.mark_loaded(str(skill))
        return "ok"

    async def _pause(self, body: bytes) -> EndpointResponse:
        """Return the reminder of our loop when Hermes stops without an answer, or None once the episode is over."""
        error = orjson.loads(body)["error"]
        turns = len(self.state.calls)
        if not self._ended.done() and turns == self._paused_at:
            self.fail(ProviderError(f"Hermes has given up: {error or 'without a reason'}", Cause.ADAPTER))
        self._paused_at = turns
        if not self._ended.done() and not self.state.remaining.turns:
            self._end("max_turns")
        return EndpointResponse(orjson.dumps({"say": None if self._ended.done() else REMINDER}))

    def _settle(self) -> None:
        """Record calls of the newest turn that did not reach the toolbox, because Hermes declined them."""
        if self._settled:
            return
        self._settled = True
        known = {record.id for record in self.state.records}
        offered = {tool.name for tool in self.state.offered}
        for call in self._conversation.turn.tool_calls:
            if call.id in known:
                continue
            too_late = self.state.toolbox.answer is not None or self.state.remaining.is_overdrawn
            outcome = "not_run" if too_late else _why_declined(call, offered)
            if outcome != "not_run":
                self.state.incidents.append(outcome)
            turn = len(self.state.calls)
            self.state.records.append(ToolRecord(turn, call.id, call.name, call.arguments, outcome, 0.0, None))

    def _close_record(self) -> None:
        """Sort calls into the model's order, since Hermes runs some concurrently, and link their result messages."""
        self._settle()
        state = self.state
        places = {message.tool_call_id: i for i, message in enumerate(state.messages) if message.role == "tool"}
        state.records.sort(key=lambda record: self._order.index(record.id))
        state.records[:] = [replace(record, message=places.get(record.id)) for record in state.records]


def _call_response(result: str, *, over: bool) -> EndpointResponse:
    return EndpointResponse(orjson.dumps({"result": result, "over": over}))


def _why_declined(call: ToolCall, offered: set[str]) -> CallOutcome:
    if call.name not in offered:
        return "unknown_tool"
    try:
        return "not_run" if is_object(orjson.loads(call.arguments or "{}")) else "invalid_arguments"
    except orjson.JSONDecodeError:
        return "invalid_arguments"
