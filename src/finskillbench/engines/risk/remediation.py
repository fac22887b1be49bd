"""The least trading that brings a portfolio back into its mandate, or as near to it as the turnover left allows.

Three kinds of answers, each certified: no trades for a portfolio that complies; the least turnover into the whole
mandate, ties by the least sum of squared trades; and where that exceeds what is left of the month's turnover, the least
total relative excess within it, with the same ties.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.engines.optimisation.face import broken_cones
from finskillbench.engines.optimisation.uniqueness import Uniqueness, UniquenessProof
from finskillbench.engines.portfolio.optimise import (
    ACCEPTED_GAP,
    TIE,
    Certified,
    InfeasibleError,
    UndecidedError,
    certify,
    certify_tie,
)
from finskillbench.engines.risk.formulation import Aim, Goal, formulate
from finskillbench.engines.risk.mandate import Kind, Mandate
from finskillbench.engines.risk.monitor import measure, measure_all, relative_excess
from finskillbench.engines.risk.portfolio import Market, Portfolio, required, turnover_of
from finskillbench.engines.risk.semicontinuity import SLACK, Semicontinuity, State, semicontinuity_of

SLACKS = (0.0, 1e-9, 1e-8, 1e-7)
"""What a later stage may give up of an earlier one's value; the first that leads to a proof is taken. Nothing where it
can be solved on the earlier one's optimal face, else as little as leaves the solver an interior."""
_CAPS = {Goal.TURNOVER: "turnover_cap", Goal.EXCESS: "excess_cap"}
"""The block that caps a goal in the program of a later one."""
_RESIDUE = 1e-10
"""Weights and trades of this size are rounding of the solver."""
_ATTAINED = 1e-10
"""A bound this close to a real portfolio's value has nothing better to offer; of ties, `ACCEPTED_GAP`."""
_MAX_NODES = 600
"""Programs after which a value is given up."""
_MAX_TIES = 12
"""Programs after which a tie is settled by the best portfolio found; its certificate states the gap that is left."""


@dataclass(frozen=True)
class Stage:
    """One certified program of a remedy: what it aimed at, and its result.

    `states` are the (n,) decisions under which the last convex program was solved, None where nothing was decided;
    with `certified.nodes` of 1, `formulate` gives the program that its multipliers prove it against.
    """

    aim: Aim
    certified: Certified
    states: Integers | None


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
    if all(found.passed for found in measure(portfolio, mandate, market)):
        return _remedy(portfolio, portfolio.weights, compliant=True, value=0.0, stages=())
    left = budget_left(portfolio, mandate)
    if left < -SLACK:  # too much is traded already: no further trade can mend that, and none is allowed
        return _remedy(
            portfolio, portfolio.weights, compliant=False, value=total_excess(portfolio, mandate, market), stages=()
        )
    least = _solve(portfolio, mandate, market, Aim(Goal.TURNOVER))
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
    best = _solve(portfolio, mandate, market, Aim(Goal.EXCESS, turnover_cap=left))
    cap = best.certified.value
    aims = [Aim(Goal.TRADES, turnover_cap=left, excess_cap=cap + slack) for slack in SLACKS]
    stages = least, *_tied(portfolio, mandate, market, best, aims)
    return _remedy(portfolio, stages[-1].certified.weights, compliant=False, value=cap, stages=stages)


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
    return _solve(_placed(target), mandate, market, Aim(Goal.TRADES)).certified


def reference_turnover(portfolio: Portfolio, mandate: Mandate, market: Market) -> float:
    """One-way turnover to the mandate's portfolio nearest to the benchmark: the zero of the score."""
    goal = nearest(mandate, market, required(market.benchmark, "benchmark_weights"))
    return turnover_of(goal.weights - portfolio.weights)


def solve_again(portfolio: Portfolio, mandate: Mandate, market: Market, aim: Aim) -> Stage:
    """One stage from scratch: what a check does where branching leaves no multipliers of the whole."""
    return _solve(portfolio, mandate, market, aim)


def _placed(target: Floats) -> Portfolio:
    return Portfolio(target, 1.0 - float(target.sum()), 1.0)


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
            return first, _solve(portfolio, mandate, market, aim)
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
    program = formulate(portfolio, mandate, market, aim)
    cap = next(block for block in program.formulation.program.blocks if block.label == _CAPS[first.aim.goal])
    earlier = np.insert(first.certified.multipliers, cap.start, 0.0)
    certified = certify_tie(program.formulation, cap.label, earlier)
    rule = semicontinuity_of(mandate, len(market.tickers))
    if rule is not None and rule.broken(certified.weights).any():
        raise UndecidedError("the tie has to be branched on")
    return Stage(aim, certified, None)


