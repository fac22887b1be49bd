"""The tools' contracts as a model sees them, and the check of a call's arguments against them.

Names, parameters and words are the same in every condition; only the index of skills in `load_skill` and, where there
are scripts without documents, of scripts in `run_skill_script` differ, because that is the treatment.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import orjson

from finskillbench.domains import by_name
from finskillbench.domains import domain as registered
from finskillbench.domains.base import Budget
from finskillbench.domains.tables import MOST_ROWS
from finskillbench.errors import InputError
from finskillbench.harness.conditions import ALWAYS, Arm, Mount, expected_tools
from finskillbench.harness.model import ToolSpec
from finskillbench.harness.skills.memory import MAX_NAME_CHARS, MAX_SAVED_SKILLS
from finskillbench.harness.tools.interpreters import LIBRARIES, LIMITS
from finskillbench.harness.trace import CallOutcome
from finskillbench.sandbox import snippet
from finskillbench.sandbox.limits import size
from finskillbench.scoring.values import is_array, is_object

MAX_RESULT_CHARS = 262_144
"""Longest tool result. A full covariance of 100 names fits; what is longer can be asked for in parts."""

NO_SKILLS = "No skills available."


class ToolError(Exception):
    """A call that cannot be served; the loop never sees it, the agent gets `payload` as JSON."""

    outcome: CallOutcome = "tool_failed"

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.payload: dict[str, Any] = {"error": message, **details}


class NoSkillsError(ToolError):
    """A skill was asked for where none is mounted or saved: an obedient call, and no incident."""

    outcome = "ok"

    def __init__(self) -> None:
        super().__init__(NO_SKILLS)


class UnknownToolError(ToolError):
    """A call of a tool that is not on offer."""

    outcome = "unknown_tool"


class ArgumentsError(ToolError):
    """A call whose arguments do not fit the tool's schema."""

    outcome = "invalid_arguments"


