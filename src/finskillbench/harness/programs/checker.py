"""`baseline/checker`: follows a skill, then checks the answer against the conventions printed in the task.

If they disagree, it takes the script's output alone; if that disagrees too, it answers without the skill, by the
definitions where they lead to one answer, else as the reference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from finskillbench.domains import Subtask
from finskillbench.harness.model import Message, ToolCall, ToolSpec, Turn
from finskillbench.harness.programs.program import (
    call,
    fields_read,
    parsed,
    printed_fields,
    results_of,
    submit,
    subtask_of,
)
from finskillbench.harness.programs.reference import Reference, unaided
from finskillbench.harness.skills.faults import conforms
from finskillbench.harness.tools.contracts import RUN_SKILL_SCRIPT, SUBMIT_ANSWER
from finskillbench.scoring.values import as_array, as_object

_FACTS, _SEGMENTS, _LOOK_UP = "filing_facts", "filing_facts.segments", "scripts/derive_metrics.py"
_DURATIONS = ("instant", "quarterly", "half", "nine_months", "annual")
_MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class Checker(Reference):
    """Takes the reference's steps, but reads the fields that the check needs before it submits a script's output."""

    name = "baseline/checker"

    def respond(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        """Take the reference's step; check an answer that comes from a skill."""
        turn, subtask = super().respond(messages, tools, tool_choice), subtask_of(messages)
        results = results_of(messages)
        outputs = [each for result in results if (each := as_object(as_object(parsed(result)).get("output")))]
        if subtask is None or turn.tool_calls[0].name != SUBMIT_ANSWER.name or not outputs:
            return turn
        read = fields_read(results)
        if not read and any(tool.name == RUN_SKILL_SCRIPT for tool in tools):
            return Turn(tool_calls=_readings(printed_fields(messages)))
        if rows := [row for output in outputs[1:] for row in as_array(output.get("metrics"))]:
            read[_FACTS] = {"facts": rows, "segments": read.get(_SEGMENTS, [])}
        answer = orjson.loads(orjson.loads(turn.tool_calls[0].arguments)["answer"])
        computed = {key: outputs[0].get(key) for key in answer}
        kept = next((one for one in (answer, computed) if not _contradicts(subtask, read, one)), None)
        return submit(_derived(subtask, read) if kept is None else kept)


def _readings(fields: Sequence[str]) -> tuple[ToolCall, ...]:
    """Return the calls that read all fields; facts as the script that looks up metrics returns them."""
    names = [_SEGMENTS if name == _FACTS else name for name in fields]
    calls = [call("get_task_data", place, field=name) for place, name in enumerate(names)]
    look_up = {"script_path": _LOOK_UP, "inject_task_fields": ["symbol", _FACTS]}
    for duration in _DURATIONS if _FACTS in fields else ():
        calls.append(call(RUN_SKILL_SCRIPT, len(calls), input_data={"duration": duration}, **look_up))
    return tuple(calls)


def _contradicts(subtask: Subtask, task_input: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    try:
        return conforms(subtask.name, task_input, answer) is False
    except _MALFORMED:
        return True


def _derived(subtask: Subtask, task_input: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        return unaided(subtask, task_input) if subtask.rederive is None else subtask.rederive(task_input)
    except _MALFORMED:
        return {}
