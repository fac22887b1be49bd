"""The words an agent reads: the system prompt, the task prompt, and what is left of the budget.

The rules are those of the paper's appendix B.1.1 in our own words; skills are named only where the condition has some
to load. Metadata of an episode is never shown, and the base of the task prompt is the same in every condition: a
condition may only append to it.

The answer schema of a prompt, rendered from a subtask's own answer type and never from a truth.
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
from finskillbench.harness.conditions import Arm, Mount
from finskillbench.harness.prompts.compaction import compact_input
from finskillbench.harness.skills.user_skills import EMPTY, Memory
from finskillbench.scoring.values import is_object

_SIMPLE = {"number": "number", "integer": "integer", "string": "string", "boolean": "true | false", "null": "null"}
_MAX_DEPTH = 8


@cache
def render_schema(answer: type[BaseModel]) -> str:
    """Render an answer type as commented JSON a reader takes in at a glance.

    Descriptions of fields stand behind `//`. A map is `{"<name>": T, ...}`, a list `[T, ...]`.
    """
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
"""Characters of a task prompt in any condition, apart from what an arm puts behind it that differs from episode to
episode: documents, names of saved skills and verdicts."""

_SYSTEM_PROMPT = """\
You are an investment analyst taking part in a controlled benchmark. Each task gives you financial data as it was \
known on one date and asks for one structured answer. Each tool says what it does; use them where they help.

Rules
- Work only with data that the task and its tools provide. Do not use anything that became known after `as_of_date`.
{skills}- Hand in your answer by calling `submit_answer` with JSON that follows the task's answer schema. You have \
{turns} turns, each one message of yours with any number of tool calls, and one submission.
- Do not reply in plain text and do not decline the task. Give null for a value that cannot be determined."""


_SKILLS_RULE = """\
- Skills are available: load one that fits the task and follow its guidance. If none fits, start right away.
"""


def system_prompt(arm: Arm, turns: int = MAX_TURNS) -> str:
    """Return the system prompt of a condition; `turns` are the paper's twelve unless another number is named."""
    return _SYSTEM_PROMPT.format(turns=turns, skills=_SKILLS_RULE if arm.documents else "")


APPENDIX = "\n\n# Skills\n"
"""Opens what an arm appends to the base of a prompt; no base holds this line."""

SELF_GENERATED_INSTRUCTION = """\
Important: write skills first. Before you solve the task, call `save_skill` one to three times and put down what \
would help with tasks of this kind: domain knowledge, formulas, steps, how to get at the data, edge cases. Then read \
your skills back with `load_skill` and use them to solve the task."""

PERSISTENT_INSTRUCTION = """\
Important: skills that you save with `save_skill` stay with you for the following tasks of this kind, up to three. \
Before you solve the task, read what you have saved with `load_skill`, and write or rewrite it in the light of the \
verdicts on your earlier answers: domain knowledge, formulas, steps, how to get at the data, edge cases. Then use \
your skills to solve the task.
Saved skills: {skills}
Verdicts on your earlier answers, the latest last: {verdicts}"""
VERDICTS_SHOWN = 20
"""How many of the latest verdicts stand in a prompt."""
NONE_YET = "none yet"

INLINE_INSTRUCTION = """\
This skill is already loaded; its scripts can be run with `run_skill_script`.

"""

REMINDER = """\
That was plain text, which is not recorded as an answer. Call a tool, or hand in your answer with `submit_answer`."""

LAST_TURN = """\
This is the last turn: only `submit_answer` is left. Submit the best answer you have now."""

TURNS_LEFT = "You have {turns} left, this one included{tokens}."
TOKENS_LEFT = """\
, and {tokens:,} tokens for all that you write in them, reasoning included; what goes beyond does not count"""
DATA_CALLS_LEFT = "Calls left that read data ({tools}): {calls}."
TOOL_CALLS_LEFT = "Tool calls left: {calls}."
FIXED = (REMINDER, LAST_TURN, TURNS_LEFT, TOKENS_LEFT, DATA_CALLS_LEFT, TOOL_CALLS_LEFT)
"""What an agent may be told in the course of an episode under any condition."""

