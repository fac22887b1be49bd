"""One episode under one arm, whoever plays it: what is on offer, the toolbox, and the record of what was done."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from finskillbench.episode import Episode
from finskillbench.errors import FinSkillBenchError, ProviderError
from finskillbench.harness.cleaning import clean_text
from finskillbench.harness.conditions import Mount, prove_mount
from finskillbench.harness.interpreters import Interpreters
from finskillbench.harness.model import FREE, Message, ToolCall, ToolSpec
from finskillbench.harness.skills.memory import EMPTY, Memory
from finskillbench.harness.toolbox import Filings, Runner, TaskData, Toolbox
from finskillbench.harness.tools import tool_specs
from finskillbench.harness.trace import CallOutcome, CallRecord, Ended, ToolRecord, Trace
from finskillbench.harness.words.prompts import SYSTEM_PROMPT, arm_prompt, prompt_digest
from finskillbench.redaction import redactor_of_process


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What an episode needs from outside; the defaults are the real clock and sleep, and the secrets of the process."""

    runner: Runner | None = None
    interpreters: Interpreters = field(default_factory=lambda: Interpreters(()))
    filings: Filings | None = None
    scratch_root: Path | None = None
    clock: Callable[[], float] = time.perf_counter
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    redact: Callable[[str], str] = field(default_factory=redactor_of_process)


@dataclass(frozen=True, slots=True)
class Assignment:
    """What is to be played: one episode under one arm.

    episode : what may be seen.
    prompt : the task prompt of `finskillbench.harness.words.prompts.task_prompt`, the same in every condition.
    task_data : gives the input at full precision, called only when a tool needs it.
    mounted : the arm and its packages.
    memory : what the persistent arm remembers of its stream.
    """

    episode: Episode
    prompt: str
    task_data: TaskData
    mounted: Mount
    memory: Memory = EMPTY


class Seat:
    """The place at which an episode is played: by a model in our loop, or by an agent with a loop of its own.

    `messages` is the conversation, `records` are the tool calls and `calls` the model calls, `incidents` what went
    wrong, in order.

    Parameters
    ----------
    name : of whoever plays.
    harness : whose loop it is, as rows say it.
    given : the episode and the arm.
    around : script runner, interpreters, filings, scratch folder, clock and sleep.

    Raises
    ------
    InternalError : the tools on offer are not those of the arm, or it remembers what it may not.
    InputError : the arm shows documents in the prompt, and none of the packages of the episode's domain is mounted.
    """

    def __init__(self, name: str, harness: str, given: Assignment, around: Surroundings) -> None:
        self.name, self.harness = name, harness
        episode, mounted, memory = given.episode, given.mounted, given.memory
        self.episode, self.mounted, self.around = episode, mounted, around
        self.tools = tool_specs(mounted, episode.skill)
        prove_mount(mounted, self.tools, episode.skill, memory)
        self.prompt = arm_prompt(given.prompt, mounted, episode.skill, memory)
        self.messages = [Message("system", SYSTEM_PROMPT), Message("user", self.prompt)]
        self.records: list[ToolRecord] = []
        self.toolbox = Toolbox(
            episode,
            given.task_data,
            mounted,
            runner=around.runner,
            interpreter=around.interpreters.of(mounted.arm),
            filings=around.filings,
            scratch_root=around.scratch_root,
            memory=memory,
        )
        self.calls: list[CallRecord] = []
        self.incidents: list[str] = []
        self.retries = 0
        self.usage = FREE

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
        """Note a call that came after the submission."""
        self.records.append(ToolRecord(turn, call.id, call.name, call.arguments, "not_run", 0.0, None))

    def trace(self, ended: Ended, failure: FinSkillBenchError | None, latency: float, turns: int) -> Trace:
        """The full record, after `turns` turns."""
        return Trace(
            task_id=self.episode.task_id,
            model=self.name,
            harness=self.harness,
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
            latency_seconds=latency,
            skills_loaded=tuple(self.toolbox.skills_loaded),
            scripts_run=tuple(self.toolbox.scripts_run),
            saved_skills=self.toolbox.saved_skills,
            mount_digest=self.mounted.digest,
            prompt_digest=prompt_digest(SYSTEM_PROMPT, self.prompt),
        )
