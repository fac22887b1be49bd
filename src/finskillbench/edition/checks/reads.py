"""Walk JSON values: leaves and keys with their paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast


def leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield every leaf with its path; list entries have `*` as index, so that a path names a kind of value."""
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[str, object]", value).items():
            yield from leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from leaves(item, f"{path}[*]")
    else:
        yield path, value


def numeric_leaves(value: object) -> Iterator[tuple[str, float]]:
    """Yield every number with its path; booleans are excluded."""
    for path, leaf in leaves(value):
        if isinstance(leaf, int | float) and not isinstance(leaf, bool):
            yield path, float(leaf)


@dataclass(frozen=True, slots=True)
class FlatValues:
    """Leaves of a JSON value by kind, each with its path, and the path of every key."""

    numbers: list[tuple[str, float]]
    texts: list[tuple[str, str]]
    keys: dict[str, str]


def flatten(value: object) -> FlatValues:
    """Collect all leaves in one walk; a path and its key are kept once, even if many list entries have it."""
    flat = FlatValues([], [], {})
    _flatten(value, "", flat)
    return flat


def _flatten(value: object, path: str, flat: FlatValues) -> None:
    if isinstance(value, str):
        flat.texts.append((path, value))
    elif isinstance(value, float | int):
        if not isinstance(value, bool):
            flat.numbers.append((path, value))
    elif isinstance(value, dict):
        for key, item in cast("dict[str, object]", value).items():
            item_path = f"{path}.{key}" if path else key
            flat.keys[item_path] = key
            # Most tool results are rows of these; a call for each would take longer.
            if type(item) is str:
                flat.texts.append((item_path, item))
            elif type(item) is float:
                flat.numbers.append((item_path, item))
            else:
                _flatten(item, item_path, flat)
    elif isinstance(value, list):
        item_path = f"{path}[*]"
        for item in cast("list[object]", value):
            _flatten(item, item_path, flat)
