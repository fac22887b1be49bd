"""One episode under one arm, whoever plays it: what is on offer, the toolbox, and the record of what was done."""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from finskillbench.domains.interactive import InteractiveState
from finskillbench.episode import Episode
from finskillbench.errors import FinSkillBenchError, ProviderError
from finskillbench.harness.allowance import FULL, Allowance, Remaining
from finskillbench.harness.conditions import Mount, prove_mount
from finskillbench.harness.model import FREE, Message, ToolCall, ToolSpec, Turn, clean_text, understood
from finskillbench.harness.prompts.compose import arm_prompt, remaining_text, prompt_digest, system_prompt
from finskillbench.harness.skills.user_skills import EMPTY, Memory
from finskillbench.harness.tools.contracts import READS_DATA, budget_of, subtask_tools, tool_specs
from finskillbench.harness.tools.interpreters import Interpreters
from finskillbench.harness.tools.toolbox import Filings, Runner, TaskData, Toolbox
from finskillbench.harness.trace import CallOutcome, CallRecord, Ended, ToolRecord, Trace
from finskillbench.redaction import redactor_of_process


@dataclass(frozen=True, slots=True)
class Resources:
    """What an episode needs from outside; the defaults are the real ones: clocks, sleep, the secrets of the process.

    `clock` measures how long things take, `now` is the time of day, in UTC. `bugs` are the bugs of agents and adapters
    whose tracebacks are in the log.
    """

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
    """What is to be played: one episode under one arm.

    episode : what may be seen.
    prompt : the task prompt of `finskillbench.harness.prompts.compose.task_prompt`, the same in every condition.
    task_data : gives the input at full precision, called only when a tool needs it.
    mounted : the arm and its packages; of those that ship, the episode is offered those of its suite.
    memory : what the persistent arm remembers of its stream.
    allowance : the turns and tokens that it may take.
    repeat : which one of the episode, from 0: a model that draws draws other numbers in each.
    open_stage : gives a fresh state of an episode that is played move by move, None for any other.
    """

    episode: Episode
    prompt: str
    task_data: TaskData
    mounted: Mount
    memory: Memory = EMPTY
    allowance: Allowance = FULL
    repeat: int = 0
    open_state: Callable[[], InteractiveState | None] = lambda: None


