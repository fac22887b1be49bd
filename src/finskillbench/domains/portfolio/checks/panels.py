"""Checks of the panels: prices, trading days, point in time, covariance, benchmark."""

from __future__ import annotations

import math
from datetime import date
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from finskillbench.arrays import FACTORS
from finskillbench.domains.checks.coverage import best_shift, columns_of, nyse, simple_returns
from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.engines.statistics.covariance import Covariance
from finskillbench.findings import Findings
from finskillbench.panels import Panels
from finskillbench.panels.filings.statements import REPORTING_LAG_DAYS
from finskillbench.panels.market.benchmark_weights import LARGEST, TIMES_EQUAL, capped
from finskillbench.panels.market.estimates.factor_exposures import MIN_OBSERVATIONS
from finskillbench.panels.market.estimates.views import LARGE_FACTORS, WINDOW
from finskillbench.panels.market.prices import MAX_FILLED_SESSIONS
from finskillbench.panels.market.regimes import JUMP_LIMIT
from finskillbench.panels.reading import read_arrays
from finskillbench.panels.store import DENSE_LIMIT
from finskillbench.scoring.values import as_array, as_object

_ROUNDING = 1e-9
_RESIDUE = 1e-12
_VOLATILITY = (0.02, 2.0)
"""Annual volatilities of listed companies; daily covariances are below the range, percentages above."""


def check_prices(subject: Subject, findings: Findings) -> None:
    """Check that prices are positive and cover month-ends, and that gaps, fills and jumps are reported."""
    panels = subject.panels(findings)
    if panels is None:
        return
    days, simple = simple_returns(panels)
    adjusted = panels.prices_of("adj_close").drop("date").to_numpy()
    volume = panels.prices_of("volume").drop("date").to_numpy()
    present = ~np.isnan(adjusted)
    at = {day: row for row, day in enumerate(days)}
    for symbol, first, other in _not_positive(panels):
        findings.fail(f"{symbol} {first}", f"a price is not positive ({other} in all)")
    for day in panels.month_ends:
        if day in at:
            members = set(panels.symbols_at(day))
            for place in np.flatnonzero(~present[at[day]]):
                if panels.symbols[place] in members:
                    findings.fail(f"{panels.symbols[place]} {day}", "no price on a month-end")
    _check_returns(panels, simple[1:], days, findings)
    _check_jumps(panels, simple[1:], days, findings)
    filled = 0
    for place, symbol in enumerate(panels.symbols):
        rows = np.flatnonzero(present[:, place])
        reported = {gap.last for gap in panels.report.gaps if gap.symbol == symbol}
        for before, after in pairwise(rows.tolist()):
            if after - before > 1:
                last = days[max(before - MAX_FILLED_SESSIONS, 0)]
                state = findings.warn if reported else findings.fail
                state(f"{symbol} {last}", f"no price for {after - before - 1} sessions up to {days[after]}")
        unchanged = (volume[1:, place] == 0) & (adjusted[1:, place] == adjusted[:-1, place])
        count = int(unchanged.sum())
        filled += count
        known = panels.report.forward_filled.get(symbol, 0)
        findings.expect(count >= known, symbol, f"the report counts {known} filled sessions, the panel shows {count}")
        observed = len(rows) - known
        if observed < MIN_OBSERVATIONS:
            state = findings.warn if symbol in panels.report.short_history else findings.fail
            state(symbol, f"only {observed} observed prices, fewer than {MIN_OBSERVATIONS}")
    findings.figures |= {
        "symbols": len(panels.symbols),
        "sessions": len(days),
        "first_session": str(days[0]),
        "last_session": str(days[-1]),
        "missing_prices": int((~present).sum()),
        "filled_sessions": sum(panels.report.forward_filled.values()),
        "sessions_without_trading": filled,
    }


def _not_positive(panels: Panels) -> list[tuple[str, date, int]]:
    found: list[tuple[str, date, int]] = []
    for field in ("open", "high", "low", "close", "adj_close"):
        table = panels.prices_of(field)
        bad = table.drop("date").to_numpy() <= 0
        for place in np.flatnonzero(bad.any(axis=0)):
            first = int(np.argmax(bad[:, place]))
            found.append((panels.symbols[place], table["date"][first], int(bad[:, place].sum())))
    return found


