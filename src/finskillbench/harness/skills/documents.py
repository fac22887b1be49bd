"""Read text files and front matter of skill packages: encoding, limits and YAML."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, cast

import yaml

from finskillbench.errors import SkillError

MAX_TEXT_BYTES = 1024 * 1024
MAX_BLOCK_CHARS = 8 * 1024
"""Limit of front matter or a PEP 723 block; the longest of 682 public skills has 2,190 characters."""
_FENCE = "---"


def is_binary(data: bytes) -> bool:
    """Return True for data with a zero byte, which no text in UTF-8 needs: images, archives, UTF-16."""
    return b"\0" in data


def decode_document(path: Path, data: bytes) -> str:
    """Return the text of a file without a byte order mark and with line feeds.

    Raises `SkillError` for more than 1 MiB, a zero byte, or other encodings than UTF-8.
    """
    if len(data) > MAX_TEXT_BYTES:
        raise SkillError(f"{path}: has more than {MAX_TEXT_BYTES} bytes; make it smaller")
    if is_binary(data):
        raise SkillError(f"{path}: not text, byte {data.index(0)} is zero; save it as UTF-8")
    try:
        text = data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise SkillError(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def split_document(path: Path, text: str) -> tuple[dict[str, Any], str]:
    """Return the front matter of a SKILL.md, scalars as text, and the instructions below it.

    Raises `SkillError` if front matter between two lines of three dashes is missing, too long, or not a YAML mapping.
    """
    lines = text.split("\n")
    fences = (number for number, line in enumerate(lines) if line.rstrip() == _FENCE)
    if next(fences, None) != 0:
        raise SkillError(f"{path}: must start with YAML front matter; make the first line three dashes")
    end = next(fences, None)
    if end is None:
        raise SkillError(f"{path}: front matter is not closed; end it with a line of three dashes")
    front = "\n".join(lines[1:end])
    if len(front) > MAX_BLOCK_CHARS:
        raise SkillError(f"{path}: front matter has more than {MAX_BLOCK_CHARS} characters; make it shorter")
    try:
        fields = _mapping(front)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SkillError(f"{path}{_reason(error)}; quote texts that hold a colon or a special character") from None
    return dict(fields), "\n".join(lines[end + 1 :]).strip()


class _Loader(yaml.BaseLoader):
    """Loader that reads every scalar as text and refuses aliases, whose expansion can be exponential."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: Any = cast("Any", self).peek_event()
        if isinstance(event, yaml.AliasEvent):
            raise yaml.MarkedYAMLError(problem="aliases are not allowed", problem_mark=event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        mapping = super().construct_mapping(node, deep=deep)
        if len(mapping) < len(node.value):
            raise yaml.MarkedYAMLError(problem="a field appears twice", problem_mark=node.start_mark)
        return mapping


@cache
def _mapping(front: str) -> dict[str, Any]:
    """Parse front matter once: a run reads its packages for each condition, and YAML is slow."""
    fields: Any = yaml.load(front, _Loader)  # a BaseLoader builds only text, lists and mappings
    if not isinstance(fields, dict):
        raise ValueError("not a mapping of fields")
    return cast("dict[str, Any]", fields)


def _reason(error: Exception) -> str:
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    fault = error.problem if isinstance(error, yaml.MarkedYAMLError) else str(error)
    where = "" if mark is None else f", line {mark.line + 2}"
    why = "nested too deeply" if isinstance(error, RecursionError) else " ".join(str(fault).split())
    return f"{where}: front matter is not valid YAML: {why}"
