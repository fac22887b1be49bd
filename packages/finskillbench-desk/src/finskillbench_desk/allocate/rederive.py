"""Independent derivation of the posterior from the task input, sharing no code with the generator or the engine.

Each hypothesis (a source and the start of its regime) is updated quarter by quarter: its coefficient by recursive least
squares, its probability by one-step predictive densities. Source: Adams and MacKay (2007), Bayesian online changepoint
detection.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from finskillbench.arrays import Booleans, Floats, Integers

_RESTATED_NOT = ("left as it had been delivered", "have not been restated", "as they were first sent")
_VALID = ("pilot client", "trial", "same person", "one person")
_JUMP = 5.0
"""Ratio of successive dispersions over 120 names that only a change of unit reaches."""


class Visible(NamedTuple):
    """Visible data: scores (T + 1, n, C), NaN if undelivered, valid quarters from (C,) on, residuals (T, n), labels."""

    scores: Floats
    start: Integers
    residuals: Floats
    specific: Floats
    industries: list[str]
    analysts: Booleans


def read_visible(task_input: Mapping[str, Any], *, repaired: bool = True) -> Visible:
    """Read the tables of a task input; without repairs, as delivered and without the log."""
    frames: dict[str, pl.DataFrame] = {
        name: task_input[name].frame for name in ("panel", "today", "names", "factor_returns", "sources")
    }
    names, sources = frames["names"], frames["sources"]
    columns: list[str] = sources["source"].to_list()
    order = {ticker: place for place, ticker in enumerate(names["ticker"].to_list())}
    panel = frames["panel"].with_columns(place=pl.col("ticker").replace_strict(order)).sort("quarter", "place")
    today = frames["today"].with_columns(place=pl.col("ticker").replace_strict(order)).sort("place")
    raw = np.concatenate([panel.select(columns).to_numpy(), today.select(columns).to_numpy()])
    raw = raw.reshape(-1, len(order), len(columns)).astype(float)
    quarters = len(raw) - 1
    missing = (raw[-1] == raw[-2]).all(axis=0)
    start = sources["since"].to_numpy() - 1
    if repaired:
        _repair(raw)
        for line in task_input["documents"]["notes"].splitlines():
            _apply(line, columns, sources, raw, start)
    scores = raw / sources["scale"].to_numpy()
    if repaired:
        scores[-1, :, missing] = np.nan
    factors = task_input["factor_covariance"]["factors"]
    explained = frames["factor_returns"].select(factors).to_numpy() @ names.select(factors).to_numpy().T
    returns = panel["return_bp"].to_numpy().reshape(quarters, -1) / 1e4
    return Visible(
        scores,
        start,
        returns - explained,
        names["specific_volatility"].to_numpy(),
        names["industry"].to_list(),
        (sources["kind"] == "analyst").to_numpy(),
    )


def _repair(raw: Floats) -> None:
    """Divide values from a jump of the dispersion on."""
    spread = raw.std(axis=1)
    for column in range(raw.shape[2]):
        jumps = np.flatnonzero(spread[1:, column] > _JUMP * spread[:-1, column])
        if len(jumps):
            raw[jumps[0] + 1 :, :, column] /= 10


def _apply(line: str, columns: list[str], sources: pl.DataFrame, raw: Floats, start: Integers) -> None:
    """Apply one log entry: reverse a sign, or mark a record as valid from the first quarter."""
    named = re.findall(r"\b[SA]\d{2,3}\b", line)
    if any(phrase in line for phrase in _RESTATED_NOT):
        turned = int(max(map(int, re.findall(r"quarter (\d+)", line, re.IGNORECASE))))
        raw[: turned - 1, :, columns.index(named[0])] *= -1
    elif any(phrase in line for phrase in _VALID):
        vendors = [vendor for vendor in sources["vendor"].unique().to_list() if re.search(rf"\b{vendor}\b", line)]
        meant = sources["source"].is_in(named) if named else sources["vendor"].is_in(vendors)
        start[meant.to_numpy()] = 0


def rederive_effects(task_input: Mapping[str, Any]) -> tuple[Floats, Floats]:
    """Return mean (n,) and covariance (n, n) of the effects on the names in the coming quarter."""
    seen, family = read_visible(task_input), task_input["family"]
    analyst, share = seen.analysts.astype(float), float(family["analyst_share"])
    prior = share * analyst / analyst.sum() + (1 - share) * (1 - analyst) / (1 - analyst).sum()
    centre = family["analyst_mean"] * analyst + family["signal_mean"] * (1 - analyst)
    spread = family["analyst_deviation"] * analyst + family["signal_deviation"] * (1 - analyst)
    alpha, doubt = np.zeros(len(seen.specific)), np.zeros((len(seen.specific), len(seen.specific)))
    for industry in dict.fromkeys(seen.industries):
        names = np.flatnonzero(np.array(seen.industries) == industry)
        mean, square = _industry(seen, names, family, prior, (centre, spread))
        now = np.nan_to_num(seen.scores[-1][names])
        alpha[names] = now @ mean
        doubt[np.ix_(names, names)] = now @ np.diag(square) @ now.T - np.outer(now @ mean, now @ mean)
    return alpha, doubt


def _industry(
    seen: Visible, names: Integers, family: Mapping[str, float], prior: Floats, size: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    """Return first and second posterior moments (C,) of the current effects in one industry."""
    quarters, sources = len(seen.residuals), len(prior)
    regimes = quarters // 2
    centre, spread = size
    # One row per possible first half-year of the regime; the last column is a regime without effect.
    chance = np.append((1 - family["nothing"]) * prior, family["nothing"])
    mean, variance = np.tile(centre, (regimes, 1)), np.tile(spread**2, (regimes, 1))
    log = np.full((regimes, sources + 1), -np.inf)
    log[0] = np.log(chance)
    for quarter in range(quarters):
        begun = quarter // 2
        if quarter % 2 == 0 and quarter:
            everything = float(np.logaddexp.reduce(log, axis=None))
            log += np.log1p(-family["change"])
            log[begun] = everything + np.log(family["change"]) + np.log(chance)
        x, r = seen.scores[quarter][names] / seen.specific[names, None], seen.residuals[quarter][names]
        r = r / seen.specific[names]
        squares, cross = (x * x).sum(axis=0), x.T @ r
        surprise = cross - squares * mean  # X' times the innovation
        widened = 1.0 + variance * squares
        gain = mean * cross - 0.5 * mean**2 * squares
        gain += 0.5 * variance * surprise**2 / widened - 0.5 * np.log(widened)
        alive = (np.arange(regimes)[:, None] <= begun) & (quarter >= seen.start)
        log[:, :-1] += np.where(alive, gain, 0.0)
        mean = np.where(alive, mean + variance * surprise / widened, mean)
        variance = np.where(alive, variance / widened, variance)
    weights = np.exp(log - np.logaddexp.reduce(log, axis=None))[:, :-1]
    return (weights * mean).sum(axis=0), (weights * (mean**2 + variance)).sum(axis=0)
