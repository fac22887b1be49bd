"""One episode that Hermes plays: its model and its tools are asked for here, and everything is counted as in our loop.

Hermes keeps the conversation and decides what is called. Each of its requests becomes a turn of
`finskillbench.harness.loop.Conversation`, so that retries, budgets, the last turn and the record are those of every
other episode; each call of a tool of the benchmark is served by the episode's toolbox, in this process.
"""

from __future__ import annotations

import asyncio
import math
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
from finskillbench.harness.trace import CallOutcome, Ended, ToolRecord, Trace
from finskillbench.integrations.hermes.wire import (
    OVER,
    SKILL_TOOLS,
    Answer,
    Expected,
    read_request,
    same_json,
    stream_of,
    to_messages,
)
from finskillbench.redaction import logger
from finskillbench.scoring.values import is_object

HARNESS = "hermes"
"""The harness of rows whose episodes Hermes has played."""
_REPLACED = ("load_skill", "load_references")
"""Tools of the benchmark in whose place Hermes has its own."""
_USUAL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
"""Ids of calls that Hermes leaves as they are."""
_SUBMITTED = '{"error": "the answer is submitted; the episode is over"}'
_LOG = logger(__name__)


class _Stage(Protocol):
    """Where episodes are played; `finskillbench.integrations.hermes.Crew` is one."""

    async def play(self, mounted: Mount, sitting: HermesSession, ended: Awaitable[Ended]) -> Ended:
        """Have an episode played under what is mounted, until it has `ended`, which is returned or raised."""
        ...


