"""Tables and lists in script fields; errors name what is missing or of the wrong kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.fields import describe_value, list_of, refuse_unknown, table_of
from finskillbench.errors import InputError


def list_column(table: Mapping[str, Any], name: str, where: str) -> Sequence[Any]:
    if (found := list_of(table.get(name))) is None:
        raise InputError(f"{where}: there is no column {name!r}; inject the table from the task data")
    return found


def number_column(table: Mapping[str, Any], name: str, where: str) -> Floats:
    try:
        return np.asarray(list_column(table, name, where), dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{where}: column {name} must hold numbers alone") from None


def table_field(payload: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """Return a table of the payload, None if absent."""
    value = payload.get(name)
    if value is None:
        return None
    if (found := table_of(value)) is None:
        raise InputError(
            f"{name} must be a table (column to values), not {describe_value(value)}; inject it from the task data"
        )
    return found


def object_entries(payload: Mapping[str, Any], name: str, known: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return a list of objects with known keys, empty if absent."""
    value = payload.get(name)
    if value is None:
        return []
    if (items := list_of(value)) is None:
        raise InputError(f"{name} must be a list of objects, not {describe_value(value)}")
    found: list[Mapping[str, Any]] = []
    for item in items:
        if (entry := table_of(item)) is None:
            raise InputError(f"{name} must be a list of objects; it has {describe_value(item)}")
        refuse_unknown(entry, known, name)
        found.append(entry)
    return found


def row_choices(payload: Mapping[str, Any], name: str) -> dict[str, list[Any]]:
    """Return a row filter, column to permitted entries; empty if absent."""
    value = payload.get(name)
    if value is None:
        return {}
    if (wanted := table_of(value)) is None:
        raise InputError(f"{name} must map columns to lists of entries, not {describe_value(value)}")
    found: dict[str, list[Any]] = {}
    for key, items in wanted.items():
        if (chosen := list_of(items)) is None:
            raise InputError(f"{name}: {key} must be a list of entries of that column, not {describe_value(items)}")
        found[key] = list(chosen)
    return found


def text_field(entry: Mapping[str, Any], name: str, where: str) -> str:
    value = entry.get(name)
    if not isinstance(value, str):
        raise InputError(f"{where}: {name} must be text, not {describe_value(value)}")
    return value


def number_field(entry: Mapping[str, Any], name: str, where: str, default: float | None = None) -> float:
    """Return a number of an object; an absent one without default is an error."""
    value = entry.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise InputError(f"{where}: {name} must be a number, not {describe_value(value)}")
    return float(value)


def index_of(names: Sequence[str], name: str, where: str) -> int:
    try:
        return names.index(name)
    except ValueError:
        raise InputError(f"{where}: {name!r} is not in the statements") from None
