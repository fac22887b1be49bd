"""Columns of panels: unit, horizon and meaning, written into the Parquet field, and the type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl


class Column(NamedTuple):
    """Unit ("decimal per year"), horizon (over what span, or "point in time"), one phrase of meaning, and the type."""

    unit: str
    horizon: str
    meaning: str
    kind: type[pl.DataType] = pl.Float64

    def metadata(self) -> dict[str, str]:
        """What is written into the Parquet field."""
        return {"unit": self.unit, "horizon": self.horizon, "meaning": self.meaning}


DATE = Column("date", "point in time", "trading session", pl.Date)
SYMBOL = Column("identifier", "point in time", "ticker symbol", pl.String)
START = Column("date", "point in time", "first day of the period; null for an instant", pl.Date)
END = Column("date", "point in time", "last day of the period, or the instant", pl.Date)
FILED = Column("date", "point in time", "day it was filed: known from then on", pl.Date)
DURATION = Column(
    "category", "the period", "instant, quarterly, half, nine_months, annual or other, from the dates", pl.String
)
FORM = Column("identifier", "point in time", "form of the filing", pl.String)
ACCESSION = Column(
    "identifier", "point in time", "accession number of the filing; of a derived row, of its last parent", pl.String
)
DERIVED = Column("boolean", "the period", "whether it was computed from filed figures", pl.Boolean)


def schema_of(columns: Mapping[str, Column]) -> dict[str, type[pl.DataType]]:
    """The types of a table by column, in its order."""
    return {name: column.kind for name, column in columns.items()}


def column_of(columns: Mapping[str, Column], name: str) -> Column:
    """The description of a column; `field:SYMBOL` columns of a wide table are described by their field."""
    field, _, symbol = name.partition(":")
    described = columns[field]
    return described._replace(meaning=f"{described.meaning} of {symbol}") if symbol else described
