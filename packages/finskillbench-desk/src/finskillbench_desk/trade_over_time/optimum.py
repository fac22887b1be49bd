"""Optimal book of each decision, loss of an action, and the textbook's answer.

Trading does not affect signals or learning, costs and risk are quadratic, and limits are equalities. So only forecast
means matter, and losses are exact quadratic forms (see `engines.trading.over_time`). Tariff changes cannot be foreseen:
each decision is judged as if its tariff stays. The textbook's losses follow its own path, which no agent affects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Annotated, Any

import msgspec
import numpy as np
import orjson

from finskillbench.arrays import Floats, Integers
from finskillbench_desk.engines.panel import Sums, least_squares
from finskillbench_desk.engines.trading.over_time import Limits, Step, TradingPolicy, completed, solve
from finskillbench_desk.trade_over_time.posterior import (
    Stretches,
    all_weeks,
    forecasts,
    history_sums,
    posterior_means,
    sums_at_decisions,
)
from finskillbench_desk.trade_over_time.world import DECISIONS, TradingBook, TradingPlan, TradingWorld, WeeklyRiskModel

LEAST_COST = 0.1
"""Least cost of a trap, as a share of the textbook's loss at that decision."""


@dataclass(frozen=True, eq=False)
class TradingSetup:
    """Risk, costs and plan of a book, without signals.

    `tariff` is the first decision with other trading costs and their multiple. `knows_limit` is False for the mistake
    of ignoring the limit until it binds.
    """

    tickers: tuple[str, ...]
    sectors: tuple[str, ...]
    sector_of: Integers
    risk: WeeklyRiskModel
    book: TradingBook
    plan: TradingPlan
    tariff: tuple[int, float] | None = None
    knows_limit: bool = True

    @classmethod
    def of(cls, world: TradingWorld) -> TradingSetup:
        return cls(world.tickers, world.sectors, world.sector_of, world.risk, world.book, world.plan, world.news.tariff)

    def benchmark(self, decision: int) -> Floats:
        """Return (n,) millions of the benchmark at the capital of a decision."""
        return self.plan.capital[decision] * self.book.benchmark

    def limits(self, decision: int) -> Limits | None:
        """Return the sector limits after the trades of a decision, None before they apply."""
        if decision < self.plan.limit_from:
            return None
        rows = np.eye(len(self.sectors))[self.sector_of].T
        return Limits(rows, rows @ self.benchmark(decision))

    def curvature(self, decision: int) -> Floats:
        """Return (n,) second derivatives of trading costs at a decision's tariff."""
        first, multiple = self.tariff or (DECISIONS, 1.0)
        return self.book.curvature() * (multiple if decision >= first else 1.0)

    def policy(self, decision: int) -> TradingPolicy:
        """Return the optimal rules of all decisions under this decision's tariff."""
        return self._policies[self.tariff is not None and decision >= self.tariff[0]]

    @cached_property
    def _policies(self) -> tuple[TradingPolicy, ...]:
        steps = [
            Step(float(aversion), self.benchmark(place), self.limits(place) if self.knows_limit else None)
            for place, aversion in enumerate(self.plan.aversion)
        ]
        days = (0,) if self.tariff is None else (0, self.tariff[0])
        return tuple(solve(self.risk.covariance(), self.curvature(day), steps) for day in days)

    def settled(self, decision: int, book: Floats) -> Floats:
        """Return the (n,) book that meets a decision's limits with the least trading costs."""
        return completed(book, self.book.curvature(), self.limits(decision))

    def held(self, decision: int, book: Floats) -> Floats:
        """Return the (n,) book without a decision: flows in proportion to the benchmark, then limits."""
        flow = self.plan.flows.get(decision, 0.0)
        return self.settled(decision, book + flow * self.book.benchmark)

    def misjudged(self, kind: str, decision: int) -> TradingSetup:
        """Return the setup as seen after falling for a trap of a kind, at a decision."""
        seen = kind != "limit" or decision < self.plan.limit_from
        return self._misjudged.get(kind, self) if seen else self

    @cached_property
    def _misjudged(self) -> Mapping[str, TradingSetup]:
        """Misread setups by kind of trap; cached with their policies, which are expensive."""
        return {
            "impact_unit": replace(self, book=replace(self.book, clip=1.0)),
            "tariff": replace(self, tariff=None),
            "flow": replace(self, plan=replace(self.plan, capital=np.full(DECISIONS, self.plan.capital[0]))),
            "limit": replace(self, knows_limit=False),
        }


