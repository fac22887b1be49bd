"""Packages with a planted fault, and the answer of an agent that follows a package without checking it."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import orjson

from finskillbench.domains import domain_of, domains, subtask_named
from finskillbench.domains.base import Domain
from finskillbench.domains.checks.agreement import leaves_of
from finskillbench.domains.faults import Fault, matches
from finskillbench.errors import InputError
from finskillbench.harness.skills.loader import (
    SkillPackage,
    by_name,
    curated,
    digest,
    load_package,
    read_files,
    scratch,
    write_files,
)
from finskillbench.harness.skills.recipes import find_recipe
from finskillbench.sandbox.child import encode_result

FAULTY_PREFIX = "faulty:"
"""Start of the names of conditions with faulty packages."""


@cache
def faulty(kind: str) -> Mapping[str, SkillPackage]:
    """Return the curated packages by name, those with a fault of a kind in a folder of this process."""
    found = curated()
    for _, fault in faults(kind):
        files = fault.applied(read_files(found[fault.package].root))
        root = scratch("packages") / digest(files)[:16] / fault.package  # names that do not give the fault away
        write_files(files, root)
        found[fault.package] = load_package(root)
    return MappingProxyType(by_name(found.values()))


def faults(kind: str | None = None) -> Iterator[tuple[Domain, Fault]]:
    """Yield the registered faults of a kind, or all, with their domains."""
    for one in domains():
        yield from ((one, fault) for fault in one.faults if kind in (None, fault.kind))


def fault_of(kind: str, sub_task: str) -> tuple[Domain, Fault] | None:
    """Return the fault of a kind that concerns a subtask; None if there is none."""
    return next((found for found in faults(kind) if sub_task in found[1].clauses), None)


def followed(packages: Iterable[SkillPackage], sub_task: str, task_input: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to which the document of a package leads: its row's script, run here, and the keys to submit.

    Raises `InputError` if no document has a row for the subtask, or the script fails.
    """
    for package in packages:
        recipe = find_recipe(package.body, sub_task)
        if recipe is not None:
            payload = orjson.dumps({name: task_input[name] for name in recipe.fields if name in task_input})
            try:
                output = script_output(package.root / recipe.script, payload)
            except Exception as error:
                raise InputError(f"{recipe.script}: {type(error).__name__}: {error}") from error
            return recipe.submission(output)
    raise InputError(f"no document of {', '.join(one.name for one in packages)} names a script for {sub_task}")


def script_output(script: Path, payload: bytes) -> dict[str, Any]:
    """Return the result of a script's `main`, run in this process; raises what the script raises."""
    return json.loads(encode_result(_main(script)(orjson.loads(payload))))


@lru_cache(maxsize=64)
def _main(script: Path) -> Callable[[dict[str, Any]], object]:
    return runpy.run_path(str(script))["main"]


def blind_answer(fault: Fault, sub_task: str, task_input: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the answer of an agent that follows a faulty package; None if its script refuses the episode's input."""
    try:
        return followed([faulty(fault.kind)[fault.package]], sub_task, task_input)
    except InputError:
        return None


def conforms(sub_task: str, task_input: Mapping[str, Any], answer: Mapping[str, Any]) -> bool | None:
    """Return True if an answer keeps the printed conventions, by code that shares nothing with the scripts.

    None if the subtask has no such check.
    """
    subtask = subtask_named(sub_task)
    if (accepts := domain_of(sub_task).accepts.get(sub_task)) is not None:
        return bool(accepts(task_input, answer))  # not NumPy's
    if subtask.rederive is None:
        return None
    described = subtask.verification.description
    wanted = {
        path: value
        for path, value in leaves_of(subtask.rederive(task_input)).items()
        if path.rpartition(".")[2] not in described and value != []  # what tools show may lack derived entries
    }
    return matches(answer, wanted)
