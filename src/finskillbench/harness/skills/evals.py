"""Cases of a package for tools that evaluate skills, `evals/evals.json`: agreement with the package."""

from __future__ import annotations

import os.path
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from finskillbench.errors import SkillError
from finskillbench.harness.skills.loader import EVALS, SCRIPTS, SkillPackage, read_document_file
from finskillbench.scoring.values import is_object

_FILE = f"{EVALS}/evals.json"


def eval_problems(package: SkillPackage) -> list[str]:
    """Return what `evals/evals.json` names and the package does not have, one line each; it may be absent."""
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
    """Scripts and files that a case expects, by the fields of agentskills.io and of NVIDIA's SkillEvaluator."""
    if is_object(case):
        files: Any = case.get("files")
        names = (case.get("expected_script"), *(cast("list[Any]", files) if isinstance(files, list) else ()))
        yield from (name for name in names if isinstance(name, str))


def _is_there(package: SkillPackage, name: str) -> bool:
    """Return True if a name, below the package, its scripts, its `evals/` or after its own name, is there."""
    inside = os.path.normpath(name.rpartition(f"{package.name}/")[2])
    folders = (package.root, package.root / SCRIPTS, package.root / EVALS)
    # Path.exists raises where a name is too long.
    there = any(os.path.exists(f"{folder}/{inside}") for folder in folders)  # noqa: PTH110
    return there and not inside.startswith("..")
