"""State of one episode under one condition, independent of the loop that plays it."""

from __future__ import annotations

import asyncio
import logging
import math
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from finskillbench.domains.interactive import InteractiveState
from finskillbench.episode import Episode
from finskillbench.errors import FinSkillBenchError, ProviderError
from finskillbench.harness.allowance import DEFAULT_ALLOWANCE, Allowance, Remaining
from finskillbench.harness.conditions import Mount, prove_mount
from finskillbench.harness.model import FREE, Message, ToolCall, ToolSpec, Turn, clean_text, repair_call
from finskillbench.harness.prompts.compose import (
    LAST_TURN,
    REMINDER,
    arm_prompt,
    prompt_digest,
    remaining_text,
    system_prompt,
)
from finskillbench.harness.skills.user_skills import EMPTY, Memory
from finskillbench.harness.tools.contracts import (
    READS_DATA,
    READS_SKILLS,
    SUBMIT_ANSWER,
    budget_of,
    subtask_tools,
    tool_specs,
)
from finskillbench.harness.tools.interpreters import Interpreters
from finskillbench.harness.tools.toolbox import Filings, Runner, TaskData, Toolbox, ToolServices
from finskillbench.harness.trace import CallOutcome, CallRecord, Ended, ToolRecord, Trace
from finskillbench.redaction import redactor_of_process


@dataclass(frozen=True, slots=True)
class Resources:
    """Services that an episode uses; `bugs` holds the bugs already logged with a traceback."""

    runner: Runner | None = None
    interpreters: Interpreters = field(default_factory=lambda: Interpreters(()))
    filings: Filings | None = None
    scratch_root: Path | None = None
    clock: Callable[[], float] = time.perf_counter
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    redact: Callable[[str], str] = field(default_factory=redactor_of_process)
    bugs: set[str] = field(default_factory=set[str])


@dataclass(frozen=True, slots=True)
class EpisodeSpec:
    """Specification of one episode under one condition.

    episode : its visible part.
    prompt : the task prompt of `finskillbench.harness.prompts.compose.task_prompt`, the same in every condition.
    task_data : returns the input at full precision; called only when a tool needs it.
    mounted : the condition and its packages; the episode is offered built-in ones of its suite only.
    memory : the persistent condition's memory of its stream.
    allowance : limits on turns and tokens.
    repeat : number of the repetition, from 0; sampling models draw anew in each.
    open_state : returns a fresh state of an interactive episode, None for others.
    """

    episode: Episode
    prompt: str
    task_data: TaskData
    mounted: Mount
    memory: Memory = EMPTY
    allowance: Allowance = DEFAULT_ALLOWANCE
    repeat: int = 0
    open_state: Callable[[], InteractiveState | None] = lambda: None


