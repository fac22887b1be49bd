"""The best that can be done at each decision, what an action loses against it, and the textbook's answer.

Signals and what is learned of them are the same whatever is traded, costs and risk are quadratic, and every limit is an
equality; so only means of forecasts matter, and the value that an action loses is a quadratic form, exact for any
posterior (see `finskillbench_desk.engines.trading.over_time`). A tariff that changes is nothing that can be
expected: each decision is judged by the plan that is best if what is known on its day stays as it is. A textbook's
losses are those along its own path: no agent can change what it is measured by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Annotated, Any

import msgspec
import numpy as np
import orjson

from finskillbench.arrays import Floats, Integers
from finskillbench_desk.engines.panel import Sums, least_squares
from finskillbench_desk.engines.trading.over_time import Limits, Policy, Step, completed, solve
from finskillbench_desk.trade_over_time.posterior import (
    Stretches,
    evidence,
    forecasts,
    history,
    means,
    whole,
)
from finskillbench_desk.trade_over_time.world import DECISIONS, Book, Plan, Risk, World

LEAST_COST = 0.1
"""A trap is one only where falling for it costs at least this share of what the textbook loses at that decision."""


@dataclass(frozen=True, eq=False)
class Desk:
    """What is needed to follow a book: risk, costs, plan; nothing of signals.

    `tariff` is the decision from which on trading costs a multiple of what it did, and the multiple. `knows_limit` is
    False for the mistake of planning as if there was none until it binds.
    """

    tickers: tuple[str, ...]
    sectors: tuple[str, ...]
    sector_of: Integers
    risk: Risk
    book: Book
    plan: Plan
    tariff: tuple[int, float] | None = None
    knows_limit: bool = True

    @classmethod
    def of(cls, world: World) -> Desk:
        """The desk of a world."""
        return cls(world.tickers, world.sectors, world.sector_of, world.risk, world.book, world.plan, world.news.tariff)

    def benchmark(self, decision: int) -> Floats:
        """(n,) millions of the benchmark at the capital of a decision."""
        return self.plan.capital[decision] * self.book.benchmark

    def limits(self, decision: int) -> Limits | None:
        """What the book must meet after the trades of a decision: the sectors of the benchmark."""
        if decision < self.plan.limit_from:
            return None
        rows = np.eye(len(self.sectors))[self.sector_of].T
        return Limits(rows, rows @ self.benchmark(decision))

    def curvature(self, decision: int) -> Floats:
        """(n,) second derivatives of the cost of trades by the tariff of a decision."""
        first, multiple = self.tariff or (DECISIONS, 1.0)
        return self.book.curvature() * (multiple if decision >= first else 1.0)

    def policy(self, decision: int) -> Policy:
        """The optimal rules of all decisions if the tariff of this one stays."""
        return self._policies[self.tariff is not None and decision >= self.tariff[0]]

    @cached_property
    def _policies(self) -> tuple[Policy, ...]:
        """By the first tariff, and by the second where there is one."""
        steps = [
            Step(float(aversion), self.benchmark(place), self.limits(place) if self.knows_limit else None)
            for place, aversion in enumerate(self.plan.aversion)
        ]
        days = (0,) if self.tariff is None else (0, self.tariff[0])
        return tuple(solve(self.risk.covariance(), self.curvature(day), steps) for day in days)

    def settled(self, decision: int, book: Floats) -> Floats:
        """(n,) a book with the least trades that meet the limits of a decision."""
        return completed(book, self.book.curvature(), self.limits(decision))

    def held(self, decision: int, book: Floats) -> Floats:
        """(n,) the book where nobody decides: flows in proportion to the benchmark, and what the limits ask for."""
        flow = self.plan.flows.get(decision, 0.0)
        return self.settled(decision, book + flow * self.book.benchmark)

    def misjudged(self, kind: str, decision: int) -> Desk:
        """The desk as somebody sees it at a decision who has fallen for a trap of a kind that is about the desk."""
        seen = kind != "limit" or decision < self.plan.limit_from
        return self._misjudged.get(kind, self) if seen else self

    @cached_property
    def _misjudged(self) -> Mapping[str, Desk]:
        """By the kind of trap; kept with their policies, which are dear."""
        return {
            "impact_unit": replace(self, book=replace(self.book, clip=1.0)),
            "tariff": replace(self, tariff=None),
            "flow": replace(self, plan=replace(self.plan, capital=np.full(DECISIONS, self.plan.capital[0]))),
            "limit": replace(self, knows_limit=False),
        }


@dataclass(frozen=True, slots=True, eq=False)
class Trap:
    """A trap that is live: its kind, the decision at which it shows, what somebody who fell for it aims at, the cost.

    `aim` (n,) is the fallen counterpart of the optimum's; `cost` the share of the textbook's loss at that decision.
    """

    kind: str
    decision: int
    aim: Floats
    cost: float


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """The optimum of a case: aims (12, n), what signals are worth (12, 30), the textbook's losses (12,), the traps."""

    aims: Floats
    worth: Floats
    textbook: Floats
    textbook_name: str
    traps: tuple[Trap, ...]


