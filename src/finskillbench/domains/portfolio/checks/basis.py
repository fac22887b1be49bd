"""Whether prices, share counts and volumes are on one basis at every date: what an adjusted price spoils."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import polars as pl

from finskillbench.domains.checks.examination import Subject
from finskillbench.findings import Findings
from finskillbench.panels import Panels

_STEP = 1.10
"""Change of the adjustment factor in a session that is a split or a spin-off: no ordinary dividend is a tenth."""
_JUMP = 1.3
"""Change of a share count between two dates beyond which it is no issue and no buyback."""
_SPLIT = 5e-3
_SESSIONS = 21


def same_basis(subject: Subject, findings: Findings) -> None:
    """Share counts step where and as prices do; closes are not adjusted ones; dollar volume is of traded prices."""
    panels = subject.panels(findings)
    if panels is None:
        return
    days = panels.prices["date"].to_list()
    close = panels.prices_of("close").drop("date").to_numpy()
    adjusted = panels.prices_of("adj_close").drop("date").to_numpy()
    same = [
        symbol
        for place, symbol in enumerate(panels.symbols)
        if np.nanmax(np.abs(close[:, place] / adjusted[:, place] - 1), initial=0.0) < 1e-9
    ]
    findings.expect(
        2 * len(same) <= len(panels.symbols),
        "panels/prices.parquet",
        f"the close of {len(same)} of {len(panels.symbols)} names is the adjusted one throughout: their "
        "capitalisations lack every dividend and split since",
    )
    row = {day: place for place, day in enumerate(days)}
    dates = sorted({*panels.month_ends, *panels.risk_dates})
    for place, symbol in enumerate(panels.symbols):
        steps = _steps(close[:, place] / adjusted[:, place])
        counts = panels.benchmark_weights.filter(pl.col("symbol") == symbol).sort("date").select("date", "shares")
        for (before, old), (after, new) in pairwise(counts.iter_rows()):
            if dates.index(after) > dates.index(before) + 1:
                findings.add("left_out_between")  # while its count was unsure, as after a merger
                continue
            between = math.prod(step for at, step in steps if row[before] < at <= row[after])
            _compare(f"{symbol} {after}", new / old, between, findings)
            findings.add("intervals")
    _check_dollar_volume(panels, close, row, findings)
    findings.figures |= {"symbols": len(panels.symbols), "adjusted_throughout": len(same)}


def _steps(factor: np.ndarray) -> list[tuple[int, float]]:
    """Rows at which the price of the day before counts for more adjusted shares than today's, and how many times."""
    known = np.flatnonzero(np.isfinite(factor))
    ratio = factor[known[:-1]] / factor[known[1:]]
    return [
        (int(known[at + 1]), float(ratio[at]))
        for at in np.flatnonzero(np.abs(np.log(ratio)) > math.log(_STEP)).tolist()
    ]


def _compare(where: str, shares: float, prices: float, findings: Findings) -> None:
    """A count changes by more than issues explain only with a split of the prices, and with every split of them."""
    left = shares / prices if _is_split(prices) else shares
    findings.widest("widest_change", math.exp(abs(math.log(left))))
    findings.expect(
        abs(math.log(left)) <= math.log(_JUMP),
        where,
        f"the share count changes {shares:.3g}x since the date before, the prices by splits of {prices:.3g}x: "
        "they are not on one basis",
    )


def _is_split(ratio: float) -> bool:
    """Whether a step is that of a split, small whole numbers for each other; a spin-off changes no share count."""
    large = max(ratio, 1 / ratio)
    return large > 1.2 and any(abs(large * d / round(large * d) - 1) < _SPLIT for d in (1, 2, 3, 4))


def _check_dollar_volume(panels: Panels, close: np.ndarray, row: dict[object, int], findings: Findings) -> None:
    """Average daily volume is the mean of close x volume, both as traded, over the month."""
    traded = close * panels.prices_of("volume").drop("date").to_numpy()
    place = {symbol: at for at, symbol in enumerate(panels.symbols)}
    for symbol, day, stated in panels.liquidity.select("symbol", "date", "average_daily_volume_usd").iter_rows():
        end = row[day]
        mean = float(traded[end - _SESSIONS + 1 : end + 1, place[symbol]].mean())
        agrees = math.isclose(stated, mean, rel_tol=1e-9)
        findings.expect(agrees, f"{symbol} {day}", f"trades {stated:.4g} USD a session, its prices say {mean:.4g}")