class HermesSession:
    """Hermes at its seat.

    Parameters
    ----------
    model : who answers.
    given, around : as of `finskillbench.harness.episode_state.Seat`.
    """

    def __init__(self, model: Model, given: EpisodeSpec, around: Resources) -> None:
        self.seat = seat = EpisodeState(model.name, HARNESS, given, around, getattr(model, "provider", None))
        seat.tools = tuple(tool for tool in seat.tools if tool.name not in _REPLACED)
        self.expected = Expected(model.name, seat.system, seat.prompt, seat.tools, bool(given.mounted.loadable))
        self.moved = around.clock()
        self._talk = Conversation(model, seat)
        self._results: dict[str, str] = {}
        self._said: dict[tuple[str, ...], Turn] = {}
        self._order: list[str] = []
        self._settled = True
        self._paused_at = -1
        self._asking: asyncio.Future[bytes | None] | None = None
        self._ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self._answers: dict[str, Callable[[bytes], Awaitable[Answer]]] = {
            "chat/completions": self._chat,
            "call": self._call,
            "pause": self._pause,
        }

    async def play(self, stage: _Stage) -> Trace:
        """The trace of the episode, as it is played there; never raises for what Hermes, model or provider do.

        Raises
        ------
        RunStoppedError : the model takes no further call; the episode counts as not begun.
        """
        seat = self.seat
        try:
            ended, failure = await self._talk.outcome(stage.play(self.seat.mounted, self, self._ended))
            self._close_record()
            busy = math.fsum(call.seconds for call in seat.calls) + math.fsum(record.seconds for record in seat.records)
            return seat.trace(ended, failure, turns=len(seat.calls), busy=busy)
        finally:
            if self._asking is not None:
                self._asking.cancel()
                await asyncio.wait({self._asking})
            seat.toolbox.close()

    @property
    def is_asking(self) -> bool:
        """Whether the model is at work, so that Hermes has to wait."""
        return self._asking is not None and not self._asking.done()

    def fail(self, error: ProviderError) -> None:
        """End the episode with a failure of Hermes, unless it has ended."""
        if not self._ended.done():
            self.seat.incidents.append(error.cause.value)
            self._ended.set_exception(error)

    async def answer(self, what: str, body: bytes) -> Answer:
        """Answer a request of the worker or of Hermes; never raises."""
        serve = self._answers.get(what)
        self.moved = self.seat.resources.clock()
        try:
            if serve is None:
                raise InternalError(f"Hermes asks for {what[:80]!r}, which nobody has told it of")
            return await serve(body)
        except FinSkillBenchError as error:  # counted by the conversation, where it is a model's failure
            if not self._ended.done():
                self._ended.set_exception(error)
        except Exception as error:  # noqa: BLE001 - a worker may send anything, and must end no more than its episode
            _LOG.warning("%s: a request of Hermes failed", self.seat.episode.task_id, exc_info=True)
            self.fail(ProviderError(f"Hermes: {type(error).__name__}: {error}", Cause.ADAPTER))
        finally:
            self.moved = self.seat.resources.clock()
        return OVER

    def _end(self, ended: Ended) -> None:
        if not self._ended.done():
            self._ended.set_result(ended)

    async def _chat(self, body: bytes) -> Answer:
        if self._ended.done():
            return OVER
        if self.is_asking:
            raise InternalError("Hermes asks its model while its model answers")
        self._asking = asyncio.ensure_future(self._take_turn(body))
        await asyncio.wait({self._asking})
        stream = None if self._asking.cancelled() else self._asking.result()
        return OVER if stream is None else Answer(stream, kind="text/event-stream")

    async def _take_turn(self, body: bytes) -> bytes | None:
        """The model's answer to a request of Hermes; None where the episode ended with it."""
        seat, talk = self.seat, self._talk
        request = read_request(body)
        offered = self.expected.check(request, self._results)
        self._settle()
        seat.tools, seat.messages = offered, seat.as_sent(to_messages(request, self._said))
        turns = len(seat.calls)
        ended = await talk.take_turn()
        turn = talk.turn
        if len(seat.calls) > turns and turn.stop != "context_overflow":
            turn = talk.turn = self._with_usual_ids(turn)
            seat.messages[-1] = Message("assistant", turn.text, turn.tool_calls, None, turn.replay)
            self._settled = False
        if ended is not None:
            self._end(ended)
            return None
        if turn.tool_calls:
            self._said[tuple(call.id for call in turn.tool_calls)] = turn
        return stream_of(seat.name, turn)

    def _with_usual_ids(self, turn: Turn) -> Turn:
        """Return a turn with calls as offered, whose ids Hermes can tell apart from all others and leaves alone."""
        calls: list[ToolCall] = []
        for i, made in enumerate(turn.tool_calls):
            call = self.seat.repaired(made, self._talk.offered)
            usual = _USUAL_ID.fullmatch(call.id) is not None and call.id not in self._order
            calls.append(call if usual else replace(call, id=f"call_{len(self.seat.calls)}_{i}"))
            self._order.append(calls[-1].id)
        if tuple(calls) == turn.tool_calls:
            return turn
        return replace(turn, tool_calls=tuple(calls), replay=None)

    async def _call(self, body: bytes) -> Answer:
        """Serve a call, or note one that Hermes has served itself."""
        asked: dict[str, Any] = orjson.loads(body)
        seat, turn = self.seat, len(self.seat.calls)
        call = self._as_said(ToolCall(asked["id"], asked["name"], orjson.dumps(asked["arguments"]).decode()))
        if self._ended.done():
            seat.record_not_run(turn, call)
            return _told(_SUBMITTED, over=True)
        if call.name in SKILL_TOOLS:
            served = asked["result"], self._opened(call.name, asked["result"]), float(asked["seconds"])
        else:
            served = await seat.serve(call, self._talk.offered)
        self._results[call.id] = served[0]
        seat.record_tool_call(turn, call, served)
        if seat.toolbox.answer is not None:
            self._end("submitted")
        return _told(served[0], over=self._ended.done())

    def _as_said(self, call: ToolCall) -> ToolCall:
        """A call with the model's own words, which keep the digits of numbers, unless Hermes has mended them."""
        for said in self._talk.turn.tool_calls:
            if said.id == call.id:
                return said if said.name == call.name and same_json(said.arguments, call.arguments) else call
        raise InternalError(f"Hermes calls {call.name[:80]!r}, which its model has not asked for")

    def _opened(self, name: str, text: str) -> CallOutcome:
        """What came of a call of Hermes's own tools; a document that was read makes its scripts ready to be run."""
        result: object = orjson.loads(text)
        if not is_object(result) or result.get("success") is not True:
            self.seat.incidents.append("tool_failed")
            return "tool_failed"
        skill = result.get("name")
        if name == "skill_view" and skill in self.seat.toolbox.loadable:
            self.seat.toolbox.mark_loaded(str(skill))
        return "ok"

    async def _pause(self, body: bytes) -> Answer:
        """Hermes thinks that it is done: the words that a model in our loop would read then, or none."""
        error = orjson.loads(body)["error"]
        turns = len(self.seat.calls)
        if not self._ended.done() and turns == self._paused_at:
            self.fail(ProviderError(f"Hermes has given up: {error or 'without a reason'}", Cause.ADAPTER))
        self._paused_at = turns
        if not self._ended.done() and not self.seat.remaining.turns:
            self._end("max_turns")
        return Answer(orjson.dumps({"say": None if self._ended.done() else REMINDER}))

    def _settle(self) -> None:
        """Note what became of the calls of the newest turn that have reached nobody: Hermes has declined them."""
        if self._settled:
            return
        self._settled = True
        known = {record.id for record in self.seat.records}
        offered = {tool.name for tool in self._talk.offered}
        for call in self._talk.turn.tool_calls:
            if call.id in known:
                continue
            too_late = self.seat.toolbox.answer is not None or self.seat.remaining.is_overdrawn
            fate = "not_run" if too_late else _why_declined(call, offered)
            if fate != "not_run":
                self.seat.incidents.append(fate)
            turn = len(self.seat.calls)
            self.seat.records.append(ToolRecord(turn, call.id, call.name, call.arguments, fate, 0.0, None))

    def _close_record(self) -> None:
        """Put the calls in the model's order, Hermes runs some beside each other, and say where each result stands."""
        self._settle()
        seat = self.seat
        places = {message.tool_call_id: i for i, message in enumerate(seat.messages) if message.role == "tool"}
        seat.records.sort(key=lambda record: self._order.index(record.id))
        seat.records[:] = [replace(record, message=places.get(record.id)) for record in seat.records]


def _told(result: str, *, over: bool) -> Answer:
    return Answer(orjson.dumps({"result": result, "over": over}))


def _why_declined(call: ToolCall, offered: set[str]) -> CallOutcome:
    if call.name not in offered:
        return "unknown_tool"
    try:
        return "not_run" if is_object(orjson.loads(call.arguments or "{}")) else "invalid_arguments"
    except orjson.JSONDecodeError:
        return "invalid_arguments"