def _check_returns(panels: Panels, simple: np.ndarray, days: list[date], findings: Findings) -> None:
    places = {symbol: place for place, symbol in enumerate(panels.symbols)}
    rows = {day: row for row, day in enumerate(days)}
    table = panels.returns.select("symbol", "date", "simple").drop_nulls()
    row = table["date"].replace_strict(rows, default=0).to_numpy()
    column = table["symbol"].replace_strict(places, default=0).to_numpy()
    panel_returns = np.full((len(days), len(places)), np.nan)
    panel_returns[row, column] = table["simple"].to_numpy()
    differs = ~((np.abs(panel_returns[1:] - simple) <= _ROUNDING) | (np.isnan(panel_returns[1:]) & np.isnan(simple)))
    for place in np.flatnonzero(differs.any(axis=0)):
        first = int(np.argmax(differs[:, place]))
        findings.fail(
            f"{panels.symbols[place]} {days[first + 1]}",
            f"the return is {panel_returns[first + 1, place]:+.4%}, from prices {simple[first, place]:+.4%} "
            f"({int(differs[:, place].sum())} sessions differ)",
        )


def _check_jumps(panels: Panels, simple: np.ndarray, days: list[date], findings: Findings) -> None:
    reported = {(jump.symbol, jump.date) for jump in panels.report.jumps}
    with np.errstate(invalid="ignore"):
        places = np.argwhere(np.abs(simple) > JUMP_LIMIT)
    for row, place in places.tolist():
        symbol, day = panels.symbols[place], days[row + 1]
        state = findings.warn if (symbol, day) in reported else findings.fail
        unreported = "" if (symbol, day) in reported else ", which is not in the report"
        state(f"{symbol} {day}", f"moves {simple[row, place]:+.1%} in a session{unreported}")
    findings.figures["jumps"] = len(places)


def check_trading_days(subject: Subject, findings: Findings) -> None:
    """Check that as-of dates are ordered NYSE month-end sessions and match the episodes."""
    panels = subject.panels(findings)
    if panels is None:
        return
    days = panels.prices["date"].to_list()
    findings.expect(all(a < b for a, b in pairwise(days)), "panels/prices.parquet", "sessions are not in order")
    stated = [date.fromisoformat(text) for text in subject.edition.manifest["as_of_dates"]]
    findings.expect(stated == list(panels.month_ends), "manifest.json", "as_of_dates are not those of the panels")
    findings.expect(all(a < b for a, b in pairwise(stated)), "manifest.json", "as_of_dates are not in order")
    calendar = nyse(min([days[0], *stated]), max([days[-1], *stated]))
    closed = [day for day in days if day not in calendar]
    for day in closed:
        findings.fail(day, "the panels have prices on a day without trading")
    known = set(days)
    for day in stated:
        findings.expect(day in known and day in calendar, day, "an as-of date is no session")
        later = [other for other in calendar if other > day and (other.year, other.month) == (day.year, day.month)]
        findings.expect(not later, day, f"is no month-end: {max(later, default=day)} is a session too")
    allowed = set(stated)
    for episode in subject.episodes:
        day = episode.as_of_date
        findings.expect(day in allowed, episode.task_id, f"as of {day}, which is none of the edition's as-of dates")
        before = episode.input.get("current_portfolio_date")
        if before is not None:
            findings.expect(str(before) <= str(day), episode.task_id, f"its portfolio is of {before}, after {day}")
    findings.figures |= {"as_of_dates": len(stated), "sessions": len(days), "episodes": len(subject.episodes)}


def check_panel_point_in_time(subject: Subject, findings: Findings) -> None:
    """Check that no input contains data known only after its date."""
    panels = subject.panels(findings)
    if panels is None:
        return
    lagged = (pl.col("earnings_as_of") + pl.duration(days=REPORTING_LAG_DAYS)).alias("earnings_known")
    for table, column, known in (
        (panels.benchmark_weights, "shares_as_of", "shares_known"),
        (panels.views.with_columns(lagged), "earnings_as_of", "earnings_known"),
    ):
        early = table.filter((pl.col(known) > pl.col("date")) | (pl.col(column) > pl.col(known)))
        for symbol, day, end, since in early.select("symbol", "date", column, known).iter_rows():
            findings.fail(f"{symbol} {day}", f"{column} {end} is known only on {since}, after the date")
        findings.figures[column] = table.height - table[column].null_count()
    days, simple = simple_returns(panels)
    for day, estimate in panels.covariance.items():
        with examining(f"covariance {day}", findings):
            shift = best_shift(simple[:, columns_of(panels, estimate)], days.index(day), estimate)
            later = "looks ahead" if shift > 0 else "is stale"
            findings.expect(shift == 0, f"covariance {day}", f"its window ends {shift:+d} sessions off: it {later}")
    at: dict[date, dict[str, Any]] = {}
    for episode in subject.episodes:
        day = episode.as_of_date
        for name, value in episode.input.items():
            reference = as_object(value).get("ref")
            if isinstance(reference, str):
                dated = reference.rsplit("/", 1)[-1].removesuffix(".npz")
                findings.expect(dated <= str(day), episode.task_id, f"{name} is of {dated}, after {day}")
        if day in panels.month_ends:
            if day not in at:
                at[day] = _seen(panels, day)
            _compare(episode.task_id, episode.input, at[day], findings)
    findings.figures |= {"reporting_lag_days": REPORTING_LAG_DAYS, "episodes": len(subject.episodes)}