def _object(required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


_STRINGS = {"type": "array", "items": {"type": "string"}}

SUBMIT_ANSWER = ToolSpec(
    "submit_answer",
    "Hand in the final answer and end the session. It is recorded as given; there is one submission.",
    _object(["answer"], answer=_text("The answer as JSON text that follows the task's answer schema.")),
)
LOAD_SKILL = "load_skill"
RUN_SKILL_SCRIPT = "run_skill_script"
_LOAD_SKILL = "Load a skill: the text of its SKILL.md, with the names of its references and scripts."
LOAD_REFERENCES = ToolSpec(
    "load_references",
    "Load the reference documents of a skill.",
    _object(["skill_name"], skill_name=_text("Name of the skill.")),
)
GET_TASK_DATA = ToolSpec(
    "get_task_data",
    "Return one field of the task's input at full precision. A dotted path reaches inside a field: "
    "`constraints.max_weight`, `covariance_matrix.matrix.0`.",
    _object(["field"], field=_text("Name of the input field.")),
)
QUERY_XBRL = ToolSpec(
    "query_xbrl",
    "Query facts that a company had filed by the task's as_of_date, the latest period first: one row per XBRL tag, "
    "period and filing in which the figure was new, with duration, unit, form, filing date and accession number. "
    "Nothing is chosen or computed: quarters stand beside the year to date, parts beside totals, a restated figure "
    "beside the one it replaces. Where something is not on file, the answer says what is.",
    _object(
        ["ticker"],
        ticker=_text("Ticker of the company."),
        period=_text("End of the period, YYYY-MM-DD, or the month YYYY-MM or year YYYY it lies in; left out: all."),
        metrics={**_STRINGS, "description": "XBRL tags, such as NetIncomeLoss; left out: all."},
        form=_text("Form of the filing, such as 10-K (with its amendments) or 10-Q; left out: all."),
        duration=_text("instant, quarterly, half, nine_months or annual; left out: all."),
        axis=_text("product_segment or geographic_segment: adds revenue by member of that axis."),
        limit={"type": "integer", "description": "Most facts to return, 1 to 500; left out: 200."},
    ),
)
_RUN_SKILL_SCRIPT = "Run a script of a skill and return its JSON output."
_SCRIPT_PARAMETERS = _object(
    ["script_path"],
    script_path=_text("Path inside the skill, such as scripts/name.py."),
    input_data={"type": "object", "description": "The script's input."},
    inject_task_fields={
        **_STRINGS,
        "description": "Input fields of the task that the server puts into input_data under their own names, at "
        "full precision, replacing what is there; filing_facts as the metrics of the conventions.",
    },
)
SAVE_SKILL = ToolSpec(
    "save_skill",
    f"Write a skill of your own (at most {MAX_SAVED_SKILLS}); load_skill reads it back.",
    _object(
        ["skill_name", "content"],
        skill_name=_text(f"Lower-case letters, digits and single hyphens, at most {MAX_NAME_CHARS} characters."),
        content=_text("The text of SKILL.md."),
    ),
)
RUN_PYTHON = ToolSpec(
    "run_python",
    "Run Python code and return what it prints and the value of its last expression. It finds the fields of the task's "
    f"input in the dict `task`, as get_task_data returns them, and {', '.join(LIBRARIES)} beside the standard library; "
    "scripts of a loaded skill can be imported by name (`import name` for scripts/name.py). Each call starts afresh: "
    f"no variable is kept, but files in the working folder are, {snippet.MOST_FILES} of {size(snippet.MOST_BYTES)} in "
    f"all. No network, no processes; {LIMITS.wall_seconds:g} s and {size(LIMITS.memory_bytes)} of memory a call.",
    _object(["code"], code=_text("Python code.")),
)
READ_TABLE = ToolSpec(
    "read_table",
    f"Return a page of a table of the task, at most {MOST_ROWS} rows: its columns, how many rows match, and the rows. "
    "A table is too long to be read whole: ask for the rows and columns that matter, or compute on all of it where a "
    "script or code can be run.",
    _object(
        ["table"],
        table=_text("Input field that holds the table."),
        first={"type": "integer", "description": "First row of the page, from 0; left out: 0."},
        rows={"type": "integer", "description": f"Rows of the page, 1 to {MOST_ROWS}; left out: {MOST_ROWS}."},
        columns={**_STRINGS, "description": "Columns to return; left out: all."},
        where={"type": "object", "description": "Column to the value, or list of values, that its rows must have."},
    ),
)
READS_DATA = frozenset({GET_TASK_DATA.name, QUERY_XBRL.name, READ_TABLE.name})
"""The tools whose calls a budget of data calls counts."""
_OF_DOMAINS = {QUERY_XBRL.name: QUERY_XBRL, READ_TABLE.name: READ_TABLE}
"""The tools that a domain may name."""
_FIXED = {
    spec.name: spec for spec in (SUBMIT_ANSWER, LOAD_REFERENCES, GET_TASK_DATA, SAVE_SKILL, RUN_PYTHON)
} | _OF_DOMAINS


def tool_specs(mounted: Mount, domain: str, own: tuple[ToolSpec, ...] = ()) -> tuple[ToolSpec, ...]:
    """The tools on offer for an episode of `domain` under a mounted arm, in wire order; `own` are of its subtask.

    Raises
    ------
    InputError : the domain names a tool that there is not.
    """
    index = tuple((name, package.description) for name, package in sorted(mounted.loadable.items()))
    shared = _specs(mounted.arm, domain, index, mounted.script_index)
    at = len(ALWAYS) + len(registered(domain).tools)
    return (*shared[:at], *own, *shared[at:])


def own_tools(sub_task: str) -> tuple[ToolSpec, ...]:
    """The tools that a subtask brings; none for an imported episode under a name that is not registered."""
    try:
        return tuple(ToolSpec(each.name, each.description, each.parameters) for each in by_name(sub_task).tools)
    except InputError:
        return ()


def budget_of(sub_task: str) -> Budget | None:
    """The budget that a subtask states; None for an imported episode under a name that is not registered."""
    try:
        return by_name(sub_task).budget
    except InputError:
        return None


@cache
def _specs(
    arm: Arm, domain: str, skills: tuple[tuple[str, str], ...], scripts: tuple[tuple[str, str], ...]
) -> tuple[ToolSpec, ...]:
    for name in registered(domain).tools:
        if name not in _OF_DOMAINS:
            raise InputError(f"domain {domain} names the tool {name!r}; those of a domain are {', '.join(_OF_DOMAINS)}")
    indexed = {LOAD_SKILL: _load_skill(arm, skills), RUN_SKILL_SCRIPT: _run_skill_script(scripts)}
    return tuple(indexed.get(name) or _FIXED[name] for name in expected_tools(arm, domain))


def _load_skill(arm: Arm, index: tuple[tuple[str, str], ...]) -> ToolSpec:
    description = _LOAD_SKILL
    if not index and not arm.own:
        description += f" {NO_SKILLS}"
    elif index:
        description += " Available skills:\n" + "\n".join(f"- {name}: {text}" for name, text in index)
    return ToolSpec(LOAD_SKILL, description, _object(["skill_name"], skill_name=_text("Name of the skill.")))


def _run_skill_script(index: tuple[tuple[str, str], ...]) -> ToolSpec:
    description = _RUN_SKILL_SCRIPT
    if index:
        description += " Available scripts:\n" + "\n".join(f"- {path}: {notes}" for path, notes in index)
    return ToolSpec(RUN_SKILL_SCRIPT, description, _SCRIPT_PARAMETERS)


def parse_arguments(spec: ToolSpec, text: str) -> dict[str, Any]:
    """Parse and check the arguments of a call against the tool's schema.

    An empty text counts as no arguments. `submit_answer` also takes an object or a list for its answer, see
    `finskillbench.harness.tools.toolbox`.

    Raises
    ------
    ArgumentsError : not JSON, not an object, a parameter that is missing, unknown or of the wrong type.
    """
    try:
        arguments: object = orjson.loads(text) if text.strip() else {}
    except orjson.JSONDecodeError as error:
        raise ArgumentsError(f"arguments of {spec.name} are not valid JSON: {error}") from None
    if not is_object(arguments):
        raise ArgumentsError(f"arguments of {spec.name} must be a JSON object")
    properties: Mapping[str, Any] = spec.parameters["properties"]
    missing = [name for name in spec.parameters["required"] if name not in arguments]
    if missing:
        raise ArgumentsError(f"{spec.name} lacks the parameter {missing[0]!r}", parameters=list(properties))
    for name, value in arguments.items():
        if name not in properties:
            raise ArgumentsError(f"{spec.name} has no parameter {shorten(name)!r}", parameters=list(properties))
        if value is None and name not in spec.parameters["required"]:
            continue
        if not _fits(value, properties[name]) and not (name == "answer" and isinstance(value, dict | list)):
            raise ArgumentsError(f"parameter {name!r} of {spec.name} must be {_wanted(properties[name])}")
    return {name: value for name, value in arguments.items() if value is not None}


def shorten(text: str, limit: int = 80) -> str:
    """Return `text` cut to `limit` characters, for echoing a model's own words in a message."""
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    kind = schema["type"]
    if kind == "array":
        return is_array(value) and all(isinstance(item, str) for item in value)
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, {"string": str, "object": dict}[kind])


def _wanted(schema: Mapping[str, Any]) -> str:
    words = {"string": "a string", "object": "a JSON object", "integer": "an integer"}
    return words.get(schema["type"], "a list of strings")
