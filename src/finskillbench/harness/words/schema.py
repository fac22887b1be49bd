"""The answer schema of a prompt, rendered from a subtask's own answer type and never from a truth."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import orjson
from pydantic import BaseModel

from finskillbench.scoring.values import is_object

_SIMPLE = {"number": "number", "integer": "integer", "string": "string", "boolean": "true | false", "null": "null"}
_MAX_DEPTH = 8


@cache
def render_schema(answer: type[BaseModel]) -> str:
    """Render an answer type as commented JSON a reader takes in at a glance.

    Descriptions of fields stand behind `//`. A map is `{"<name>": T, ...}`, a list `[T, ...]`.
    """
    schema = answer.model_json_schema()
    return _object(schema, schema.get("$defs", {}), indent=0)


def _object(node: Mapping[str, Any], defs: Mapping[str, Any], *, indent: int) -> str:
    required = set(node.get("required", ()))
    pad = "  " * (indent + 1)
    lines: list[str] = []
    for name, child in node.get("properties", {}).items():
        notes = [child["description"]] if child.get("description") else []
        if name not in required:
            notes.insert(0, "optional")
        comment = f"  // {'; '.join(notes)}" if notes else ""
        lines.append(f"{pad}{orjson.dumps(name).decode()}: {_type(child, defs, indent=indent + 1)},{comment}")
    return "{\n" + "\n".join(lines) + "\n" + "  " * indent + "}"


def _type(node: Mapping[str, Any], defs: Mapping[str, Any], *, indent: int) -> str:
    if indent > _MAX_DEPTH:
        return "any"
    if "$ref" in node:
        return _type(defs[node["$ref"].rsplit("/", 1)[-1]], defs, indent=indent)
    if "const" in node:
        return orjson.dumps(node["const"]).decode()
    if "enum" in node:
        return " | ".join(orjson.dumps(value).decode() for value in node["enum"])
    for key in ("anyOf", "oneOf", "allOf"):
        if key in node:
            return " | ".join(dict.fromkeys(_type(child, defs, indent=indent) for child in node[key]))
    kind = node.get("type")
    if kind == "array":
        items = _type(node.get("items", {}), defs, indent=indent)
        return f"[{items}, ...]"
    if kind == "object":
        if node.get("properties"):
            return _object(node, defs, indent=indent)
        extra = node.get("additionalProperties")
        return f'{{"<name>": {_type(extra, defs, indent=indent)}, ...}}' if is_object(extra) else "{...}"
    return _SIMPLE.get(kind, "any") if isinstance(kind, str) else "any"
