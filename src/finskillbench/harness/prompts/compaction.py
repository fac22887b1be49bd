"""Lossy compaction of an episode's input for the prompt; the full precision stays behind `get_task_data`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import orjson

from finskillbench.domains.tables import TableReference, refers_to_table
from finskillbench.scoring.values import is_object

_SMALL_MATRIX = 16
"""A table of numbers up to this many entries stays as it is; it is shorter than its summary."""


def compact_value(value: Any, field: str) -> Any:
    """Round floats to 3 significant figures and put a summary for matrices and filed facts, recursively.

    Parameters
    ----------
    value : any JSON value.
    field : the top-level field it belongs to, named in the summaries.
    """
    if isinstance(value, float):
        return float(f"{value:.3g}")
    if is_object(value):
        if refers_to_facts(value):
            return _facts(value, field)
        if refers_to_table(value):
            return _table(value, field)
        shape = _shape_of_object(value)
        if shape is not None:
            return _summary(shape, field)
        return {key: compact_value(child, field) for key, child in value.items()}
    if _is_list(value):
        shape = _shape_of_rows(value)
        if shape is not None and shape[0] * shape[1] > _SMALL_MATRIX:
            return _summary(shape, field)
        return [compact_value(child, field) for child in value]
    return value


def refers_to_facts(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether a value stands for what a company had filed, which an edition holds by reference."""
    return is_object(value) and value.keys() >= {"ref", "symbol", "as_of", "since"}


def _is_list(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether a value is an array in JSON; tuples are, in inputs that were not read from a file."""
    return isinstance(value, list | tuple)


def compact_input(task_input: Mapping[str, Any], budget: int) -> str:
    """Return the input as compact JSON text, one top-level field a line, of at most `budget` characters.

    Where it would be longer, the longest field is replaced by a note that `get_task_data` has it, then the
    next, until it fits; ties go by name, so that the same input always gives the same text.

    Raises
    ------
    ValueError : even with every field replaced the text is longer than `budget`.
    """
    fields = {name: _dumps(compact_value(value, name)) for name, value in task_input.items()}
    text = _join(fields)
    for name in sorted(fields, key=lambda n: (-len(fields[n]), n)):
        if len(text) <= budget:
            break
        note = _dumps(_omitted(task_input[name], name))
        if len(note) < len(fields[name]):
            fields[name] = note
            text = _join(fields)
    if len(text) > budget:
        raise ValueError(f"the compacted input has {len(text)} characters, the budget is {budget}")
    return text


def _join(fields: Mapping[str, str]) -> str:
    if not fields:
        return "{}"
    return "{\n" + ",\n".join(f"{_dumps(name)}: {text}" for name, text in fields.items()) + "\n}"


def _dumps(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()


def _facts(reference: Mapping[str, Any], field: str) -> str:
    """What a company had filed, which an edition holds by reference."""
    symbol = reference["symbol"]
    return (
        f"facts of {symbol} as of {reference['as_of']}, periods ending {reference['since']} or later: "
        f'get_task_data("{field}") or query_xbrl("{symbol}")'
    )


_COLUMNS_SHOWN = 16


def _table(reference: TableReference, field: str) -> str:
    """What a table is, which an edition holds by reference."""
    columns = reference["columns"]
    shown = ", ".join(columns[:_COLUMNS_SHOWN]) + (", ..." if len(columns) > _COLUMNS_SHOWN else "")
    return f'table of {reference["rows"]} rows and {len(columns)} columns ({shown}): read_table("{field}")'


def _summary(shape: tuple[int, int], field: str) -> str:
    return f'{shape[0]}x{shape[1]} matrix; full precision: get_task_data("{field}")'


def _omitted(value: Any, field: str) -> str:
    if is_object(value):
        kind = f"object with {len(value)} entries"
    elif _is_list(value):
        kind = f"list of {len(value)} entries"
    else:
        kind = f"{len(str(value))} characters"
    return f'{kind}, left out for length: get_task_data("{field}")'


def _shape_of_object(value: Mapping[str, Any]) -> tuple[int, int] | None:
    """Shape of a matrix as editions hold it: `{"tickers": [...], "ref" or "matrix": ...}`.

    Square over the tickers, unless it says how many `sessions` it has, or which `dates`: returns have a row for each.
    """
    tickers = value.get("tickers")
    if not _is_list(tickers) or not ("ref" in value or "matrix" in value):
        return None
    sessions, dates = value.get("sessions"), value.get("dates")
    if _is_list(dates):
        return len(dates), len(tickers)
    return (sessions if isinstance(sessions, int) else len(tickers)), len(tickers)


def _shape_of_rows(value: Sequence[Any]) -> tuple[int, int] | None:
    if len(value) < 2 or not _is_list(value[0]) or not value[0]:
        return None
    width = len(value[0])
    numeric = all(_is_list(row) and len(row) == width and all(isinstance(x, int | float) for x in row) for row in value)
    return (len(value), width) if numeric else None
