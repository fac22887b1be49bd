"""The least trading that brings a portfolio back into its mandate, or as near to it as the turnover left allows.

Three kinds of answers, each certified: no trades for a portfolio that complies; the least turnover into the whole
mandate, ties by the least sum of squared trades; and where that exceeds what is left of the month's turnover, the least
total relative excess within it, with the same ties.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.engines.optimisation.branching import Branch, BranchAndBound, Decision, Relaxation, relaxation
from finskillbench.engines.optimisation.certified import (
    ACCEPTED_GAP,
    Certified,
    InfeasibleError,
    UndecidedError,
    certify,
    certify_tie,
)
from finskillbench.engines.optimisation.face import broken_cones, solve_by_cones
from finskillbench.engines.optimisation.uniqueness import Uniqueness, UniquenessProof
from finskillbench.engines.risk.formulation import Aim, Goal, formulate
from finskillbench.engines.risk.mandate import COMPLIANCE_TOLERANCE, Kind, Mandate
from finskillbench.engines.risk.monitor import measure_all, relative_excess
from finskillbench.engines.risk.portfolio import Market, Portfolio, turnover_of
from finskillbench.engines.risk.semicontinuity import SLACK, Semicontinuity, semicontinuity_of

SLACKS = (0.0, 1e-9, 1e-8, 1e-7)
"""What a later stage may give up of an earlier one's value; the first that leads to a proof is taken. Nothing where it
can be solved on the earlier one's optimal face, else as little as leaves the solver an interior."""
_CAPS = {Goal.TURNOVER: "turnover_cap", Goal.EXCESS: "excess_cap"}
"""The block that caps a goal in the program of a later one."""
_RESIDUE = 1e-10
"""Weights and trades of this size are rounding of the solver."""
_ATTAINED = 1e-10
"""A bound this close to a real portfolio's value has nothing better to offer; of ties, `ACCEPTED_GAP`."""
_NEXT_TO_NOTHING = 0.01
"""More turnover than any portfolio needs that lies beyond its limits by no more than `COMPLIANCE_TOLERANCE`."""
_MAX_TIES = 12
"""Programs after which a tie is settled by the best portfolio found; its certificate states the gap that is left."""


@dataclass(frozen=True)
class Stage:
    """One certified program of a remedy: what it aimed at, and its result.

    `decisions` are those under which the last convex program was solved, None where nothing was decided;
    with `certified.nodes` of 1, `formulate` gives the program that its multipliers prove it against.
    """

    aim: Aim
    certified: Certified
    decisions: Integers | None


@dataclass(frozen=True)
class Remedy:
    """The trades of a remediation, and its proofs.

    Attributes
    ----------
    trades : (n,) signed changes of weight, exactly 0 where nothing is traded; cash changes by minus their sum.
    weights, cash : after the trades, fractions of NAV.
    turnover : one-way, of these trades alone.
    compliant : whether the whole mandate is kept after the trades.
    value : least turnover T* where compliant, else least total relative excess V*.
    stages : the programs solved, in their order; the first is the least turnover (empty where none was needed).
    """

    trades: Floats
    weights: Floats
    cash: float
    turnover: float
    compliant: bool
    value: float
    stages: tuple[Stage, ...]

    @property
    def settled(self) -> bool:
        """Whether the trades are proved to be the least squares among all of the same turnover, or excess."""
        last = self.stages[-1] if self.stages else None
        if last is None:
            return False
        tied = last.aim.goal is Goal.TRADES and last.certified.optimality.gap <= ACCEPTED_GAP
        return tied or last.certified.uniqueness.outcome.proved


