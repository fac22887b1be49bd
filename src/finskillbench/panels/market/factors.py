"""The factors panel: the daily returns that scenarios replay and exposures are regressed on, at every session."""

from collections.abc import Mapping
from datetime import date

import polars as pl

from finskillbench.arrays import FACTORS
from finskillbench.panels.columns import DATE, Column

_DAILY = "decimal per session"
COLUMNS: Mapping[str, Column] = {
    "date": DATE,
    **{factor: Column(_DAILY, "1 session", f"return of the factor {factor}") for factor in FACTORS},
    "rf": Column(_DAILY, "1 session", "return of the one-month Treasury bill"),
}


def build_factors(sessions: tuple[date, ...], factors: pl.DataFrame) -> pl.DataFrame:
    """A row per session, null where the source has no value; days that are no session are left out.

    Parameters
    ----------
    factors : daily decimals with date, the six factors and rf.
    """
    days = pl.DataFrame({"date": pl.Series(sessions, dtype=pl.Date)})
    return days.join(factors.select(*COLUMNS), on="date", how="left", maintain_order="left")
