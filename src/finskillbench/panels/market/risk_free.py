"""The annual risk-free rate at each month-end."""

from collections.abc import Mapping, Sequence
from datetime import date

import polars as pl

from finskillbench.errors import SourceError

SERIES = "DGS3MO"
"""FRED: market yield on three-month Treasury bills at constant maturity, percent per year."""
MAX_AGE_DAYS = 10
"""A rate older than this is a missing one: holidays never close the bill market so long."""


def build_risk_free(macro: Mapping[str, pl.DataFrame], dates: Sequence[date]) -> dict[date, float]:
    """The last observation of DGS3MO on or before each date, as an annual decimal (0.043 is 4.3 %).

    Raises SourceError if the series is missing or its last observation is more than ten days old.
    """
    if SERIES not in macro:
        raise SourceError(f"FRED {SERIES}", "the series is missing", remedy="add its file to the raw directory")
    table = macro[SERIES].drop_nulls("value").sort("date")
    rates: dict[date, float] = {}
    for day in dates:
        past = table.filter(pl.col("date") <= day).tail(1)
        if not past.height or (day - past["date"][0]).days > MAX_AGE_DAYS:
            raise SourceError(f"FRED {SERIES}", f"no observation in the ten days up to {day}", remedy="extend the file")
        rates[day] = float(past["value"][0]) / 100.0
    return rates
