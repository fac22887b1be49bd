"""Compose prompts for agents: system prompt, task prompt, answer schema and remaining budget.

The rules follow the paper's appendix B.1.1 in new wording. Metadata of an episode is never shown. The base of the task
prompt is the same in every condition. The schema is derived from the answer type, never from a truth.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import orjson
from pydantic import BaseModel

from finskillbench.episode import Episode
from finskillbench.errors import EditionError
from finskillbench.harness.allowance import MAX_TURNS, Remaining
from finskillbench.harness.conditions import Activation, Arm, Mount
from finskillbench.harness.prompts.compaction import compact_input
from finskillbench.harness.skills.user_skills import EMPTY, Memory
from finskillbench.scoring.values import is_object

_SIMPLE = {"number": "number", "integer": "integer", "string": "string", "boolean": "true | false", "null": "null"}
_MAX_DEPTH = 8


@cache
def render_schema(answer: type[BaseModel]) -> str:
    """Render an answer type as JSON with descriptions after `//`, maps as `{"<name>": T, ...}`, lists as `[T, ...]`."""
    schema = answer.model_json_schema()
    return _object(schema, schema.get("$defs", {}), indent=0)


def _object(node: Mapping[str, Any], defs: Mapping[str, Any], *, indent: int) -> str:
    required = set(node.get("required", ()))
    pad = "  " * (indent + 1)
    lines: list[str] = []
    for name, child in node.get("properties", {}).items():
        notes = [child["description"]] if child.get("description") else []
        if name not in required:
            notes.insert(0, "optional")
        comment = f"  // {'; '.join(notes)}" if notes else ""
        lines.append(f"{pad}{orjson.dumps(name).decode()}: {_type(child, defs, indent=indent + 1)},{comment}")
    return "{\n" + "\n".join(lines) + "\n" + "  " * indent + "}"


def _type(node: Mapping[str, Any], defs: Mapping[str, Any], *, indent: int) -> str:
    if indent > _MAX_DEPTH:
        return "any"
    if "$ref" in node:
        return _type(defs[node["$ref"].rsplit("/", 1)[-1]], defs, indent=indent)
    if "const" in node:
        return orjson.dumps(node["const"]).decode()
    if "enum" in node:
        return " | ".join(orjson.dumps(value).decode() for value in node["enum"])
    for key in ("anyOf", "oneOf", "allOf"):
        if key in node:
            return " | ".join(dict.fromkeys(_type(child, defs, indent=indent) for child in node[key]))
    kind = node.get("type")
    if kind == "array":
        items = _type(node.get("items", {}), defs, indent=indent)
        return f"[{items}, ...]"
    if kind == "object":
        if node.get("properties"):
            return _object(node, defs, indent=indent)
        extra = node.get("additionalProperties")
        return f'{{"<name>": {_type(extra, defs, indent=indent)}, ...}}' if is_object(extra) else "{...}"
    return _SIMPLE.get(kind, "any") if isinstance(kind, str) else "any"


MAX_TASK_PROMPT = 12_000
"""Maximum characters of a task prompt, without appended documents, names of saved skills and verdicts."""

_SYSTEM_PROMPT = """\
You are an investment analyst taking part in a controlled benchmark. Each task gives you financial data as it was \
known on one date and requires one structured answer. Each tool has a description; use them where they help.

Rules
- Work only with data that the task and its tools provide. Do not use anything that became known after `as_of_date`.
{skills}- Submit your answer by calling `submit_answer` with JSON that follows the task's answer schema. You have \
{turns} turns, each one message of yours with any number of tool calls, and one submission.
- Do not reply in plain text and do not decline the task. Give null for a value that cannot be determined."""


_SKILLS_RULE = """\
- Skills are available: load one that fits the task and follow its guidance. If none fits, start without one.
"""


def system_prompt(arm: Arm, turns: int = MAX_TURNS) -> str:
    """Return the system prompt of a condition; `turns` defaults to the paper's twelve."""
    return _SYSTEM_PROMPT.format(turns=turns, skills=_SKILLS_RULE if arm.documents else "")


APPENDIX = "\n\n# Skills\n"
"""Start of a condition's appendix to the prompt; no base contains this line."""

SELF_GENERATED_INSTRUCTION = """\
Important: write skills first. Before you solve the task, call `save_skill` one to three times to record what \
would help with tasks of this kind: domain knowledge, formulas, steps, how to get the data, edge cases. Then read \
your skills with `load_skill` and use them to solve the task."""

PERSISTENT_INSTRUCTION = """\
Important: skills that you save with `save_skill`, up to three, remain available in later tasks of this kind. \
Before you solve the task, read your saved skills with `load_skill`, and write or revise them in view of the \
verdicts on your earlier answers: domain knowledge, formulas, steps, how to get the data, edge cases. Then use \
your skills to solve the task.
Saved skills: {skills}
Verdicts on your earlier answers, the latest last: {verdicts}"""
VERDICTS_SHOWN = 20
NONE_YET = "none yet"

HINT = """\
Skills for this task: {skills}. Load them before you solve it."""

INLINE_INSTRUCTION = """\
This skill is already loaded; its scripts can be run with `run_skill_script`.

"""

REMINDER = """\
Plain text is not recorded as an answer. Call a tool, or submit your answer with `submit_answer`."""

LAST_TURN = """\
This is the last turn: only `submit_answer` is available. Submit the best answer you have now."""

