"""Read raw text, CSV and JSON files, plain or gzipped, with errors that name file and line."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TypeAlias, TypeVar, cast

import orjson
import polars as pl

from finskillbench.errors import SourceError

T = TypeVar("T")

DEFAULT_START = date(2016, 1, 1)
"""First day that is kept; files are checked for order and duplicates over their whole length."""


Problems: TypeAlias = list[SourceError] | None
"""Collects errors so that a reader can go on; with None the first one is raised."""


def raise_or_collect(error: SourceError, problems: Problems) -> None:
    if problems is None:
        raise error
    problems.append(error)


def attempt(step: Callable[[], T], problems: Problems) -> T | None:
    """Return the result of a step, or None where its SourceError was added to `problems`."""
    try:
        return step()
    except SourceError as error:
        raise_or_collect(error, problems)
        return None


@dataclass(frozen=True, slots=True)
class TextTable:
    """CSV cells as text, with their file and the line (1-based) of the first row."""

    path: Path
    cells: pl.DataFrame
    first_line: int
    problems: Problems = None

    def error(self, row: int, problem: str, *, remedy: str = "") -> SourceError:
        """Make the error about one row (0-based)."""
        return SourceError(self.path, problem, line=self.first_line + row, remedy=remedy)

    def refuse(self, mask: pl.Series, problem: str, *, value: str | None = None, remedy: str = "") -> None:
        """Report the first true row of `mask` and the number of others; `value` names the column to quote."""
        rows = mask.fill_null(False).arg_true()
        if len(rows):
            shown = "" if value is None else f" {self.cells[value][rows[0]]!r}"
            raise_or_collect(
                self.error(rows[0], problem + shown + _and_more(len(rows) - 1), remedy=remedy), self.problems
            )


def _and_more(count: int) -> str:
    return f" (and {count} more row{'s' if count > 1 else ''})" if count else ""


def symbol_of(text: str) -> str:
    """Return a symbol in capitals with a dash before the share class, as on Yahoo (`BF-B`)."""
    return text.upper().replace(".", "-")


def ticker_of(path: Path) -> str:
    """`prices/bf.b.csv.gz` -> `BF-B`."""
    name = path.name
    for suffix in (".gz", ".csv", ".json"):
        if name.lower().endswith(suffix):
            name = name[: -len(suffix)]
    return symbol_of(name)


def read_bytes(path: Path) -> bytes:
    """Return the content of a plain or gzipped file; SourceError if missing, empty, unreadable or corrupt."""
    try:
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = gzip.decompress(data) if data else b""
    except FileNotFoundError:
        raise SourceError(path, "no such file", remedy="add it or correct the folder") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise SourceError(
            path, f"the gzip data are truncated or damaged ({error})", remedy="download it again"
        ) from None
    except OSError as error:
        remedy = "check what it is and its permissions"
        raise SourceError(path, f"cannot be read ({error.strerror})", remedy=remedy) from None
    if not data.strip():
        raise SourceError(path, "the file is empty", line=1, remedy="download it again")
    return data


class NoTextError(ValueError):
    """Bytes that are not text: line, problem and remedy."""

    def __init__(self, line: int, problem: str, remedy: str) -> None:
        super().__init__(f"line {line}: {problem}; {remedy}")
        self.line, self.problem, self.remedy = line, problem, remedy


def text_of(data: bytes) -> str:
    """Decode UTF-8 without a byte-order mark and with line feeds only; NoTextError for other bytes or NUL."""
    data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise NoTextError(line, "bytes that are not UTF-8", "save the file as UTF-8") from None
    if "\0" in text:
        raise NoTextError(text.count("\n", 0, text.index("\0")) + 1, "a NUL byte", "save the file as plain text")
    return text


def read_text(path: Path) -> str:
    """Return the text of a plain or gzipped file; SourceError if it is missing, empty, corrupt or not text."""
    try:
        return text_of(read_bytes(path))
    except NoTextError as error:
        remedy = f"{error.remedy}, or download it again"
        raise SourceError(path, error.problem, line=error.line, remedy=remedy) from None


def read_cells(path: Path, text: str, columns: Sequence[str], first_line: int, problems: Problems = None) -> TextTable:
    """Split CSV rows (without header) into text cells; every row must have exactly `columns`.

    Cells are stripped of blanks; an empty cell is null. `first_line` is the file's line of the first row.
    """
    text = text.rstrip()
    if not text:
        raise SourceError(path, "there are no rows under the header", line=first_line)
    try:
        cells = pl.read_csv(
            io.BytesIO(text.encode()),
            has_header=False,
            new_columns=list(columns),
            schema=dict.fromkeys(columns, pl.String),
            quote_char=None,
        )
    except pl.exceptions.PolarsError:
        cells = None
    # Polars fills short rows with nulls and skips none, so equal counts prove only the number of lines.
    if cells is None or cells.height != text.count("\n") + 1 or cells[columns[-1]].null_count() > 0:
        lines = text.split("\n")
        ragged = [place for place, row in enumerate(lines) if row.count(",") != len(columns) - 1]
        if ragged:
            fields = lines[ragged[0]].count(",") + 1 if lines[ragged[0]].strip() else 0
            raise SourceError(
                path,
                f"{fields} fields where {len(columns)} are expected{_and_more(len(ragged) - 1)}",
                line=first_line + ragged[0],
                remedy="repair or delete the row",
            )
    if cells is None:
        raise SourceError(path, "the rows cannot be read as CSV", line=first_line)
    stripped = cells.with_columns(pl.all().str.strip_chars().replace("", None))
    return TextTable(path, stripped, first_line, problems)


def parse_dates(table: TextTable, column: str, formats: Sequence[str] = ("%Y-%m-%d",)) -> pl.Series:
    """Parse a column as strictly increasing dates; drop a time and offset after the ISO date."""
    text = table.cells[column]
    table.refuse(text.is_null(), "no date", remedy="repair or delete the row")
    well_formed = text.str.contains(r"^(\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}:\d{2}(\.0+)?([+-]\d{2}:?\d{2}|Z)?)?|\d{8})$")
    table.refuse(~well_formed, "unreadable date", value=column, remedy="dates are YYYY-MM-DD")
    stem = text.str.slice(0, 10)
    dates = pl.Series(column, [None] * len(text), dtype=pl.Date)
    for pattern in formats:
        dates = dates.fill_null(stem.str.to_date(pattern, strict=False, exact=True))
    table.refuse(well_formed & dates.is_null(), "impossible date", value=column, remedy="dates are YYYY-MM-DD")
    step = dates.diff().dt.total_days()
    table.refuse(step == 0, "duplicate date", value=column, remedy="keep one row per date")
    table.refuse(step < 0, "dates are not sorted at", value=column, remedy="sort the file by date")
    return dates


def parse_numbers(table: TextTable, column: str, *, missing: Sequence[str] = ()) -> pl.Series:
    """Parse a column as finite floats; empty cells and those in `missing` are null, all else is an error."""
    text = table.cells[column]
    if missing:
        text = text.replace(dict.fromkeys(missing))
    numbers = text.cast(pl.Float64, strict=False)
    wrong = text.is_not_null() & (numbers.is_null() | ~numbers.is_finite())
    table.refuse(wrong, f"{column} is not a number:", value=column, remedy="repair the cell")
    return numbers


def files_below(folder: Path, suffixes: Sequence[str]) -> Iterator[Path]:
    """Yield files of `folder` and its direct sub-folders with one of the suffixes, sorted by name."""
    if not folder.is_dir():
        return
    for entry in sorted(folder.iterdir()):
        inside = sorted(entry.iterdir()) if entry.is_dir() else [entry]
        yield from (f for f in inside if f.is_file() and f.name.lower().endswith(tuple(suffixes)))


def first_folder(raw_dir: Path, *names: str) -> Path:
    """Return the first existing folder of `names` in `raw_dir`; SourceError if there is none."""
    for name in names:
        if (raw_dir / name).is_dir():
            return raw_dir / name
    raise SourceError(raw_dir, f"no folder {' or '.join(names)}", remedy="add it to the raw collection")


ACCESSION = r"^\d{10}-\d{2}-\d{6}$"


def read_json_file(path: Path, *, remedy: str = "download it again") -> object:
    """Read the JSON of a plain or gzipped file; SourceError if missing, empty or malformed (NaN, Infinity)."""
    try:
        return orjson.loads(read_text(path))
    except orjson.JSONDecodeError as error:
        raise SourceError(path, f"not valid JSON ({error.msg})", line=error.lineno, remedy=remedy) from None


def read_json_object(path: Path) -> dict[str, object]:
    """Read a JSON object as `read_json_file`; SourceError for any other value."""
    record = json_object(read_json_file(path))
    if record is None:
        raise SourceError(path, "not a JSON object", line=1, remedy="download it again")
    return record


def json_object(value: object) -> dict[str, object] | None:
    """Return a JSON value if it is an object."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else None


