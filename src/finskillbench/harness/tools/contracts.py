"""Define the tools as a model sees them, and check arguments.

Descriptions mention skills, scripts and code only where a condition grants them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import orjson

from finskillbench.domains import domain as registered
from finskillbench.domains import subtask_named
from finskillbench.domains.interactive import EpisodeBudget
from finskillbench.domains.tables import MOST_ROWS
from finskillbench.errors import InputError
from finskillbench.harness.conditions import COMMON_TOOLS, Arm, Mount, expected_tools
from finskillbench.harness.model import ToolSpec
from finskillbench.harness.skills.user_skills import MAX_NAME_CHARS, MAX_SAVED_SKILLS
from finskillbench.harness.tools.interpreters import LIBRARIES, LIMITS
from finskillbench.harness.trace import CallOutcome
from finskillbench.sandbox import snippet
from finskillbench.sandbox.limits import format_size
from finskillbench.scoring.values import is_array, is_object

MAX_RESULT_CHARS = 262_144
"""Longest tool result; it fits a full covariance of 100 names, and longer data can be read in parts."""


class ToolError(Exception):
    """A call that cannot be served; the agent gets `payload` as JSON, and the loop no exception."""

    outcome: CallOutcome = "tool_failed"

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.payload: dict[str, Any] = {"error": message, **details}


class NoSkillsError(ToolError):
    """Request of a skill before any is saved; it follows the instructions and is no incident."""

    outcome = "ok"

    def __init__(self) -> None:
        super().__init__("No skills available.")


class UnknownToolError(ToolError):
    """A call of a tool that is not offered."""

    outcome = "unknown_tool"


class ArgumentsError(ToolError):
    """A call whose arguments do not match the tool's schema."""

    outcome = "invalid_arguments"


