"""A ladder of agents, from nothing to the optimum, and what each loses: they see what an agent sees and no more."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.desk.trade_over_time.dials import DECISIONS
from finskillbench.domains.desk.trade_over_time.optimum import Desk, Optimum, losses
from finskillbench.domains.desk.trade_over_time.posterior import forecasts, history, signals_at
from finskillbench.domains.desk.trade_over_time.world import VENDOR_OF, World
from finskillbench.engines.portfolio.trading import Step, solve
from finskillbench.engines.statistics.panel import Sums, group_variances, least_squares, posterior

Agent = Callable[[int, Floats], Floats]
"""Decision and book to the book that it trades to."""

RUNGS = ("nothing", "plug-in", "half-shrunk", "empirical Bayes", "optimum")


def empirical_bayes(of: Sums, decay: Floats) -> Floats:
    """(30,) coefficients shrunk by vendor, with the stated shape of the prior."""
    shape = np.sqrt(1 - decay)
    shaped = Sums(of.information * np.outer(shape, shape), of.score * shape)
    return shape * posterior(shaped, group_variances(shaped, VENDOR_OF.astype(float)))[0]


def agents(world: World, desk: Desk, optimum: Optimum) -> dict[str, Agent]:
    """Agents by name: the ladder first, then what else one might do."""
    known, decay = history(world), world.signals.decay
    plain, spread = least_squares(known)
    shrunk = empirical_bayes(known, decay)
    policy = desk.policy

    def planned(worth: Floats) -> Agent:
        return lambda place, book: policy.best(place, policy.aim(place, forecasts(world, place, worth)), book)

    def short_sighted(place: int, book: Floats) -> Floats:
        step = Step(float(desk.plan.aversion[place]), desk.benchmark(place), desk.limits(place))
        one = solve(desk.risk.covariance(), desk.book.curvature(), [step])
        return one.best(0, one.aim(0, forecasts(world, place, shrunk)[:1]), book)

    def without_decay(place: int, book: Floats) -> Floats:
        forecast = (signals_at(world, place) @ shrunk) * world.risk.specific
        return policy.best(place, policy.aim(place, np.tile(forecast, (DECISIONS - place, 1))), book)

    return {
        "nothing": desk.held,
        "plug-in": planned(plain),
        "half-shrunk": planned(plain / 2),
        "empirical Bayes": planned(shrunk),
        "optimum": lambda place, book: policy.best(place, optimum.aims[place], book),
        "documents only": planned(np.zeros(30)),
        "t above 2": planned(plain * (np.abs(plain) > 2 * np.sqrt(np.diag(spread)))),
        "one period at a time": short_sighted,
        "no decay": without_decay,
        "first posterior kept": planned(optimum.worth[0]),
    }


def score(desk: Desk, optimum: Optimum, agent: Agent) -> float:
    """The score of an agent, not floored."""
    books = [desk.book.holdings]
    for place in range(DECISIONS):
        books.append(desk.settled(place, agent(place, books[-1])))
    return 1 - float(losses(desk, optimum.aims, books[1:]).sum() / optimum.textbook.sum())
