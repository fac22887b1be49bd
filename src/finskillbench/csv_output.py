"""CSV output that spreadsheets do not read as formulas."""

from __future__ import annotations

import polars as pl

_FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"
"""Some spreadsheets accept full-width signs as plain ones."""
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_TEXTS = (pl.String, pl.Categorical, pl.Enum)


def csv_text(table: pl.DataFrame) -> str:
    """Write a table as CSV with a header, empty nulls and line-feed endings.

    Text that a spreadsheet would run as a formula gets a leading apostrophe. Numbers stay as they are, also as text.

    Source: OWASP, "CSV Injection".
    """
    names = _quoted(pl.Series(table.columns, dtype=pl.String))
    columns = [_quoted(each.cast(pl.String)) if isinstance(each.dtype, _TEXTS) else each for each in table]
    return pl.DataFrame([each.alias(name) for each, name in zip(columns, names, strict=True)]).write_csv()


def _quoted(texts: pl.Series) -> pl.Series:
    formula = texts.str.contains(_FORMULA) & ~texts.str.contains(_NUMBER)
    return texts.zip_with(~formula.fill_null(False), "'" + texts)