@dataclass(frozen=True, slots=True, eq=False)
class TradingTrap:
    """A trap: kind, decision, the mistaken aim (n,), and the cost as a share of the textbook's loss there."""

    kind: str
    decision: int
    aim: Floats
    cost: float


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """Optimum of a case: aims (12, n), signal worth (12, 30), textbook losses (12,), and traps.

    Under a law that is not disclosed, signals have no coefficients, and `worth` has shape (12, 0).
    """

    aims: Floats
    worth: Floats
    textbook: Floats
    textbook_name: str
    traps: tuple[TradingTrap, ...]


def solved(world: TradingWorld, of_history: Stretches) -> Optimum:
    """Solve a world, given the sums of its history."""
    setup, decay = TradingSetup.of(world), world.signals.decay
    known = sums_at_decisions(world, of_history)
    believed = history_sums(world, backfilled=True) if world.signals.live_from.any() else of_history
    worth: list[Floats] = []
    for place, sums in enumerate(known):
        audited = place == world.news.audit
        nothing_new = place > 0 and sums is known[place - 1] and not audited
        worth.append(worth[-1] if nothing_new else posterior_means(sums, world.tier, decay, world.news.known(place)))
    aims = np.array(
        [setup.policy(place).aim(place, forecasts(world, place, worth[place])) for place in range(DECISIONS)]
    )
    books = textbooks(world, setup, all_weeks(believed))
    paths = {name: losses(setup, aims, path) for name, path in books.items()}
    better = min(paths, key=lambda name: float(paths[name].sum()))
    mistaken = {
        "backfill": posterior_means(believed, world.tier, decay, {}),
        "audit": posterior_means(known[world.news.audit], world.tier, decay, {}),
    }

    def seen(kind: str, place: int) -> Floats:
        return forecasts(world, place, mistaken.get(kind, worth[place]), stale=kind == "stale")

    traps = costly_traps(world, aims, seen, paths["holding still"])
    return Optimum(aims, np.array(worth), paths[better], better, traps)


def textbooks(world: TradingWorld, setup: TradingSetup, believed: Sums) -> dict[str, list[Floats]]:
    """Return the 12 books (n,) of holding still, and of trading fully to each week's optimum.

    The latter uses least squares on `believed`, the history as it is, and the newest file even if old.
    """
    worth = least_squares(believed)[0]
    moved = [setup.book.holdings]
    free = np.full(len(setup.tickers), 1e-12)  # negligible costs, which select the nearest of equivalent books
    covariance = setup.risk.covariance()
    for place in range(DECISIONS):
        forecast = forecasts(world, place, worth, stale=True)[:1]
        step = Step(float(setup.plan.aversion[place]), setup.benchmark(place), setup.limits(place))
        moved.append(solve(covariance, free, [step]).aim(0, forecast))
    return {"holding still": held_path(setup), "all the way": moved[1:]}


def held_path(setup: TradingSetup) -> list[Floats]:
    """Return the 12 books (n,) of holding still."""
    books = [setup.book.holdings]
    for place in range(DECISIONS):
        books.append(setup.held(place, books[-1]))
    return books[1:]


def losses(setup: TradingSetup, aims: Floats, books: Sequence[Floats]) -> Floats:
    """Return (12,) losses of the books after each decision, against the best from the book before."""
    before = [setup.book.holdings, *books[:-1]]
    return np.array(
        [
            setup.policy(place).loss(place, setup.policy(place).best(place, aims[place], before[place]), book)
            for place, book in enumerate(books)
        ]
    )


def optimal_path(setup: TradingSetup, aims: Floats) -> list[Floats]:
    """Return the 12 books (n,) of the optimal policy."""
    books = [setup.book.holdings]
    for place in range(DECISIONS):
        books.append(setup.policy(place).best(place, aims[place], books[-1]))
    return books[1:]


