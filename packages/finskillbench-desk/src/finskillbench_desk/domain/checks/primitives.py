"""That the scripts for desk cases are primitives: none writes an object that could be handed in as it is.

An answer is told by its keys. So every dict that a script's source writes out is held against the keys of every object
of every desk answer; a script that had all of one would do the work that is to be measured.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from finskillbench.domains.base import Answer
from finskillbench.findings import Findings

_NAMED = re.compile(r"`(?:scripts/)?([a-z0-9_]+\.py)`")


def desk_scripts(skills: Sequence[Path]) -> list[Path]:
    """The scripts that the packages' references for desk cases name."""
    return sorted(
        {
            script
            for folder in skills
            for document in sorted(folder.glob("references/desk-*.md"))
            for name in _NAMED.findall(document.read_text(encoding="utf-8"))
            if (script := folder / "scripts" / name).is_file()
        }
    )


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
    """No script that the documents name for desk cases writes an answer."""
    objects = {name: keys for answer in answers for name, keys in objects_of(answer).items()}
    for script in desk_scripts(skills):
        findings.add("scripts")
        found = next(finished(script, objects), None)
        if found is None:
            findings.expectations += 1
        else:
            findings.fail(f"{script.parents[1].name}/{script.name}, line {found[0]}", f"writes a finished {found[1]}")