def solved(world: World, of_history: Stretches) -> Optimum:
    """The optimum of a world and all that answers are measured by, from the sums of its history."""
    desk, decay = Desk.of(world), world.signals.decay
    known = evidence(world, of_history)
    believed = history(world, backfilled=True) if world.signals.live_from.any() else of_history
    worth: list[Floats] = []
    for place, sums in enumerate(known):
        audited = place == world.news.audit
        nothing_new = place > 0 and sums is known[place - 1] and not audited
        worth.append(worth[-1] if nothing_new else means(sums, world.tier, decay, world.news.known(place)))
    aims = np.array(
        [desk.policy(place).aim(place, forecasts(world, place, worth[place])) for place in range(DECISIONS)]
    )
    books = textbooks(world, desk, whole(believed))
    paths = {name: losses(desk, aims, path) for name, path in books.items()}
    better = min(paths, key=lambda name: float(paths[name].sum()))
    mistaken = {
        "backfill": means(believed, world.tier, decay, {}),
        "audit": means(known[world.news.audit], world.tier, decay, {}),
    }
    traps = _traps(world, desk, aims, worth, mistaken, paths["holding still"])
    return Optimum(aims, np.array(worth), paths[better], better, traps)


def textbooks(world: World, desk: Desk, believed: Sums) -> dict[str, list[Floats]]:
    """The books (12 of n each) of holding still, and of trading all the way to the best of one period.

    The latter takes least squares on `believed`, the history as it stands, for what the signals are worth, and the file
    as it is.
    """
    worth = least_squares(believed)[0]
    moved = [desk.book.holdings]
    free = np.full(len(desk.tickers), 1e-12)  # costs of which no account is taken, but for which of two is the nearer
    covariance = desk.risk.covariance()
    for place in range(DECISIONS):
        forecast = forecasts(world, place, worth, stale=True)[:1]
        step = Step(float(desk.plan.aversion[place]), desk.benchmark(place), desk.limits(place))
        moved.append(solve(covariance, free, [step]).aim(0, forecast))
    return {"holding still": held_path(desk), "all the way": moved[1:]}


def held_path(desk: Desk) -> list[Floats]:
    """The books (12 of n each) of holding still."""
    books = [desk.book.holdings]
    for place in range(DECISIONS):
        books.append(desk.held(place, books[-1]))
    return books[1:]


def losses(desk: Desk, aims: Floats, books: Sequence[Floats]) -> Floats:
    """(12,) what the books after each decision's trades lost, each against the best from the book before."""
    before = [desk.book.holdings, *books[:-1]]
    return np.array(
        [
            desk.policy(place).loss(place, desk.policy(place).best(place, aims[place], before[place]), book)
            for place, book in enumerate(books)
        ]
    )


def optimal_path(desk: Desk, aims: Floats) -> list[Floats]:
    """The books (12 of n each) of the optimal policy."""
    books = [desk.book.holdings]
    for place in range(DECISIONS):
        books.append(desk.policy(place).best(place, aims[place], books[-1]))
    return books[1:]