def json_list(value: object) -> list[object] | None:
    """Return a JSON value if it is a list."""
    return cast("list[object]", value) if isinstance(value, list) else None


def cik_of(path: Path, cik: object) -> int:
    """Return the CIK, which the SEC writes as a number or as ten digits; SourceError if it is neither."""
    if isinstance(cik, str) and cik.isascii() and cik.isdigit():
        cik = int(cik)
    if isinstance(cik, bool) or not isinstance(cik, int) or cik <= 0:
        raise SourceError(path, f"no central index key: cik is {cik!r}", remedy="download it again")
    return cik


def one_line(text: object) -> str:
    """Collapse white space to single blanks; empty for a value that is not text."""
    return " ".join(text.split()) if isinstance(text, str) else ""


Refuse = Callable[[int, str], SourceError]
"""Makes the error about a row (0-based) from the problem."""


def text_column(name: str, values: Sequence[object], refuse: Refuse) -> pl.Series:
    """Make a column of non-empty texts."""
    for row, value in enumerate(values):
        if not isinstance(value, str) or not value:
            raise refuse(row, f"{name} is {value!r}")
    return pl.Series(name, values, dtype=pl.String)


def date_column(name: str, values: Sequence[object], refuse: Refuse) -> pl.Series:
    """Parse a column of ISO dates; None and the empty text are null."""
    for row, value in enumerate(values):
        if value is not None and not isinstance(value, str):
            raise refuse(row, f"{name} is {value!r}")
    text = pl.Series(name, values, dtype=pl.String)
    dates = text.str.to_date("%Y-%m-%d", strict=False, exact=True)
    wrong = dates.is_null() & (text != "")
    if wrong.any():
        row = wrong.arg_max() or 0
        raise refuse(row, f"{name} is {values[row]!r}, not YYYY-MM-DD")
    return dates


def refuse_rows(refuse: Refuse, *checks: tuple[pl.Series, str]) -> None:
    """Raise the error for the first true row of the first mask that has one."""
    for mask, problem in checks:
        if mask.any():
            raise refuse(mask.arg_max() or 0, problem)
