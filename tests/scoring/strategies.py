"""Hostile submissions, for every scorer: as JSON values, as mutations of a right answer, and as text."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

HOSTILE_KEYS = st.sampled_from(
    ["", " ", "weights", "__class__", "0", "a" * 2000, "é", "\u202e", "\U0001f4a3", "\x00", "null", "\ud800"]
)
HUGE_INTEGER = int(1.7976931348623157e308)
EXTREMES = st.sampled_from(
    [1e308, -1e308, 1.7976931348623157e308, 5e-324, -0.0, 0, 1, -1, HUGE_INTEGER, -HUGE_INTEGER, 2**63, 1e-9]
)
STRINGS = st.one_of(
    st.sampled_from(["", "0.5", "true", "NaN", "PASS", "AIG", "\x00", "x" * 10_000, "\ud800", "İ", "ß"]), st.text()
)
LEAVES = st.one_of(
    st.none(), st.booleans(), EXTREMES, st.integers(), st.floats(allow_nan=False, allow_infinity=False), STRINGS
)
JSON_VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.one_of(HOSTILE_KEYS, st.text()), inner, max_size=4)
    ),
    max_leaves=12,
)


def nested(depth: int, *, of_objects: bool = False) -> Any:
    """A value nested `depth` deep, of arrays or of objects."""
    value: Any = {} if of_objects else []
    for _ in range(depth - 1):
        value = {"a": value} if of_objects else [value]
    return value


ANY_VALUE = st.one_of(JSON_VALUES, st.sampled_from([nested(60), nested(60, of_objects=True)]))


@st.composite
def mutations(draw: st.DrawFn, template: Any) -> Any:
    """A right answer in which any part, at any level, may be kept, dropped, repeated or replaced by anything."""
    fate = draw(st.integers(0, 9))
    if fate == 0:
        return draw(ANY_VALUE)
    if isinstance(template, dict):
        result = {key: draw(mutations(value)) for key, value in template.items() if draw(st.integers(0, 9))}
        if draw(st.integers(0, 4)) == 0:
            result[draw(HOSTILE_KEYS)] = draw(JSON_VALUES)
        return result
    if isinstance(template, list):
        items = [draw(mutations(value)) for value in template if draw(st.integers(0, 9))]
        if items and draw(st.booleans()):
            items += copy.deepcopy(draw(st.lists(st.sampled_from(items), max_size=3)))
        if draw(st.integers(0, 4)) == 0:
            items.insert(0, draw(JSON_VALUES))
        return items
    return draw(LEAVES) if fate <= 3 else template


def hostile_answers(template: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """JSON objects around the real keys of one subtask's answer."""
    anything = st.dictionaries(st.sampled_from(sorted(template)), ANY_VALUE)
    return st.one_of(mutations(template).filter(lambda value: isinstance(value, dict)), anything)


@st.composite
def wrong_types(draw: st.DrawFn, template: Any) -> Any:
    """A right answer in which every leaf, or a branch above it, has a JSON type that it must not have.

    Integers 0 and 1 are never replaced by booleans, which a binary signal accepts.
    """
    if isinstance(template, dict) and draw(st.integers(0, 5)):
        return {key: draw(wrong_types(value)) for key, value in template.items()}
    if isinstance(template, list) and draw(st.integers(0, 5)):
        return [draw(wrong_types(value)) for value in template]
    others = {
        "null": st.none(),
        "boolean": st.booleans(),
        "number": st.one_of(EXTREMES, st.floats(allow_nan=False, allow_infinity=False)),
        "string": STRINGS,
        "array": st.just([[]]),
    }
    kind = json_type(template)
    others.pop(kind, None)
    if kind == "number":
        others.pop("boolean")
    return draw(st.one_of(*others.values()))


def json_type(value: object) -> str:
    """Name of a value's JSON type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    for kind, name in ((str, "string"), (list, "array"), (dict, "object")):
        if isinstance(value, kind):
            return name
    return "number"


HOSTILE_TEXTS = {
    "empty": "",
    "white space": " \n\t ",
    "prose": "I could not solve this.",
    "braces the wrong way": "}{",
    "array": "[1, 2]",
    "array of the answer": '[{"weights": {"AIG": 1}}]',
    "string": '"weights"',
    "number": "1",
    "null": "null",
    "NaN": '{"weights": {"AIG": NaN}}',
    "Infinity": '{"turnover": Infinity}',
    "-Infinity": '{"turnover": -Infinity}',
    "overflow": '{"turnover": 1e999}',
    "negative overflow": '{"turnover": -1e999}',
    "overflow by digits": '{"turnover": 1' + "0" * 400 + ".0}",
    "overflowing integer": '{"turnover": 1' + "0" * 309 + "}",
    "million-digit integer": '{"turnover": ' + "9" * 1_000_000 + "}",
    "million-digit exponent": '{"turnover": 1e' + "9" * 1_000_000 + "}",
    "duplicate key": '{"feasible": true, "feasible": false}',
    "duplicate key, escaped": '{"a": 1, "\\u0061": 2}',
    "duplicate key, nested": '{"weights": {"AIG": 0.5, "AIG": 1}}',
    "10 MB": '{"weights": "' + "x" * 10_000_000 + '"}',
    "over 1 MiB only as UTF-8": '{"a": "' + "é" * 600_000 + '"}',
    "10,000 arrays": '{"a": ' + "[" * 10_000 + "]" * 10_000 + "}",
    "10,000 objects": '{"a": ' * 10_000 + "1" + "}" * 10_000,
    "a million open brackets": "[" * 1_000_000,
    "a million open braces": "{" * 1_000_000,
    "65 deep": '{"a": ' + "[" * 64 + "]" * 64 + "}",
    "escaped quotes without end": '{"a": "' + '\\"' * 500_000,
    "quotes only": "{" + '"' * 1_000_000 + "}",
    "fences only": "```" * 300_000,
    "lone surrogate": '{"a": "\ud800"}',
    "control character": '{"a": "\n"}',
    "NUL": '{"a": 1\x00}',
    "trailing comma": '{"a": 1,}',
    "comment": '{"a": 1 /* one */}',
    "single quotes": "{'a': 1}",
    "hexadecimal": '{"a": 0x10}',
    "leading zero": '{"a": 01}',
    "leading plus": '{"a": +1}',
    "bare fraction": '{"a": .5}',
    "Arabic digits": '{"a": ١}',
    "two objects": '{"a": 1} {"b": 2}',
    "unterminated": '{"weights": {"AIG": 0.5}',
}
"""Texts that are no submission, by what is wrong with them."""
