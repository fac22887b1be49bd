"""The agent loop: function calling, at most twelve model calls, one submission.

Rules, from the specification: tool calls of one turn run in order; calls after a submission are not run; a turn of
plain text is answered by a reminder; the last turn offers only `submit_answer` and requires it; a transient
provider failure is tried again up to three times with exponential backoff, and what still fails ends the episode
as an error (`finskillbench.harness.failures` has the table). A conversation that outgrows its model ends without a
submission. Clock and sleep are passed in.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from finskillbench.episode import Episode
from finskillbench.errors import Cause, FinSkillBenchError, ProviderError, RunStoppedError
from finskillbench.harness.cleaning import MAX_CALLS_PER_TURN, clean_text, clean_turn
from finskillbench.harness.conditions import MAX_TURNS, Mount, prove_mount
from finskillbench.harness.failures import PROVIDER
from finskillbench.harness.model import AUTO, FREE, Message, Model, ToolSpec, Turn
from finskillbench.harness.prompts import LAST_TURN, REMINDER, SYSTEM_PROMPT, arm_prompt, prompt_digest
from finskillbench.harness.skills.memory import EMPTY, Memory
from finskillbench.harness.toolbox import Filings, Runner, TaskData, Toolbox
from finskillbench.harness.tools import SUBMIT_ANSWER, tool_specs
from finskillbench.harness.trace import CallRecord, Ended, ToolRecord, Trace
from finskillbench.redaction import logger, redactor_of_process

_LOG = logger(__name__)

MAX_RETRIES = 3
FIRST_BACKOFF_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 120.0
"""A provider that asks for a longer wait is asked again after this one."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What an episode needs from outside; the defaults are the real clock and sleep, and the secrets of the process."""

    runner: Runner | None = None
    filings: Filings | None = None
    scratch_root: Path | None = None
    clock: Callable[[], float] = time.perf_counter
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    redact: Callable[[str], str] = field(default_factory=redactor_of_process)


async def run_episode(
    model: Model,
    episode: Episode,
    base_prompt: str,
    task_data: TaskData,
    mounted: Mount,
    surroundings: Surroundings | None = None,
    memory: Memory = EMPTY,
) -> Trace:
    """Let a model solve one episode under one arm; never raises for what the model or its provider does.

    Parameters
    ----------
    model : who answers.
    episode : what it may see.
    base_prompt : the task prompt of `finskillbench.harness.prompts.task_prompt`, the same in every condition.
    task_data : gives the input at full precision, called only when a tool needs it.
    mounted : the arm and its packages.
    surroundings : script runner, filings, scratch folder, clock and sleep.
    memory : what the persistent arm remembers of its stream.

    Returns
    -------
    The trace; `trace.submission` is what `finskillbench.runs.verdicts` judges.

    Raises
    ------
    InternalError : the tools on offer are not those of the arm, or it remembers what it may not.
    InputError : the arm shows documents in the prompt, and none of the packages of the episode's domain is mounted.
    SkillError : somebody altered the scratch space, so that what the agent saved is lost.
    RunStoppedError : the model takes no further call, by order of whoever runs it; the episode counts as not begun.
    """
    around = surroundings or Surroundings()
    return await _Session(model, episode, base_prompt, task_data, mounted, around, memory).play()


