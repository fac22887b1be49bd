"""What the baselines share: a program answers at once, costs nothing, and counts estimated tokens.

`baseline/nop`: answers nothing, the bound of every report from below.

The two floors to clear: `baseline/trivial` without a thought about the episode, `baseline/heuristic` with little.

They load no skill and run no script.

Programs that play an episode call by call, as a subtask's procedures say: the reference, and two that go wrong.

How a baseline reads a conversation: all it may know is what stands in the messages.
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
from finskillbench.domains.interactive import ProcedureCall, Procedure
from finskillbench.errors import Cause, InputError, ProviderError
from finskillbench.harness.model import Message, ToolCall, ToolSpec, Turn, Usage
from finskillbench.harness.prompts.compose import APPENDIX, INPUT_SECTION, SCHEMA_SECTION, TURNS_LEFT
from finskillbench.harness.prompts.tokens import input_tokens, output_tokens
from finskillbench.harness.tools.contracts import LOAD_SKILL, RUN_SKILL_SCRIPT, SUBMIT_ANSWER
from finskillbench.scoring.values import is_object

_LEFT = re.compile(rf"\n\n{TURNS_LEFT.partition('{')[0]}[^\n]*\Z")
_SUB_TASK = re.compile(r"^Subtask: (\S+)$", re.MULTILINE)


def prompt_of(messages: Sequence[Message]) -> str:
    """The task prompt, the first message of the user, without what an arm appended: the same in every condition."""
    return _opening(messages).partition(APPENDIX)[0]


def appended_of(messages: Sequence[Message]) -> str:
    """What the arm appended to the task prompt: a document, an instruction, or nothing."""
    return _opening(messages).partition(APPENDIX)[2]


def _opening(messages: Sequence[Message]) -> str:
    """The first message of the user, without what the loop says there of the budget."""
    return _LEFT.sub("", next(message.content for message in messages if message.role == "user"))


def sub_task_of(messages: Sequence[Message]) -> str:
    """The subtask named by the task prompt.

    Raises
    ------
    ProviderError : the prompt names none.
    """
    found = _SUB_TASK.search(prompt_of(messages))
    if found is None:
        raise ProviderError("baseline: the task prompt names no subtask", Cause.BAD_REQUEST)
    return found[1]


def subtask_of(messages: Sequence[Message]) -> Subtask | None:
    """The subtask as it is registered; None for an imported episode under a name that is not."""
    try:
        return subtask_named(sub_task_of(messages))
    except InputError:
        return None


def turns_taken(messages: Sequence[Message]) -> int:
    """Model calls answered so far."""
    return sum(message.role == "assistant" for message in messages)


def fields_read(results: Iterable[str]) -> dict[str, Any]:
    """Values that `get_task_data` has returned by field, out of all `results_of`; a field that it refused is absent."""
    values: dict[str, Any] = {}
    for text in results:
        result = parsed(text)
        if is_object(result) and "field" in result and "value" in result:
            values[result["field"]] = result["value"]
    return values


def results_of(messages: Sequence[Message]) -> tuple[str, ...]:
    """The results of all tool calls so far."""
    return tuple(result_of(message) for message in messages if message.role == "tool")


def result_of(message: Message) -> str:
    """What a tool answered, JSON in one line; what the loop says of the budget comes below it."""
    return message.content.partition("\n")[0]


@lru_cache(maxsize=64)
def parsed(result: str) -> object:
    """A result of a tool as JSON, to be read and not changed: programs meet it again on each turn and in each arm."""
    return orjson.loads(result)


def naive_answer(naive: Naive | None, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The answer from the fields read; an empty one where there is none, or a field that it needs is missing.

    Imported episodes may name a mandate or a scenario without its numbers.
    """
    try:
        return dict(naive.answer(fields)) if naive is not None else {}
    except KeyError:
        return {}


def printed_fields(messages: Sequence[Message]) -> tuple[str, ...]:
    """Names of the input fields that the task prompt prints."""
    text = prompt_of(messages).partition(INPUT_SECTION)[2].partition(SCHEMA_SECTION)[0]
    printed: object = orjson.loads(text[text.index("{") :]) if "{" in text else {}
    return tuple(map(str, printed)) if is_object(printed) else ()


def call(name: str, number: int, /, **arguments: Any) -> ToolCall:
    """A well-formed tool call; `number` makes its id."""
    return ToolCall(f"call-{number}", name, orjson.dumps(arguments).decode())


def read_fields(*fields: str) -> Turn:
    """A turn that asks for input fields, in parallel."""
    return Turn(tool_calls=tuple(call("get_task_data", i, field=name) for i, name in enumerate(fields)))


def submit(answer: Any) -> Turn:
    """A turn that submits `answer`: a text as it is, anything else as JSON."""
    text = answer if isinstance(answer, str) else orjson.dumps(answer).decode()
    return Turn(tool_calls=(call("submit_answer", 0, answer=text),))