def remediate(portfolio: Portfolio, mandate: Mandate, market: Market) -> Remedy:
    """Minimise one-way turnover subject to the whole mandate; if that exceeds the turnover left, the total excess.

    Raises
    ------
    InfeasibleError : no portfolio keeps the mandate whatever is traded; or the turnover left is too little even for
        the limits that are kept in any case (`monitor.HARD_KINDS`).
    UndecidedError : nothing can be proved, or the branches on names are too many.
    InputError : as `formulation.formulate`.
    """
    left = budget_left(portfolio, mandate)
    least = None
    if left >= -SLACK:
        least = solve_stage(portfolio, mandate, market, Aim(Goal.TURNOVER))
    # Whoever complies needs next to no trades: the others are not measured.
    if (least is None or least.certified.value <= _NEXT_TO_NOTHING) and _complies(portfolio, mandate, market):
        return _remedy(portfolio, portfolio.weights, compliant=True, value=0.0, stages=())
    if least is None:  # too much is traded already: no further trade can mend that, and none is allowed
        return _remedy(
            portfolio, portfolio.weights, compliant=False, value=total_excess(portfolio, mandate, market), stages=()
        )
    if least.certified.value <= left + SLACK:
        start = least.certified.value
        aims = [Aim(Goal.TRADES, turnover_cap=max(start, min(start + slack, left))) for slack in SLACKS]
        stages = _tied(portfolio, mandate, market, least, aims)
        return _remedy(portfolio, stages[-1].certified.weights, compliant=True, value=start, stages=stages)
    if least.certified.optimality.lower_bound <= left + SLACK:
        raise UndecidedError(f"the least turnover is within {ACCEPTED_GAP:g} of what is left: a grey band")
    if left <= SLACK:
        excess = total_excess(portfolio, mandate, market)
        return _remedy(portfolio, portfolio.weights, compliant=False, value=excess, stages=(least,))
    best = solve_stage(portfolio, mandate, market, Aim(Goal.EXCESS, turnover_cap=left))
    cap = best.certified.value
    aims = [Aim(Goal.TRADES, turnover_cap=left, excess_cap=cap + slack) for slack in SLACKS]
    stages = least, *_tied(portfolio, mandate, market, best, aims)
    return _remedy(portfolio, stages[-1].certified.weights, compliant=False, value=cap, stages=stages)


def _complies(portfolio: Portfolio, mandate: Mandate, market: Market) -> bool:
    batch = (portfolio.weights[None, :], np.array([portfolio.cash]), np.array([portfolio.traded]))
    return bool((measure_all(*batch, mandate, market)[1] <= COMPLIANCE_TOLERANCE).all())


def budget_left(portfolio: Portfolio, mandate: Mandate) -> float:
    """One-way turnover left in the month: infinite without a limit, negative where too much is traded already."""
    limit = mandate.limit(Kind.TURNOVER_MAX_MONTHLY)
    return np.inf if limit is None else limit - portfolio.traded


def total_excess(portfolio: Portfolio, mandate: Mandate, market: Market) -> float:
    """Total relative excess V of a portfolio as it stands; see `monitor.relative_excess`."""
    batch = (portfolio.weights[None, :], np.array([portfolio.cash]), np.array([portfolio.traded]))
    values, excess = measure_all(*batch, mandate, market)
    return relative_excess(values[0], excess[0], mandate)


def after(portfolio: Portfolio, trades: Floats) -> Portfolio:
    """The portfolio after (n,) trades, with their turnover added to the month's."""
    cash = portfolio.cash - float(trades.sum())
    return Portfolio(portfolio.weights + trades, cash, portfolio.nav, portfolio.traded + turnover_of(trades))


def nearest(mandate: Mandate, market: Market, target: Floats) -> Certified:
    """The portfolio inside the mandate (turnover aside) with least squared distance to (n,) target weights.

    The distance is that of names and cash, where the target's cash is what its weights leave of 1; `value` is it.
    With position_limit_min or name_count it may not be proved the least: `optimality.gap` says how near it is.

    Raises
    ------
    InfeasibleError : no portfolio keeps the mandate.
    UndecidedError : nothing can be proved.
    """
    return solve_stage(Portfolio(target, 1.0 - float(target.sum()), 1.0), mandate, market, Aim(Goal.TRADES)).certified


def _remedy(
    portfolio: Portfolio, weights: Floats, *, compliant: bool, value: float, stages: tuple[Stage, ...]
) -> Remedy:
    # What is sold off is 0, not the rounding of w0 − w0, and what stays is not traded.
    weights = np.where(np.abs(weights) <= _RESIDUE, 0.0, weights)
    trades = np.where(np.abs(weights - portfolio.weights) <= _RESIDUE, 0.0, weights - portfolio.weights)
    weights = np.where(trades == 0.0, portfolio.weights, weights)
    cash = after(portfolio, trades).cash
    return Remedy(trades, weights, cash, turnover_of(trades), compliant, value, stages)


