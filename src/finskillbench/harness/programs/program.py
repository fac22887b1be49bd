"""Baseline programs: they answer at once, cost nothing, and count estimated tokens.

`baseline/nop` is the lower bound of every report. `baseline/trivial` and `baseline/heuristic` use no skills or scripts.
`Textbook` and `Trapped` play a subtask's procedures with deliberate faults.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar

import orjson

from finskillbench.domains import Naive, Subtask, subtask_named
from finskillbench.domains.interactive import Procedure, ProcedureCall
from finskillbench.errors import Cause, InputError, ProviderError
from finskillbench.harness.model import Message, ToolCall, ToolSpec, Turn, Usage
from finskillbench.harness.prompts.compose import APPENDIX, INPUT_SECTION, SCHEMA_SECTION, TURNS_LEFT
from finskillbench.harness.prompts.tokens import input_tokens, output_tokens
from finskillbench.harness.tools.contracts import LOAD_SKILL, RUN_SKILL_SCRIPT, SUBMIT_ANSWER
from finskillbench.scoring.values import is_object

_LEFT = re.compile(rf"\n\n{TURNS_LEFT.partition('{')[0]}[^\n]*\Z")
_SUB_TASK = re.compile(r"^Subtask: (\S+)$", re.MULTILINE)


def prompt_of(messages: Sequence[Message]) -> str:
    """Return the task prompt without a condition's appendix, the same in every condition."""
    return _opening(messages).partition(APPENDIX)[0]


def appended_of(messages: Sequence[Message]) -> str:
    """Return the text that the condition appended to the task prompt, if any."""
    return _opening(messages).partition(APPENDIX)[2]


def _opening(messages: Sequence[Message]) -> str:
    return _LEFT.sub("", next(message.content for message in messages if message.role == "user"))


def sub_task_of(messages: Sequence[Message]) -> str:
    """Return the subtask named by the task prompt; raises `ProviderError` if there is none."""
    found = _SUB_TASK.search(prompt_of(messages))
    if found is None:
        raise ProviderError("baseline: the task prompt names no subtask", Cause.BAD_REQUEST)
    return found[1]


def subtask_of(messages: Sequence[Message]) -> Subtask | None:
    """Return the registered subtask, None for an imported episode of an unregistered one."""
    try:
        return subtask_named(sub_task_of(messages))
    except InputError:
        return None


def turns_taken(messages: Sequence[Message]) -> int:
    """Count the answered model calls."""
    return sum(message.role == "assistant" for message in messages)


def fields_read(results: Iterable[str]) -> dict[str, Any]:
    """Return the values that `get_task_data` has returned, by field, from all `results_of`; failed reads are absent."""
    values: dict[str, Any] = {}
    for text in results:
        result = parsed(text)
        if is_object(result) and "field" in result and "value" in result:
            values[result["field"]] = result["value"]
    return values


def results_of(messages: Sequence[Message]) -> tuple[str, ...]:
    """Return the results of all tool calls."""
    return tuple(result_of(message) for message in messages if message.role == "tool")


def result_of(message: Message) -> str:
    """Return a tool's result, one line of JSON, without the budget line below it."""
    return message.content.partition("\n")[0]


@lru_cache(maxsize=64)
def parsed(result: str) -> object:
    """Parse a tool result; cached and read-only, since programs parse it on each turn and in each condition."""
    return orjson.loads(result)


