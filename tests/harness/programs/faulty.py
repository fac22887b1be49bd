"""A model that does everything wrong. None of its faults may end a run or earn a point."""

from __future__ import annotations

from collections.abc import Sequence

from tests.harness.programs.cheat import pick

from finskillbench.harness.model import AUTO, Message, ToolCall, ToolSpec, Turn
from finskillbench.harness.programs.program import Program, call, turns_taken


class Faulty(Program):
    """Malforms calls, calls what does not exist, loops, talks, never submits; the prompt decides which."""

    name = "baseline/faulty"

    def respond(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        """Answer with this episode's fault."""
        fault = pick(messages, 7)
        turn = turns_taken(messages)
        if fault == 0:
            return Turn("The answer is obvious and needs no tool.")
        if fault == 1:
            return Turn(tool_calls=(_MALFORMED[turn % len(_MALFORMED)],))
        if fault == 2:
            return Turn(tool_calls=(call("place_order", turn, side="buy"), call("../load_skill", turn)))
        if fault == 3:
            return Turn(tool_calls=(call("get_task_data", 0, field="covariance_matrix"),))
        if fault == 4:
            return Turn(tool_calls=tuple(call("get_task_data", i, field="no_such_field") for i in range(100)))
        if fault == 5:
            return Turn(tool_calls=(_OUTSIDE[turn % len(_OUTSIDE)],))
        # Never submits until it must, and then malforms the submission.
        return Turn() if tool_choice == AUTO else Turn(tool_calls=(_MALFORMED[0],))


_MALFORMED = (
    ToolCall("m0", "submit_answer", '{"answer": "{\\"weights\\": {}'),
    ToolCall("m1", "submit_answer", "weights = equal"),
    ToolCall("m2", "submit_answer", "[]"),
    ToolCall("m3", "submit_answer", '{"answer": 1}'),
    ToolCall("m4", "submit_answer", '{"answer": null, "again": true}'),
    ToolCall("m5", "get_task_data", ""),
    ToolCall("m6", "get_task_data", '{"field": ["covariance_matrix"]}'),
    ToolCall("m7", "load_skill", '{"skill_name": NaN}'),
    ToolCall("m8", "load_skill", "[" * 5_000),
)
_OUTSIDE = (
    call("load_skill", 0, skill_name="../../etc"),
    call("load_references", 0, skill_name="\x00"),
    call("run_skill_script", 0, script_path="../../../bin/sh", input_data={}),
    call("run_skill_script", 0, script_path="/etc/passwd", inject_task_fields=["nothing"]),
    call("save_skill", 0, skill_name="../escape", content="x"),
    call("query_xbrl", 0, ticker="../..", period="yesterday"),
)
