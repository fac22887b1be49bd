"""Tables that are too long for a prompt: stored as Parquet, referenced in inputs, read by page or by scripts."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, TypedDict, TypeGuard

import orjson
import polars as pl

from finskillbench.errors import InputError
from finskillbench.panels.reading import read_table
from finskillbench.scoring.values import is_array, is_object

FOLDER = "tables"
"""Folder of an edition with one folder of tables per task."""
MOST_ROWS = 200
"""Maximum rows of a page."""
_DUMP = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
_MOST_READ = 24
"""Number of files kept in memory with their JSON; the largest take about 12 MB each."""


class TableReference(TypedDict):
    """Reference to a table in an input: file in the edition, rows and columns."""

    table: str
    rows: int
    columns: list[str]


class Page(TypedDict):
    """Rows of a table from row `first` of the `matching` rows."""

    columns: list[str]
    first: int
    matching: int
    rows: list[list[Any]]


def reference(task_id: str, name: str, frame: pl.DataFrame) -> TableReference:
    """Return the reference to a task's table for its input."""
    return {"table": table_file(task_id, name), "rows": frame.height, "columns": list(frame.columns)}


def table_file(task_id: str, name: str) -> str:
    """Return the path of a table in the edition."""
    return f"{FOLDER}/{task_id}/{name}.parquet"


def refers_to_table(value: object) -> TypeGuard[TableReference]:
    """Return True if an input value references a table."""
    return is_object(value) and set(value) == {"table", "rows", "columns"} and isinstance(value["table"], str)


class EpisodeTable(Mapping[str, list[Any]]):
    """A table as a mapping of columns to values; reads its file lazily, and again after it was dropped from memory."""

    def __init__(self, source: Path | pl.DataFrame) -> None:
        self._source = source

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The table as a data frame; raises EditionError if its file is missing or damaged."""
        if isinstance(self._source, pl.DataFrame):
            return self._source
        frame = read_table(self._source)
        _read.append(self)
        if len(_read) > _MOST_READ:
            for name in ("frame", "json"):
                vars(_read[0]).pop(name, None)
            _read.popleft()
        return frame

    @property
    def rows(self) -> int:
        return self.frame.height

    def __getitem__(self, column: str) -> list[Any]:
        if column not in self.frame.columns:
            raise KeyError(column)
        return self.frame[column].to_list()

    def __iter__(self) -> Iterator[str]:
        return iter(self.frame.columns)

    def __len__(self) -> int:
        return self.frame.width

    @cached_property
    def json(self) -> bytes:
        columns = {
            name: column.to_numpy() if column.dtype.is_numeric() and not column.null_count() else column.to_list()
            for name, column in zip(self.frame.columns, self.frame.get_columns(), strict=True)
        }
        return orjson.dumps(columns, option=_DUMP)

    def page(
        self,
        first: int = 0,
        rows: int = MOST_ROWS,
        columns: list[str] | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> Page:
        """Return up to 200 rows from row `first` of those whose columns match a value in `where`, or one of its values.

        Raises InputError for an unknown column, or `first` or `rows` out of range.
        """
        if first < 0 or not 1 <= rows <= MOST_ROWS:
            raise InputError(f"first must not be negative, and rows must be between 1 and {MOST_ROWS}")
        known = self.frame.columns
        named = [*(columns or ()), *(where or ())]
        if unknown := [name for name in named if name not in known]:
            raise InputError(f"there is no column {unknown[0][:80]!r}; choose from: {', '.join(known)}")
        found = self.frame
        for name, value in (where or {}).items():
            wanted = set(map(str, value if is_array(value) else [value]))
            found = found.filter(found[name].cast(pl.String).is_in(sorted(wanted)))
        part = found.slice(first, rows)
        if columns:
            part = part.select(list(dict.fromkeys(columns)))
        table = [[_plain(value) for value in row] for row in part.iter_rows()]
        return {"columns": list(part.columns), "first": first, "matching": found.height, "rows": table}


_read: deque[EpisodeTable] = deque()


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def dump(value: Any) -> bytes:
    """Return JSON for tool results and script input; a table becomes its columns."""
    return orjson.dumps(value, _as_json, _DUMP)


def _as_json(value: object) -> Any:
    if isinstance(value, EpisodeTable):
        return orjson.Fragment(value.json)
    raise TypeError(type(value).__name__)
