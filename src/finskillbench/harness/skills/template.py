"""Template of a new skill package, which passes lint, and checks of a package's `evals/evals.json`."""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from finskillbench.errors import InputError, SkillError
from finskillbench.harness.skills.loader import EVALS, SCRIPTS, SkillPackage, read_document_file
from finskillbench.scoring.values import is_object

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*", re.ASCII)
_LONGEST = 64

_DOCUMENT = """\
---
name: {name}
description: States in one sentence what the skill does. Use when the task requires what it does.
metadata:
  author: Your Name <you@example.com>
  version: "0.1.0"
  tags: words, that, describe, it
---

# {title}

## Purpose

What to look at first, what to compute, and what to submit. Write for a colleague who has the tools but not the
experience: the order of steps, the definitions that differ from the usual ones, the checks before the
answer is submitted.

## Prerequisites

What must be there before the first step, such as fields or packages.

## Available Scripts

| Script | Purpose | Arguments |
|---|---|---|
| `scripts/total.py` | adds up | `values`, a map from name to number |

## Instructions

1. Read the fields that decide with `get_task_data`.
2. Run `scripts/total.py` on them with `run_skill_script` (elsewhere `run_script`, or a shell): it returns a `total`.
3. Compare with `references/conventions.md` before you submit.

## Examples

`{{"values": {{"a": 1, "b": 2}}}}` gives `{{"total": 3}}`.

## Limitations

What it is not for.

## Troubleshooting

An error names the value that is not a number: pass the field unchanged.
"""
_REFERENCE = """\
# Conventions

Units, signs and definitions that the answer depends on.
"""
_SCRIPT = '''\
"""Add up numbers. Payload: values (name to number). Result: total."""


def main(payload: dict) -> dict:
    """Return the sum of `values`."""
    for name, value in payload["values"].items():
        if not isinstance(value, int | float):
            raise ValueError(f"values: {name} is no number")
    return {"total": sum(payload["values"].values())}
'''
_EVALS = """\
{{
  "skill_name": "{name}",
  "evals": [
    {{
      "id": "{name}-001",
      "prompt": "What do 1 and 2 add up to?",
      "expected_output": "The agent ran scripts/total.py and reported a total of 3.",
      "assertions": ["Ran scripts/total.py", "Reported 3"],
      "expected_skill": "{name}",
      "expected_script": "total.py",
      "acceptable_skills": []
    }},
    {{
      "id": "{name}-002-negative",
      "prompt": "Translate this sentence into French: the market was calm.",
      "expected_output": "The agent did without {name}.",
      "assertions": ["Did not load {name}"],
      "expected_skill": null,
      "expected_script": null,
      "acceptable_skills": []
    }}
  ]
}}
"""


def package_files(name: str) -> dict[str, str]:
    """Return the files of a new package called `name` by path; raises `InputError` for an invalid name."""
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise InputError(
            f"{name!r} is not a valid skill name; name the folder with a-z, 0-9 and single hyphens, "
            f"at most {_LONGEST} characters"
        )
    return {
        "SKILL.md": _DOCUMENT.format(name=name, title=name.replace("-", " ").capitalize()),
        "references/conventions.md": _REFERENCE,
        "scripts/total.py": _SCRIPT,
        "evals/evals.json": _EVALS.format(name=name),
    }


_FILE = f"{EVALS}/evals.json"


def eval_problems(package: SkillPackage) -> list[str]:
    """Return the references of `evals/evals.json` (optional) that the package lacks, one line each."""
    if not os.path.lexists(package.root / _FILE):
        return []
    try:
        found: Any = msgspec.json.decode(read_document_file(package.root / _FILE))
    except SkillError as error:
        return [str(error)]
    except RecursionError:
        return [f"{_FILE} is nested too deeply"]
    except msgspec.DecodeError as error:
        return [f"{_FILE} is not JSON: {error}"]
    problems: list[str] = []
    stated = found.get("skill_name", package.name) if is_object(found) else package.name
    if stated != package.name:
        problems.append(f"{_FILE}: skill_name is {stated!r}, the package is named {package.name}")
    cases: Any = found.get("evals") if is_object(found) else found
    if not isinstance(cases, list):
        return [*problems, f"{_FILE}: no list 'evals' of cases"]
    for number, case in enumerate(cast("list[Any]", cases), 1):
        missing = [name for name in _named(case) if not _is_there(package, name)]
        problems += [f"{_FILE}, case {number}: {name!r} is not in the package" for name in missing]
    return problems


def _named(case: Any) -> Iterator[str]:
    """Yield scripts and files of a case, in the fields of agentskills.io and of NVIDIA's SkillEvaluator."""
    if is_object(case):
        files: Any = case.get("files")
        names = (case.get("expected_script"), *(cast("list[Any]", files) if isinstance(files, list) else ()))
        yield from (name for name in names if isinstance(name, str))


def _is_there(package: SkillPackage, name: str) -> bool:
    """Return True if a name exists in the package, its scripts or its `evals/`, with or without the package's name."""
    inside = os.path.normpath(name.rpartition(f"{package.name}/")[2])
    folders = (package.root, package.root / SCRIPTS, package.root / EVALS)
    # Path.exists raises for a name that is too long.
    there = any(os.path.exists(f"{folder}/{inside}") for folder in folders)  # noqa: PTH110
    return there and not inside.startswith("..")