class _Session:
    """The state of one episode while it runs."""

    def __init__(
        self,
        model: Model,
        episode: Episode,
        base_prompt: str,
        task_data: TaskData,
        mounted: Mount,
        around: Surroundings,
        memory: Memory,
    ) -> None:
        self.model, self.episode, self.mounted, self.around = model, episode, mounted, around
        self.tools = tool_specs(mounted, episode.skill)
        prove_mount(mounted, self.tools, episode.skill, memory)
        prompt = arm_prompt(base_prompt, mounted, episode.skill, memory)
        self.prompt_digest = prompt_digest(SYSTEM_PROMPT, prompt)
        self.messages = [Message("system", SYSTEM_PROMPT), Message("user", prompt)]
        self.records: list[ToolRecord] = []
        self.toolbox = Toolbox(
            episode,
            task_data,
            mounted,
            runner=around.runner,
            filings=around.filings,
            scratch_root=around.scratch_root,
            memory=memory,
        )
        self.calls: list[CallRecord] = []
        self.incidents: list[str] = []
        self.retries = 0
        self.usage = FREE

    async def play(self) -> Trace:
        started = self.around.clock()
        try:
            ended, failure = await self._outcome()
            return self._trace(ended, failure, self.around.clock() - started)
        finally:
            self.toolbox.close()

    async def _outcome(self) -> tuple[Ended, FinSkillBenchError | None]:
        try:
            return await self._converse(), None
        except RunStoppedError:
            raise
        except ProviderError as error:
            # An agent must not choose its episodes by failing in those that it cannot solve.
            if error.cause is not Cause.ADAPTER or not self.calls:
                return "error", error
            self.incidents[-1] = "adapter_failed"
            return "adapter_failed", error
        except FinSkillBenchError as error:
            return "error", error

    async def _converse(self) -> Ended:
        for number in range(1, MAX_TURNS + 1):
            last = number == MAX_TURNS
            offered = (SUBMIT_ANSWER,) if last else self.tools
            if last:
                self.messages.append(Message("user", LAST_TURN))
            started = self.around.clock()
            turn = await self._generate(offered, SUBMIT_ANSWER.name if last else AUTO)
            seconds = self.around.clock() - started
            self.calls.append(CallRecord(number, seconds, turn.stop, turn.served_model, turn.usage))
            self.usage += turn.usage
            if turn.stop != "done":
                self.incidents.append(turn.stop)
            if turn.stop == "context_overflow":
                return "context_overflow"
            self.messages.append(Message("assistant", turn.text, turn.tool_calls, None, turn.replay))
            if not turn.tool_calls:
                if turn.stop == "done":
                    self.incidents.append("text_only")
                if not last:
                    self.messages.append(Message("user", REMINDER))
                continue
            await self._serve(turn, offered, number)
            if self.toolbox.answer is not None:
                return "submitted"
        return "max_turns"

    async def _generate(self, offered: tuple[ToolSpec, ...], choice: str) -> Turn:
        """One model call with its retries; whatever still fails is raised as a `FinSkillBenchError`."""
        for attempt in range(MAX_RETRIES + 1):
            try:
                made = await self.model.generate(tuple(self.messages), offered, choice)
                turn = clean_turn(made, self.around.redact)
                if len(made.tool_calls) > MAX_CALLS_PER_TURN:
                    self.incidents.append("too_many_calls")
                if not turn.usage.is_known and getattr(self.model, "price", None) is not None:
                    self.incidents.append("usage_unknown")
                return turn
            except ProviderError as error:
                _LOG.debug("%s: a call of %s failed", self.episode.task_id, self.model.name, exc_info=True)
                self.incidents.append(error.cause.value)  # a plain string: Polars would make an Enum of it
                if not PROVIDER[error.cause].retried or attempt == MAX_RETRIES:
                    raise
                self.retries += 1
                await self.around.sleep(_wait(error, attempt))
            except FinSkillBenchError:
                raise
            except Exception as error:  # an adapter's bug costs one episode, not a run of thousands
                _LOG.warning("%s: the adapter of %s failed", self.episode.task_id, self.model.name, exc_info=True)
                self.incidents.append(Cause.ADAPTER.value)
                raise ProviderError(f"{self.model.name}: {type(error).__name__}: {error}", Cause.ADAPTER) from error
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _serve(self, turn: Turn, offered: tuple[ToolSpec, ...], number: int) -> None:
        for call in turn.tool_calls:
            if self.toolbox.answer is not None:
                self.records.append(ToolRecord(number, call.id, call.name, call.arguments, "not_run", 0.0, None))
                continue
            started = self.around.clock()
            result, outcome = await self.toolbox.call(call, offered)
            seconds = self.around.clock() - started
            if outcome != "ok":
                self.incidents.append(outcome)
            place = len(self.messages)
            self.records.append(ToolRecord(number, call.id, call.name, call.arguments, outcome, seconds, place))
            self.messages.append(Message("tool", result, tool_call_id=call.id))

    def _trace(self, ended: Ended, failure: FinSkillBenchError | None, latency: float) -> Trace:
        return Trace(
            task_id=self.episode.task_id,
            model=self.model.name,
            condition=self.mounted.arm.condition.value,
            ended=ended,
            answer=self.toolbox.answer,
            error=None if failure is None else self.around.redact(clean_text(str(failure))),
            error_cause=failure.cause.value if isinstance(failure, ProviderError) else None,
            incidents=tuple(self.incidents),
            messages=tuple(self.messages),
            tools=tuple(tool.name for tool in self.tools),
            tool_calls=tuple(self.records),
            model_calls=tuple(self.calls),
            turns=len(self.calls),
            retries=self.retries,
            usage=self.usage,
            latency_seconds=latency,
            skills_loaded=tuple(self.toolbox.skills_loaded),
            scripts_run=tuple(self.toolbox.scripts_run),
            saved_skills=self.toolbox.saved_skills,
            mount_digest=self.mounted.digest,
            prompt_digest=self.prompt_digest,
        )


def _wait(error: ProviderError, attempt: int) -> float:
    """Seconds before the next try: what the provider asked for, else 1, 2, 4."""
    asked = error.retry_after
    return FIRST_BACKOFF_SECONDS * 2**attempt if asked is None else min(max(asked, 0.0), LONGEST_WAIT_SECONDS)
