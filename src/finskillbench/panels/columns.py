"""Panel columns: type, unit, horizon and meaning, stored in the Parquet field metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl


class PanelColumn(NamedTuple):
    """Unit ("decimal per year"), horizon (a span, or "point in time"), meaning in one phrase, and type."""

    unit: str
    horizon: str
    meaning: str
    kind: type[pl.DataType] = pl.Float64

    def metadata(self) -> dict[str, str]:
        return {"unit": self.unit, "horizon": self.horizon, "meaning": self.meaning}


DATE = PanelColumn("date", "point in time", "trading session", pl.Date)
SYMBOL = PanelColumn("identifier", "point in time", "ticker symbol", pl.String)
START = PanelColumn("date", "point in time", "first day of the period; null for an instant", pl.Date)
END = PanelColumn("date", "point in time", "last day of the period, or the instant", pl.Date)
FILED = PanelColumn("date", "point in time", "day it was filed: known from then on", pl.Date)
DURATION = PanelColumn(
    "category", "the period", "instant, quarterly, half, nine_months, annual or other, from the dates", pl.String
)
FORM = PanelColumn("identifier", "point in time", "form of the filing", pl.String)
ACCESSION = PanelColumn(
    "identifier", "point in time", "accession number of the filing; of a derived row, of its last parent", pl.String
)
DERIVED = PanelColumn("boolean", "the period", "whether it was computed from filed figures", pl.Boolean)


def table_schema(columns: Mapping[str, PanelColumn]) -> dict[str, type[pl.DataType]]:
    return {name: column.kind for name, column in columns.items()}


def describe_column(columns: Mapping[str, PanelColumn], name: str) -> PanelColumn:
    """Return the description of a column; a wide `field:SYMBOL` column uses that of its field."""
    field, _, symbol = name.partition(":")
    described = columns[field]
    return described._replace(meaning=f"{described.meaning} of {symbol}") if symbol else described
