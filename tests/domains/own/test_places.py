"""The line of every value of a JSON text, by which mistakes are told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from finskillbench.sources.catalog.document import Place, value_lines

NUMBER = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
LEAF = st.none() | st.booleans() | NUMBER | st.text(max_size=8)
VALUE = st.recursive(
    LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner), max_leaves=12
)


def places(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    yield place, value
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        yield from places(item, (*place, key))


@given(VALUE)
def test_a_place_is_on_the_line_where_it_stands(value: Any) -> None:
    """With one value a line, as `indent` writes them, the lines come in the order of the places."""
    text = json.dumps(value, indent=1)
    lines, twice = value_lines(text)
    written = text.split("\n")
    assert twice == []
    assert list(lines) == [place for place, _ in places(value)]
    for place, item in places(value):
        line = written[lines[place] - 1].strip().rstrip(",")
        shown = "{" if isinstance(item, dict) and item else "[" if isinstance(item, list) and item else json.dumps(item)
        name = f"{json.dumps(place[-1])}: " if place and isinstance(place[-1], str) else ""
        assert line == name + shown


def test_a_key_that_is_given_twice_is_found() -> None:
    lines, twice = value_lines('{"a": {"b": 1,\n"c": 2,\n"b": [3]},\n"a": 4}')
    assert twice == [("a", "b"), ("a",)]
    assert (lines["a", "b"], lines["a",]) == (3, 4)
