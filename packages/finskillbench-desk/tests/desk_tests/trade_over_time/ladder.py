"""A ladder of agents, from nothing to the optimum, and what each loses: they see what an agent sees and no more."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from finskillbench.arrays import Floats
from finskillbench_desk.engines.panel import Sums, group_variances, least_squares, posterior
from finskillbench_desk.engines.trading.over_time import Step, solve
from finskillbench_desk.trade_over_time.optimum import Optimum, TradingSetup, losses
from finskillbench_desk.trade_over_time.posterior import Stretches, all_weeks, forecasts, history_sums, signals_at
from finskillbench_desk.trade_over_time.world import DECISIONS, ENDS, HOLDS, SOUND, VENDOR_OF, VENDORS, TradingWorld

Agent = Callable[[int, Floats], Floats]
"""Decision and book to the book that it trades to."""

RUNGS = ("nothing", "equal weight", "plug-in", "half-shrunk", "empirical Bayes", "optimum")


def empirical_bayes(of: Sums, decay: Floats) -> Floats:
    """(30,) coefficients shrunk by vendor, with the stated shape of the prior."""
    shape = np.sqrt(1 - decay)
    shaped = Sums(of.information * np.outer(shape, shape), of.score * shape)
    return shape * posterior(shaped, group_variances(shaped, VENDOR_OF.astype(float)))[0]


def heeded(world: TradingWorld, worth: Floats, place: int) -> Floats:
    """(30,) coefficients of edges that may have ended, by what is known of that at a decision: as they are where an
    edge holds, nothing where it does not, and where nobody knows by the chance that the memo states.
    """
    known = world.news.known(place)
    return worth * np.array([known.get(int(vendor), HOLDS) for vendor in VENDOR_OF], dtype=float)


def told_apart(of: Stretches) -> Stretches:
    """Sums of stretches made from coefficients and standard errors of regressions on all signals since each end, as a
    script prints them: without what estimates have in common.
    """
    found = [least_squares(all_weeks(of[first:])) for first in range(len(of))]
    informations = [1 / np.diag(spread) for _, spread in found]
    scores = [plain * information for (plain, _), information in zip(found, informations, strict=True)]
    informations, scores = ([*each, np.zeros(len(VENDOR_OF))] for each in (informations, scores))
    return tuple(
        Sums(np.diag(np.maximum(informations[at] - informations[at + 1], 0.0)), scores[at] - scores[at + 1])
        for at in range(len(of))
    )


def by_vendor(of: Stretches, world: TradingWorld, place: int) -> tuple[Floats, Floats]:
    """(30,) the exact posterior mean of each vendor as if there were no other, and (30,) the chance that an edge holds
    of one that has or had it: what can be weighed by hand from t-values of several spans.
    """
    decay, strength = world.signals.decay, float(np.mean(world.tier.strengths))
    known, sound = world.news.known(place), np.mean(SOUND) / len(VENDORS)
    means, chances = np.zeros(len(VENDOR_OF)), np.zeros(len(VENDOR_OF))
    for vendor in range(len(VENDORS)):
        at = np.flatnonzero(vendor == VENDOR_OF)
        variances, logs, centres = strength**2 * (1 - decay[at]), [np.log(1 - sound)], [np.zeros(3)]
        for spans in range(1, len(of) + 1):
            part = all_weeks(of[:spans])
            mean, evidence = posterior(Sums(part.information[np.ix_(at, at)], part.score[at]), variances)
            holds = spans == len(of)
            chance = HOLDS if holds else (1 - HOLDS) / len(ENDS)
            logs.append(np.log(sound * chance) + evidence)
            centres.append(mean * holds)
        weights = np.exp(np.array(logs) - max(logs))
        if vendor in known:
            weights[:-1] *= not known[vendor]
            weights[-1] *= known[vendor]
        means[at] = weights @ np.array(centres) / weights.sum()
        chances[at] = known.get(vendor, weights[-1] / max(float(weights[1:].sum()), 1e-300))
    return means, chances


def agents(world: TradingWorld, desk: TradingSetup, optimum: Optimum) -> dict[str, Agent]:
    """Agents by name: the ladder first, then what else one might do."""
    stretches, decay = history_sums(world), world.signals.decay
    known = all_weeks(stretches)
    plain, spread = least_squares(known)
    seen = np.abs(plain) > 2 * np.sqrt(np.diag(spread))
    shrunk = empirical_bayes(known, decay)
    stated = posterior(known, float(np.mean(world.tier.strengths)) ** 2 * (1 - decay))[0]

    def planned(worth: Callable[[int], Floats]) -> Agent:
        def trade(place: int, book: Floats) -> Floats:
            policy = desk.policy(place)
            return policy.best(place, policy.aim(place, forecasts(world, place, worth(place))), book)

        return trade

    def short_sighted(place: int, book: Floats) -> Floats:
        step = Step(float(desk.plan.aversion[place]), desk.benchmark(place), desk.limits(place))
        one = solve(desk.risk.covariance(), desk.curvature(place), [step])
        return one.best(0, one.aim(0, forecasts(world, place, heeded(world, shrunk, place))[:1]), book)

    def without_decay(place: int, book: Floats) -> Floats:
        forecast, policy = (
            (signals_at(world, place) @ heeded(world, shrunk, place)) * world.risk.specific,
            desk.policy(place),
        )
        return policy.best(place, policy.aim(place, np.tile(forecast, (DECISIONS - place, 1))), book)

    def cheap(place: int, book: Floats) -> Floats:
        policy = desk.policy(0)
        return policy.best(place, policy.aim(place, forecasts(world, place, heeded(world, shrunk, place))), book)

    printed = told_apart(stretches)

    return {
        "nothing": desk.held,
        "equal weight": lambda place, book: np.full(len(book), desk.plan.capital[place] / len(book)),
        "plug-in": planned(lambda place: plain),
        "half-shrunk": planned(lambda place: plain / 2),
        "empirical Bayes": planned(lambda place: heeded(world, shrunk, place)),
        "optimum": lambda place, book: desk.policy(place).best(place, optimum.aims[place], book),
        "skilled": planned(lambda place: heeded(world, stated * seen, place)),
        "skilled, news ignored": planned(lambda place: HOLDS * stated * seen),
        "skilled, ends ignored": planned(lambda place: stated * seen),
        "t above 2": planned(lambda place: plain * seen),
        "edges taken to hold": planned(lambda place: shrunk),
        "last years only": planned(lambda place: empirical_bayes(all_weeks(stretches[2:]), decay)),
        "vendor by vendor": planned(lambda place: by_vendor(stretches, world, place)[0]),
        "windows by vendor": planned(lambda place: by_vendor(printed, world, place)[0]),
        "edges by windows": planned(lambda place: shrunk * by_vendor(printed, world, place)[1]),
        "audit ignored": planned(lambda place: HOLDS * shrunk),
        "tariff ignored": cheap,
        "documents only": planned(lambda place: np.zeros(30)),
        "one period at a time": short_sighted,
        "no decay": without_decay,
        "first posterior kept": planned(lambda place: optimum.worth[0]),
    }


def score(desk: TradingSetup, optimum: Optimum, agent: Agent) -> float:
    """The score of an agent, not floored."""
    books = [desk.book.holdings]
    for place in range(DECISIONS):
        books.append(desk.settled(place, agent(place, books[-1])))
    return 1 - float(losses(desk, optimum.aims, books[1:]).sum() / optimum.textbook.sum())
