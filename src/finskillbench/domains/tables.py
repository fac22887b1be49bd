"""Tables of an episode that are too long for a prompt: stored as Parquet beside the episodes, read a page at a time.

An input names one by a reference; at full precision a `Table` stands in its place, which reads its file when somebody
asks for it. An agent turns its pages by `read_table`, or has a script given the whole of it.
"""

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
"""The folder of an edition that holds a folder of tables for each task that has some."""
MOST_ROWS = 200
"""Rows of a page."""
_DUMP = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
_MOST_READ = 24
"""Files whose rows and JSON are kept, those of the last few episodes; the largest take some 12 MB each."""


class TableReference(TypedDict):
    """How an input names a table: its file in the edition, its rows and its columns."""

    table: str
    rows: int
    columns: list[str]


class Page(TypedDict):
    """Rows of a table, from row `first` of those that fit: `matching` of them in all."""

    columns: list[str]
    first: int
    matching: int
    rows: list[list[Any]]


def reference(task_id: str, name: str, frame: pl.DataFrame) -> TableReference:
    """What stands in the input of a task for its table `name`."""
    return {"table": table_file(task_id, name), "rows": frame.height, "columns": list(frame.columns)}


def table_file(task_id: str, name: str) -> str:
    """The file of a table, as an edition names it."""
    return f"{FOLDER}/{task_id}/{name}.parquet"


def refers_to_table(value: object) -> TypeGuard[TableReference]:
    """Whether a value of an input names a table."""
    return is_object(value) and set(value) == {"table", "rows", "columns"} and isinstance(value["table"], str)


class Table(Mapping[str, list[Any]]):
    """A table as a mapping of its columns to their values.

    The file is read when a column is asked for, and again after many other files were read.
    """

    def __init__(self, source: Path | pl.DataFrame) -> None:
        self._source = source

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The table itself.

        Raises
        ------
        EditionError : its file is missing or damaged.
        """
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
        """How many rows it has."""
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
        """JSON of its columns with their values."""
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
        """At most 200 rows, from row `first` of those whose columns have the values (or one of the values) of `where`.

        Raises
        ------
        InputError : a column that there is not, a row or number of rows that cannot be meant.
        """
        if first < 0 or not 1 <= rows <= MOST_ROWS:
            raise InputError(f"first must not be negative, and rows must lie between 1 and {MOST_ROWS}")
        known = self.frame.columns
        named = [*(columns or ()), *(where or ())]
        if unknown := [name for name in named if name not in known]:
            raise InputError(f"there is no column {unknown[0][:80]!r}; there are {', '.join(known)}")
        found = self.frame
        for name, value in (where or {}).items():
            wanted = set(map(str, value if is_array(value) else [value]))
            found = found.filter(found[name].cast(pl.String).is_in(sorted(wanted)))
        part = found.slice(first, rows)
        if columns:
            part = part.select(list(dict.fromkeys(columns)))
        table = [[_plain(value) for value in row] for row in part.iter_rows()]
        return {"columns": list(part.columns), "first": first, "matching": found.height, "rows": table}


_read: deque[Table] = deque()
"""Tables whose file has been read, in the order of reading."""


def _plain(value: Any) -> Any:
    """A value as JSON has it: dates as text."""
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def dump(value: Any) -> bytes:
    """JSON of what tools return and scripts are given: a table as its columns."""
    return orjson.dumps(value, _as_json, _DUMP)


def _as_json(value: object) -> Any:
    if isinstance(value, Table):
        return orjson.Fragment(value.json)
    raise TypeError(type(value).__name__)