_MARKET_WEIGHTS = ("benchmark_weights", "market_cap_weights")


def _seen(panels: Panels, day: date) -> dict[str, Any]:
    symbols = panels.symbols_at(day)
    weights = dict(zip(symbols, panels.weights(day).tolist(), strict=True))
    betas = panels.exposures(day).tolist()
    return {
        "expected_returns": dict(zip(symbols, panels.expected_returns(day).tolist(), strict=True)),
        "benchmark_weights": weights,
        "market_cap_weights": weights,
        "factor_exposures": {
            symbol: dict(zip(FACTORS, row, strict=True)) for symbol, row in zip(symbols, betas, strict=True)
        },
        "risk_free_rate": panels.risk_free[day],
    }


def _compare(task_id: str, task_input: Any, known: dict[str, Any], findings: Findings) -> None:
    """Compare an input with the panel values of its date; an approved list's benchmark is renormalised and capped."""
    listed = set(map(str, as_array(as_object(task_input.get("covariance_matrix")).get("tickers"))))
    for name in known.keys() & task_input.keys():
        stated, expected = task_input[name], known[name]
        if listed and name != "risk_free_rate":
            whole = as_object(expected)
            symbols = [symbol for symbol in whole if symbol in listed]
            expected = {symbol: whole[symbol] for symbol in symbols}
            if name in _MARKET_WEIGHTS and len(symbols) < len(whole):
                weights = capped(np.array([whole[symbol] for symbol in symbols], dtype=float))
                expected = dict(zip(symbols, weights.tolist(), strict=True))
        findings.expect(stated == expected, task_id, f"{name} differs from the panels at its date")


def check_covariance(subject: Subject, findings: Findings) -> None:
    """Check that covariances are symmetric, positive definite, annualised Ledoit-Wolf estimates over 252 sessions."""
    panels = subject.panels(findings)
    if panels is None:
        return
    days, simple = simple_returns(panels)
    for day in sorted({*panels.month_ends, *panels.risk_dates}):
        where = f"covariance {day}"
        if day not in panels.covariance:
            findings.fail(where, "is missing")
            continue
        with examining(where, findings):
            end = days.index(day)
            _check_estimate(subject, panels, day, simple[end - WINDOW + 1 : end + 1], findings)
    for text in panels.report.ridged:
        findings.warn(f"covariance {text}", "needed a ridge")
    findings.figures |= {"dates": len(panels.covariance), "symbols": len(panels.symbols)}


def _check_estimate(subject: Subject, panels: Panels, day: date, window: np.ndarray, findings: Findings) -> None:
    """Check one estimate against the returns (T, n) of the panels' names up to its date."""
    where, estimate = f"covariance {day}", panels.covariance[day]
    strangers = sorted(set(estimate.symbols) - set(panels.symbols))
    findings.expect(not strangers, where, f"covers {', '.join(strangers)}, which the panels do not have")
    volatility = np.sqrt(estimate.variances())
    least, most = float(volatility.min()), float(volatility.max())
    findings.expect(
        _VOLATILITY[0] <= least and most <= _VOLATILITY[1],
        where,
        f"annual volatilities from {least:.2%} to {most:.2%} are not those of stocks in annualised decimals",
    )
    findings.least("least_volatility", least)
    findings.widest("greatest_volatility", most)
    expected = _ledoit_wolf(window[:, columns_of(panels, estimate)])
    scale = float(expected[:, 0].max())
    off = float(np.abs(_probed(estimate) - expected).max()) / scale
    findings.widest("greatest_relative_difference", off)
    findings.expect(off <= 1e-7, where, f"differs from Ledoit-Wolf on the {WINDOW} sessions by {off:.1e} of its scale")
    bound = estimate.least_eigenvalue_bound()
    if len(estimate.symbols) <= DENSE_LIMIT:
        path = subject.edition.path / "panels" / "covariance" / f"{day}.npz"
        dense = read_arrays(path)["cov"]
        findings.expect(np.array_equal(dense, dense.T), where, "the dense matrix is not symmetric")
        difference = float(np.abs(dense - estimate.matrix()).max()) / scale
        findings.expect(
            difference <= 1e-12, where, f"the dense matrix and its factors differ by {difference:.1e} of the scale"
        )
        bound = float(np.linalg.eigvalsh((dense + dense.T) / 2)[0])
    findings.expect(bound > 0, where, f"is not positive definite: least eigenvalue {bound:.1e}")
    findings.least("least_eigenvalue", bound)


