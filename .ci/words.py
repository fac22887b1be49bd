"""Check prose by the writing rules of CONTRIBUTING.md: docstrings, comments, errors, help texts and documents.

Usage: python .ci/words.py; prints each place and exits with 1 if there is any.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("src", "packages/finskillbench-desk/src")
DOCUMENTS = ("*.md", "docs/**/*.md", "packages/*/*.md")
OPENINGS = re.compile(r"(What|Whether|Who|Whom|Whose|Where|How|That|Of)\b")
WORDS = re.compile(
    r"\b(besides?|told|tells?|said|says|asked|asks|somebody|nobody|anybody|whoever|whatever|whom|thereby|hereby|brought"
    r"|brings|goes without|at home|on the way|of its own|hand(?:ed)? back|laid|lies|stands?|hears?|heard|speaks?|spoke"
    r"|letters?|honest|seldom)\b",
    re.IGNORECASE,
)
_AGENT_TEXT = ("skill", "skills", "placebo", "catalog")
"""Folders of text for agents, whose words are part of the benchmark."""


def python_places(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield line, kind and text of each docstring, comment, error message and help text that breaks a rule."""
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            docstring = node.value.value.strip()
            if OPENINGS.match(docstring):
                yield node.lineno, "opening", docstring.splitlines()[0]
            if found := WORDS.search(re.sub("`[^`]*`", "", docstring)):
                yield node.lineno, "docstring", found[0]
        elif isinstance(node, ast.Raise | ast.keyword) and (isinstance(node, ast.Raise) or node.arg == "help"):
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and (found := WORDS.search(str(part.value))):
                    yield part.lineno, "error" if isinstance(node, ast.Raise) else "help", found[0]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and (found := WORDS.search(token.string)):
            yield token.start[0], "comment", found[0]


def document_places(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield line, kind and word of each line of a document that breaks a rule."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if found := WORDS.search(re.sub("`[^`]*`", "", line)):
            yield number, "document", found[0]


def main() -> int:
    """Print every place that breaks a rule."""
    places = [
        f"{path.relative_to(ROOT)}:{line}: {kind}: {text}"
        for root in SOURCES
        for path in sorted((ROOT / root).rglob("*.py"))
        if not set(_AGENT_TEXT) & set(path.relative_to(ROOT / root).parts[1:-1]) or "harness" in path.parts
        for line, kind, text in python_places(path)
    ]
    places += [
        f"{path.relative_to(ROOT)}:{line}: {kind}: {text}"
        for pattern in DOCUMENTS
        for path in sorted(ROOT.glob(pattern))
        for line, kind, text in document_places(path)
    ]
    print("\n".join([*places, f"places that break the writing rules of CONTRIBUTING.md: {len(places)}"]))
    return bool(places)


if __name__ == "__main__":
    sys.exit(main())