def _tied(portfolio: Portfolio, mandate: Mandate, market: Market, first: Stage, aims: list[Aim]) -> tuple[Stage, ...]:
    """The stage that settles the ties of `first`, by the strictest aim whose program can be proved; else none does."""
    if first.certified.uniqueness.outcome.proved:
        return (first,)
    for aim in aims:
        try:
            if aim is aims[0]:
                return first, _on_face(portfolio, mandate, market, first, aim)
            return first, solve_stage(portfolio, mandate, market, aim)
        except (InfeasibleError, UndecidedError):
            continue
    return (first,)


def _on_face(portfolio: Portfolio, mandate: Mandate, market: Market, first: Stage, aim: Aim) -> Stage:
    """The ties of a stage that needed no branching settled on its optimal face.

    Raises
    ------
    UndecidedError : nothing can be proved, or the result does not keep the semicontinuous limits.
    """
    if first.certified.nodes > 1:
        raise UndecidedError("the earlier stage has branched: no one program has its optimal face")
    formulation = formulate(portfolio, mandate, market, aim)
    cap = next(block for block in formulation.program.blocks if block.label == _CAPS[first.aim.goal])
    earlier = np.insert(first.certified.multipliers, cap.start, 0.0)
    certified = certify_tie(formulation, cap.label, earlier)
    rule = semicontinuity_of(mandate, len(market.tickers))
    if rule is not None and rule.broken(certified.weights).any():
        raise UndecidedError("the tie has to be branched on")
    return Stage(aim, certified, None)


def solve_stage(portfolio: Portfolio, mandate: Mandate, market: Market, aim: Aim) -> Stage:
    """The relaxation at first; only if it does not keep the semicontinuous limits, a branch and bound on them."""
    rule = semicontinuity_of(mandate, len(market.tickers))
    formulation = formulate(portfolio, mandate, market, aim)
    # A limit that is broken now binds after the least that is done about it; of the others none may, or any.
    cones = broken_cones(formulation.program, formulation.point(portfolio.weights))
    # Of turnover and excess the value alone is the answer; a later stage picks the portfolio.
    relaxed = certify(formulation, cones=cones, unique=aim.goal is Goal.TRADES or None)
    if rule is None or not rule.broken(relaxed.weights).any():
        return Stage(aim, relaxed, None)
    branching = _Branching(portfolio, mandate, market, aim, rule)
    best = branching.search(len(market.tickers), relaxation(relaxed))
    return Stage(aim, best, branching.decided)


def estimate(portfolio: Portfolio, mandate: Mandate, market: Market, aim: Aim) -> float | None:
    """The goal's value without branching, as the solver leaves it and not proved; None where nothing is feasible."""
    formulation = formulate(portfolio, mandate, market, aim)
    cones = broken_cones(formulation.program, formulation.point(portfolio.weights))
    found = solve_by_cones(formulation.program, cones)
    return formulation.program.objective(found.x) if found.status in ("Solved", "AlmostSolved") else None