def _traps(
    world: World,
    desk: Desk,
    aims: Floats,
    worth: Sequence[Floats],
    mistaken: Mapping[str, Floats],
    textbook: Floats,
) -> tuple[Trap, ...]:
    """The traps of a world that cost enough, each at the decision at which it shows most, in the order of these.

    `mistaken` is what signals are taken for by those who fall for a trap that is about their worth.
    """
    places: dict[str, int] = {}
    if world.signals.live_from.any():
        places["backfill"] = 0
    if world.book.clip != 1.0:
        places["impact_unit"] = 0
    if world.outage is not None:
        places["stale"] = world.outage + 2
    places["limit"] = world.plan.limit_from - 1
    places["flow"] = min(world.plan.flows)
    places["audit"] = world.news.audit
    if world.news.tariff is not None:
        places["tariff"] = world.news.tariff[0]
    path = [desk.book.holdings, *optimal_path(desk, aims)]
    found: list[Trap] = []
    for kind, place in places.items():
        seen = forecasts(world, place, mistaken.get(kind, worth[place]), stale=kind == "stale")
        aim = desk.misjudged(kind, place).policy(place).aim(place, seen)
        fallen = fallen_book(desk, Trap(kind, place, aim, 0.0), path[place])
        cost = desk.policy(place).loss(place, path[place + 1], fallen) / float(textbook[place])
        if cost >= LEAST_COST:
            found.append(Trap(kind, place, aim, cost))
    return tuple(sorted(found, key=lambda trap: (trap.decision, trap.kind)))


def fallen_book(desk: Desk, trap: Trap, book: Floats) -> Floats:
    """(n,) where somebody who fell for a trap trades to from a book at the trap's decision."""
    policy = desk.misjudged(trap.kind, trap.decision).policy(trap.decision)
    return desk.settled(trap.decision, policy.best(trap.decision, trap.aim, book))


def as_json(desk: Desk) -> dict[str, Any]:
    """A desk for the truth of a case, whose scorer has no tables."""
    return {
        "tickers": list(desk.tickers),
        "sectors": list(desk.sectors),
        "sector_of": desk.sector_of.tolist(),
        "factors": list(desk.risk.factors),
        "exposures": desk.risk.exposures.tolist(),
        "volatility": desk.risk.volatility.tolist(),
        "specific": desk.risk.specific.tolist(),
        "benchmark": desk.book.benchmark.tolist(),
        "holdings": desk.book.holdings.tolist(),
        "impact": desk.book.impact.tolist(),
        "clip": desk.book.clip,
        "capital": desk.plan.capital.tolist(),
        "aversion": desk.plan.aversion.tolist(),
        "limit_from": desk.plan.limit_from,
        "tariff": desk.tariff,
    }


class _Stored(msgspec.Struct):
    """The fields of `as_json`, as a file may state them."""

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
        """The first field whose length is not that of its names; None where all fit."""
        n = len(self.tickers)
        lengths = dict.fromkeys(("sector_of", "exposures", "specific", "benchmark", "holdings", "impact"), n)
        lengths |= {"volatility": len(self.factors), "capital": DECISIONS, "aversion": DECISIONS}
        if max(self.sector_of, default=0) >= len(self.sectors):
            return "sector_of"
        if any(len(row) != len(self.factors) for row in self.exposures):
            return "exposures"
        return next((name for name, length in lengths.items() if len(getattr(self, name)) != length), None)


def from_json(stored: Any) -> Desk:
    """The desk that `as_json` stored; one of the last few asked for is the same object, with its policies.

    Raises
    ------
    ValueError : a field that is absent, of another type, or of another length than its names.
    """
    return _desk(orjson.dumps(stored))


@lru_cache(maxsize=4)
def _desk(text: bytes) -> Desk:
    stored = msgspec.json.decode(text, type=_Stored)
    if field := stored.misfit():
        raise ValueError(f"{field} of its desk does not fit the names that it is of")
    return Desk(
        stored.tickers,
        stored.sectors,
        np.array(stored.sector_of),
        Risk(
            stored.factors,
            np.array(stored.exposures, dtype=float),
            np.array(stored.volatility, dtype=float),
            np.array(stored.specific, dtype=float),
        ),
        Book(
            np.array(stored.benchmark, dtype=float),
            np.array(stored.holdings, dtype=float),
            np.array(stored.impact, dtype=float),
            stored.clip,
        ),
        Plan(np.array(stored.capital, dtype=float), np.array(stored.aversion, dtype=float), stored.limit_from),
        stored.tariff,
    )
