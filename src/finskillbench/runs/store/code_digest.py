"""Digest of code that ignores docstrings, comments, positions, paths and the order of imports."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Collection, Iterator
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from finskillbench.garbage import relaxed_gc
from finskillbench.scoring.values import is_array


def code_digest(names: tuple[str, ...], without: Collection[str] = (), package: str = "finskillbench") -> str:
    """Return the SHA-256 over files of a package; Python modules count as normalised syntax trees.

    `names` are files and folders relative to the package ("" for all of it), `without` names of those to omit.
    """
    root = resources.files(package)
    with relaxed_gc():
        digests = [
            (_module_digest(content) if path.endswith(".py") else hashlib.sha256(content).hexdigest())
            for name in names
            for path, content in _files(root / name if name else root, name, without)
        ]
    return hashlib.sha256("".join(sorted(digests)).encode()).hexdigest()


@cache
def _module_digest(source: bytes) -> str:
    """Return the digest of the syntax tree, equal in every Python version; imports count as sorted names."""
    tokens, imports = list[str](), list[str]()
    _collect(ast.parse(source), tokens, imports)
    return hashlib.sha256("\0".join([*sorted(imports), *tokens]).encode()).hexdigest()


def _collect(node: ast.AST, tokens: list[str], imports: list[str]) -> None:
    """Append class, fields and values of a node and of all nodes below it; a flat list is faster than a tree."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        # `import a.b` binds `a`, and the attributes of `a` stay in the tree.
        imports += [f"{each.name.rpartition('.')[2]} {each.asname}" for each in node.names]
        return
    tokens.append(f"({type(node).__name__}")
    for field in node._fields:
        value: Any = getattr(node, field, None)
        if value is None or value == []:
            continue
        tokens.append(f".{field}")
        children: list[Any] = value if is_array(value) else [value]
        for each in _without_docstring(children) if field in _BODIES else children:
            if isinstance(node, ast.JoinedStr) and isinstance(each, ast.Constant) and each.value == "":
                continue  # Python 3.12.1 alone puts empty texts into some f-strings
            if isinstance(each, ast.AST):
                _collect(each, tokens, imports)
            else:
                tokens.append(repr(each))
    tokens.append(")")


_BODIES = frozenset({"body", "orelse", "finalbody"})


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    """Remove statements that are only text, such as docstrings of attributes."""
    return [each for each in body if not (isinstance(each, ast.Expr) and _is_text(each.value))]


def _is_text(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _files(entry: Traversable, path: str, without: Collection[str]) -> Iterator[tuple[str, bytes]]:
    if not entry.is_dir():
        yield path, entry.read_bytes()
        return
    for child in entry.iterdir():
        if child.name not in {"__pycache__", *without}:
            yield from _files(child, f"{path}/{child.name}", without)
