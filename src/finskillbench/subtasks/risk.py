"""What the risk subtasks share: input fields, the definitions shown to the agent, agreement of two derivations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import date
from typing import Any, TypeVar

import numpy as np

from finskillbench.engines.portfolio.risk_model import Array
from finskillbench.engines.risk.book import HELD, Market, required
from finskillbench.episode import FACTORS
from finskillbench.errors import InternalError
from finskillbench.scoring.measures import clip
from finskillbench.subtasks.building import BuildContext, Task
from finskillbench.subtasks.risk_portfolios import PortfolioCase
from finskillbench.subtasks.risk_second import AGREEMENT

T = TypeVar("T")

SKILL = "risk_management"
EPISODES = 40
"""Episodes of each risk subtask."""
PRECISION = "Give every number with at least 6 decimals."
"""Said in every arm: the prompt itself abridges numbers to three significant figures."""

UNITS = (
    "weights, cash_weight, turnover, exposures and P&L are decimals of NAV (0.05 is 5 %); covariance and tracking "
    "error are annualised decimals; betas are ratios; average daily volume and total_nav are USD"
)
CONVENTIONS = {
    "units": UNITS,
    "portfolio": f"weights are signed (a short position is negative) and sum with cash_weight to 1; a holding is a "
    f"name whose |weight| exceeds {HELD:.0e}; holdings and "
    "cash_weight are after trades_this_month; cash carries no risk, no beta and no P&L",
    "constraints": "each constraint of the mandate carries its own definition",
}
"""What every task that holds a portfolio against a mandate says, beside the definitions of the constraints."""


def conventions(*parts: Mapping[str, str]) -> dict[str, str]:
    """The definitions of several sources side by side: `conventions` of an input.

    Raises
    ------
    InternalError : two sources define the same key, so that one would hide the other.
    """
    merged: dict[str, str] = {}
    for part in parts:
        twice = sorted(merged.keys() & part.keys())
        if twice:
            raise InternalError(f"conventions: {', '.join(twice)} is defined twice; rename one of them")
        merged |= part
    return merged


def closeness(
    given: float | None, expected: float, *, full: float, full_floor: float, zero: float, zero_floor: float
) -> float:
    """1 up to an error of max(full |expected|, full_floor), falling linearly to 0 at max(zero |expected|, zero_floor).

    0 where absent. `full` and `zero` are relative errors, the floors absolute ones in the number's own unit.
    """
    if given is None:
        return 0.0
    inner, outer = max(full * abs(expected), full_floor), max(zero * abs(expected), zero_floor)
    return clip((outer - abs(given - expected)) / (outer - inner))


def holdings(case: PortfolioCase) -> int:
    """Number of names held."""
    return int((np.abs(case.book.weights) > HELD).sum())


def by_ticker(market: Market, values: Array) -> dict[str, float]:
    """Ticker to number, in ticker order."""
    return {ticker: float(value) for ticker, value in zip(market.tickers, values, strict=True)}


def sector_mapping(market: Market) -> dict[str, str]:
    """Ticker to sector."""
    return dict(zip(market.tickers, market.sectors, strict=True))


def factor_exposures(market: Market) -> dict[str, dict[str, float]]:
    """Ticker to its six betas."""
    return {
        ticker: dict(zip(FACTORS, map(float, row), strict=True))
        for ticker, row in zip(market.tickers, market.betas, strict=True)
    }


def covariance_field(market: Market, as_of: date) -> dict[str, Any]:
    """The covariance by reference, as the edition stores it."""
    return {"tickers": list(market.tickers), "ref": f"panels/covariance/{as_of}.npz"}


def returns_field(market: Market, as_of: date) -> dict[str, Any]:
    """The returns of the trailing window by reference."""
    sessions = required(market.returns, "returns").shape[0]
    tickers = list(market.tickers)
    return {"tickers": tickers, "ref": "panels/returns.parquet", "end": as_of.isoformat(), "sessions": sessions}


def mandate_fields(market: Market, as_of: date) -> dict[str, Any]:
    """Inputs of every subtask that holds a portfolio against a mandate."""
    return {
        "sector_mapping": sector_mapping(market),
        "factor_exposures": factor_exposures(market),
        "benchmark_weights": by_ticker(market, required(market.benchmark, "benchmark weights")),
        "covariance_matrix": covariance_field(market, as_of),
    }


def resolved_covariance(market: Market) -> dict[str, Any]:
    """The covariance in full, as `covariance_matrix` resolves."""
    risk = required(market.risk, "covariance")
    return {"tickers": list(market.tickers), "loadings": risk.root.tolist(), "specific": risk.diagonal.tolist()}


def agreed(task_id: str, pairs: Iterable[tuple[str, float, float]]) -> float:
    """Largest |first - second| of (what, first, second).

    Raises
    ------
    InternalError : naming the number on which the two derivations differ by more than `AGREEMENT`.
    """
    widest = 0.0
    for what, first, second in pairs:
        apart = abs(first - second)
        if not apart <= AGREEMENT:
            raise InternalError(f"{task_id}: {what} is {first!r} by the engine and {second!r} derived a second time")
        widest = max(widest, apart)
    return widest


def same(task_id: str, what: str, first: object, second: object) -> None:
    """Refuse two derivations that differ in something that is no number.

    Raises
    ------
    InternalError : naming what differs.
    """
    if first != second:
        raise InternalError(f"{task_id}: {what} is {first!r} by the engine and {second!r} derived a second time")


def rederived(difference: float, checked: int) -> dict[str, Any]:
    """The proof of a label whose arithmetic was done twice."""
    return {
        "kind": "rederived",
        "difference": difference,
        "tolerance": AGREEMENT,
        "numbers": checked,
        "second": "plain arithmetic, item by item, from the episode's input",
    }


def planted(case: PortfolioCase) -> dict[str, str]:
    """What the portfolio is, for reports and checks: part of the truth, since an episode file would tell its risk."""
    return {"portfolio_type": case.type, "regime": case.regime}


def pool_sizes(context: BuildContext) -> dict[str, dict[str, int]]:
    """What each risk subtask drew its episodes from, by subtask; kept in the manifest."""
    return context.shared("risk/pools", dict)


def drawn(
    items: Sequence[T],
    traits: Callable[[T], Sequence[Hashable]],
    count: int,
    rng: np.random.Generator,
    build: Callable[[T], Task | None],
) -> list[Task]:
    """Build tasks of `count` items, drawn so that the values of each trait come up as evenly as they can.

    One item at a time, the one whose traits have come up least so far, each in proportion to how many values it has and
    squared, so that no trait is given up for the others; ties at random. An item for which `build` gives None is passed
    over.
    """
    left = [(items[i], tuple(enumerate(traits(items[i])))) for i in rng.permutation(len(items))]
    values = Counter(place for place, _ in {trait for _, own in left for trait in own})
    taken: Counter[tuple[int, Hashable]] = Counter()
    tasks: list[Task] = []
    while left and len(tasks) < count:
        at = min(range(len(left)), key=lambda i: sum((taken[trait] * values[trait[0]]) ** 2 for trait in left[i][1]))
        item, own = left.pop(at)
        task = build(item)
        if task is not None:
            tasks.append(task)
            taken.update(own)
    return tasks


def shuffled(tasks: Sequence[Task], rng: np.random.Generator) -> list[Task]:
    """Tasks in a random order: their place tells nothing, and a prefix is as mixed as the whole."""
    return [tasks[i] for i in rng.permutation(len(tasks))]