class Program(ABC):
    """A model that is a program: stateless, every decision read off the conversation.

    Its tokens are those that a language model with the same conversation would be billed for, estimated by
    `finskillbench.harness.prompts.tokens`; its price is zero.
    """

    name: ClassVar[str]

    @abstractmethod
    def respond(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        """The next turn; arguments as those of `finskillbench.harness.model.Model.generate`."""

    async def generate(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        """Answer the conversation so far."""
        turn = self.respond(messages, tools, tool_choice)
        usage = Usage(input_tokens=input_tokens(messages, tools), output_tokens=output_tokens(turn), cost_usd=0.0)
        return replace(turn, usage=usage)


class Nop(Program):
    """`baseline/nop`: submits the answer's top-level keys, all null, on its first turn."""

    name = "baseline/nop"

    def respond(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        """Submit nulls; a subtask it does not know gets an empty object."""
        subtask = subtask_of(messages)
        return submit(dict.fromkeys(subtask.answer.model_fields) if subtask is not None else {})


class Trivial(Program):
    """`baseline/trivial`: the best answer that needs no thought about the episode.

    Equal weights, every constraint said to hold, the portfolio left as it is, everything compliant, nothing unusual. It
    reads at most the fields that list the names.
    """

    name = "baseline/trivial"

    def respond(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        """Ask for the fields that this subtask needs, then submit its constant answer."""
        subtask = subtask_of(messages)
        naive = subtask.baselines.trivial if subtask is not None else None
        if naive is not None and naive.fields and turns_taken(messages) == 0:
            return read_fields(*naive.fields)
        return submit(naive_answer(naive, fields_read(results_of(messages))))


class Heuristic(Program):
    """`baseline/heuristic`: the fixed recipe that earns most, fitted on another seed by `benchmarks/heuristics.py`.

    Sums and formulas on the inputs without the work: an optimum without correlations, weights times a usual volatility.
    """

    name = "baseline/heuristic"

    def respond(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        """Read what the prompt prints and what by-hand arithmetic needs, then submit what the recipe makes of it."""
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
    """Submit what the recipe makes of the results of tools; kept, since they are the same in each arm."""
    return submit(heuristic_answer(subtask_named(sub_task), fields_read(results)))


def heuristic_answer(subtask: Subtask, task_input: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the fitted recipe answers; nothing where an imported episode lacks what it reads."""
    if subtask.examples.exploits is None:
        return {}
    try:
        return subtask.examples.exploits(task_input)[subtask.baselines.heuristic]
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return {}


def procedure_of(subtask: Subtask | None, program: str) -> Procedure | None:
    """Return how a program plays a subtask's episodes; None where the subtask is not interactive."""
    interactive = None if subtask is None else subtask.interactive
    return None if interactive is None else interactive.procedures.get(program)


def can_play(offered: Sequence[ToolSpec]) -> bool:
    """Whether a procedure can be played: it runs scripts of skills, and not on a turn that is for the answer alone."""
    return any(tool.name == RUN_SKILL_SCRIPT for tool in offered)


def next_turn(procedure: Procedure, messages: Sequence[Message], offered: Sequence[ToolSpec]) -> Turn | None:
    """The turn that comes next: the procedure is played again on the results so far.

    None where it cannot go on: the scripts that it runs are of a package that is not mounted, as under skills that
    somebody brings, and have returned an error in place of an output.
    """
    playing = procedure()
    try:
        asks = next(playing)
        for results in _results_by_turn(messages):
            asks = playing.send(results)
    except StopIteration as done:
        return submit(done.value)
    except LookupError:
        return None
    names = {tool.name for tool in offered}
    return Turn(tool_calls=tuple(_call(number, ask, names) for number, ask in enumerate(asks)))


def _call(number: int, ask: ProcedureCall, offered: set[str]) -> ToolCall:
    if ask.tool == LOAD_SKILL and "skill_view" in offered:  # under Hermes, which has its own way of reading skills
        return call("skill_view", number, name=ask.arguments["skill_name"])
    return call(ask.tool, number, **ask.arguments)


def _results_by_turn(messages: Sequence[Message]) -> list[list[Mapping[str, Any]]]:
    """What the calls of each turn so far returned, in the order of the calls."""
    turns: list[list[Mapping[str, Any]]] = []
    for message in messages:
        if message.role == "assistant":
            turns.append([])
        elif message.role == "tool" and turns:
            turns[-1].append(orjson.loads(result_of(message)))
    return turns


class _Procedural(Program):
    """Plays the procedure `procedure` of a subtask; where there is none, or no script, it answers as `trivial` does."""

    procedure: ClassVar[str]

    def respond(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        """The next calls of the procedure, or the answer."""
        subtask = subtask_of(messages)
        if subtask is None or [tool.name for tool in tools] == [SUBMIT_ANSWER.name]:
            return submit({})
        found = procedure_of(subtask, self.procedure)
        if found is None or not can_play(tools):
            return submit(naive_answer(subtask.baselines.trivial, {}))
        return next_turn(found, messages, tools) or submit(naive_answer(subtask.baselines.trivial, {}))


class Textbook(_Procedural):
    """`baseline/textbook`: what a textbook does with the numbers, without having read the documents."""

    name = "baseline/textbook"
    procedure = "textbook"


class Trapped(_Procedural):
    """`baseline/trapped`: falls for every trap that an episode plants, and does all else as the reference."""

    name = "baseline/trapped"
    procedure = "trapped"