_LONGEST_INSTRUCTION = max(
    len(SELF_GENERATED_INSTRUCTION),
    len(INLINE_INSTRUCTION),
    len(PERSISTENT_INSTRUCTION.format(skills=NONE_YET, verdicts=NONE_YET)),
)
_NO_SCHEMA = "As the output instructions say: one JSON object."
INPUT_SECTION, SCHEMA_SECTION = "\n## Input\n", "\n## Answer schema\n"
"""Open the input and the answer schema in a task prompt."""
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
Abridged for reading: numbers have 3 significant figures, and a field that is too long says how to read it. \
`get_task_data(field)` returns a field at full precision.
{input}

## Answer schema
{schema}"""


def task_prompt(episode: Episode, answer: type[BaseModel] | None) -> str:
    """Build the base of an episode's task prompt, the same for every condition.

    Parameters
    ----------
    episode : what the agent may see.
    answer : the subtask's answer type; None where the subtask is not registered (an imported episode), then the
        output instructions alone describe the answer.

    Raises
    ------
    EditionError : the episode's own words leave no room for its input within 12,000 characters.
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
    # Room for the longest appended instruction is kept free in every condition, so that the base never differs.
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
    """Return the task prompt of one arm: the base, and behind it what the arm appends.

    Documents in the prompt and what a stream remembers are the treatment, so they come on top of the base's
    characters instead of taking room from the input.

    Raises
    ------
    InputError : the arm shows documents in the prompt, and no package of `domain` is mounted.
    """
    arm = mounted.arm
    if arm.inline:
        documents: list[str] = []
        for package in mounted.packages_of(domain).values():
            documents += [package.body, *(f"## {name}\n\n{text}" for name, text in sorted(package.references.items()))]
        return base + APPENDIX + INLINE_INSTRUCTION + "\n\n".join(documents)
    if arm.kept:
        return base + APPENDIX + _persistent(memory)
    return base + APPENDIX + SELF_GENERATED_INSTRUCTION if arm.own else base


def remaining_text(
    left: Remaining | None, reads: Sequence[str] = (), data_calls: int | None = None, tool_calls: int | None = None
) -> str:
    """Return in one line what is left to an agent, the same in every harness.

    Parameters
    ----------
    left : turns and tokens; None where an agent with a loop of its own does not tell its turns.
    reads : names of the tools that read data, for `data_calls`.
    data_calls, tool_calls : calls left, None where these have no limit.
    """
    words: list[str] = []
    if left is not None:
        turns = max(left.turns, 0)
        tokens = "" if left.tokens is None else TOKENS_LEFT.format(tokens=max(left.tokens, 0))
        words.append(TURNS_LEFT.format(turns=f"{turns} turn{'' if turns == 1 else 's'}", tokens=tokens))
    if data_calls is not None:
        words.append(DATA_CALLS_LEFT.format(tools=", ".join(f"`{name}`" for name in reads), calls=data_calls))
    if tool_calls is not None:
        words.append(TOOL_CALLS_LEFT.format(calls=tool_calls))
    return " ".join(words)


def _persistent(memory: Memory) -> str:
    """The instruction of the persistent arm. Answers are counted, not named: an episode's id is never shown."""
    numbered = [
        f"{number}. {each.status}, " + ("no score" if each.score is None else f"{each.score:.3f} of 1")
        for number, each in enumerate(memory.verdicts, start=1)
    ]
    return PERSISTENT_INSTRUCTION.format(
        skills=", ".join(sorted(memory.skills)) or NONE_YET, verdicts="; ".join(numbered[-VERDICTS_SHOWN:]) or NONE_YET
    )


def prompt_digest(*texts: str) -> str:
    """SHA-256 over the texts in order, each closed by a NUL so that their borders count."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode())
        digest.update(b"\0")
    return digest.hexdigest()


def wording_digest() -> str:
    """Digest of every fixed text above: two runs with the same digest read the same words."""
    arms = (APPENDIX, SELF_GENERATED_INSTRUCTION, PERSISTENT_INSTRUCTION, INLINE_INSTRUCTION)
    return prompt_digest(_SYSTEM_PROMPT, _SKILLS_RULE, _TEMPLATE, *arms, *FIXED)
