"""One case: a world with traps and controls in it, the exact posterior, the optimum, and what each mistake costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.engines.optimisation.certified import Certified
from finskillbench.errors import InternalError
from finskillbench_desk.allocate.posterior import Belief, Hypotheses, World, draw_world, forecast, weigh
from finskillbench_desk.allocate.sources import (
    FIRST_COST,
    GROUPS,
    LEAST_COST,
    LEAST_GAIN,
    NAMES,
    PLANTED_COST,
    SOURCES,
    TIERS,
    Book,
)
from finskillbench_desk.allocate.traps import KINDS, Place, candidates, read
from finskillbench_desk.engines.trading.net_of_costs import TradingProblem, optimum

_WORLDS, _PLANTINGS = 60, 3
"""How many worlds are drawn for a case, and how often places are planted in one, before the dials count as wrong."""
_CONTROL = 1 / 2
"""Chance that a place after the first, which is a trap, is in order: a third of all places."""


@dataclass(frozen=True)
class Case:
    """A world as it is delivered, its posterior, and the certified optimum.

    `textbook` is the utility of the better of the current book and the optimum that ignores all sources; `misread` maps
    each place to the weights of whoever errs there and nowhere else.
    """

    world: World
    places: tuple[Place, ...]
    belief: Belief
    problem: TradingProblem
    best: Certified
    ignoring: Floats
    textbook: float
    misread: dict[str, Floats] = field(repr=False)

    @property
    def attainable(self) -> float:
        """The utility of the optimum."""
        return -self.best.value

    @property
    def gain(self) -> float:
        """What the sources are worth over the textbook answer."""
        return self.attainable - self.textbook

    def share(self, weights: Floats) -> float:
        """The share of the attainable gain that feasible weights earn, negative where they earn less than nothing."""
        return (self.problem.utility(weights) - self.textbook) / self.gain


@dataclass(frozen=True)
class Study:
    """A world under examination: the right reading of it, as the weight of every hypothesis."""

    world: World
    places: tuple[Place, ...]
    hypotheses: Hypotheses

    @classmethod
    def of(cls, world: World, places: tuple[Place, ...] = ()) -> Study:
        """Every hypothesis weighed."""
        return cls(world, places, _weighed(world, places, np.arange(SOURCES)))

    def belief(self) -> Belief:
        """The posterior of the right reading."""
        return forecast(self.hypotheses, self.world.family)

    def grown(self, place: Place, world: World) -> Study:
        """The study of the world in which a place is planted."""
        columns, places = np.array(place.columns), (*self.places, place)
        return Study(world, places, self.hypotheses.with_columns(columns, _weighed(world, places, columns)))

    def fallen(self, names: frozenset[str]) -> Belief:
        """What whoever errs at these places, and nowhere else, believes."""
        chosen = {column for place in self.places if place.name in names for column in place.columns}
        columns = np.array(sorted(chosen), dtype=np.int64)
        found = _weighed(self.world, self.places, columns, names)
        return forecast(self.hypotheses.with_columns(columns, found), self.world.family)


def _weighed(
    world: World, places: tuple[Place, ...], columns: Integers, fallen: frozenset[str] = frozenset()
) -> Hypotheses:
    reading = read(world.sources, places, columns, fallen)
    return weigh(reading, world.residuals, world.book.specific, world.family)


def misread(study: Study, names: frozenset[str]) -> Floats:
    """The weights of whoever errs at these places and reads all others rightly."""
    belief = study.fallen(names)
    return optimum(study.world.book.problem(belief.alpha, belief.doubt), unique=False).weights


def solve(study: Study) -> Case:
    """Posterior and certified optimum of the right reading."""
    belief, book = study.belief(), study.world.book
    problem = book.problem(belief.alpha, belief.doubt)
    best, ignoring = optimum(problem), optimum(book.problem(np.zeros(NAMES)), unique=False).weights
    textbook = max(problem.utility(book.current), problem.utility(ignoring))
    return Case(study.world, study.places, belief, problem, best, ignoring, textbook, {})


def draw_case(rng: np.random.Generator, names: Sequence[tuple[str, str]], tier: str) -> Case:
    """A case of a tier in which the sources are worth something and every place matters.

    What is drawn again is drawn again for what an agent can see of it, so that the posterior stays that of the family.
    """
    for _ in range(_WORLDS):
        clean = Study.of(draw_world(rng, names, TIERS[tier]))
        alpha = clean.belief().alpha
        if _worth(clean.world.book, alpha, alpha) < LEAST_GAIN:
            continue
        for _ in range(_PLANTINGS):
            planted = _judged(_plant(rng, clean, TIERS[tier].places))
            if planted is not None:
                return planted
    raise InternalError(f"allocate: no case of tier {tier} in {_WORLDS} worlds; turn its dials")


def _judged(study: Study) -> Case | None:
    """The case, where the gain is large enough and every mistake costs enough of it."""
    if not study.places:
        return None
    case = solve(study)
    if case.gain < LEAST_GAIN:
        return None
    answers: dict[str, Floats] = {}
    for place in study.places:
        weights = misread(study, frozenset({place.name}))
        if 1.0 - case.share(weights) < LEAST_COST:
            return None
        answers[place.name] = weights
    return replace(case, misread=answers)


def _plant(rng: np.random.Generator, study: Study, count: int) -> Study:
    """The study with up to `count` places planted, each of a kind of its own, the first of them a trap."""
    controls = rng.random(count) < _CONTROL
    controls[0] = False
    kinds = [str(kind) for kind in rng.permutation(KINDS)]
    for control in controls.tolist():
        least = PLANTED_COST if study.places else FIRST_COST
        for kind in kinds:
            grown = _first_that_matters(rng, study, kind, control, least)
            if grown is not None:
                kinds.remove(kind)
                study = grown
                break
        if not study.places:
            break
    return study


def _first_that_matters(rng: np.random.Generator, study: Study, kind: str, control: bool, least: float) -> Study | None:
    """The study with the first place of a kind at which a mistake is dear, going by trades without limits."""
    taken = frozenset(column for place in study.places for column in place.columns)
    book = study.world.book
    for place, sources in candidates(rng, kind, control, study.world, study.belief(), taken):
        grown = study.grown(place, replace(study.world, sources=sources))
        right, wrong = grown.belief().alpha, grown.fallen(frozenset({place.name})).alpha
        gain = _worth(book, right, right)
        if gain >= LEAST_GAIN and 1.0 - _worth(book, wrong, right) / gain >= least:
            return grown
    return None


def _worth(book: Book, believed: Floats, true: Floats) -> float:
    """What trades within each group, sized for the effects believed in, earn net of costs where others are true."""
    believed, true = (
        part - np.repeat(part.reshape(GROUPS, -1).mean(axis=1), len(part) // GROUPS) for part in (believed, true)
    )
    size = np.maximum(np.abs(believed) - book.linear, 0.0) / (2 * book.quadratic)
    size = np.minimum(size, 0.012)  # most names weigh less than a per cent and cannot be sold twice
    return float((np.sign(believed) * size * true - book.linear * size - book.quadratic * size**2).sum())