class _Branching(BranchAndBound):
    """What each name is: not held, long or short.

    Squared trades only settle ties: after `_MAX_TIES` programs the best found is taken, with the gap that is left.
    """

    limits = "position_limit_min and name_count"
    most_programs = 200

    def __init__(self, portfolio: Portfolio, mandate: Mandate, market: Market, aim: Aim, rule: Semicontinuity) -> None:
        self.tie = aim.goal is Goal.TRADES
        reach, accepted = (-ACCEPTED_GAP, np.inf) if self.tie else (-_ATTAINED, ACCEPTED_GAP)
        super().__init__(reach=reach, accepted_gap=accepted, unique=self.tie)
        self.portfolio, self.mandate, self.market, self.aim, self.rule = portfolio, mandate, market, aim, rule
        self.shorts = mandate.get(Kind.LONG_ONLY) is None
        self.programs = 1  # the root's relaxation

    def continues(self) -> bool:
        """A value has to be settled, a tie need not be."""
        return super().continues() and not (self.best is not None and self.tie and self.programs >= _MAX_TIES)

    def relax(self, decisions: Integers) -> Relaxation:
        """The weights of the branch's convex program."""
        # Of a tie's open branches only the bound counts, and only to within the gap that ends the search.
        rough = self.tie and bool((decisions == Decision.FREE).any())
        return relaxation(self._certify(decisions, unique=False, polished=not rough))

    def _certify(self, decisions: Integers, *, unique: bool, polished: bool) -> Certified:
        self.programs += 1
        program = formulate(self.portfolio, self.mandate, self.market, self.aim, decisions)
        return certify(program, unique=unique, polished=polished)

    def propose(self, decisions: Integers, relaxed: Relaxation) -> None:
        """The relaxation itself where it is an answer, else rounded to decisions on every name."""
        weights, decided = relaxed.values, not (decisions == Decision.FREE).any()
        # A relaxation that keeps the limits is an answer where its objective is the goal itself.
        if relaxed.certified is not None and (decided or not (self.tie or self.rule.broken(weights).any())):
            self.offer(relaxed.certified, decisions)
            return
        nearest_to, start = self.rule.decisions_of(weights), self.portfolio.weights
        settled = (np.abs(start) >= self.rule.on) & (np.abs(weights) >= self.rule.on / 2)
        for decisive in (nearest_to, np.where(settled, nearest_to, Decision.OFF)):
            rounded = np.where(decisions == Decision.FREE, decisive, decisions).astype(np.int8)
            rounded = self._counted(decisions, rounded, weights)
            if rounded is None or not self.first_try(rounded.tobytes()):
                continue
            try:
                self.offer(self._certify(rounded, unique=False, polished=True), rounded)
            except (InfeasibleError, UndecidedError):
                continue

    def choose(self, decisions: Integers, relaxed: Relaxation, bound: float) -> int | None:
        """The most broken open name, or the one whose hull is furthest from its trade."""
        free = decisions == Decision.FREE
        if not free.any():
            return None
        score = np.where(free, self.rule.broken(relaxed.values), 0.0)
        if score.max() <= 0.0 and self.rule.gap:
            size = np.abs(relaxed.values)
            hull = free & (np.abs(self.portfolio.weights) < self.rule.on)
            score = np.where(hull, size * np.maximum(size - self.rule.on, 0.0), 0.0)
            score[score < _ATTAINED] = 0.0
        if score.max() <= 0.0 and self.best is not None:
            return None
        return int(np.argmax(score if score.max() > 0.0 else free))

    def children(self, decisions: Integers, name: int) -> Iterable[Integers]:
        """Not held, long or short, each with what it implies by the counts; none that contradicts them."""
        n, rule = len(decisions), self.rule
        for decision in (Decision.OFF, Decision.LONG, Decision.SHORT) if self.shorts else (Decision.OFF, Decision.LONG):
            child = decisions.copy()
            child[name] = decision
            off, on = int((child == Decision.OFF).sum()), int((child >= Decision.LONG).sum())
            if on > rule.most or n - off < rule.least:
                continue
            if on == rule.most:
                child[child == Decision.FREE] = Decision.OFF
            elif n - off == rule.least and not self.shorts:
                child[child == Decision.FREE] = Decision.LONG
            yield child

    def alone(self, branch: Branch) -> UniquenessProof:
        """By the branch's relaxation, solved once more with the question."""
        try:
            if self._certify(branch.decisions, unique=True, polished=True).uniqueness.outcome.proved:
                return UniquenessProof(Uniqueness.BRANCHES)
        except (InfeasibleError, UndecidedError):
            pass
        return UniquenessProof(Uniqueness.UNDECIDED)

    def _counted(self, decisions: Integers, rounded: Integers, weights: Floats) -> Integers | None:
        """Rounded decisions with the smallest holdings given up, or the largest others opened, until they count."""
        rule, free = self.rule, decisions == Decision.FREE
        size = np.abs(weights) + np.abs(self.portfolio.weights)  # of two equals, keep what is there already
        on = rounded >= Decision.LONG
        surplus = int(on.sum()) - rule.most
        if surplus > 0:
            order = np.argsort(np.where(on & free, size, np.inf), kind="stable")[:surplus]
            rounded[order] = Decision.OFF
        missing = rule.least - int(on.sum())
        if missing > 0:
            order = np.argsort(np.where(~on & free, -size, np.inf), kind="stable")[:missing]
            rounded[order] = (
                np.where(weights[order] < 0, Decision.SHORT, Decision.LONG) if self.shorts else Decision.LONG
            )
        on = rounded >= Decision.LONG
        fits = rule.least <= int(on.sum()) <= rule.most and bool((rounded[~free] == decisions[~free]).all())
        return rounded if fits else None