TURNS_LEFT = "You have {turns} left, this one included{tokens}."
TOKENS_LEFT = """\
, and {tokens:,} tokens for all your output in them, reasoning included; output beyond that does not count"""
DATA_CALLS_LEFT = "Calls left that read data ({tools}): {calls}."
TOOL_CALLS_LEFT = "Tool calls left: {calls}."
FIXED_TEXTS = (REMINDER, LAST_TURN, TURNS_LEFT, TOKENS_LEFT, DATA_CALLS_LEFT, TOOL_CALLS_LEFT)
"""Fixed texts that an agent may read during an episode under any condition."""

_LONGEST_INSTRUCTION = max(
    len(SELF_GENERATED_INSTRUCTION),
    len(INLINE_INSTRUCTION),
    len(PERSISTENT_INSTRUCTION.format(skills=NONE_YET, verdicts=NONE_YET)),
)
_NO_SCHEMA = "As in the output instructions: one JSON object."
INPUT_SECTION, SCHEMA_SECTION = "\n## Input\n", "\n## Answer schema\n"
"""Headings of the input and the answer schema in a task prompt."""
_TEMPLATE = """\
# Task
Subtask: {sub_task}
as_of_date: {as_of_date}
Difficulty: {difficulty}

## Description
{description}

## Output instructions
{instructions}

## Input
Abridged: numbers have 3 significant figures, and a field that is too long names the call that reads it. \
`get_task_data(field)` returns a field at full precision.
{input}

## Answer schema
{schema}"""


def task_prompt(episode: Episode, answer: type[BaseModel] | None) -> str:
    """Build the base of an episode's task prompt, the same for every condition.

    Without an `answer` type, as for an imported episode, the output instructions alone describe the answer. Raises
    `EditionError` if the texts leave no space for the input within 12,000 characters.
    """
    values = {
        "sub_task": episode.sub_task,
        "as_of_date": episode.as_of_date.isoformat(),
        "difficulty": episode.difficulty,
        "description": episode.prompt.task_description,
        "instructions": episode.prompt.output_instructions,
        "schema": render_schema(answer) if answer is not None else _NO_SCHEMA,
    }
    fixed = len(_TEMPLATE.format(input="", **values))
    # Space for the longest appended instruction is reserved in every condition, so that the base is always the same.
    budget = MAX_TASK_PROMPT - len(APPENDIX) - _LONGEST_INSTRUCTION - fixed
    try:
        text = compact_input(episode.input, budget)
    except ValueError as error:
        raise EditionError(
            f"episode {episode.task_id}: the prompt cannot be kept under {MAX_TASK_PROMPT} characters ({error}); "
            "shorten the description or the output instructions"
        ) from error
    return _TEMPLATE.format(input=text, **values)


def arm_prompt(base: str, mounted: Mount, domain: str, memory: Memory = EMPTY) -> str:
    """Return the task prompt of one condition: the base and its appendix, which does not shorten the input.

    Raises `InputError` if an inline condition has no mounted package of `domain`.
    """
    arm = mounted.arm
    if arm.inline:
        documents: list[str] = []
        for package in mounted.packages_of(domain).values():
            documents += [package.body, *(f"## {name}\n\n{text}" for name, text in sorted(package.references.items()))]
        return base + APPENDIX + INLINE_INSTRUCTION + "\n\n".join(documents)
    if arm.activation is Activation.FORCED:
        bodies = (package.body for package in mounted.packages_for_task(domain).values())
        return base + APPENDIX + INLINE_INSTRUCTION + "\n\n".join(bodies)
    if arm.activation is Activation.HINTED:
        return base + APPENDIX + HINT.format(skills=", ".join(mounted.packages_for_task(domain)))
    if arm.kept:
        return base + APPENDIX + _persistent(memory)
    return base + APPENDIX + SELF_GENERATED_INSTRUCTION if arm.own else base


def remaining_text(
    remaining: Remaining | None, reads: Sequence[str] = (), data_calls: int | None = None, tool_calls: int | None = None
) -> str:
    """Return the remaining budget in one line; None means no limit, or unknown for turns and tokens.

    `reads` are the names of the tools that `data_calls` counts.
    """
    parts: list[str] = []
    if remaining is not None:
        turns = max(remaining.turns, 0)
        tokens = "" if remaining.tokens is None else TOKENS_LEFT.format(tokens=max(remaining.tokens, 0))
        parts.append(TURNS_LEFT.format(turns=f"{turns} turn{'' if turns == 1 else 's'}", tokens=tokens))
    if data_calls is not None:
        parts.append(DATA_CALLS_LEFT.format(tools=", ".join(f"`{name}`" for name in reads), calls=data_calls))
    if tool_calls is not None:
        parts.append(TOOL_CALLS_LEFT.format(calls=tool_calls))
    return " ".join(parts)


def _persistent(memory: Memory) -> str:
    """Return the persistent condition's instruction; answers are numbered, as episode ids are never shown."""
    numbered = [
        f"{number}. {each.status}, " + ("no score" if each.score is None else f"{each.score:.3f} of 1")
        for number, each in enumerate(memory.verdicts, start=1)
    ]
    return PERSISTENT_INSTRUCTION.format(
        skills=", ".join(sorted(memory.skills)) or NONE_YET, verdicts="; ".join(numbered[-VERDICTS_SHOWN:]) or NONE_YET
    )


def prompt_digest(*texts: str) -> str:
    """Return the SHA-256 over the texts in order, each terminated by a NUL."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode())
        digest.update(b"\0")
    return digest.hexdigest()


def wording_digest() -> str:
    """Return the digest of all fixed texts of this module, which identifies the wording of a run."""
    arms = (APPENDIX, SELF_GENERATED_INSTRUCTION, PERSISTENT_INSTRUCTION, INLINE_INSTRUCTION, HINT)
    return prompt_digest(_SYSTEM_PROMPT, _SKILLS_RULE, _TEMPLATE, *arms, *FIXED_TEXTS)
