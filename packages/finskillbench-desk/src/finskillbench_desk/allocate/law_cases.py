"""Cases whose law is not disclosed: a world of a drawn law, its posterior, and errors planted in data and records.

As in `traps`, sites are chosen by visible data, and the right reading undoes or ignores each change. So the posterior
of sizes stays that of the clean world. Only a source that was not delivered changes the coming quarter's effects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.errors import InternalError
from finskillbench_desk.allocate.law_posterior import Effects, SizeMoments, effects_of, law_moments
from finskillbench_desk.allocate.laws import Law, candidates, draw_effects, draw_law, draw_residuals, features, places
from finskillbench_desk.allocate.posterior import VisibleWorld, draw_factor_returns
from finskillbench_desk.allocate.sources import (
    FIRST_COST,
    LEAST_COST,
    RETURN_UNIT,
    SOURCES,
    TIERS,
    draw_book,
    draw_sources,
)
from finskillbench_desk.allocate.traps import (
    PLANTINGS,
    WORLDS,
    AllocationCase,
    SourcePitfall,
    planters,
    scored_columns,
    solved_case,
)
from finskillbench_desk.engines.trading.net_of_costs import optimum

LEAST_LAW_GAIN = 0.0012
"""Least attainable gain of a case."""
_PLANTERS = planters(decoys=4)
_SITE = 2
"""Number of the site that is tried (three important sources, or strong hindsight); each takes one posterior."""
_CONTROL = 0.7
"""Probability that a pitfall after the first is a control; many controls cost too little and are left out."""
_DECIMALS = 12
"""Decimals of the stored effects and covariances."""


@dataclass(frozen=True)
class AllocationLawWorld(VisibleWorld):
    """A drawn world of a law; `effects` (T + 1, n) on the names are hidden."""

    law: Law
    effects: Floats = field(repr=False)


@dataclass(frozen=True)
class _LawStudy:
    """A world with the posterior of sizes under the right reading, and under each single misreading, by its name."""

    world: AllocationLawWorld
    pitfalls: tuple[SourcePitfall, ...]
    moments: SizeMoments
    misread: Mapping[str, SizeMoments]

    @classmethod
    def of(cls, world: AllocationLawWorld) -> _LawStudy:
        return cls(world, (), _moments(world, _features(world, (), frozenset())), {})

    def with_pitfall(self, place: SourcePitfall, world: AllocationLawWorld) -> _LawStudy:
        pitfalls = (*self.pitfalls, place)
        right, wrong = (_features(world, pitfalls, fallen) for fallen in (frozenset[str](), frozenset({place.name})))
        same_past = np.array_equal(right[:-1], wrong[:-1])
        moments = self.moments if same_past else _moments(world, wrong)
        return _LawStudy(world, pitfalls, self.moments, {**self.misread, place.name: moments})

    def case(self, names: Iterable[str]) -> AllocationCase:
        """Solve the world as rightly read, and the answers of the named misreadings."""
        case = solved_case(self.world, self.pitfalls, self._effects(self.moments, frozenset()))
        answers: dict[str, Floats] = {}
        for name in names:
            problem = self.world.book.problem(*self._effects(self.misread[name], frozenset({name})))
            answers[name] = optimum(problem, unique=False).weights
        return replace(case, misread=answers)

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


def _features(world: AllocationLawWorld, pitfalls: tuple[SourcePitfall, ...], fallen: frozenset[str]) -> Floats:
    """Return features under the right reading, except for the pitfalls named in `fallen`."""
    reading = scored_columns(world.sources, pitfalls, np.arange(SOURCES), fallen)
    return features(world.law, reading.scores, reading.start)


def _moments(world: AllocationLawWorld, found: Floats) -> SizeMoments:
    return law_moments(world.law, found, world.residuals, world.book)


def draw_allocation_law_case(
    rng: np.random.Generator, names: Sequence[tuple[str, str]], structure: str, tier: str
) -> AllocationCase:
    """Draw a case of a structure with sufficient gain and costly mistakes; rejection uses visible data only."""
    for _ in range(WORLDS):
        study = _LawStudy.of(_draw_world(rng, names, draw_law(rng, structure), TIERS[tier].copies))
        if study.case(()).gain < LEAST_LAW_GAIN:
            continue
        for _ in range(PLANTINGS):
            planted = _plant(rng, study, TIERS[tier].pitfalls)
            case = planted.case(planted.misread)
            costs = [1.0 - case.share(weights) for weights in case.misread.values()]
            if case.gain >= LEAST_LAW_GAIN and costs and min(costs) >= LEAST_COST:
                return case
    raise InternalError(f"allocate: no case of {structure} has enough gain in {WORLDS} worlds; adjust STRUCTURES")


def _draw_world(
    rng: np.random.Generator, names: Sequence[tuple[str, str]], law: Law, copies: int
) -> AllocationLawWorld:
    """Draw a world of a law over 120 names, pairs of ticker and group in the order of the groups."""
    book, sources = draw_book(rng, names), draw_sources(rng, copies)
    effects = draw_effects(rng, law, book, features(law, sources.values / sources.scale, sources.start))
    factors = draw_factor_returns(rng, book)
    returns = factors @ book.loadings.T + draw_residuals(rng, law, book.specific) + effects[:-1]
    return AllocationLawWorld(book, sources, factors, np.rint(returns / RETURN_UNIT).astype(np.int32), law, effects)


def _plant(rng: np.random.Generator, study: _LawStudy, count: int) -> _LawStudy:
    """Plant up to `count` pitfalls of different kinds, the first of them a trap."""
    for kind in rng.permutation(list(_PLANTERS)).tolist():
        if len(study.pitfalls) == count:
            break
        control = bool(study.pitfalls) and rng.random() < _CONTROL
        least = LEAST_COST if study.pitfalls else FIRST_COST
        taken = {column for place in study.pitfalls for column in place.columns}
        found = _PLANTERS[kind](rng, study.world, study.important(), control)
        number = 0 if control and kind in ("backfill", "predecessor") else _SITE
        for place, sources in islice(found, number, number + 1):
            extended = study.with_pitfall(place, replace(study.world, sources=sources))
            case = extended.case((place.name,))
            costly = case.gain >= LEAST_LAW_GAIN and 1.0 - case.share(case.misread[place.name]) >= least
            if costly and not taken & set(place.columns):
                study = extended
    return study
