"""A new skill package to start from: it lints clean as it is written."""

from __future__ import annotations

import re

from finskillbench.errors import InputError

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*", re.ASCII)
_LONGEST = 64

_DOCUMENT = """\
---
name: {name}
description: Says in one sentence what the skill does. Use when the task asks for what it does.
---

# {title}

What to look at first, what to compute, and what to hand in. Write what an expert would tell a colleague who has the
tools but not the experience: the order of steps, the definitions that differ from the usual ones, the checks before the
answer is submitted.

1. Read the fields that decide with `get_task_data`.
2. Run `scripts/total.py` on them: it takes `values`, a map from name to number, and returns their `total`.
3. Compare with `references/conventions.md` before you submit.
"""
_REFERENCE = """\
# Conventions

Units, signs and definitions that the answer depends on.
"""
_SCRIPT = '''\
"""Add up numbers. Payload: values (name to number). Result: total."""


def main(payload: dict) -> dict:
    """Return the sum of `values`."""
    return {"total": sum(payload["values"].values())}
'''


def package_files(name: str) -> dict[str, str]:
    """The files of a package called `name`, by path within its folder: a document, a reference and a script.

    Raises
    ------
    InputError : no skill may be called so.
    """
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise InputError(
            f"{name!r} is no name of a skill, which its folder bears: lower-case letters, digits and single hyphens, "
            f"at most {_LONGEST}"
        )
    return {
        "SKILL.md": _DOCUMENT.format(name=name, title=name.replace("-", " ").capitalize()),
        "references/conventions.md": _REFERENCE,
        "scripts/total.py": _SCRIPT,
    }
