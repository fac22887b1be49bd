"""Cases: a world of a law, drawn for the case or disclosed, its posterior, and errors planted in data and records.

Sites of errors are chosen by visible data, and the right reading undoes or ignores each change. So the posterior of
sizes stays that of the clean world. Only a source that was not delivered changes the coming quarter's effects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.optimisation.certified import Certified
from finskillbench.errors import InternalError
from finskillbench_desk.allocate.laws import (
    Law,
    candidates,
    disclosed_law,
    draw_effects,
    draw_law,
    draw_residuals,
    features,
    places,
)
from finskillbench_desk.allocate.posterior import Effects, SizeMoments, effects_of, law_moments
from finskillbench_desk.allocate.sources import (
    FIRST_COST,
    LEAST_COST,
    LEAST_GAIN,
    NAMES,
    RETURN_UNIT,
    SOURCES,
    TIERS,
    AllocationTier,
    VisibleWorld,
    draw_book,
    draw_factor_returns,
    draw_sources,
)
from finskillbench_desk.allocate.traps import PLANTERS, SourcePitfall, scored_columns
from finskillbench_desk.engines.trading.net_of_costs import TradingProblem, optimum

WORLDS, PLANTINGS = 60, 3
"""Numbers of worlds tried for a case, and of plantings tried in each."""
_CONTROL = 0.7
"""Probability that a pitfall after the first is a control; many controls cost too little and are left out."""
_DECIMALS = 12
"""Decimals of the stored effects and covariances."""


@dataclass(frozen=True)
class AllocationWorld(VisibleWorld):
    """A drawn world of a law; `structure` is None if the law is disclosed, `effects` (T + 1, n) are hidden."""

    law: Law
    structure: str | None
    effects: Floats = field(repr=False)


@dataclass(frozen=True)
class AllocationCase:
    """A world as delivered, its posterior, and the certified optimum.

    `textbook` is the better utility of the current book and the optimum without sources; `misread` maps pitfalls to
    weights.
    """

    world: AllocationWorld
    pitfalls: tuple[SourcePitfall, ...]
    belief: Effects
    problem: TradingProblem
    best: Certified
    textbook: float
    misread: Mapping[str, Floats] = field(repr=False)

    @property
    def attainable(self) -> float:
        return -self.best.value

    @property
    def gain(self) -> float:
        return self.attainable - self.textbook

    def share(self, weights: Floats) -> float:
        """Return the share of the attainable gain that feasible weights earn; it may be negative."""
        return (self.problem.utility(weights) - self.textbook) / self.gain


@dataclass(frozen=True)
class _Study:
    """A world with the posterior of sizes under the right reading, and under each single misreading, by its name."""

    world: AllocationWorld
    pitfalls: tuple[SourcePitfall, ...]
    moments: SizeMoments
    misread: Mapping[str, SizeMoments]

    @classmethod
    def of(cls, world: AllocationWorld) -> _Study:
        found = _features(world, (), frozenset())
        return cls(world, (), law_moments(world.law, found, world.residuals, world.book), {})

    def with_pitfall(self, place: SourcePitfall, world: AllocationWorld) -> _Study:
        pitfalls = (*self.pitfalls, place)
        right, wrong = (_features(world, pitfalls, fallen) for fallen in (frozenset[str](), frozenset({place.name})))
        same_past = np.array_equal(right[:-1], wrong[:-1])
        moments = self.moments if same_past else law_moments(world.law, wrong, world.residuals, world.book)
        return _Study(world, pitfalls, self.moments, {**self.misread, place.name: moments})

    def case(self, names: Iterable[str]) -> AllocationCase:
        """Solve the world as rightly read, and the answers of the named misreadings."""
        book, belief = self.world.book, self._effects(self.moments, frozenset())
        problem = book.problem(*belief)
        ignoring = optimum(book.problem(np.zeros(NAMES)), unique=False).weights
        textbook = max(problem.utility(book.current), problem.utility(ignoring))
        answers: dict[str, Floats] = {}
        for name in names:
            misread = book.problem(*self._effects(self.misread[name], frozenset({name})))
            answers[name] = optimum(misread, unique=False).weights
        return AllocationCase(self.world, self.pitfalls, belief, problem, optimum(problem), textbook, answers)

    def _effects(self, moments: SizeMoments, fallen: frozenset[str]) -> Effects:
        now = _features(self.world, self.pitfalls, fallen)[-1]
        alpha, doubt = effects_of(moments, now, places(self.world.law, self.world.book))
        return Effects(alpha.round(_DECIMALS), doubt.round(_DECIMALS))

    def important(self) -> list[int]:
        """Return the sources without a pitfall, in falling order of the variance of their expected effects."""
        law = self.world.law
        now, place_of = _features(self.world, self.pitfalls, frozenset())[-1], places(law, self.world.book)
        weight = np.zeros(SOURCES)
        for pair in candidates(law).T[: 1 + law.paired]:
            np.add.at(weight, pair, (self.moments.mean[place_of] ** 2 * now**2).sum(axis=0))
        taken = {column for place in self.pitfalls for column in place.columns}
        return [column for column in np.argsort(-weight, kind="stable").tolist() if column not in taken]


def _features(world: AllocationWorld, pitfalls: tuple[SourcePitfall, ...], fallen: frozenset[str]) -> Floats:
    """Return features under the right reading, except for the pitfalls named in `fallen`."""
    return features(world.law, *scored_columns(world.sources, pitfalls, fallen))


def draw_allocation_case(
    rng: np.random.Generator, names: Sequence[tuple[str, str]], structure: str | None, tier: str
) -> AllocationCase:
    """Draw a case of a structure, or of the tier's disclosed law, with sufficient gain and costly mistakes.

    Rejection uses visible data only.
    """
    for _ in range(WORLDS):
        study = _Study.of(_draw_world(rng, names, structure, TIERS[tier]))
        if study.case(()).gain < LEAST_GAIN:
            continue
        for _ in range(PLANTINGS):
            planted = _plant(rng, study, TIERS[tier].pitfalls)
            case = planted.case(planted.misread)
            costs = [1.0 - case.share(weights) for weights in case.misread.values()]
            if case.gain >= LEAST_GAIN and costs and min(costs) >= LEAST_COST:
                return case
    raise InternalError(f"allocate: no case of {structure or tier} has enough gain in {WORLDS} worlds; adjust its law")


def _draw_world(
    rng: np.random.Generator, names: Sequence[tuple[str, str]], structure: str | None, tier: AllocationTier
) -> AllocationWorld:
    """Draw a world over 120 names, pairs of ticker and group in the order of the groups."""
    law = draw_law(rng, structure) if structure else disclosed_law(tier.nothing, tier.strength, tier.change)
    book, sources = draw_book(rng, names), draw_sources(rng, tier.copies)
    effects = draw_effects(rng, law, book, features(law, sources.values / sources.scale, sources.start))
    factors = draw_factor_returns(rng, book)
    returns = factors @ book.loadings.T + draw_residuals(rng, law, book.specific) + effects[:-1]
    returns_bp = np.rint(returns / RETURN_UNIT).astype(np.int32)
    return AllocationWorld(book, sources, factors, returns_bp, law, structure, effects)


def _plant(rng: np.random.Generator, study: _Study, count: int) -> _Study:
    """Plant up to `count` pitfalls of different kinds, the first of them a trap."""
    for kind in rng.permutation(list(PLANTERS)).tolist():
        if len(study.pitfalls) == count:
            break
        control = bool(study.pitfalls) and rng.random() < _CONTROL
        least = LEAST_COST if study.pitfalls else FIRST_COST
        taken = {column for place in study.pitfalls for column in place.columns}
        found = PLANTERS[kind](rng, study.world, study.important(), control)
        if found is None or taken & set(found[0].columns):
            continue
        place, sources = found
        extended = study.with_pitfall(place, replace(study.world, sources=sources))
        case = extended.case((place.name,))
        if case.gain >= LEAST_GAIN and 1.0 - case.share(case.misread[place.name]) >= least:
            study = extended
    return study
