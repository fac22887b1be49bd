"""How a baseline reads a conversation: all it may know is what stands in the messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson

from finskillbench.domains import Naive, Subtask, by_name
from finskillbench.errors import Cause, InputError, ProviderError
from finskillbench.harness.model import Message, ToolCall, Turn
from finskillbench.harness.words.prompts import APPENDIX, INPUT_SECTION, SCHEMA_SECTION, TURNS_LEFT
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
        return by_name(sub_task_of(messages))
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
