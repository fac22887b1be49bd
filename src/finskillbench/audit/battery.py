"""Answers that cheat, whatever the subtask: made from the answer type alone, or from a truth by vandalism.

Nothing of them knows the episode. A subtask adds its own by `Examples.exploits`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import orjson

from finskillbench.domains.base import Answer
from finskillbench.scoring.values import is_object

_NAME = "AAA"
_MAX_DEPTH = 8
MALFORMED = ("the truth with NaN for every number", "the truth with every key twice", "the truth in a list")
"""Vandalised truths that are no submission under any profile."""


def cheats(answer: type[Answer]) -> Iterator[tuple[str, str]]:
    """Name and text of every answer that needs nothing but the answer schema."""
    yield "empty object", "{}"
    yield "nulls", _text(dict.fromkeys(answer.model_fields))
    schema = answer.model_json_schema()
    for name, fill in _FILLS.items():
        yield name, _text(_instance(schema, schema.get("$defs", {}), fill))
    ones = _text(_instance(schema, schema.get("$defs", {}), _FILLS["ones everywhere"]))
    yield "NaN everywhere", _numbers_replaced(ones, "NaN")
    yield "Infinity everywhere", _numbers_replaced(ones, "Infinity")
    yield "numbers as text", _numbers_replaced(ones, '"1"')
    yield "overflowing numbers", _numbers_replaced(ones, "1e999")


def vandalised(truth: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and text of the truth spoiled: none may score in `certified`, and those of `MALFORMED` nowhere."""
    text = _text(truth)
    if _FILLED in (nan := _numbers_replaced(text, _FILLED)):
        yield MALFORMED[0], nan.replace(_FILLED, "NaN")
    yield MALFORMED[1], text[:-1] + "," + text[1:] if len(text) > 2 else text
    yield MALFORMED[2], f"[{text}]"
    yield "the truth inside another object", _text({"answer": truth})


def fabricated(truth: object) -> object | None:
    """The truth with a value wherever it is null; None where nothing is null."""
    filled = _filled(truth)
    return filled if filled != truth else None


_FILLED = "@number@"


def _text(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()


def _filled(value: object) -> object:
    if value is None:
        return 0.1
    if is_object(value):
        return {key: _filled(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item) for item in cast("list[object]", value)]
    return value


def _numbers_replaced(text: str, word: str) -> str:
    """JSON text with `word` for every number."""

    def replaced(value: object) -> object:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _FILLED
        if is_object(value):
            return {key: replaced(item) for key, item in value.items()}
        if isinstance(value, list):
            return [replaced(item) for item in cast("list[object]", value)]
        return value

    return _text(replaced(orjson.loads(text))).replace(f'"{_FILLED}"', word)


_FILLS: Mapping[str, tuple[float, bool, int]] = {
    "zeros everywhere": (0.0, False, 1),
    "ones everywhere": (1.0, True, 1),
    "everything false": (0.05, False, 3),
    "everything true": (0.05, True, 3),
    "large numbers": (1e12, True, 1),
}
"""Number, truth value and length of lists of a constant answer."""


def _instance(node: Mapping[str, Any], defs: Mapping[str, Any], fill: tuple[float, bool, int], depth: int = 0) -> Any:
    """A value of a JSON schema: its first alternative, filled with constants."""
    if depth > _MAX_DEPTH:
        return None
    if "$ref" in node:
        return _instance(defs[node["$ref"].rsplit("/", 1)[-1]], defs, fill, depth + 1)
    if "const" in node:
        return node["const"]
    if "enum" in node:
        return node["enum"][0 if fill[1] else -1]
    for key in ("anyOf", "oneOf", "allOf"):
        if key in node:
            return _instance(node[key][0], defs, fill, depth + 1)
    match node.get("type"):
        case "object":
            made = {name: _instance(part, defs, fill, depth + 1) for name, part in node.get("properties", {}).items()}
            extra = node.get("additionalProperties")
            return made or ({_NAME: _instance(extra, defs, fill, depth + 1)} if is_object(extra) else {})
        case "array":
            return [_instance(node.get("items", {}), defs, fill, depth + 1)] * fill[2]
        case "number":
            return fill[0]
        case "integer":
            return int(fill[0])
        case "boolean":
            return fill[1]
        case "string":
            return _NAME
        case _:
            return None
