"""Data of a case as an agent sees them: the book, and the record of sources, repaired by checks and by the log.

The repairs share no code with the generator.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from finskillbench.arrays import Floats, Integers
from finskillbench_desk.allocate.sources import AllocationBook

_RESTATED_NOT = ("left as it had been delivered", "have not been restated", "as they were first sent")
_VALID = ("pilot client", "trial", "same person", "one person")
_JUMP = 5.0
"""Ratio of successive dispersions over 120 names that only a change of unit reaches."""
_COLUMNS = {
    "specific": "specific_volatility",
    "prior": "equilibrium_return",
    "current": "current_weight",
    "benchmark": "benchmark_weight",
    "linear": "linear_cost",
    "quadratic": "quadratic_cost",
}
"""Columns of the table of names by the book's field."""


class Visible(NamedTuple):
    """Visible data: scores (T + 1, n, C), first valid quarters (C,), residuals (T, n), columns of names (n,).

    Scores that were not delivered are NaN. Industries are numbered in the order of the names.
    """

    scores: Floats
    start: Integers
    residuals: Floats
    specific: Floats
    industry: Integers
    benchmark: Floats


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
        names["industry"].rle_id().to_numpy().astype(np.int64),
        names["benchmark_weight"].to_numpy(),
    )


def visible_book(task_input: Mapping[str, Any]) -> AllocationBook:
    """Read the book from the tables of a task input."""
    names, factors = task_input["names"].frame, task_input["factor_covariance"]
    columns = {name: names[column].to_numpy() for name, column in _COLUMNS.items()}
    return AllocationBook(
        tickers=tuple(names["ticker"].to_list()),
        groups=tuple(dict.fromkeys(names["industry"].to_list())),
        loadings=names.select(factors["factors"]).to_numpy(),
        factor_covariance=np.array(factors["matrix"]),
        **columns,
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
