"""Economic plausibility of portfolio tasks: signs, ranges, objectives, duplicates."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl

from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.domains.portfolio import rederive
from finskillbench.domains.portfolio.worth import LEAST_SPAN, count_distinct
from finskillbench.engines.optimisation.certified import InfeasibleError, UndecidedError
from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective
from finskillbench.episode import Episode
from finskillbench.findings import Findings
from finskillbench.panels import Panels

OTHER_OBJECTIVE = 0.3
"""Maximum mean score, by tier, of the optimum of another objective."""
DISTINCT = 7 / 8
_RETURNS = (-0.30, 0.40)
_ABOVE_CASH = 0.75
_WEIGHTS = {
    "unconstrained_optimization": "weights",
    "constrained_optimization": "weights",
    "rebalancing": "new_weights",
    "black_litterman": "optimal_weights",
}
_JUDGED = ("unconstrained_optimization", "constrained_optimization")


def check_portfolio_economics(subject: Subject, findings: Findings) -> None:
    """Check that returns beat cash, Sharpe ratios are positive, objectives separate, and scales and labels differ."""
    _check_returns(subject, findings)
    if not subject.edition.has_truth:
        return
    earned: dict[str, list[float]] = defaultdict(list)
    spans: dict[str, list[float]] = defaultdict(list)
    for name, field in _WEIGHTS.items():
        episodes = subject.of(name)
        for episode in episodes:
            with examining(episode.task_id, findings):
                _check_label(subject, episode, field, findings)
                if name in _JUDGED and subject.built:
                    _separate(subject, episode, earned, spans)
        labels = [subject.edition.truth(episode.task_id).expected_output[field] for episode in episodes]
        findings.figures[f"{name}_distinct"] = different = count_distinct(labels)
        enough = different >= DISTINCT * len(labels)
        findings.expect(enough, name, f"{different} of {len(labels)} labels differ by 0.05 or more")
    for tier, scores in earned.items():
        mean = float(np.mean(scores))
        findings.figures[f"other_objective_{tier}"] = round(mean, 3)
        findings.expect(mean <= OTHER_OBJECTIVE, tier, f"the optimum of another objective earns {mean:.2f} on the mean")
    for tier, widths in spans.items():
        mean = float(np.mean(widths))
        findings.figures[f"volatility_span_{tier}"] = round(mean, 4)
        wide = mean >= LEAST_SPAN or not tier.endswith("hard")
        findings.expect(wide, tier, f"scores of 0 and 1 are only {1e4 * mean:.0f} bp of volatility apart")


def _check_returns(subject: Subject, findings: Findings) -> None:
    panels = subject.panels(findings)
    if panels is None:
        return
    for day in panels.month_ends:
        expected, rate = panels.expected_returns(day), panels.risk_free[day]
        ahead = float(panels.weights(day) @ expected) - rate
        above = float((expected > rate).mean())
        findings.least("least_benchmark_premium", ahead)
        findings.least("least_share_above_cash", above)
        findings.expect(ahead > 0, day, f"the benchmark is expected to earn {ahead:+.2%} over bills")
        findings.expect(above >= _ABOVE_CASH, day, f"only {above:.0%} of the names are expected to beat bills")
        low, high = float(expected.min()), float(expected.max())
        inside = _RETURNS[0] <= low and high <= _RETURNS[1]
        findings.expect(inside, day, f"expected returns from {low:.0%} to {high:.0%} are implausible for stocks")


def _check_label(subject: Subject, episode: Episode, field: str, findings: Findings) -> None:
    if episode.input.get("objective") != Objective.MAX_SHARPE:
        return
    task_input = subject.input_of(episode)
    tickers, sigma = rederive.input_covariance(task_input)
    weights = rederive.vector(subject.edition.truth(episode.task_id).expected_output[field], tickers)
    excess = float(weights @ rederive.vector(task_input["expected_returns"], tickers)) - task_input["risk_free_rate"]
    sharpe = excess / math.sqrt(float(weights @ sigma @ weights))
    findings.least("least_sharpe_ratio", sharpe)
    findings.expect(sharpe > 0, episode.task_id, f"the label's Sharpe ratio is {sharpe:.2f}")


def _separate(
    subject: Subject, episode: Episode, earned: dict[str, list[float]], spans: dict[str, list[float]]
) -> None:
    """Collect scores of the other objectives' optima, and the width of the scale in volatility."""
    problem = problem_from(subject.input_of(episode))
    known = subject.edition.truth(episode.task_id).verification
    width = known["trivial_value"] - known["optimal_value"]
    tier = f"{episode.sub_task}_{episode.difficulty}"
    for objective in set(Objective) - {problem.objective}:
        try:
            other = optimise(replace(problem, objective=objective)).weights
        except (InfeasibleError, UndecidedError):
            continue
        earned[tier].append(min(max(1 - (problem.value(other) - known["optimal_value"]) / width, 0.0), 1.0))
    if problem.objective is Objective.MIN_VARIANCE:
        spans[tier].append(math.sqrt(known["trivial_value"]) - math.sqrt(known["optimal_value"]))


