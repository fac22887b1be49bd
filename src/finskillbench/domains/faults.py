"""Planted faults of skill packages, and recognition of the answers to which they lead.

A fault changes document or script of one package as a stale or wrong procedure would. Printed conventions of the
subtasks concerned contradict it. But for `contradiction` and `injection`, document and script state the same rule.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec

from finskillbench.domains.checks.agreement import leaves_of
from finskillbench.episode import JsonObject
from finskillbench.errors import InputError
from finskillbench.scoring.values import is_array, is_object

ROUNDING = 2e-6
"""Largest difference of equal numbers, relative from 1 on: answers need six decimals."""
LEAST_LOSS = 0.02
"""Score that a faulty answer must lose; with a smaller loss, an episode does not count as concerned."""
DETAIL = "fault"
"""Key in the details of a verdict: `package` with the fault, `equal` to its answer, `loss` in money with its `unit`."""


class FaultKind(StrEnum):
    """Kind of a planted fault."""

    SIGN = "sign"
    UNIT = "unit"
    SUPERSEDED = "superseded"
    LOOK_AHEAD = "look_ahead"
    QUARTER_BASIS = "quarter_basis"
    DROPPED_CONSTRAINT = "dropped_constraint"
    FACTOR = "factor"
    CONTRADICTION = "contradiction"
    INJECTION = "injection"


@dataclass(frozen=True, slots=True)
class Edit:
    """Replacement of `old`, which occurs once in each of some files of the package, by `new`."""

    files: tuple[str, ...]
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a package.

    package : name of the package.
    clauses : for each subtask concerned, a passage of its prompt that the faulty procedure contradicts.
    """

    kind: FaultKind
    package: str
    clauses: Mapping[str, str]
    edits: tuple[Edit, ...]

    def applied(self, files: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return the files of the package with the fault; raises `InputError` unless each `old` occurs once."""
        changed = dict(files)
        for file, old, new in ((file, edit.old, edit.new) for edit in self.edits for file in edit.files):
            text = changed.get(file, b"").decode()
            if text.count(old) != 1:
                raise InputError(
                    f"fault {self.kind} of {self.package}: {file} has {old[:60]!r} {text.count(old)} times, not once; "
                    "adapt the fault to the package"
                )
            changed[file] = text.replace(old, new).encode()
        return changed


def read_faults(path: Path) -> tuple[Fault, ...]:
    """Read faults from a TOML file: tables `faults` with the fields of `Fault`, and `edits` with those of `Edit`."""
    return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8"))["faults"], tuple[Fault, ...])


Accepts: TypeAlias = Callable[[Any, JsonObject], bool]
"""`(task_input, answer) -> bool`: whether an answer keeps the printed conventions, by code independent of scripts."""


class Loss(NamedTuple):
    """Loss in money of `answer` next to the right one, `(task_input, answer, right) -> amount`; None if undefined."""

    unit: str
    of: Callable[[Any, JsonObject, JsonObject], float | None]


BASIS_POINTS, DOLLARS = "bp", "USD"
"""Units of losses: basis points of yearly utility, and US dollars."""


def differing(faulty: JsonObject, right: JsonObject) -> dict[str, object]:
    """Return the leaves of a faulty answer that differ from the right one.

    If one side lacks a leaf, as with entries of a list, all leaves of the faulty one under the same key count.
    """
    one, other = leaves_of(faulty), leaves_of(right)
    apart = {path for path in one.keys() | other.keys() if not _same(one.get(path), other.get(path))}
    uneven = {_key(path) for path in apart if (path in one) != (path in other)}
    found = {path: value for path, value in one.items() if path in apart or _key(path) in uneven}
    return {**found, **dict.fromkeys(apart - one.keys())}


def in_order(value: Any, like: Any) -> Any:
    """Return a value with the keys of objects in the order of another: the first one names an entry of a list."""
    if is_object(value) and is_object(like):
        return {key: in_order(value[key], like.get(key)) for key in {**like, **value} if key in value}
    return [in_order(each, like[0]) for each in value] if is_array(value) and is_array(like) and like else value


def matches(answer: JsonObject, wanted: Mapping[str, object]) -> bool:
    """Return True if an answer has the wanted leaves within rounding.

    A field left out of an entry of a list is no difference; nor is a zero left out, as of a name without weight.
    """
    stated = leaves_of(answer)
    entries = {path.rpartition(".")[0] for path in stated}
    found = [path for path in wanted if path in stated]
    left_out = [path for path, value in wanted.items() if path not in stated and value not in (None, 0)]
    return (
        bool(found)
        and all(_same(stated[path], wanted[path]) for path in found)
        and all(entry.endswith("]") and entry in entries for entry in (path.rpartition(".")[0] for path in left_out))
    )


def _key(path: str) -> str:
    return path.partition("[")[0].rpartition(".")[0] or path.partition("[")[0]


def _same(left: object, right: object) -> bool:
    numbers = [one for one in (left, right) if isinstance(one, int | float) and not isinstance(one, bool)]
    if len(numbers) < 2:
        return left == right and isinstance(left, bool) == isinstance(right, bool)
    return abs(numbers[0] - numbers[1]) <= ROUNDING * max(1.0, abs(numbers[1]))