def _probes(n: int) -> np.ndarray:
    """Return (n, 2) vectors whose product with a matrix changes with any entry."""
    return np.column_stack([np.ones(n), np.cos(np.arange(n))])


def _probed(estimate: Covariance) -> np.ndarray:
    """Return (n, 3) variances and products with the probes over n, without the n x n array."""
    n = len(estimate.symbols)
    return np.column_stack([estimate.variances(), estimate.times(_probes(n)) / n])


def _ledoit_wolf(window: np.ndarray) -> np.ndarray:
    """Return `_probed` of the annualised Ledoit-Wolf estimate of returns (T, n), from the formulas of the paper.

    The covariance is (1 − s) S + s μ I with μ = tr S / n, s = min(b², d²) / d², d² = ||S − μI||² / n and
    b² = Σ_t ||x_t x_t' − S||² / (n T²). Source: Ledoit & Wolf (2004), section 3.3.
    """
    periods, n = window.shape
    x = window - window.mean(axis=0)
    lengths = np.einsum("tn,tn->t", x, x)
    gram = x @ x.T
    mean_variance = lengths.sum() / periods / n
    squared = float((gram * gram).sum()) / periods**2
    away = squared / n - mean_variance**2
    noise = (float(lengths @ lengths) / periods - squared) / (n * periods)
    share = min(noise, away) / away
    variances = np.einsum("tn,tn->n", x, x) / periods
    if n > WINDOW:
        # Leading components from the eigenvectors of the Gram matrix; the rest of each variance is specific.
        _, vectors = np.linalg.eigh(gram)
        lead = vectors[:, -LARGE_FACTORS:].T @ x / np.sqrt(periods)
        specific = variances - np.einsum("kn,kn->n", lead, lead)
        products = (lead.T @ (lead @ _probes(n)) + specific[:, None] * _probes(n)) / n
    else:
        products = x.T @ (x @ _probes(n)) / periods / n
    target = mean_variance * np.column_stack([np.ones(n), _probes(n) / n])
    return 252 * ((1 - share) * np.column_stack([variances, products]) + share * target)


def _capped(weights: np.ndarray) -> np.ndarray:
    """Return min(cap, m w) with the multiple m for which the weights sum to 1."""
    cap = max(LARGEST, TIMES_EQUAL / len(weights))
    low, high = 1.0, cap / float(weights.min())
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(cap, middle * weights).sum() < 1 else (low, middle)
    return np.minimum(cap, high * weights)


def check_benchmark(subject: Subject, findings: Findings) -> None:
    """Check that benchmark weights follow market capitalisation (shares x close), capped by name, and sum to 1."""
    panels = subject.panels(findings)
    if panels is None:
        return
    close = panels.prices_of("close")
    days = sorted({*panels.month_ends, *panels.risk_dates})
    for day in days:
        rows = panels.benchmark_weights.filter(pl.col("date") == day).sort("symbol")
        findings.expect(
            rows["symbol"].to_list() == sorted(panels.symbols_at(day)), day, "does not cover every name once"
        )
        weights, caps = rows["weight"].to_numpy(), rows["market_cap_usd"].to_numpy()
        findings.expect(abs(weights.sum() - 1) <= _ROUNDING, day, f"weights sum to {weights.sum():.9f}")
        findings.expect((weights >= 0).all(), day, "a weight is negative")
        findings.widest("largest_weight", weights.max())
        off = float(np.abs(weights - _capped(caps / caps.sum())).max())
        findings.expect(off <= _ROUNDING, day, f"a weight differs by {off:.1e} from capitalisation under the cap")
        quoted = close.filter(pl.col("date") == day)
        for symbol, shares, cap in rows.select("symbol", "shares", "market_cap_usd").iter_rows():
            if symbol in quoted.columns and quoted.height:
                agrees = math.isclose(shares * float(quoted[symbol][0]), cap, rel_tol=1e-9)
                findings.expect(agrees, f"{symbol} {day}", "capitalisation, shares and close disagree")
    for symbol, age in panels.report.stale_shares.items():
        findings.warn(symbol, f"its share count is up to {age} days old")
    for episode in subject.episodes:
        for name in ("benchmark_weights", "market_cap_weights", "current_portfolio"):
            if name in episode.input:
                with examining(episode.task_id, findings):
                    weights = np.array(list(episode.input[name].values()), dtype=float)
                    findings.expect(
                        abs(weights.sum() - 1) <= _ROUNDING and (weights >= -_RESIDUE).all(),
                        episode.task_id,
                        f"{name} sums to {weights.sum():.9f} with least weight {weights.min(initial=1.0):.2e}",
                    )
    findings.figures |= {"dates": len(days), "symbols": len(panels.symbols)}
