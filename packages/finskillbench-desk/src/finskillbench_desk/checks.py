"""Checks of the suite: skill scripts are single steps, and tables match what the inputs state about them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from finskillbench.domains.base import Answer
from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.domains.tables import EpisodeTable
from finskillbench.findings import Findings


def objects_of(answer: type[Answer]) -> dict[str, frozenset[str]]:
    """Return the keys of every object of an answer type; objects with one key count only as the whole answer."""
    schema = answer.model_json_schema()
    parts = {answer.__name__: schema, **schema.get("$defs", {})}
    keys = {name: frozenset(part.get("properties", {})) for name, part in parts.items()}
    return {name: each for name, each in keys.items() if len(each) > (name != answer.__name__)}


def find_complete_answers(script: Path, objects: Mapping[str, frozenset[str]]) -> Iterator[tuple[int, str]]:
    """Yield line and object name of every dict in a script that has all keys of an answer object."""
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        written = _keys(node)
        for name, keys in objects.items():
            if keys and keys <= written:
                yield getattr(node, "lineno", 0), name


def _keys(node: ast.AST) -> frozenset[str]:
    if isinstance(node, ast.Dict):
        return frozenset(key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        return frozenset(word.arg for word in node.keywords if word.arg is not None)
    return frozenset()


def check_primitives(skills: Sequence[Path], answers: Sequence[type[Answer]], findings: Findings) -> None:
    """Check that no script of the skill packages builds a finished answer."""
    objects = {name: keys for answer in answers for name, keys in objects_of(answer).items()}
    for script in sorted(script for folder in skills for script in folder.glob("scripts/*.py")):
        findings.add("scripts")
        found = next(find_complete_answers(script, objects), None)
        if found is None:
            findings.expectations += 1
        else:
            findings.fail(
                f"{script.parents[1].name}/{script.name}, line {found[0]}",
                f"builds a finished {found[1]} answer object",
            )


def check_tables(subject: Subject, findings: Findings) -> None:
    """Check that every table of an input exists with the stated rows and columns."""
    for episode in subject.episodes:
        with examining(episode.task_id, findings):
            for name, value in subject.input_of(episode).items():
                if isinstance(value, EpisodeTable):
                    stated = episode.input[name]
                    same = (value.rows, list(value)) == (stated["rows"], stated["columns"])
                    findings.expect(
                        same, episode.task_id, f"table {name} has other rows or columns than its input states"
                    )
