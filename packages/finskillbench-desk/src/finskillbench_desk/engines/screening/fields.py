"""Tables and lists in the fields of a script: what is missing or of the wrong kind is named in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.fields import list_of, refuse_unknown, shown, table_of
from finskillbench.errors import InputError


def column(table: Mapping[str, Any], name: str, where: str) -> Sequence[Any]:
    """A column of a table, which is a map of columns to lists."""
    if (found := list_of(table.get(name))) is None:
        raise InputError(f"{where}: there is no column {name!r}; inject the table from the task data")
    return found


def numeric(table: Mapping[str, Any], name: str, where: str) -> Floats:
    """A column of numbers."""
    try:
        return np.asarray(column(table, name, where), dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{where}: column {name} must hold numbers alone") from None


def table(payload: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """A table of the payload, None where it was not given."""
    value = payload.get(name)
    if value is None:
        return None
    if (found := table_of(value)) is None:
        raise InputError(f"{name} must be a table (column to values), not {shown(value)}; inject it from the task data")
    return found


def entries(payload: Mapping[str, Any], name: str, known: Sequence[str]) -> list[Mapping[str, Any]]:
    """A list of objects of the payload, empty where it was not given; their keys are among those known."""
    value = payload.get(name)
    if value is None:
        return []
    if (items := list_of(value)) is None:
        raise InputError(f"{name} must be a list of objects, not {shown(value)}")
    found: list[Mapping[str, Any]] = []
    for item in items:
        if (entry := table_of(item)) is None:
            raise InputError(f"{name} must be a list of objects; it has {shown(item)}")
        refuse_unknown(entry, known, name)
        found.append(entry)
    return found


def among(payload: Mapping[str, Any], name: str) -> dict[str, list[Any]]:
    """A choice of rows: column to a list of its entries, empty where it was not given."""
    value = payload.get(name)
    if value is None:
        return {}
    if (wanted := table_of(value)) is None:
        raise InputError(f"{name} must map columns to lists of entries, not {shown(value)}")
    found: dict[str, list[Any]] = {}
    for key, items in wanted.items():
        if (chosen := list_of(items)) is None:
            raise InputError(f"{name}: {key} must be a list of entries of that column, not {shown(items)}")
        found[key] = list(chosen)
    return found


def text(entry: Mapping[str, Any], name: str, where: str) -> str:
    """A text of an object that must have it."""
    value = entry.get(name)
    if not isinstance(value, str):
        raise InputError(f"{where}: {name} must be text, not {shown(value)}")
    return value


def amount(entry: Mapping[str, Any], name: str, where: str, default: float | None = None) -> float:
    """A number of an object, or its default where absent; it must be there where there is no default."""
    value = entry.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise InputError(f"{where}: {name} must be a number, not {shown(value)}")
    return float(value)


def placed(names: Sequence[str], name: str, where: str) -> int:
    """The place of a name among those known."""
    try:
        return names.index(name)
    except ValueError:
        raise InputError(f"{where}: {name!r} is not in the statements") from None
