"""Build all panels of a collection and the report on them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finskillbench.arrays import Booleans, Floats
from finskillbench.panels.columns import table_schema
from finskillbench.panels.filings.statements import REPORTING_LAG_DAYS, FundamentalPanels, build_fundamentals
from finskillbench.panels.market.benchmark_weights import WeightsPanel, build_benchmark_weights
from finskillbench.panels.market.estimates.factor_exposures import MIN_OBSERVATIONS, build_factor_exposures
from finskillbench.panels.market.estimates.views import (
    LARGE_FACTORS,
    WINDOW,
    CovariancePanel,
    ViewInputs,
    ViewsPanel,
    build_covariance,
    build_views,
)
from finskillbench.panels.market.macro import build_macro, ended_series
from finskillbench.panels.market.prices import PriceGrid, build_prices
from finskillbench.panels.market.regimes import (
    JUMP_LIMIT,
    RiskDates,
    build_returns,
    choose_month_ends,
    choose_risk_dates,
    find_jumps,
    returns_frame,
    with_user_dates,
)
from finskillbench.panels.market.sessions import (
    build_factors,
    build_risk_free,
    last_full_year,
    month_end_rows,
    refuse_short_series,
    rows_up_to,
)
from finskillbench.panels.market.share_counts import ShareCounts, average_daily_volume, build_liquidity, share_counts
from finskillbench.panels.store import TABLES
from finskillbench.panels.tables import Jump, PanelReport, Panels, Tables
from finskillbench.sources.edgar.collection import FilingsData
from finskillbench.sources.market.collection import MarketData

_LONG = ("returns", "factors", "factor_exposures", "benchmark_weights", "views", "liquidity")


def filings_only_panels(fundamentals: FundamentalPanels) -> Panels:
    """Return panels from filings only; market tables have no rows and no symbol or series columns."""
    of_no_name = pl.DataFrame(schema={"date": pl.Date})
    return Panels(
        symbols=(),
        sectors={},
        month_ends=(),
        tables=fundamentals.tables.merged_over(
            Tables(
                {
                    "prices": of_no_name,
                    "macro": of_no_name,
                    **{name: pl.DataFrame(schema=table_schema(TABLES[name])) for name in _LONG},
                }
            )
        ),
        regimes={},
        covariance={},
        risk_free={},
        report=PanelReport(
            first_session=None,
            last_session=None,
            sessions=0,
            observations={},
            forward_filled={},
            gaps=(),
            jumps=(),
            short_history=(),
            absent_signals={},
            stale_shares={},
            shrinkage={},
            ridged=(),
            notes=fundamentals.notes,
            unusable=fundamentals.unusable,
        ),
    )


def build_panels(
    market: MarketData | None, filings: FilingsData | None = None, user_dates: Collection[date] = ()
) -> Panels:
    """Build every panel from a market, from companies' filings, or from both.

    The last session up to each of `user_dates` becomes a further risk date if enough names have a year of history.
    Statements count as known `REPORTING_LAG_DAYS` after their period; facts and segments from their filing date.

    Raises SourceError naming the symbol, date and remedy, where the data cannot carry a panel.
    """
    fundamentals = build_fundamentals(filings) if filings is not None else FundamentalPanels.empty()
    if market is None:
        return filings_only_panels(fundamentals)
    return with_filings(_market_panels(market, user_dates), fundamentals)


def with_filings(panels: Panels, fundamentals: FundamentalPanels) -> Panels:
    notes = (*panels.report.notes, *fundamentals.notes)
    report = replace(panels.report, notes=notes, unusable=fundamentals.unusable)
    return replace(panels, tables=fundamentals.tables.merged_over(panels.tables), report=report)


def _market_panels(market: MarketData, user_dates: Collection[date]) -> Panels:
    refuse_short_series(market)
    grid = build_prices(market)
    symbols, sessions = grid.symbols, grid.sessions
    adjusted = grid.fields["adj_close"]
    arrays = build_returns(adjusted)
    rows = sorted({*month_end_rows(sessions), *rows_up_to(sessions, user_dates)})
    exposures = build_factor_exposures(symbols, sessions, arrays.simple, market.factors, rows)
    counts = share_counts(market.statements, market.splits, symbols)
    days, complete = _complete(grid, arrays.simple, exposures, counts, rows)
    risk, of_month = _dates(sessions, days, complete, user_dates)
    month_ends = tuple(of_month)
    place = {day: row for row, day in enumerate(sessions)}
    members = {place[day]: places for day, places in sorted({**risk.members, **of_month}.items())}

    covariance = build_covariance(symbols, sessions, arrays.simple, members)
    weights = build_benchmark_weights(symbols, sessions, grid.fields["close"], counts, members)
    risk_free = build_risk_free(market.macro, month_ends)
    inputs = _view_inputs(place, of_month, weights, covariance, risk_free)
    views = build_views(symbols, sessions, adjusted, arrays.simple, market.statements, inputs)
    at_risk = {place[day]: places for day, places in risk.members.items()}
    macro = build_macro(sessions, market.macro)
    late = [f"FRED {series} has no value after {day}." for series, day in ended_series(macro).items()]
    jumps = find_jumps(symbols, sessions, arrays.simple)
    return Panels(
        symbols=symbols,
        sectors={security.symbol: security.sector for security in market.securities},
        month_ends=month_ends,
        tables=Tables(
            {
                "prices": grid.frame(),
                "returns": returns_frame(symbols, sessions, adjusted, arrays),
                "factors": build_factors(sessions, market.factors),
                "factor_exposures": exposures,
                "benchmark_weights": weights.frame,
                "views": views.frame,
                "liquidity": build_liquidity(symbols, sessions, grid.fields["close"], grid.fields["volume"], at_risk),
                "macro": macro,
            }
        ),
        regimes=risk.regimes,
        covariance=covariance.covariance,
        risk_free=risk_free,
        report=_report(market, grid, jumps, covariance, weights, views, (*risk.notes, *late)),
    )


def _view_inputs(
    place: Mapping[date, int],
    of_month: Mapping[date, NDArray[np.intp]],
    weights: WeightsPanel,
    covariance: CovariancePanel,
    risk_free: Mapping[date, float],
) -> dict[int, ViewInputs]:
    found: dict[int, ViewInputs] = {}
    for day, places in of_month.items():
        rows = weights.frame.filter(pl.col("date") == day)
        sizes, benchmark = rows["market_cap_usd"].to_numpy(), rows["weight"].to_numpy()
        found[place[day]] = ViewInputs(places, sizes, benchmark, covariance.covariance[day], risk_free[day])
    return found


def _dates(
    sessions: tuple[date, ...], days: list[date], complete: Booleans, user_dates: Collection[date]
) -> tuple[RiskDates, Mapping[date, NDArray[np.intp]]]:
    """Return the risk dates, and the month-ends of portfolio tasks with the places of names complete on each."""
    last_year = last_full_year(sessions)
    user_sessions = {sessions[row] for row in rows_up_to(sessions, user_dates)}
    ends = {sessions[row] for row in month_end_rows(sessions)}
    at_end = [place for place, day in enumerate(days) if day in ends]
    covered = [place for place in at_end if days[place] <= last_year[-1]]
    risk = choose_risk_dates([days[place] for place in at_end], complete[at_end], last_year)
    of_month = choose_month_ends([days[place] for place in covered], complete[covered])
    return with_user_dates(risk, {day: complete[at] for at, day in enumerate(days) if day in user_sessions}), of_month


def _complete(
    grid: PriceGrid, simple: Floats, exposures: pl.DataFrame, counts: Mapping[str, ShareCounts], rows: Sequence[int]
) -> tuple[list[date], Booleans]:
    """Return the sessions of `rows` with a year of history, and a mask (len, n) of names with returns, betas, close,
    volume and shares.
    """
    symbols, sessions = grid.symbols, grid.sessions
    close, volume = grid.fields["close"], grid.fields["volume"]
    rows = [row for row in rows if row >= WINDOW]
    complete = np.empty((len(rows), len(symbols)), dtype=np.bool_)
    for at, row in enumerate(rows):
        complete[at] = (
            ~np.isnan(simple[row - WINDOW + 1 : row + 1]).any(axis=0)
            & ~np.isnan(close[row])
            & (average_daily_volume(close, volume, row) > 0)
            & np.array([s in counts and counts[s].at(sessions[row]) is not None for s in symbols])
        )
    fitted = exposures.filter(pl.col("date").is_in([sessions[row] for row in rows]))
    days = np.array([sessions[row] for row in rows], dtype="datetime64[D]")
    known = np.zeros_like(complete)
    known[
        np.searchsorted(days, fitted["date"].to_numpy()),
        fitted["symbol"].cast(pl.Enum(symbols)).to_physical().to_numpy(),
    ] = True
    return [sessions[row] for row in rows], complete & known


def _report(
    market: MarketData,
    grid: PriceGrid,
    jumps: tuple[Jump, ...],
    covariance: CovariancePanel,
    weights: WeightsPanel,
    views: ViewsPanel,
    remarks: tuple[str, ...],
) -> PanelReport:
    observations = dict(zip(grid.symbols, grid.observed.sum(axis=0).tolist(), strict=True))
    short = tuple(symbol for symbol, count in observations.items() if count < MIN_OBSERVATIONS)
    notes = [*market.notes, f"Statements count as known {REPORTING_LAG_DAYS} days after their period ends."]
    notes += [
        f"{jump.symbol} moves {jump.simple_return:+.1%} on {jump.date}, beyond {JUMP_LIMIT:.0%} in a session."
        for jump in jumps
    ]
    notes += [
        f"{gap.symbol} has no price for {gap.sessions} sessions after {gap.last}; the first five are filled."
        for gap in grid.gaps
    ]
    notes += [f"{symbol} has {observations[symbol]} observations, fewer than {MIN_OBSERVATIONS}." for symbol in short]
    notes += [f"The share count of {symbol} is up to {days} days old." for symbol, days in weights.stale.items()]
    if len(grid.symbols) > WINDOW:
        notes.append(
            f"With more names than the {WINDOW} sessions of its window the covariance keeps the Ledoit-Wolf variances "
            f"and the {LARGE_FACTORS} leading components of the covariances."
        )
    notes += remarks
    same = _equal_closes(grid)
    if same:
        notes.append(
            f"The close equals the adjusted close for {same} of {len(grid.symbols)} names: their market "
            "capitalisations are understated by the dividends paid since."
        )
    return PanelReport(
        first_session=grid.sessions[0],
        last_session=grid.sessions[-1],
        sessions=len(grid.sessions),
        observations=observations,
        forward_filled=grid.forward_filled,
        gaps=grid.gaps,
        jumps=jumps,
        short_history=short,
        absent_signals=views.absent,
        stale_shares=weights.stale,
        shrinkage={day.isoformat(): value for day, value in covariance.shrinkage.items()},
        ridged=tuple(day.isoformat() for day in covariance.ridged),
        notes=tuple(notes),
    )


def _equal_closes(grid: PriceGrid) -> int:
    close, adjusted = grid.fields["close"], grid.fields["adj_close"]
    return int(np.all((close == adjusted) | np.isnan(adjusted), axis=0).sum())