def _object(required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


_STRINGS = {"type": "array", "items": {"type": "string"}}

SUBMIT_ANSWER = ToolSpec(
    "submit_answer",
    "Submit the final answer and end the session. It is recorded as given; there is one submission.",
    _object(["answer"], answer=_text("The answer as JSON text that follows the task's answer schema.")),
)
LOAD_SKILL = "load_skill"
RUN_SKILL_SCRIPT = "run_skill_script"
LOAD_REFERENCES = ToolSpec(
    "load_references",
    "Load reference documents of a skill: the one that `file` names, or all. The skill then counts as loaded, but its "
    "SKILL.md is not in the result: load_skill returns that, and lists the documents and their lengths.",
    _object(["skill_name"], skill_name=_text("Name of the skill."), file=_text("Name of one document; left out: all.")),
)
GET_TASK_DATA = ToolSpec(
    "get_task_data",
    "Return one field of the task's input at full precision. A dotted path reaches inside a field: `field.key`, or "
    "`field.0` for the first entry of a list.",
    _object(["field"], field=_text("Name of the input field.")),
)
QUERY_XBRL = ToolSpec(
    "query_xbrl",
    "Query facts that a company had filed by the task's as_of_date, the latest period first: one row per XBRL tag, "
    "period and filing in which the figure was new, with duration, unit, form, filing date and accession number. "
    "Nothing is chosen or computed: the rows include quarters and years to date, parts and totals, restated figures "
    "and those they replace. If something is not on file, the result lists what is.",
    _object(
        ["ticker"],
        ticker=_text("Ticker of the company."),
        period=_text("End of the period, YYYY-MM-DD, or its month YYYY-MM or year YYYY; left out: all."),
        metrics={**_STRINGS, "description": "XBRL tags, such as NetIncomeLoss; left out: all, empty: none."},
        form=_text("Form of the filing, such as 10-K (with its amendments) or 10-Q; left out: all."),
        duration=_text("instant, quarterly, half, nine_months or annual; left out: all."),
        axis=_text(
            "product_segment or geographic_segment: adds `segments`, revenue by member of that axis, which metrics "
            "does not filter and `matching` does not count."
        ),
        limit={
            "type": "integer",
            "description": "Most facts to return, and most rows of segments, 1 to 500; left out: 200.",
        },
    ),
)
SAVE_SKILL = ToolSpec(
    "save_skill",
    f"Write a skill of your own (at most {MAX_SAVED_SKILLS}); load_skill returns it.",
    _object(
        ["skill_name", "content"],
        skill_name=_text(f"Lower-case letters, digits and single hyphens, at most {MAX_NAME_CHARS} characters."),
        content=_text("The text of SKILL.md."),
    ),
)
READ_TABLE, RUN_PYTHON = "read_table", "run_python"
_TABLE_PARAMETERS = _object(
    ["table"],
    table=_text("Input field that holds the table."),
    first={"type": "integer", "description": "First row of the page, from 0; left out: 0."},
    rows={"type": "integer", "description": f"Rows of the page, 1 to {MOST_ROWS}; left out: {MOST_ROWS}."},
    columns={**_STRINGS, "description": "Columns to return; left out: all."},
    where={"type": "object", "description": "Column to the value, or list of values, that its rows must have."},
)
READS_DATA = frozenset({GET_TASK_DATA.name, QUERY_XBRL.name, READ_TABLE})
"""Tools counted by a budget of data calls."""
READS_SKILLS = frozenset({LOAD_SKILL, LOAD_REFERENCES.name})
"""Tools withdrawn from an agent that reads skills as files."""
_DOMAIN_TOOLS = (QUERY_XBRL.name, READ_TABLE)


def tool_specs(mounted: Mount, domain: str, subtask_specs: tuple[ToolSpec, ...] = ()) -> tuple[ToolSpec, ...]:
    """Return the tools offered in `domain` under a condition, in wire order; raises `InputError` for unknown ones."""
    index = tuple((name, package.description) for name, package in sorted(mounted.loadable.items()))
    shared = _specs(mounted.arm, domain, index, mounted.script_index)
    at = len(COMMON_TOOLS) + len(registered(domain).tools)
    return (*shared[:at], *subtask_specs, *shared[at:])


def subtask_tools(sub_task: str) -> tuple[ToolSpec, ...]:
    """Return a subtask's own tools; none for an unregistered subtask of an imported episode."""
    try:
        interactive = subtask_named(sub_task).interactive
    except InputError:
        return ()
    tools = () if interactive is None else interactive.tools
    return tuple(ToolSpec(each.name, each.description, each.parameters) for each in tools)


def budget_of(sub_task: str) -> EpisodeBudget | None:
    """Return a subtask's budget; None for an unregistered subtask of an imported episode."""
    try:
        interactive = subtask_named(sub_task).interactive
    except InputError:
        return None
    return None if interactive is None else interactive.budget


@cache
def _specs(
    arm: Arm, domain: str, skills: tuple[tuple[str, str], ...], scripts: tuple[tuple[str, str], ...]
) -> tuple[ToolSpec, ...]:
    named = registered(domain).tools
    for name in named:
        if name not in _DOMAIN_TOOLS:
            raise InputError(f"domain {domain}: tool {name!r} is unknown; a domain can name {', '.join(_DOMAIN_TOOLS)}")
    specs = (
        SUBMIT_ANSWER,
        GET_TASK_DATA,
        QUERY_XBRL,
        _read_table(arm),
        _load_skill(arm, skills),
        LOAD_REFERENCES,
        _run_skill_script(scripts, filings=QUERY_XBRL.name in named),
        SAVE_SKILL,
        _run_python(arm),
    )
    by_name = {spec.name: spec for spec in specs}
    return tuple(by_name[name] for name in expected_tools(arm, domain))


def _load_skill(arm: Arm, index: tuple[tuple[str, str], ...]) -> ToolSpec:
    description = "Load a skill: the text of its SKILL.md"
    if arm.documents:
        listed = ", and the names of its scripts" if arm.scripts else ""
        description += f", with the names of its references and their lengths in characters{listed}"
    description += "." + _listed("skills", index)
    return ToolSpec(LOAD_SKILL, description, _object(["skill_name"], skill_name=_text("Name of the skill.")))


def _run_skill_script(index: tuple[tuple[str, str], ...], *, filings: bool) -> ToolSpec:
    injected = (
        "Input fields of the task that the server adds to input_data under their own names, at full precision, "
        "replacing existing entries"
    )
    return ToolSpec(
        RUN_SKILL_SCRIPT,
        "Run a script of a skill and return its JSON output." + _listed("scripts", index),
        _object(
            ["script_path"],
            script_path=_text("Path inside the skill, such as scripts/name.py."),
            input_data={"type": "object", "description": "The script's input."},
            inject_task_fields={
                **_STRINGS,
                "description": injected + ("; filing_facts as the metrics of the conventions." if filings else "."),
            },
        ),
    )


def _listed(what: str, index: tuple[tuple[str, str], ...]) -> str:
    return f" Available {what}:\n" + "\n".join(f"- {name}: {text}" for name, text in index) if index else ""


def _read_table(arm: Arm) -> ToolSpec:
    whole = [f"`inject_task_fields` of {RUN_SKILL_SCRIPT}"] * arm.scripts + [f"`task` of {RUN_PYTHON}"] * arm.code
    return ToolSpec(
        READ_TABLE,
        f"Return a page of a table of the task, at most {MOST_ROWS} rows: its columns, the number of matching rows and "
        "the rows. A table is too long to read as a whole: request the rows and columns that matter"
        + (f", or compute on the whole table with {' or '.join(whole)}." if whole else "."),
        _TABLE_PARAMETERS,
    )


def _run_python(arm: Arm) -> ToolSpec:
    imports = "scripts of a loaded skill can be imported by name (`import name` for scripts/name.py). "
    return ToolSpec(
        RUN_PYTHON,
        "Run Python code and return its printed text and the value of its last expression. The dict `task` holds the "
        f"fields of the task's input, as get_task_data returns them; {', '.join(LIBRARIES)} and the standard library "
        f"can be imported{f'; {imports}' if arm.scripts else '. '}No variable is kept between calls, but files in "
        f"the working folder are; if they exceed {snippet.MOST_FILES} files or {format_size(snippet.MOST_BYTES)} in "
        "all, they stay as they were before the call. Printed text is cut after "
        f"{format_size(LIMITS.printed_bytes)}. No network, no processes; {LIMITS.wall_seconds:g} s and "
        f"{format_size(LIMITS.memory_bytes)} of memory per call.",
        _object(["code"], code=_text("Python code.")),
    )


def parse_arguments(spec: ToolSpec, text: str) -> dict[str, Any]:
    """Parse the arguments of a call and check them against the tool's schema; raises `ArgumentsError`.

    Empty text counts as no arguments. `submit_answer` also accepts an object or a list.
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
    """Return `text` cut to `limit` characters, for quoting a model in a message."""
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    kind = schema["type"]
    if kind == "array":
        return is_array(value) and all(isinstance(item, str) for item in value)
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, {"string": str, "object": dict}[kind])


def _wanted(schema: Mapping[str, Any]) -> str:
    descriptions = {"string": "a string", "object": "a JSON object", "integer": "an integer"}
    return descriptions.get(schema["type"], "a list of strings")
