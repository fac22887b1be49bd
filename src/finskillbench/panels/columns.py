"""What a column of a panel holds: unit, horizon and meaning, written into its Parquet field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Column(NamedTuple):
    """Unit ("decimal per year"), horizon (over what span, or "point in time") and one phrase of meaning."""

    unit: str
    horizon: str
    meaning: str


DATE = Column("date", "point in time", "trading session")
SYMBOL = Column("identifier", "point in time", "ticker symbol")


def column_of(columns: Mapping[str, Column], name: str) -> Column:
    """The description of a column; `field:SYMBOL` columns of a wide table are described by their field."""
    described = columns[name.split(":", 1)[0]]
    if ":" not in name:
        return described
    return described._replace(meaning=f"{described.meaning} of {name.split(':', 1)[1]}")