class EpisodeState:
    """State of an episode, for the built-in loop, environments, and agents with their own loop.

    `messages` is the conversation, `offered` the tools of the newest turn, `records` the tool calls, `calls` the model
    calls, `incidents` the failures in order. `remaining` holds turns and tokens. `retry_seconds` covers failed calls
    and the waits after them, `queue_seconds` the waits before calls. The clock starts on construction.

    Raises
    ------
    InternalError : tools or memory differ from those of the condition.
    InputError : an inline condition has no package of the episode's domain.
    """

    def __init__(
        self, name: str, harness: str, spec: EpisodeSpec, resources: Resources, provider: str | None = None
    ) -> None:
        self.name, self.harness, self.provider = name, harness, provider
        self._started, self._clock_started = resources.now(), resources.clock()
        episode, memory = spec.episode, spec.memory
        mounted = spec.mounted.for_domain(episode.skill)
        self.episode, self.mounted, self.resources = episode, mounted, resources
        subtask_specs = subtask_tools(episode.sub_task)
        self.tools = tool_specs(mounted, episode.skill, subtask_specs)
        prove_mount(mounted, self.tools, episode.skill, memory, [tool.name for tool in subtask_specs])
        self.prompt = arm_prompt(spec.prompt, mounted, episode.skill, memory)
        allowance = spec.allowance.within(budget_of(episode.sub_task))
        self.remaining, self.repeat = Remaining(allowance), spec.repeat
        self.system = system_prompt(mounted.arm, allowance.turns)
        self.messages = [Message("system", self.system), Message("user", self.prompt)]
        self.records: list[ToolRecord] = []
        interpreter = resources.interpreters.for_arm(mounted.arm)
        services = ToolServices(resources.runner, interpreter, resources.filings, resources.scratch_root)
        state, data_calls = spec.open_state(), allowance.data_calls
        self.toolbox = Toolbox(
            *(episode, spec.task_data, mounted, services), memory=memory, state=state, data_calls=data_calls
        )
        self.offered: tuple[ToolSpec, ...] = ()
        self.calls: list[CallRecord] = []
        self.incidents: list[str] = []
        self.retries = 0
        self.queue_seconds = self.retry_seconds = 0.0
        self.usage = FREE

    def leave_reading_to_agent(self) -> None:
        """Withdraw the tools that load mounted documents, which the agent reads as files, and allow all scripts."""
        if self.mounted.loadable:
            self.tools = tuple(tool for tool in self.tools if tool.name not in READS_SKILLS)
            self.toolbox.allow_scripts()

    def begin_turn(self) -> Ended | None:
        """Offer the tools of the next turn and state what remains; return how the episode ended, None if it goes on.

        The last turn offers `submit_answer` alone.
        """
        if not self.remaining.turns:
            return "max_turns"
        if self.remaining.is_spent:
            return "budget_exhausted"
        last = self.remaining.turns == 1
        self.offered = (SUBMIT_ANSWER,) if last else self.tools
        if last:
            self.messages.append(Message("user", LAST_TURN))
        self.append_remaining()
        return None

    def record_turn(self, turn: Turn, queued: float = 0.0, retried: float = 0.0, *, priced: bool) -> Ended | None:
        """Record an answered model call and its message; return how the episode ended, None if it goes on."""
        self.record_model_call(turn, queued, retried, priced=priced)
        if turn.stop != "done":
            self.incidents.append(turn.stop)
        elif not turn.tool_calls:
            self.incidents.append("text_only")
        if turn.stop == "context_overflow":
            return "context_overflow"
        self.messages.append(Message("assistant", turn.text, turn.tool_calls, None, turn.replay))
        return "budget_exhausted" if self.remaining.is_overdrawn else None

    async def serve_turn(self, turn: Turn) -> Ended | None:
        """Run the calls of a turn up to a submission, or append a reminder; return "submitted" after a submission."""
        number = len(self.calls)
        for call in turn.tool_calls:
            if self.toolbox.answer is not None:
                self.record_not_run(number, call)
            else:
                meant = self.repaired(call, self.offered)
                self.record_tool_call(number, meant, await self.serve(meant, self.offered))
        if not turn.tool_calls and self.remaining.turns:
            self.messages.append(Message("user", REMINDER))
        return None if self.toolbox.answer is None else "submitted"

    def append_remaining(self, tool_calls: int | None = None, *, turns_known: bool = True) -> None:
        """Append the remaining turns, tokens and calls to the newest message.

        Earlier messages stay unchanged for providers' caches; some models would wait for an extra user message.
        """
        reads = [tool.name for tool in self.tools if tool.name in READS_DATA]
        text = remaining_text(self.remaining if turns_known else None, reads, self.toolbox.data_calls_left, tool_calls)
        newest = self.messages[-1]
        self.messages[-1] = replace(newest, content=f"{newest.content}\n\n{text}")

    def as_sent(self, messages: Sequence[Message]) -> list[Message]:
        """Restore the budget lines in a conversation that another loop keeps."""
        before = self.messages[: len(messages)]
        return [
            old if old.role == new.role and old.content.startswith(f"{new.content}\n\n") else new
            for old, new in zip(before, messages, strict=False)
        ] + list(messages[len(before) :])

    def record_model_call(self, turn: Turn, queued: float = 0.0, retried: float = 0.0, *, priced: bool) -> None:
        """Record an answered model call; `priced` if the run needs its cost."""
        number, seconds = len(self.calls) + 1, turn.seconds or 0.0
        self.calls.append(CallRecord(number, seconds, queued, retried, turn.stop, turn.served_model, turn.usage))
        self.usage += turn.usage
        reported = self.remaining.take(turn)
        if (priced and not turn.usage.is_known) or not (reported or self.remaining.tokens is None):
            self.incidents.append("usage_unknown")

    def log_bug(self, log: logging.Logger, source: str, error: BaseException) -> None:
        """Log a bug of an agent or an adapter with its traceback; repetitions in a run are logged at debug level."""
        places = traceback.extract_tb(error.__traceback__)
        bug = f"{source}: {type(error).__name__} at {places[-1].filename}:{places[-1].lineno}" if places else source
        if bug in self.resources.bugs:
            log.debug("%s: %s failed as before", self.episode.task_id, source)
            return
        self.resources.bugs.add(bug)
        template = "%s: %s failed; the same bug in other episodes is not shown again"
        log.warning(template, self.episode.task_id, source, exc_info=error)

    def repaired(self, call: ToolCall, offered: Sequence[ToolSpec]) -> ToolCall:
        """Return a call as it is served; a repaired one is an incident."""
        meant = repair_call(call, [tool.name for tool in offered])
        if meant is not call:
            self.incidents.append("call_repaired")
        return meant

    async def serve(self, call: ToolCall, offered: Sequence[ToolSpec]) -> tuple[str, CallOutcome, float]:
        """Return a call's result, outcome and seconds; failures are incidents."""
        started = self.resources.clock()
        result, outcome = await self.toolbox.call(call, offered)
        if outcome != "ok":
            self.incidents.append(outcome)
        return result, outcome, self.resources.clock() - started

    def record_tool_call(self, turn: int, call: ToolCall, served: tuple[str, CallOutcome, float]) -> None:
        """Record a served call, and its result as the next message."""
        result, outcome, seconds = served
        position = len(self.messages)
        self.records.append(ToolRecord(turn, call.id, call.name, call.arguments, outcome, seconds, position))
        self.messages.append(Message("tool", result, tool_call_id=call.id))

    def record_not_run(self, turn: int, call: ToolCall) -> None:
        """Record a call after the submission, or in a turn that exceeded the budget."""
        self.records.append(ToolRecord(turn, call.id, call.name, call.arguments, "not_run", 0.0, None))

    @property
    def busy_seconds(self) -> float:
        """Time of answered model calls and of tool calls."""
        return math.fsum(call.seconds for call in self.calls) + math.fsum(record.seconds for record in self.records)

    def trace(self, ended: Ended, failure: FinSkillBenchError | None, turns: int, busy: float | None = None) -> Trace:
        """Return the full record after `turns` turns; the clock stops here.

        `busy` is the time of answered calls and tools. Without it, all time outside retries and queues counts as busy,
        as for agents with their own loop.
        """
        whole = self.resources.clock() - self._clock_started
        rest = whole - self.retry_seconds
        latency = rest - self.queue_seconds if busy is None else busy
        return Trace(
            task_id=self.episode.task_id,
            model=self.name,
            harness=self.harness,
            provider=self.provider,
            condition=self.mounted.arm.condition,
            ended=ended,
            answer=self.toolbox.answer,
            error=None if failure is None else self.resources.redact(clean_text(str(failure))),
            error_cause=failure.cause.value if isinstance(failure, ProviderError) else None,
            incidents=tuple(self.incidents),
            messages=tuple(self.messages),
            tools=tuple(tool.name for tool in self.tools),
            tool_calls=tuple(self.records),
            model_calls=tuple(self.calls),
            turns=turns,
            retries=self.retries,
            usage=self.usage,
            started=self._started,
            latency_seconds=latency,
            queue_seconds=rest - latency,
            retry_seconds=self.retry_seconds,
            skills_loaded=tuple(self.toolbox.skills_loaded),
            scripts_run=tuple(self.toolbox.scripts_run),
            saved_skills=self.toolbox.saved_skills,
            mount_digest=self.mounted.digest,
            prompt_digest=prompt_digest(self.system, self.prompt),
            record=self.toolbox.record,
        )