_STEP = 1.10
"""Minimum change of the adjustment factor at a split or spin-off; ordinary dividends are below a tenth."""
_JUMP = 1.3
"""Maximum change of a share count that issues or buybacks explain."""
_SPLIT = 5e-3
_SESSIONS = 21


def check_same_basis(subject: Subject, findings: Findings) -> None:
    """Check that share counts and prices step together, closes are unadjusted, and dollar volume uses traded prices."""
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
                findings.add("left_out_between")  # count uncertain, as after a merger
                continue
            between = math.prod(step for at, step in steps if row[before] < at <= row[after])
            _compare(f"{symbol} {after}", new / old, between, findings)
            findings.add("intervals")
    _check_dollar_volume(panels, close, row, findings)
    findings.figures |= {"symbols": len(panels.symbols), "adjusted_throughout": len(same)}


def _steps(factor: np.ndarray) -> list[tuple[int, float]]:
    known = np.flatnonzero(np.isfinite(factor))
    ratio = factor[known[:-1]] / factor[known[1:]]
    jumps = np.flatnonzero(np.abs(np.log(ratio)) > math.log(_STEP)).tolist()
    return [(int(known[at + 1]), float(ratio[at])) for at in jumps]


def _compare(where: str, shares: float, prices: float, findings: Findings) -> None:
    """Check that the share count changes with every split of the prices, and otherwise only as issues explain."""
    left = shares / prices if _is_split(prices) else shares
    findings.widest("widest_change", math.exp(abs(math.log(left))))
    findings.expect(
        abs(math.log(left)) <= math.log(_JUMP),
        where,
        f"the share count changes {shares:.3g}x since the date before, the prices by splits of {prices:.3g}x: "
        "they are not on one basis",
    )


def _is_split(ratio: float) -> bool:
    """Return True for a ratio of small whole numbers; spin-offs change no share count."""
    large = max(ratio, 1 / ratio)
    return large > 1.2 and any(abs(large * d / round(large * d) - 1) < _SPLIT for d in (1, 2, 3, 4))


def _check_dollar_volume(panels: Panels, close: np.ndarray, row: dict[object, int], findings: Findings) -> None:
    traded = close * panels.prices_of("volume").drop("date").to_numpy()
    place = {symbol: at for at, symbol in enumerate(panels.symbols)}
    for symbol, day, stated in panels.liquidity.select("symbol", "date", "average_daily_volume_usd").iter_rows():
        end = row[day]
        mean = float(traded[end - _SESSIONS + 1 : end + 1, place[symbol]].mean())
        agrees = math.isclose(stated, mean, rel_tol=1e-9)
        findings.expect(agrees, f"{symbol} {day}", f"daily volume is {stated:.4g} USD, from prices {mean:.4g}")
