"""`baseline/reference`: follows a skill's documents, or uses plain arithmetic without one.

It plays a subtask's own procedure if scripts can be run. Otherwise it finds its task in the table of a loaded skill,
runs that row's script on the row's fields and submits its keys. Without a skill it computes the no-skill baseline, or
derives the answer from complete printed definitions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from finskillbench.domains import Subtask
from finskillbench.harness.model import Message, ToolSpec, Turn
from finskillbench.harness.programs.program import (
    Program,
    appended_of,
    call,
    can_play,
    fields_read,
    naive_answer,
    next_turn,
    parsed,
    printed_fields,
    procedure_of,
    read_fields,
    result_of,
    results_of,
    sub_task_of,
    submit,
    subtask_of,
)
from finskillbench.scoring.values import is_object

_SKILL_IN_INDEX = re.compile(r"^- ([a-z0-9-]+):", re.MULTILINE)
_SAVED_BEFORE = re.compile(r"^Saved skills: (.*)$", re.MULTILINE)
_NOTES_NAME = "working-notes"
_NOTES = """\
---
name: working-notes
description: Working notes for this task, written before solving it.
---
Read the input fields with get_task_data. Use inverse variances, sums and the benchmark; check limits by hand.
"""


@dataclass(frozen=True, slots=True)
class Recipe:
    """One row of a skill's table: script, task fields and answer keys."""

    script: str
    fields: tuple[str, ...]
    keys: tuple[str, ...]


class Reference(Program):
    """`baseline/reference`: stateless; decisions depend on the conversation alone."""

    name = "baseline/reference"

    def respond(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        """Take the next step that the offered tools allow."""
        offered = {tool.name: tool for tool in tools}
        sub_task = sub_task_of(messages)
        results = _results(messages)
        appended = appended_of(messages)
        if "save_skill" in offered and "load_skill" not in results:
            saved = _SAVED_BEFORE.search(appended)
            remembers = saved is not None and _NOTES_NAME in saved[1].split(", ")
            notes = () if remembers else (call("save_skill", 0, skill_name=_NOTES_NAME, content=_NOTES),)
            return Turn(tool_calls=(*notes, call("load_skill", 1, skill_name=_NOTES_NAME)))
        subtask = subtask_of(messages)
        procedure = procedure_of(subtask, "reference")
        turn = next_turn(procedure, messages, tools) if procedure is not None and can_play(tools) else None
        turn = turn or _use_skill(sub_task, appended, offered, results, messages)
        if turn is not None:
            return turn
        if subtask is None:
            return submit({})
        wanted = _wanted(subtask, messages)
        read = fields_read(results_of(messages))
        if wanted and not read:
            return read_fields(*wanted)
        return submit(_unaided(subtask, read))


def _wanted(subtask: Subtask, messages: Sequence[Message]) -> tuple[str, ...]:
    if subtask.baselines.no_skill is not None:
        return subtask.baselines.no_skill.fields
    return printed_fields(messages) if subtask.rederive is not None else ()


def _unaided(subtask: Subtask, read: Mapping[str, Any]) -> Mapping[str, Any]:
    if subtask.baselines.no_skill is not None or subtask.rederive is None:
        return naive_answer(subtask.baselines.no_skill, read)
    try:
        return subtask.rederive(read)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return {}  # an imported episode may lack inputs of the definitions


def _use_skill(
    sub_task: str,
    inline: str,
    offered: Mapping[str, ToolSpec],
    results: Mapping[str, list[dict[str, Any]]],
    messages: Sequence[Message],
) -> Turn | None:
    """Load skills in index order until one covers the task, run its script, submit; None if none does."""
    if "submit_answer" in offered and len(offered) == 1:  # last turn
        return None
    loaded = [*results.get("load_skill", []), *results.get("skill_view", [])]
    documents = [inline, *(result.get("content", "") for result in loaded)]
    recipe = next((found for text in documents if (found := find_recipe(text, sub_task))), None)
    if recipe is None:
        return _load_next(len(loaded), offered, results)
    if "run_skill_script" not in offered:
        return None
    runs = results.get("run_skill_script", [])
    if not runs:
        printed = printed_fields(messages) or recipe.fields  # a task may lack fields of others of its kind
        fields = [name for name in recipe.fields if name in printed]
        run = call("run_skill_script", 0, script_path=recipe.script, input_data={}, inject_task_fields=fields)
        return Turn(tool_calls=(run,))
    output = runs[-1].get("output")
    if not is_object(output):
        return None
    return submit({key: output.get(key) for key in recipe.keys})


def _load_next(
    loaded: int, offered: Mapping[str, ToolSpec], results: Mapping[str, list[dict[str, Any]]]
) -> Turn | None:
    """Load the next skill of the index, from the tool's description or, under Hermes, from `skills_list`."""
    if "skill_view" in offered:
        if "skills_list" not in results:
            return Turn(tool_calls=(call("skills_list", 0),))
        names = [skill["name"] for skill in results["skills_list"][0].get("skills", [])]
        return Turn(tool_calls=(call("skill_view", 0, name=names[loaded]),)) if loaded < len(names) else None
    names = _SKILL_IN_INDEX.findall(offered["load_skill"].description) if "load_skill" in offered else []
    return Turn(tool_calls=(call("load_skill", 0, skill_name=names[loaded]),)) if loaded < len(names) else None


def find_recipe(document: str, sub_task: str) -> Recipe | None:
    """Return the first row for a subtask in a skill's table `task | script | inject_task_fields | submit`."""
    return _recipes(document).get(sub_task)


@lru_cache(maxsize=64)
def _recipes(document: str) -> Mapping[str, Recipe]:
    found: dict[str, Recipe] = {}
    for line in document.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 4:
            fields, keys = (tuple(part.strip() for part in cell.split(",")) for cell in cells[2:])
            found.setdefault(re.sub(r"[ -]", "_", cells[0].lower()), Recipe(cells[1].strip("`"), fields, keys))
    return found


def _results(messages: Sequence[Message]) -> dict[str, list[dict[str, Any]]]:
    """Return the results of each tool in order; call ids are unique within a turn only."""
    names: dict[str, str] = {}
    found: dict[str, list[dict[str, Any]]] = {}
    for message in messages:
        if message.tool_calls:
            names = {item.id: item.name for item in message.tool_calls}
        elif message.role == "tool" and message.tool_call_id in names:
            result = parsed(result_of(message))
            found.setdefault(names[message.tool_call_id], []).append(dict(result) if is_object(result) else {})
    return found
