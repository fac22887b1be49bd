"""Programs that play an episode call by call, as a subtask's procedures say: the reference, and two that go wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import orjson

from finskillbench.domains.base import Ask, Procedure
from finskillbench.harness.model import Message, ToolCall, ToolSpec, Turn
from finskillbench.harness.programs.program import Program
from finskillbench.harness.programs.reading import call, naive_answer, result_of, submit, subtask_of
from finskillbench.harness.tools.contracts import LOAD_SKILL, RUN_SKILL_SCRIPT, SUBMIT_ANSWER


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


def _call(number: int, ask: Ask, offered: set[str]) -> ToolCall:
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
        found = subtask.procedures.get(self.procedure)
        if found is None or not can_play(tools):
            return submit(naive_answer(subtask.trivial, {}))
        return next_turn(found, messages, tools) or submit(naive_answer(subtask.trivial, {}))


class Textbook(_Procedural):
    """`baseline/textbook`: what a textbook does with the numbers, without having read the documents."""

    name = "baseline/textbook"
    procedure = "textbook"


class Trapped(_Procedural):
    """`baseline/trapped`: falls for every trap that an episode plants, and does all else as the reference."""

    name = "baseline/trapped"
    procedure = "trapped"