def costly_traps(
    world: TradingWorld, aims: Floats, seen: Callable[[str, int], Floats], held: Floats
) -> tuple[TradingTrap, ...]:
    """Return the traps that cost enough, each at the decision where it shows most, in order of decisions.

    `seen` maps a kind of trap and its decision to the forecasts of an investor who fell for it; `held` (12,) are the
    losses of holding still.
    """
    setup, places = TradingSetup.of(world), dict[str, int]()
    if world.signals.live_from.any():
        places["backfill"] = 0
    if world.book.clip != 1.0:
        places["impact_unit"] = 0
    if world.outage is not None:
        places["stale"] = world.outage + 2
    places["limit"] = world.plan.limit_from - 1
    places["flow"] = min(world.plan.flows)
    if world.news.verdicts:
        places["audit"] = world.news.audit
    if world.news.tariff is not None:
        places["tariff"] = world.news.tariff[0]
    path = [setup.book.holdings, *optimal_path(setup, aims)]
    found: list[TradingTrap] = []
    for kind, place in places.items():
        aim = setup.misjudged(kind, place).policy(place).aim(place, seen(kind, place))
        fallen = fallen_book(setup, TradingTrap(kind, place, aim, 0.0), path[place])
        cost = setup.policy(place).loss(place, path[place + 1], fallen) / float(held[place])
        if cost >= LEAST_COST:
            found.append(TradingTrap(kind, place, aim, cost))
    return tuple(sorted(found, key=lambda trap: (trap.decision, trap.kind)))


def fallen_book(setup: TradingSetup, trap: TradingTrap, book: Floats) -> Floats:
    """Return the (n,) book after falling for a trap at its decision."""
    policy = setup.misjudged(trap.kind, trap.decision).policy(trap.decision)
    return setup.settled(trap.decision, policy.best(trap.decision, trap.aim, book))


def as_json(setup: TradingSetup) -> dict[str, Any]:
    """Return a setup as JSON for the truth, which is scored without tables."""
    return {
        "tickers": list(setup.tickers),
        "sectors": list(setup.sectors),
        "sector_of": setup.sector_of.tolist(),
        "factors": list(setup.risk.factors),
        "exposures": setup.risk.exposures.tolist(),
        "volatility": setup.risk.volatility.tolist(),
        "specific": setup.risk.specific.tolist(),
        "benchmark": setup.book.benchmark.tolist(),
        "holdings": setup.book.holdings.tolist(),
        "impact": setup.book.impact.tolist(),
        "clip": setup.book.clip,
        "capital": setup.plan.capital.tolist(),
        "aversion": setup.plan.aversion.tolist(),
        "limit_from": setup.plan.limit_from,
        "tariff": setup.tariff,
    }


class _Stored(msgspec.Struct):
    """Stored form of `as_json`."""

    tickers: Annotated[tuple[str, ...], msgspec.Meta(max_length=5_000)]
    sectors: tuple[str, ...]
    sector_of: tuple[Annotated[int, msgspec.Meta(ge=0)], ...]
    factors: tuple[str, ...]
    exposures: tuple[tuple[float, ...], ...]
    volatility: tuple[float, ...]
    specific: tuple[float, ...]
    benchmark: tuple[float, ...]
    holdings: tuple[float, ...]
    impact: tuple[float, ...]
    clip: Annotated[float, msgspec.Meta(gt=0)]
    capital: tuple[float, ...]
    aversion: tuple[float, ...]
    limit_from: int
    tariff: tuple[int, float] | None

    def misfit(self) -> str | None:
        """Return the first field whose length does not match its names, or None."""
        n = len(self.tickers)
        lengths = dict.fromkeys(("sector_of", "exposures", "specific", "benchmark", "holdings", "impact"), n)
        lengths |= {"volatility": len(self.factors), "capital": DECISIONS, "aversion": DECISIONS}
        if max(self.sector_of, default=0) >= len(self.sectors):
            return "sector_of"
        if any(len(row) != len(self.factors) for row in self.exposures):
            return "exposures"
        return next((name for name, length in lengths.items() if len(getattr(self, name)) != length), None)


def from_json(stored: Any) -> TradingSetup:
    """Restore the setup of `as_json`; the last few are cached with their policies.

    Raises
    ------
    ValueError : a field is missing, of another type, or of another length than its names.
    """
    return _decode_setup(orjson.dumps(stored))


@lru_cache(maxsize=4)
def _decode_setup(text: bytes) -> TradingSetup:
    stored = msgspec.json.decode(text, type=_Stored)
    if field := stored.misfit():
        raise ValueError(f"desk.{field} has another length than the names it refers to")
    return TradingSetup(
        stored.tickers,
        stored.sectors,
        np.array(stored.sector_of),
        WeeklyRiskModel(
            stored.factors,
            np.array(stored.exposures, dtype=float),
            np.array(stored.volatility, dtype=float),
            np.array(stored.specific, dtype=float),
        ),
        TradingBook(
            np.array(stored.benchmark, dtype=float),
            np.array(stored.holdings, dtype=float),
            np.array(stored.impact, dtype=float),
            stored.clip,
        ),
        TradingPlan(np.array(stored.capital, dtype=float), np.array(stored.aversion, dtype=float), stored.limit_from),
        stored.tariff,
    )
