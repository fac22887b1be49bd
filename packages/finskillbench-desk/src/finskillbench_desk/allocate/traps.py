"""The catalog of traps and controls: what is planted, where, and how whoever falls for it reads the data.

Every plant is a function of what an agent can see once it reads rightly: the places are chosen by the posterior of the
clean data, and values are altered only where the right reading undoes it (a unit, a sign) or does not count them (what
is void, a column that was not delivered). So nothing planted says anything of the effects, and the posterior of the
right reading stays exact.

One case: a world with traps and controls in it, the exact posterior, the optimum, and what each mistake costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.engines.optimisation.certified import Certified
from finskillbench.errors import InternalError
from finskillbench_desk.allocate.posterior import Belief, Hypotheses, Reading, World, draw_world, forecast, weigh
from finskillbench_desk.allocate.sources import (
    FIRST_COST,
    GROUP_SIZE,
    GROUPS,
    IS_ANALYST,
    LATE,
    LEAST_COST,
    LEAST_GAIN,
    NAMES,
    PER_VENDOR,
    PLANTED_COST,
    QUARTERS,
    SOURCE_NAMES,
    SOURCES,
    TIERS,
    UNIT_FACTOR,
    Book,
    Sources,
    columns_of_vendor,
    vendor_of,
)
from finskillbench_desk.engines.trading.net_of_costs import TradingProblem, optimum

KINDS = ("backfill", "predecessor", "copies", "unit", "reversed", "stale")
_CONSIDERED, _MOST = 24, 4
"""How many of the sources that matter most are considered for a place, and how many it may take in."""
_LOVED = 6
"""In how many industries void values show hindsight."""
_HINDSIGHT = (0.2, 0.3, 0.4)
"""Correlations of void values with the residuals that followed, tried in this order."""


@dataclass(frozen=True)
class Place:
    """A place where a trap is, or could be: `columns` from `quarter` on (before it, where the kind says so).

    A control is a place where all is in order although it looks like a trap; who takes it for one errs as well.
    """

    kind: str
    where: str
    control: bool
    columns: tuple[int, ...]
    quarter: int

    @property
    def name(self) -> str:
        """Kind and place; controls are told apart."""
        return f"{'control_' if self.control else ''}{self.kind}@{self.where}"


def read(
    sources: Sources, places: tuple[Place, ...], columns: Integers, fallen: frozenset[str] = frozenset()
) -> Reading:
    """The right reading of some columns as delivered, but for the places in `fallen`, which are misread."""
    scores = sources.values[:, :, columns] / sources.scale[columns]
    start, separate = sources.start[columns], np.zeros(len(columns), dtype=bool)
    for place in places:
        inside = np.flatnonzero(np.isin(columns, place.columns))
        repaired = (place.name in fallen) == place.control  # a trap that is seen, or a control that is "repaired"
        match place.kind:
            case "backfill" | "predecessor":
                start[inside] = place.quarter if repaired else 0
            case "unit" if repaired:
                scores[place.quarter :, :, inside] /= UNIT_FACTOR
            case "reversed" if repaired:
                scores[: place.quarter, :, inside] *= -1
            case "stale" if repaired:
                scores[-1, :, inside] = 0.0
            case "copies":
                separate[inside] = not repaired
            case _:
                pass
    return Reading(columns, scores, start, separate)


Planted = tuple[Place, Sources]
Plant = Callable[[np.random.Generator, World, list[int], bool], Iterator[Planted]]


def _candidates(
    rng: np.random.Generator, kind: str, control: bool, world: World, belief: Belief, taken: frozenset[int]
) -> Iterator[Planted]:
    """Places of a kind with the sources as they are delivered then, the most damaging first."""
    weight = _importance(world, belief)
    order = [column for column in np.argsort(-weight).tolist() if column not in taken]
    for place, sources in _PLANTS[kind](rng, world, order[:_CONSIDERED], control):
        if not taken & set(place.columns):
            yield place, sources


def _importance(world: World, belief: Belief) -> Floats:
    """(C,) how much of the forecast each source carries."""
    groups = belief.effect.shape[0]
    now = (world.sources.values[-1] / world.sources.scale).reshape(groups, GROUP_SIZE, -1)
    return (belief.effect**2 * np.square(now).sum(axis=1)).sum(axis=0)


def _repairable(kind: str) -> Plant:
    """A unit, a sign, or a last delivery that is missing: at the source that matters most, then at the next as well."""

    def plant(rng: np.random.Generator, world: World, order: list[int], control: bool) -> Iterator[Planted]:
        sources = world.sources
        plain = [column for column in order if sources.since[column] == 0][:_MOST]
        quarter = {
            "unit": int(rng.integers(QUARTERS - 10, QUARTERS - 2)),
            "reversed": int(rng.integers(QUARTERS - 6, QUARTERS - 1)),
            "stale": QUARTERS,
        }[kind]
        for count in range(1, len(plain) + 1):
            columns = plain[:count]
            place = Place(kind, "+".join(SOURCE_NAMES[column] for column in columns), control, tuple(columns), quarter)
            if control:
                yield place, sources
                continue
            values = sources.values.copy()
            if kind == "unit":
                values[quarter:, :, columns] *= UNIT_FACTOR
            elif kind == "reversed":
                values[:quarter, :, columns] *= -1
            else:
                values[-1, :, columns] = values[-2, :, columns]
            yield place, replace(sources, values=values)

    return plant


def _void(kind: str) -> Plant:
    """Values from before a launch or a change of analyst: void with hindsight in them, or in order."""
    analysts = kind == "predecessor"

    def placed(column: int, control: bool, quarter: int) -> Place:
        columns = (column,) if analysts else tuple(columns_of_vendor(column // PER_VENDOR).tolist())
        return Place(kind, SOURCE_NAMES[column] if analysts else vendor_of(column), control, columns, quarter)

    def in_order(rng: np.random.Generator, world: World, order: list[int]) -> Iterator[Planted]:
        for column in [column for column in order if bool(IS_ANALYST[column]) == analysts][:_MOST]:
            place = placed(column, True, int(rng.integers(*LATE)))
            columns = list(place.columns)
            if not world.sources.since[columns].any():
                since = world.sources.since.copy()
                since[columns] = place.quarter
                yield place, replace(world.sources, since=since)

    def with_hindsight(rng: np.random.Generator, world: World) -> Iterator[Planted]:
        void = [
            column for column in np.flatnonzero(world.sources.start).tolist() if bool(IS_ANALYST[column]) == analysts
        ]
        column = int(void[int(rng.integers(len(void)))])
        place = placed(column, False, int(world.sources.start[column]))
        loved = list(place.columns[:3])
        for strength in _HINDSIGHT:
            values = _with_hindsight(rng, world, place.quarter, loved, rng.permutation(GROUPS)[:_LOVED], strength)
            yield place, replace(world.sources, values=values)

    def plant(rng: np.random.Generator, world: World, order: list[int], control: bool) -> Iterator[Planted]:
        return in_order(rng, world, order) if control else with_hindsight(rng, world)

    return plant


def _with_hindsight(
    rng: np.random.Generator, world: World, quarter: int, columns: list[int], groups: Integers, strength: float
) -> Integers:
    """Values with the columns' first quarters correlated, in some groups, with the residuals that followed."""
    values = world.sources.values.copy()
    outcome = world.residuals[:quarter] / world.book.specific
    for place, group in enumerate(groups):
        column = columns[place % len(columns)]
        names = slice(int(group) * GROUP_SIZE, (int(group) + 1) * GROUP_SIZE)
        noise = rng.standard_normal((quarter, GROUP_SIZE))
        scores = strength * outcome[:, names] + np.sqrt(1 - strength**2) * noise
        values[:quarter, names, column] = np.rint(scores * world.sources.scale[column])
    return values


def _copied(rng: np.random.Generator, world: World, order: list[int], control: bool) -> Iterator[Planted]:
    """Sources that matter together with their copies, as they were drawn."""
    del rng
    clusters = [world.sources.cluster(column).tolist() for column in order[: 3 * _MOST]]
    found: list[int] = []
    for column, cluster in zip(order, clusters, strict=False):
        if len(cluster) >= 3 and not control and column not in found:
            found += cluster
            where = "+".join(SOURCE_NAMES[each] for each in found if each in order[: 3 * _MOST])
            yield Place("copies", where, False, tuple(sorted(set(found))), 0), world.sources


_PLANTS: Mapping[str, Plant] = {
    "backfill": _void("backfill"),
    "predecessor": _void("predecessor"),
    "copies": _copied,
    **{kind: _repairable(kind) for kind in ("unit", "reversed", "stale")},
}


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


def _solve(study: Study) -> Case:
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
    case = _solve(study)
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
    for place, sources in _candidates(rng, kind, control, study.world, study.belief(), taken):
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