def naive_answer(naive: Naive | None, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer from the fields read; empty without `naive`, or for imported episodes with missing numbers."""
    try:
        return dict(naive.answer(fields)) if naive is not None else {}
    except KeyError:
        return {}


def printed_fields(messages: Sequence[Message]) -> tuple[str, ...]:
    """Return the names of the input fields in the task prompt."""
    text = prompt_of(messages).partition(INPUT_SECTION)[2].partition(SCHEMA_SECTION)[0]
    printed: object = orjson.loads(text[text.index("{") :]) if "{" in text else {}
    return tuple(map(str, printed)) if is_object(printed) else ()


def call(name: str, number: int, /, **arguments: Any) -> ToolCall:
    """Return a valid tool call; `number` determines its id."""
    return ToolCall(f"call-{number}", name, orjson.dumps(arguments).decode())


def read_fields(*fields: str) -> Turn:
    """Return a turn that reads input fields in parallel."""
    return Turn(tool_calls=tuple(call("get_task_data", i, field=name) for i, name in enumerate(fields)))


def submit(answer: Any) -> Turn:
    """Return a turn that submits `answer`, converted to JSON unless it is text."""
    text = answer if isinstance(answer, str) else orjson.dumps(answer).decode()
    return Turn(tool_calls=(call("submit_answer", 0, answer=text),))


class Program(ABC):
    """A program in place of a model: stateless, free, with estimated token counts."""

    name: ClassVar[str]

    @abstractmethod
    def respond(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        """Return the next turn; arguments as for `finskillbench.harness.model.Model.generate`."""

    async def generate(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        """Answer the conversation."""
        turn = self.respond(messages, tools, tool_choice)
        usage = Usage(input_tokens=input_tokens(messages, tools), output_tokens=output_tokens(turn), cost_usd=0.0)
        return replace(turn, usage=usage)


class Nop(Program):
    """`baseline/nop`: submits the answer's top-level keys, all null, on its first turn."""

    name = "baseline/nop"

    def respond(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        """Submit nulls, or an empty object for an unknown subtask."""
        subtask = subtask_of(messages)
        return submit(dict.fromkeys(subtask.answer.model_fields) if subtask is not None else {})


class Trivial(Program):
    """`baseline/trivial`: the best answer that ignores the episode's numbers, such as equal weights or no trades."""

    name = "baseline/trivial"

    def respond(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        """Read the fields that the subtask's constant answer needs, then submit it."""
        subtask = subtask_of(messages)
        naive = subtask.baselines.trivial if subtask is not None else None
        if naive is not None and naive.fields and turns_taken(messages) == 0:
            return read_fields(*naive.fields)
        return submit(naive_answer(naive, fields_read(results_of(messages))))


class Heuristic(Program):
    """`baseline/heuristic`: the fixed recipe with the highest score, fitted on another seed by
    `benchmarks/heuristics.py`.

    Recipes are simple formulas, for example an optimum without correlations.
    """

    name = "baseline/heuristic"

    def respond(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        """Read the printed fields and those for arithmetic without skills, then submit the recipe's answer."""
        subtask = subtask_of(messages)
        if subtask is None or not subtask.baselines.heuristic:
            return submit({})
        if turns_taken(messages) == 0:
            no_skill = subtask.baselines.no_skill
            unprinted = no_skill.fields if no_skill is not None else ()
            return read_fields(*dict.fromkeys((*printed_fields(messages), *unprinted)))
        return _by_recipe(subtask.name, results_of(messages))


@lru_cache(maxsize=64)
def _by_recipe(sub_task: str, results: tuple[str, ...]) -> Turn:
    """Submit the recipe's answer; cached, since results are the same in each condition."""
    return submit(heuristic_answer(subtask_named(sub_task), fields_read(results)))


def heuristic_answer(subtask: Subtask, task_input: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fitted recipe's answer; empty if an imported episode lacks a field."""
    if subtask.examples.exploits is None:
        return {}
    try:
        return subtask.examples.exploits(task_input)[subtask.baselines.heuristic]
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return {}


def procedure_of(subtask: Subtask | None, program: str) -> Procedure | None:
    """Return a program's procedure for a subtask; None if the subtask is not interactive."""
    interactive = None if subtask is None else subtask.interactive
    return None if interactive is None else interactive.procedures.get(program)


def can_play(offered: Sequence[ToolSpec]) -> bool:
    """Return True if skill scripts, which procedures run, are offered on this turn."""
    return any(tool.name == RUN_SKILL_SCRIPT for tool in offered)


def next_turn(procedure: Procedure, messages: Sequence[Message], offered: Sequence[ToolSpec]) -> Turn | None:
    """Return the next turn by replaying the procedure on the results so far; None after a script's error."""
    playing = procedure()
    try:
        calls = next(playing)
        for results in _results_by_turn(messages):
            calls = playing.send(results)
    except StopIteration as done:
        return submit(done.value)
    except LookupError:
        return None
    names = {tool.name for tool in offered}
    return Turn(tool_calls=tuple(_call(number, planned, names) for number, planned in enumerate(calls)))


def _call(number: int, planned: ProcedureCall, offered: set[str]) -> ToolCall:
    if planned.tool == LOAD_SKILL and "skill_view" in offered:  # Hermes has its own tool for reading skills
        return call("skill_view", number, name=planned.arguments["skill_name"])
    return call(planned.tool, number, **planned.arguments)


def _results_by_turn(messages: Sequence[Message]) -> list[list[Mapping[str, Any]]]:
    turns: list[list[Mapping[str, Any]]] = []
    for message in messages:
        if message.role == "assistant":
            turns.append([])
        elif message.role == "tool" and turns:
            turns[-1].append(orjson.loads(result_of(message)))
    return turns


class _Procedural(Program):
    """Plays the procedure `procedure` of a subtask, or answers as `trivial` without a procedure or scripts."""

    procedure: ClassVar[str]

    def respond(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        """Return the next calls of the procedure, or the answer."""
        subtask = subtask_of(messages)
        if subtask is None or [tool.name for tool in tools] == [SUBMIT_ANSWER.name]:
            return submit({})
        found = procedure_of(subtask, self.procedure)
        if found is None or not can_play(tools):
            return submit(naive_answer(subtask.baselines.trivial, {}))
        return next_turn(found, messages, tools) or submit(naive_answer(subtask.baselines.trivial, {}))


class Textbook(_Procedural):
    """`baseline/textbook`: applies textbook methods to the numbers, without reading the documents."""

    name = "baseline/textbook"
    procedure = "textbook"


class Trapped(_Procedural):
    """`baseline/trapped`: falls for every planted trap and otherwise acts as the reference."""

    name = "baseline/trapped"
    procedure = "trapped"
