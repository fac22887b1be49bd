"""Walking JSON values: every leaf with its path, the keys on the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast


def leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Every leaf with its path; entries of a list have `*` for their place, so that a path names a kind of value."""
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[str, object]", value).items():
            yield from leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from leaves(item, f"{path}[*]")
    else:
        yield path, value


def numeric_leaves(value: object) -> Iterator[tuple[str, float]]:
    """Every number with its path; booleans are none."""
    for path, leaf in leaves(value):
        if isinstance(leaf, int | float) and not isinstance(leaf, bool):
            yield path, float(leaf)


@dataclass(frozen=True, slots=True)
class Flat:
    """The leaves of a JSON value by kind, each with its path, and the path of every key."""

    numbers: list[tuple[str, float]]
    texts: list[tuple[str, str]]
    keys: dict[str, str]


def flatten(value: object) -> Flat:
    """All leaves in one walk; a path and its key are kept once, however many entries of a list have it."""
    flat = Flat([], [], {})
    _flatten(value, "", flat)
    return flat


def _flatten(value: object, path: str, flat: Flat) -> None:
    if isinstance(value, str):
        flat.texts.append((path, value))
    elif isinstance(value, float | int):
        if not isinstance(value, bool):
            flat.numbers.append((path, value))
    elif isinstance(value, dict):
        for key, item in cast("dict[str, object]", value).items():
            here = f"{path}.{key}" if path else key
            flat.keys[here] = key
            # Most of what a tool returns are rows of these; a call for each takes longer than noting it.
            if type(item) is str:
                flat.texts.append((here, item))
            elif type(item) is float:
                flat.numbers.append((here, item))
            else:
                _flatten(item, here, flat)
    elif isinstance(value, list):
        here = f"{path}[*]"
        for item in cast("list[object]", value):
            _flatten(item, here, flat)
