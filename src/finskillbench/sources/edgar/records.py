"""What the EDGAR parsers share: JSON documents and columns of dates, each error with its file and place."""

from collections.abc import Callable, Sequence
from pathlib import Path

import orjson
import polars as pl

from finskillbench.errors import SourceError
from finskillbench.sources.files import read_text

ACCESSION = r"^\d{10}-\d{2}-\d{6}$"


def read_record(path: Path) -> dict[str, object]:
    """The JSON object of a plain or gzipped file.

    Raises
    ------
    SourceError : missing, empty, truncated or malformed (NaN and Infinity are not JSON), or not an object.
    """
    try:
        record = orjson.loads(read_text(path))
    except orjson.JSONDecodeError as error:
        raise SourceError(
            path, f"not valid JSON ({error.msg})", line=error.lineno, remedy="download it again"
        ) from None
    if not isinstance(record, dict):
        raise SourceError(path, "not a JSON object", line=1, remedy="download it again")
    return record


def cik_of(path: Path, record: dict[str, object]) -> int:
    """The filer's number, which the SEC writes as a number or as ten digits."""
    cik = record.get("cik")
    if isinstance(cik, str) and cik.isascii() and cik.isdigit():
        cik = int(cik)
    if isinstance(cik, bool) or not isinstance(cik, int) or cik <= 0:
        raise SourceError(path, f"no central index key: cik is {cik!r}", remedy="download it again")
    return cik


def text_column(values: Sequence[object], refuse: Callable[[int, str], SourceError], *, name: str) -> pl.Series:
    """Texts, none missing; `refuse(row, problem)` makes the error."""
    if not set(map(type, values)) <= {str} or not all(values):
        i = next(i for i, value in enumerate(values) if not isinstance(value, str) or not value)
        raise refuse(i, f"{name} is {values[i]!r}")
    return pl.Series(name, values, dtype=pl.String)


def date_column(values: Sequence[object], refuse: Callable[[int, str], SourceError], *, name: str) -> pl.Series:
    """ISO dates; None and the empty text are null."""
    if not set(map(type, values)) <= {str, type(None)}:
        i = next(i for i, value in enumerate(values) if value is not None and not isinstance(value, str))
        raise refuse(i, f"{name} is {values[i]!r}")
    text = pl.Series(name, values, dtype=pl.String)
    dates = text.str.to_date("%Y-%m-%d", strict=False, exact=True)
    wrong = dates.is_null() & (text != "")
    if wrong.any():
        i = wrong.arg_max() or 0
        raise refuse(i, f"{name} is {values[i]!r}, not YYYY-MM-DD")
    return dates
