"""Lossy compaction of an episode's input for the prompt; `get_task_data` returns full precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import orjson

from finskillbench.domains.tables import TableReference, refers_to_table
from finskillbench.scoring.values import is_object

_SMALL_MATRIX = 16
"""Largest numeric table that is printed in full, as it is shorter than its summary."""


def compact_value(value: Any, field: str) -> Any:
    """Round floats to 3 significant figures and summarise matrices, tables and facts of the top-level `field`,
    recursively.
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
    """Return True for a reference to a company's filed facts."""
    return is_object(value) and value.keys() >= {"ref", "symbol", "as_of", "since"}


def _is_list(value: object) -> TypeGuard[Sequence[Any]]:
    """Return True for a JSON array; inputs that were not read from a file may hold tuples."""
    return isinstance(value, list | tuple)


def compact_input(task_input: Mapping[str, Any], budget: int) -> str:
    """Return the input as compact JSON text of at most `budget` characters, one top-level field per line.

    If it is too long, references to `get_task_data` replace the longest fields, ties ordered by name. Raises
    `ValueError` if the text is too long even then.
    """
    fields = {name: _dumps(compact_value(value, name)) for name, value in task_input.items()}
    text = _join(fields)
    for name in sorted(fields, key=lambda n: (-len(fields[n]), n)):
        if len(text) <= budget:
            break
        placeholder = _dumps(_omitted(task_input[name], name))
        if len(placeholder) < len(fields[name]):
            fields[name] = placeholder
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
    symbol = reference["symbol"]
    return (
        f"facts of {symbol} as of {reference['as_of']}: "
        f'get_task_data("{field}"), periods ending {reference["since"]} or later; query_xbrl("{symbol}"), all periods'
    )


_COLUMNS_SHOWN = 16


def _table(reference: TableReference, field: str) -> str:
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
    """Return the shape of `{"tickers": [...], "ref" or "matrix": ...}`: square unless `sessions` or `dates` gives the
    rows.
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