class EpisodeState:
    """The place at which an episode is played: by a model in our loop, or by an agent with a loop of its own.

    `messages` is the conversation, `records` are the tool calls and `calls` the model calls, `incidents` what went
    wrong, in order; `left` is what is left of its turns and tokens. `retry_seconds` is what failed calls and the waits
    after them took, `queue_seconds` what calls waited before they were made. The episode's time begins here.

    Parameters
    ----------
    name : of whoever plays.
    harness : whose loop it is, as rows say it.
    provider : who serves the model, if anybody says.
    given : the episode and the arm.
    around : script runner, interpreters, filings, scratch folder, clock and sleep.

    Raises
    ------
    InternalError : the tools on offer are not those of the arm, or it remembers what it may not.
    InputError : the arm shows documents in the prompt, and none of the packages of the episode's domain is mounted.
    """

    def __init__(
        self, name: str, harness: str, spec: EpisodeSpec, resources: Resources, provider: str | None = None
    ) -> None:
        self.name, self.harness, self.provider = name, harness, provider
        self._started, self._clock_started = resources.now(), resources.clock()
        episode, memory = spec.episode, spec.memory
        mounted = spec.mounted.of(episode.skill)
        self.episode, self.mounted, self.around = episode, mounted, resources
        own = subtask_tools(episode.sub_task)
        self.tools = tool_specs(mounted, episode.skill, own)
        prove_mount(mounted, self.tools, episode.skill, memory, [tool.name for tool in own])
        self.prompt = arm_prompt(spec.prompt, mounted, episode.skill, memory)
        allowance = spec.allowance.within(budget_of(episode.sub_task))
        self.left, self.repeat = Remaining(allowance), spec.repeat
        self.system = system_prompt(mounted.arm, allowance.turns)
        self.messages = [Message("system", self.system), Message("user", self.prompt)]
        self.records: list[ToolRecord] = []
        self.toolbox = Toolbox(
            episode,
            spec.task_data,
            mounted,
            runner=resources.runner,
            interpreter=resources.interpreters.of(mounted.arm),
            filings=resources.filings,
            scratch_root=resources.scratch_root,
            memory=memory,
            state=spec.open_state(),
            data_calls=allowance.data_calls,
        )
        self.calls: list[CallRecord] = []
        self.incidents: list[str] = []
        self.retries = 0
        self.queue_seconds = self.retry_seconds = 0.0
        self.usage = FREE

    def append_remaining(self, tool_calls: int | None = None, *, turns_known: bool = True) -> None:
        """Say at the end of the newest message what is left of turns, tokens and calls, where known and limited.

        At its end, and in no other: providers' caches hold what came before, and a text of the user after the results
        of tools teaches some models to wait for one.
        """
        reads = [tool.name for tool in self.tools if tool.name in READS_DATA]
        words = remaining_text(self.left if turns_known else None, reads, self.toolbox.data_calls_left, tool_calls)
        newest = self.messages[-1]
        self.messages[-1] = replace(newest, content=f"{newest.content}\n\n{words}")

    def as_sent(self, messages: Sequence[Message]) -> list[Message]:
        """A conversation that another loop keeps, with what its messages said of the budget when they were sent."""
        before = self.messages[: len(messages)]
        return [
            old if old.role == new.role and old.content.startswith(f"{new.content}\n\n") else new
            for old, new in zip(before, messages, strict=False)
        ] + list(messages[len(before) :])

    def answered(self, turn: Turn, queued: float = 0.0, retried: float = 0.0, *, priced: bool) -> None:
        """Count a model call that was answered; `priced` where somebody wants to know what it cost."""
        number, seconds = len(self.calls) + 1, turn.seconds or 0.0
        self.calls.append(CallRecord(number, seconds, queued, retried, turn.stop, turn.served_model, turn.usage))
        self.usage += turn.usage
        told = self.left.take(turn)
        if (priced and not turn.usage.is_known) or not (told or self.left.tokens is None):
            self.incidents.append("usage_unknown")

    def log_bug(self, log: logging.Logger, whose: str, error: BaseException) -> None:
        """Log a bug of an agent or an adapter with its traceback; repeats of it in a run are lines for debugging."""
        places = traceback.extract_tb(error.__traceback__)
        bug = f"{whose}: {type(error).__name__} at {places[-1].filename}:{places[-1].lineno}" if places else whose
        if bug in self.around.bugs:
            log.debug("%s: %s failed as before", self.episode.task_id, whose)
            return
        self.around.bugs.add(bug)
        words = "%s: %s failed; the same bug in other episodes is not shown again"
        log.warning(words, self.episode.task_id, whose, exc_info=error)

    def understood(self, call: ToolCall, offered: Sequence[ToolSpec]) -> ToolCall:
        """Return a call as it is to be served; one that had to be repaired is an incident."""
        meant = understood(call, [tool.name for tool in offered])
        if meant is not call:
            self.incidents.append("call_repaired")
        return meant

    async def serve(self, call: ToolCall, offered: Sequence[ToolSpec]) -> tuple[str, CallOutcome, float]:
        """What the toolbox answers to a call, what came of it and how many seconds it took; failures are incidents."""
        started = self.around.clock()
        result, outcome = await self.toolbox.call(call, offered)
        if outcome != "ok":
            self.incidents.append(outcome)
        return result, outcome, self.around.clock() - started

    def record(self, turn: int, call: ToolCall, served: tuple[str, CallOutcome, float]) -> None:
        """Note a call that was served, and its result as the next message."""
        result, outcome, seconds = served
        place = len(self.messages)
        self.records.append(ToolRecord(turn, call.id, call.name, call.arguments, outcome, seconds, place))
        self.messages.append(Message("tool", result, tool_call_id=call.id))

    def record_not_run(self, turn: int, call: ToolCall) -> None:
        """Note a call that came after the submission, or with a turn that overdrew its budget."""
        self.records.append(ToolRecord(turn, call.id, call.name, call.arguments, "not_run", 0.0, None))

    def trace(self, ended: Ended, failure: FinSkillBenchError | None, turns: int, busy: float | None = None) -> Trace:
        """The full record, after `turns` turns; the episode's time ends here.

        `busy` is what answered calls and tools took, where all that is left is this process's own affair; an agent with
        a loop of its own is busy whenever no call of it waits.
        """
        whole = self.around.clock() - self._clock_started
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
            error=None if failure is None else self.around.redact(clean_text(str(failure))),
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
