"""Checks of the desk: its scripts are single steps, and tables of its cases are what their inputs say.

An answer is known by its keys. So every dict that a script's source writes out is compared with the keys of every
object of every desk answer; a script that wrote all keys of one would do the work that is measured.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from finskillbench.domains.base import Answer
from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.domains.tables import Table
from finskillbench.findings import Findings


def objects_of(answer: type[Answer]) -> dict[str, frozenset[str]]:
    """The keys of every object of an answer, by its name; of one with a single key, only if it is the whole answer."""
    schema = answer.model_json_schema()
    parts = {answer.__name__: schema, **schema.get("$defs", {})}
    keys = {name: frozenset(part.get("properties", {})) for name, part in parts.items()}
    return {name: each for name, each in keys.items() if len(each) > (name != answer.__name__)}


def finished(script: Path, objects: Mapping[str, frozenset[str]]) -> Iterator[tuple[int, str]]:
    """Lines of a script that write an object with all keys of one of these, and what that is called there."""
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        written = _keys(node)
        for name, keys in objects.items():
            if keys and keys <= written:
                yield getattr(node, "lineno", 0), name


def _keys(node: ast.AST) -> frozenset[str]:
    """The keys that are texts of a dict display or of a call of `dict`."""
    if isinstance(node, ast.Dict):
        return frozenset(key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        return frozenset(word.arg for word in node.keywords if word.arg is not None)
    return frozenset()


def primitives(skills: Sequence[Path], answers: Sequence[type[Answer]], findings: Findings) -> None:
    """No script of these packages writes an answer."""
    objects = {name: keys for answer in answers for name, keys in objects_of(answer).items()}
    for script in sorted(script for folder in skills for script in folder.glob("scripts/*.py")):
        findings.add("scripts")
        found = next(finished(script, objects), None)
        if found is None:
            findings.expectations += 1
        else:
            findings.fail(f"{script.parents[1].name}/{script.name}, line {found[0]}", f"writes a finished {found[1]}")


def tables(subject: Subject, findings: Findings) -> None:
    """Every table that an input names is there, with the rows and columns that the input says."""
    for episode in subject.episodes:
        with examining(episode.task_id, findings):
            for name, value in subject.input_of(episode).items():
                if isinstance(value, Table):
                    stated = episode.input[name]
                    same = (value.rows, list(value)) == (stated["rows"], stated["columns"])
                    findings.expect(same, episode.task_id, f"its table {name} has other rows or columns than it says")
