"""The tool calls of a trajectory as rules look at them, and how the output of a script was used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import orjson

from finskillbench.domains.checks.agreement import AGREEMENT, leaf_by_leaf
from finskillbench.episode import JsonObject
from finskillbench.harness.trace import ToolRecord, Trace
from finskillbench.scoring.values import array, is_object, mapping, text

OutputUse = Literal["unchanged", "altered", "none"]
"""What of a script's output was submitted: all of it as it was, something else under its keys, or nothing."""


@dataclass(frozen=True)
class Call:
    """One call that was run: its arguments and its result are parsed when somebody asks."""

    record: ToolRecord
    content: str

    @property
    def name(self) -> str:
        """The tool."""
        return self.record.name

    @property
    def ok(self) -> bool:
        """Whether the tool did what was asked."""
        return self.record.fate == "ok"

    @cached_property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments; empty where they are no object."""
        return _object(self.record.arguments)

    @cached_property
    def result(self) -> Mapping[str, Any]:
        """What the tool answered, JSON in one line; what the loop says of the budget comes below it."""
        return _object(self.content.partition("\n")[0])

    @property
    def script(self) -> str:
        """The name of the script in its package, such as "scripts/x.py"."""
        path = text(self.arguments.get("script_path")) or ""
        return path[path.find("scripts/") :] if "scripts/" in path else path

    @property
    def injected(self) -> tuple[str, ...]:
        """The fields of the task that the server was to put in."""
        return tuple(name for name in array(self.arguments.get("inject_task_fields")) if isinstance(name, str))

    @property
    def typed(self) -> Mapping[str, Any]:
        """What the agent wrote into the script's input and no injected field replaced."""
        written = mapping(self.arguments.get("input_data"))
        return {name: value for name, value in written.items() if name not in self.injected}

    @property
    def output(self) -> Mapping[str, Any]:
        """The output of a script; empty where it failed."""
        return mapping(self.result.get("output")) if self.ok else {}


def calls_of(trace: Trace) -> list[Call]:
    """The calls that were run, in order, with their results."""
    return [
        Call(record, trace.messages[record.message].content)
        for record in trace.tool_calls
        if record.message is not None and record.fate != "not_run"
    ]


def script_runs(calls: list[Call]) -> list[Call]:
    """The calls of scripts of skills, failed ones among them."""
    return [call for call in calls if call.name == "run_skill_script"]


def output_use(answer: JsonObject | None, runs: list[Call]) -> OutputUse:
    """What was submitted of the scripts' outputs.

    Parameters
    ----------
    answer : the submission; None where there is none that can be read.
    runs : the calls of scripts.

    Returns
    -------
    "unchanged" if every submitted value stands so in one output, to the last digit but for 1e-9; "altered" if some key
    of the answer is an output's and its value another; "none" if no key is.
    """
    shared = list(_shared(answer or {}, runs))
    if not shared:
        return "none"
    return "unchanged" if any(shared) else "altered"


def _shared(answer: JsonObject, runs: list[Call]) -> Iterator[bool]:
    """Of each output that shares a key with the answer, whether the whole answer stands in it."""
    for call in runs:
        output = call.output
        keys = [key for key in answer if key in output]
        if keys:
            same = all(
                leaf.difference <= AGREEMENT for leaf in leaf_by_leaf({key: output[key] for key in keys}, answer)
            )
            yield same


def _object(content: str) -> Mapping[str, Any]:
    try:
        value: object = orjson.loads(content)
    except orjson.JSONDecodeError:
        return {}
    return value if is_object(value) else {}