def _solve(portfolio: Portfolio, mandate: Mandate, market: Market, aim: Aim) -> Stage:
    """The relaxation at first; only if it does not keep the semicontinuous limits, a branch and bound on them."""
    rule = semicontinuity_of(mandate, len(market.tickers))
    program = formulate(portfolio, mandate, market, aim)
    # What is given up when too little may be traded is what is broken now; else any limit may come to bind, or none.
    cones = broken_cones(program.formulation.program, program.point(portfolio.weights)) if aim.soft else ()
    relaxed = certify(program.formulation, cones=cones, unique=_asks_uniqueness(aim) or None)
    if rule is None or not rule.broken(relaxed.weights).any():
        return Stage(aim, relaxed, None)
    return _Branching(portfolio, mandate, market, aim, rule).search(relaxed)


def _asks_uniqueness(aim: Aim) -> bool:
    """Of turnover and excess the value alone is the answer; a later stage picks the portfolio."""
    return aim.goal is Goal.TRADES


class _Branching:
    """Best-first branch and bound on what each name is: not held, long or short.

    A branch's relaxation gives its proved bound; rounded, it gives a set of decisions whose convex program gives an
    incumbent. A branch is closed when its bound attains the incumbent. The optimum is unique when
    no other branch comes within `TIE` and the closing relaxation has one optimum itself. Squared trades only settle
    ties: after `_MAX_TIES` programs the best found is taken, with the gap that is left.
    """

    def __init__(self, portfolio: Portfolio, mandate: Mandate, market: Market, aim: Aim, rule: Semicontinuity) -> None:
        self.portfolio, self.mandate, self.market, self.aim, self.rule = portfolio, mandate, market, aim, rule
        self.shorts = mandate.get(Kind.LONG_ONLY) is None
        self.incumbent: Stage | None = None
        self.attained = ACCEPTED_GAP if aim.goal is Goal.TRADES else _ATTAINED
        self.tried: set[bytes] = set()
        self.nodes = 1
        self._failure: InfeasibleError | UndecidedError = UndecidedError("no branch gave a portfolio")

    def search(self, root: Certified) -> Stage:
        """From the root's relaxation, already solved, to the best portfolio of all branches."""
        order = count()
        free = np.full(len(root.weights), State.FREE, dtype=np.int8)
        queue: list[tuple[float, int, Integers, Certified | None]] = [(-np.inf, next(order), free, root)]
        closed: list[tuple[float, Integers]] = []
        while queue and queue[0][0] < self._value - self.attained and self._continues():
            bound, _, states, relaxed = heapq.heappop(queue)
            try:
                relaxed = relaxed or self._relax(states)
            except InfeasibleError as error:
                self._failure = InfeasibleError(error.proof, error.multipliers, error.ray, complete=False)
                continue
            except UndecidedError as error:  # all that is known of the branch is what its parent says
                self._failure = error
                closed.append((bound, states))
                continue
            bound = max(bound, relaxed.optimality.lower_bound)
            if not (states == State.FREE).any():
                self._offer(relaxed, states)
            elif self.aim.goal is not Goal.TRADES and not self.rule.broken(relaxed.weights).any():
                self._offer(relaxed, states)  # the relaxation keeps the limits, and its objective is the goal itself
            else:
                self._try(states, relaxed.weights)
            pick = self._pick(states, relaxed.weights)
            if bound >= self._value - self.attained or pick is None:
                closed.append((bound, states))
                continue
            for state in (State.OFF, State.LONG, State.SHORT) if self.shorts else (State.OFF, State.LONG):
                child = states.copy()
                child[pick] = state
                if (settled := self._settled(child)) is not None:
                    heapq.heappush(queue, (bound, next(order), settled, None))
        return self._result(closed + [(bound, states) for bound, _, states, _ in queue])

    def _continues(self) -> bool:
        """Whether another branch may be opened; a value has to be settled, a tie need not be."""
        if self.nodes >= _MAX_NODES:
            raise UndecidedError(f"position_limit_min and name_count are not settled after {_MAX_NODES} programs")
        return not (self.incumbent is not None and self.aim.goal is Goal.TRADES and self.nodes >= _MAX_TIES)

    @property
    def _value(self) -> float:
        return np.inf if self.incumbent is None else self.incumbent.certified.value

    def _relax(self, states: Integers, *, unique: bool = False) -> Certified:
        """A branch's convex program: a relaxation while names are free."""
        self.nodes += 1
        program = formulate(self.portfolio, self.mandate, self.market, self.aim, states).formulation
        # Of a tie's open branches only the bound counts, and only to within the gap that ends the search.
        rough = self.aim.goal is Goal.TRADES and bool((states == State.FREE).any()) and not unique
        return certify(program, unique=unique, polished=not rough)

    def _settled(self, states: Integers) -> Integers | None:
        """Decisions with what they imply by the counts; None where they contradict them."""
        n, rule = len(states), self.rule
        off, on = int((states == State.OFF).sum()), int((states >= State.LONG).sum())
        if on > rule.most or n - off < rule.least:
            return None
        if on == rule.most:
            return np.where(states == State.FREE, State.OFF, states).astype(np.int8)
        if n - off == rule.least and not self.shorts:
            return np.where(states == State.FREE, State.LONG, states).astype(np.int8)
        return states

    def _pick(self, states: Integers, weights: Floats) -> int | None:
        """The open name on which to branch: the most broken one, or the one whose hull is furthest from its trade."""
        free = states == State.FREE
        if not free.any():
            return None
        score = np.where(free, self.rule.broken(weights), 0.0)
        if score.max() <= 0.0 and self.rule.gap:
            size = np.abs(weights)
            hull = free & (np.abs(self.portfolio.weights) < self.rule.on)
            score = np.where(hull, size * np.maximum(size - self.rule.on, 0.0), 0.0)
            score[score < _ATTAINED] = 0.0
        if score.max() <= 0.0 and self.incumbent is not None:
            return None
        return int(np.argmax(score if score.max() > 0.0 else free))

    def _try(self, states: Integers, weights: Floats) -> None:
        """Round a relaxation to decisions on every name, and solve for these."""
        settled = (np.abs(self.portfolio.weights) >= self.rule.on) & (np.abs(weights) >= self.rule.on / 2)
        for decisive in (self.rule.states_of(weights), np.where(settled, self.rule.states_of(weights), State.OFF)):
            rounded = self._counted(states, np.where(states == State.FREE, decisive, states).astype(np.int8), weights)
            if rounded is None or rounded.tobytes() in self.tried:
                continue
            self.tried.add(rounded.tobytes())
            try:
                self._offer(self._relax(rounded), rounded)
            except (InfeasibleError, UndecidedError):
                continue

    def _offer(self, candidate: Certified, states: Integers) -> None:
        if candidate.value < self._value:
            self.incumbent = Stage(self.aim, candidate, states)

    def _counted(self, states: Integers, rounded: Integers, weights: Floats) -> Integers | None:
        """Rounded decisions with the smallest holdings given up, or the largest others opened, until they count."""
        rule, free = self.rule, states == State.FREE
        size = np.abs(weights) + np.abs(self.portfolio.weights)  # of two equals, keep what is there already
        on = rounded >= State.LONG
        surplus = int(on.sum()) - rule.most
        if surplus > 0:
            order = np.argsort(np.where(on & free, size, np.inf), kind="stable")[:surplus]
            rounded[order] = State.OFF
        missing = rule.least - int(on.sum())
        if missing > 0:
            order = np.argsort(np.where(~on & free, -size, np.inf), kind="stable")[:missing]
            rounded[order] = np.where(weights[order] < 0, State.SHORT, State.LONG) if self.shorts else State.LONG
        on = rounded >= State.LONG
        fits = rule.least <= int(on.sum()) <= rule.most and bool((rounded[~free] == states[~free]).all())
        return rounded if fits else None

    def _result(self, closed: list[tuple[float, Integers]]) -> Stage:
        """The incumbent, with the least bound of all branches."""
        if self.incumbent is None:
            raise self._failure
        best = self.incumbent.certified
        bound = min([bound for bound, _ in closed] + [best.value])
        if best.value - bound > ACCEPTED_GAP and self.aim.goal is not Goal.TRADES:
            raise UndecidedError(f"the branches leave a gap of {best.value - bound:.1e} after {self.nodes} programs")
        uniqueness = UniquenessProof(Uniqueness.NOT_ASKED)
        if _asks_uniqueness(self.aim):
            uniqueness = self._uniqueness([states for bound, states in closed if bound <= best.value + TIE])
        optimality = replace(best.optimality, lower_bound=bound, gap=best.value - bound)
        certified = replace(best, optimality=optimality, uniqueness=uniqueness, nodes=self.nodes)
        return replace(self.incumbent, certified=certified)

    def _uniqueness(self, near: list[Integers]) -> UniquenessProof:
        """Proved where only one branch comes near the optimum and its relaxation has one optimum."""
        undecided = UniquenessProof(Uniqueness.UNDECIDED)
        if len(near) != 1:
            return undecided
        try:
            alone = self._relax(near[0], unique=True).uniqueness.outcome.proved
        except (InfeasibleError, UndecidedError):
            return undecided
        return UniquenessProof(Uniqueness.BRANCHES) if alone else undecided
