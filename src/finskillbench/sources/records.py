"""What the JSON parsers share: documents, objects and lists in them, and columns of checked texts and dates."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import orjson
import polars as pl

from finskillbench.errors import SourceError
from finskillbench.sources.files import read_text

ACCESSION = r"^\d{10}-\d{2}-\d{6}$"


def read_json(path: Path, *, remedy: str = "download it again") -> object:
    """The JSON of a plain or gzipped file.

    Raises
    ------
    SourceError : missing, empty, truncated or malformed (NaN and Infinity are not JSON).
    """
    try:
        return orjson.loads(read_text(path))
    except orjson.JSONDecodeError as error:
        raise SourceError(path, f"not valid JSON ({error.msg})", line=error.lineno, remedy=remedy) from None


def read_record(path: Path) -> dict[str, object]:
    """The JSON object of a plain or gzipped file; SourceError as for `read_json`, or if it is not an object."""
    record = as_object(read_json(path))
    if record is None:
        raise SourceError(path, "not a JSON object", line=1, remedy="download it again")
    return record


def as_object(value: object) -> dict[str, object] | None:
    """A JSON value if it is an object."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else None


def as_list(value: object) -> list[object] | None:
    """A JSON value if it is a list."""
    return cast("list[object]", value) if isinstance(value, list) else None


def cik_of(path: Path, cik: object) -> int:
    """The filer's number, which the SEC writes as a number or as ten digits."""
    if isinstance(cik, str) and cik.isascii() and cik.isdigit():
        cik = int(cik)
    if isinstance(cik, bool) or not isinstance(cik, int) or cik <= 0:
        raise SourceError(path, f"no central index key: cik is {cik!r}", remedy="download it again")
    return cik


def one_line(text: object) -> str:
    """A text without line breaks and repeated blanks; empty where there is none."""
    return " ".join(text.split()) if isinstance(text, str) else ""


Refuse = Callable[[int, str], SourceError]
"""Makes the error about a row (0-based) from what is wrong with it."""


def text_column(name: str, values: Sequence[object], refuse: Refuse) -> pl.Series:
    """Texts, none missing."""
    for row, value in enumerate(values):
        if not isinstance(value, str) or not value:
            raise refuse(row, f"{name} is {value!r}")
    return pl.Series(name, values, dtype=pl.String)


def date_column(name: str, values: Sequence[object], refuse: Refuse) -> pl.Series:
    """ISO dates; None and the empty text are null."""
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
    """Raise about the first true row of the first mask that has one."""
    for mask, problem in checks:
        if mask.any():
            raise refuse(mask.arg_max() or 0, problem)
