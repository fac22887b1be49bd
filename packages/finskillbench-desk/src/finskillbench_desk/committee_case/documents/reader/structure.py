"""Paragraphs of a document by their numbers."""

from __future__ import annotations

import re

from finskillbench.errors import InputError

_NUMBERED = re.compile(r"^(A?\d+\.\d+) (.*)$")
SENTENCE = re.compile(r"(?<=[.;])\s+(?=[A-Z0-9“])")


class UnreadableError(InputError):
    """A paragraph that the reader cannot make sense of."""


def parse(text: str) -> tuple[dict[str, str], list[str]]:
    """Numbered paragraphs of the agreement by number, and the items of its amendments in their order."""
    paragraphs: dict[str, str] = {}
    items: list[str] = []
    for line in text.splitlines():
        found = _NUMBERED.match(line.strip())
        if found and found[1].startswith("A"):
            items.append(found[2])
        elif found:
            paragraphs[found[1]] = found[2]
    if not paragraphs:
        raise UnreadableError("the document has no numbered paragraphs")
    return paragraphs, items


def sentences(body: str) -> list[str]:
    """Sentences of a paragraph; one that only continues after a semicolon is not one of its own."""
    return [part.strip() for part in re.split(r"(?<=\.)\s+(?=[A-Z0-9“])", body) if part.strip()]
