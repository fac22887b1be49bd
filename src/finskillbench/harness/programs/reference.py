"""`baseline/reference`: follows a skill's documents, or uses plain arithmetic without one.

It plays a subtask's own procedure if scripts can be run. Otherwise it loads skills, those whose descriptions share most
words with the task first, until it finds its task in the table of one. It runs that row's script on the row's fields
and submits its keys. Without a skill it computes the no-skill baseline, or derives the answer from complete printed
definitions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
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
    prompt_of,
    read_fields,
    result_of,
    results_of,
    sub_task_of,
    submit,
    subtask_of,
)
from finskillbench.harness.prompts.compose import INPUT_SECTION
from finskillbench.harness.skills.recipes import find_recipe
from finskillbench.scoring.values import is_object

SKILL_IN_INDEX = re.compile(r"^- ([a-z0-9-]+):(.*)", re.MULTILINE)
_WORD = re.compile(r"[a-z]{3,}")
_STEM = 6
"""Characters of a word that count, so that "optimise" equals "optimisation"."""
_SAVED_BEFORE = re.compile(r"^Saved skills: (.*)$", re.MULTILINE)
_NOTES_NAME = "working-notes"
_NOTES = """\
---
name: working-notes
description: Working notes for this task, written before solving it.
---
Read the input fields with get_task_data. Use inverse variances, sums and the benchmark; check limits by hand.
"""


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
        return submit(unaided(subtask, read))


def _wanted(subtask: Subtask, messages: Sequence[Message]) -> tuple[str, ...]:
    if subtask.baselines.no_skill is not None:
        return subtask.baselines.no_skill.fields
    return printed_fields(messages) if subtask.rederive is not None else ()


def unaided(subtask: Subtask, read: Mapping[str, Any]) -> Mapping[str, Any]:
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
    """Load the best skills by description until one covers the task, run its script, submit; None if none does."""
    if "submit_answer" in offered and len(offered) == 1:  # last turn
        return None
    loaded = [*results.get("load_skill", []), *results.get("skill_view", [])]
    documents = [inline, *(result.get("content", "") for result in loaded)]
    recipe = next((found for text in documents if (found := find_recipe(text, sub_task))), None)
    if recipe is None:
        return _load_next(len(loaded), offered, results, prompt_of(messages))
    if "run_skill_script" not in offered:
        return None
    runs = results.get("run_skill_script", [])
    if not runs:
        printed = printed_fields(messages) or recipe.fields  # a task may lack fields of others of its kind
        fields = [name for name in recipe.fields if name in printed]
        run = call("run_skill_script", 0, script_path=recipe.script, input_data={}, inject_task_fields=fields)
        return Turn(tool_calls=(run,))
    output = runs[0].get("output")
    if not is_object(output):
        return None
    return submit(recipe.submission(output))


def _load_next(
    loaded: int, offered: Mapping[str, ToolSpec], results: Mapping[str, list[dict[str, Any]]], prompt: str
) -> Turn | None:
    """Load the next best skill of the index, from the tool's description or, under Hermes, from `skills_list`."""
    if "skill_view" in offered:
        if "skills_list" not in results:
            return Turn(tool_calls=(call("skills_list", 0),))
        listed = results["skills_list"][0].get("skills", [])
        index = "\n".join(f"- {skill['name']}: {skill.get('description', '')}" for skill in listed)
        names = _by_description(index, prompt)
        return Turn(tool_calls=(call("skill_view", 0, name=names[loaded]),)) if loaded < len(names) else None
    names = _by_description(offered["load_skill"].description, prompt) if "load_skill" in offered else ()
    return Turn(tool_calls=(call("load_skill", 0, skill_name=names[loaded]),)) if loaded < len(names) else None


@lru_cache(maxsize=64)
def _by_description(index: str, prompt: str) -> tuple[str, ...]:
    """Sort the skills of an index by the words they share with the task; a word weighs more, the fewer skills have it.

    Ties keep the order of the index.
    """
    names, skills = _skills_by_word(index)
    weights = dict.fromkeys(names, 0.0)
    for word in sorted(skills.keys() & _stems(prompt.partition(INPUT_SECTION)[0])):
        for name in skills[word]:
            weights[name] += math.log(len(names) / len(skills[word]))
    return tuple(sorted(names, key=lambda name: -weights[name]))


@lru_cache(maxsize=16)
def _skills_by_word(index: str) -> tuple[Sequence[str], Mapping[str, Sequence[str]]]:
    """Return the names in an index, and the names of the skills with each word."""
    listed = SKILL_IN_INDEX.findall(index)
    found: dict[str, list[str]] = {}
    for name, description in listed:
        for word in _stems(f"{name} {description}"):
            found.setdefault(word, []).append(name)
    return [name for name, _ in listed], found


def _stems(text: str) -> frozenset[str]:
    return frozenset(word[:_STEM] for word in _WORD.findall(text.lower().replace("_", " ")))


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
