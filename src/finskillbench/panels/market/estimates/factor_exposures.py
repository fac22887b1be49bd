"""Factor exposures panel: betas of each name on six factors at month-ends with enough history."""

from collections.abc import Mapping, Sequence
from datetime import date

import numpy as np
import polars as pl

from finskillbench.arrays import FACTORS, Floats
from finskillbench.engines.statistics.regression import MIN_OBSERVATIONS, WINDOW, rolling_ols
from finskillbench.errors import InputError, SourceError
from finskillbench.panels.columns import DATE, SYMBOL, PanelColumn

SESSIONS_PER_YEAR = 252
_TRAILING = f"{WINDOW} sessions trailing"

COLUMNS: Mapping[str, PanelColumn] = {
    "date": DATE,
    "symbol": SYMBOL,
    **{
        factor: PanelColumn("dimensionless", _TRAILING, f"slope of the excess return on {factor}") for factor in FACTORS
    },
    "alpha": PanelColumn("decimal per year", _TRAILING, "intercept per session x 252"),
    "r2": PanelColumn("dimensionless", _TRAILING, "share of variance explained"),
    "n_obs": PanelColumn("sessions", _TRAILING, "observations used", pl.Int64),
}


def build_factor_exposures(
    symbols: tuple[str, ...], sessions: tuple[date, ...], simple: Floats, factors: pl.DataFrame, rows: Sequence[int]
) -> pl.DataFrame:
    """Regress excess returns on the factors over the 252 sessions up to each of the rows.

    simple : (T, n) simple returns, NaN where missing. factors : daily decimals with date, the six factors and rf; a
        null
    excludes that session for every name. rows : places of month-ends among the sessions, increasing.

    Returns a long table by date and symbol; names with fewer than 120 observations in a window, and month-ends with
    fewer than 252 sessions, have no rows. Raises SourceError for factors that do not vary independently within a
    window.
    """
    aligned = pl.DataFrame({"date": pl.Series(sessions, dtype=pl.Date)}).join(factors, on="date", how="left")
    values = aligned.sort("date").select(*FACTORS, "rf").fill_null(np.nan).to_numpy()
    excess = simple - values[:, -1:]
    ends = np.array([row for row in rows if row >= WINDOW - 1], dtype=np.int64)
    try:
        fit = rolling_ols(excess, values[:, :-1], WINDOW, MIN_OBSERVATIONS, rows=ends)
    except InputError as error:
        raise SourceError("factors", f"cannot be regressed on: {error}", remedy="check the factor files") from error
    window, place = np.nonzero(fit.n_obs >= MIN_OBSERVATIONS)
    betas = fit.beta[window, place]
    return pl.DataFrame(
        {
            "date": pl.Series(sessions, dtype=pl.Date).gather(ends[window]),
            "symbol": pl.Series(symbols, dtype=pl.String).gather(place),
            **{factor: betas[:, k] for k, factor in enumerate(FACTORS)},
            "alpha": fit.alpha[window, place] * SESSIONS_PER_YEAR,
            "r2": pl.Series(fit.r2[window, place]).fill_nan(None),
            "n_obs": fit.n_obs[window, place],
        }
    )
