"""Rows of a skill's table: the script that a document names for a task, its fields, and the keys to submit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

_STATED = re.compile(r"`(\w+)` as `(true|false|null|0|\[\])`")


@dataclass(frozen=True, slots=True)
class Recipe:
    """One row of a skill's table: script, task fields and answer keys.

    `stated` are values that the document gives for keys of the row, in place of the script's output.
    """

    script: str
    fields: tuple[str, ...]
    keys: tuple[str, ...]
    stated: Mapping[str, Any]

    def submission(self, output: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer by the document, given the script's output."""
        return {key: self.stated.get(key, output.get(key)) for key in self.keys}


def find_recipe(document: str, sub_task: str) -> Recipe | None:
    """Return the first row for a subtask in a skill's table `task | script | inject_task_fields | submit`."""
    return _recipes(document).get(sub_task)


@lru_cache(maxsize=64)
def _recipes(document: str) -> Mapping[str, Recipe]:
    found: dict[str, Recipe] = {}
    stated = {key: orjson.loads(value) for key, value in _STATED.findall(document)}
    for line in document.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 4:
            fields, keys = (tuple(part.strip() for part in cell.split(",")) for cell in cells[2:])
            row = Recipe(cells[1].strip("`"), fields, keys, {key: stated[key] for key in keys if key in stated})
            found.setdefault(re.sub(r"[ -]", "_", cells[0].lower()), row)
    return found
