"""Traps and controls of a case: how they are planted, how a misreading sees them, and what it costs.

Sites are chosen by the visible posterior, and values change only where the right reading undoes or ignores the change.
So planting reveals nothing about the effects, and the posterior stays exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.engines.optimisation.certified import Certified
from finskillbench.errors import InternalError
from finskillbench_desk.allocate.law_posterior import Effects
from finskillbench_desk.allocate.posterior import (
    AllocationWorld,
    Belief,
    Hypotheses,
    ScoredColumns,
    VisibleWorld,
    draw_world,
    forecast,
    weigh,
)
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
    AllocationBook,
    Sources,
    columns_of_vendor,
    vendor_of,
)
from finskillbench_desk.engines.trading.net_of_costs import TradingProblem, optimum

KINDS = ("backfill", "predecessor", "copies", "unit", "reversed", "stale")
_CONSIDERED, _MOST = 24, 4
"""Number of important sources considered for a pitfall, and the most that one may cover."""
_LOVED = 6
"""Number of industries in which void values show hindsight."""
_HINDSIGHT = (0.2, 0.3, 0.4)
"""Correlations of void values with the residuals that followed, tried in this order."""


@dataclass(frozen=True)
class SourcePitfall:
    """A trap, or a control whose data are correct: `columns` from `quarter` on (before it for some kinds)."""

    kind: str
    where: str
    control: bool
    columns: tuple[int, ...]
    quarter: int

    @property
    def name(self) -> str:
        return f"{'control_' if self.control else ''}{self.kind}@{self.where}"


def scored_columns(
    sources: Sources, pitfalls: tuple[SourcePitfall, ...], columns: Integers, fallen: frozenset[str] = frozenset()
) -> ScoredColumns:
    """Return the right reading of some columns, except for the pitfalls named in `fallen`, which are misread."""
    scores = sources.values[:, :, columns] / sources.scale[columns]
    start, separate = sources.start[columns], np.zeros(len(columns), dtype=bool)
    for place in pitfalls:
        inside = np.flatnonzero(np.isin(columns, place.columns))
        repaired = (place.name in fallen) == place.control  # a detected trap, or a "repaired" control
        match place.kind:
            case "backfill" | "predecessor":
                start[inside] = place.quarter if repaired else 0
            case "unit" if repaired:
                scores[place.quarter :, :, inside] /= UNIT_FACTOR
            case "reversed" if repaired:
                scores[: place.quarter, :, inside] *= -1
            case "stale" if repaired:
                scores[-1, :, inside] = np.nan
            case "copies":
                separate[inside] = not repaired
            case _:
                pass
    return ScoredColumns(columns, scores, start, separate)


Planted = tuple[SourcePitfall, Sources]
Plant = Callable[[np.random.Generator, VisibleWorld, list[int], bool], Iterator[Planted]]
"""Planter: yields pitfalls at sources in order of importance."""


def _candidates(
    rng: np.random.Generator, kind: str, control: bool, world: AllocationWorld, belief: Belief, taken: frozenset[int]
) -> Iterator[Planted]:
    """Yield pitfalls of a kind with the sources as then delivered, the most damaging first."""
    weight = _importance(world, belief)
    order = [column for column in np.argsort(-weight).tolist() if column not in taken]
    for place, sources in _PLANTS[kind](rng, world, order[:_CONSIDERED], control):
        if not taken & set(place.columns):
            yield place, sources


def _importance(world: AllocationWorld, belief: Belief) -> Floats:
    groups = belief.effect.shape[0]
    now = (world.sources.values[-1] / world.sources.scale).reshape(groups, GROUP_SIZE, -1)
    return (belief.effect**2 * np.square(now).sum(axis=1)).sum(axis=0)


def _repairable(kind: str, decoys: int) -> Plant:
    """Return the planter for a wrong unit, a reversed sign or a missing delivery, at one to four important sources.

    The same happens to as many of the other sources as there are `decoys`, so that it does not mark important ones.
    """

    def plant(rng: np.random.Generator, world: VisibleWorld, order: list[int], control: bool) -> Iterator[Planted]:
        sources = world.sources
        plain = [column for column in order if sources.since[column] == 0]
        plain, rest = plain[:_MOST], plain[_MOST:]
        further: list[int] = rng.choice(rest, decoys, replace=False).tolist() if decoys else []
        quarter = {
            "unit": int(rng.integers(QUARTERS - 10, QUARTERS - 2)),
            "reversed": int(rng.integers(QUARTERS - 6, QUARTERS - 1)),
            "stale": QUARTERS,
        }[kind]
        for count in range(1, len(plain) + 1):
            columns = sorted([*plain[:count], *further]) if decoys else plain[:count]
            place = SourcePitfall(
                kind, "+".join(SOURCE_NAMES[column] for column in columns), control, tuple(columns), quarter
            )
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
    """Return the planter for values before a launch or a change of analyst: void with hindsight, or valid."""
    analysts = kind == "predecessor"

    def placed(column: int, control: bool, quarter: int) -> SourcePitfall:
        columns = (column,) if analysts else tuple(columns_of_vendor(column // PER_VENDOR).tolist())
        return SourcePitfall(kind, SOURCE_NAMES[column] if analysts else vendor_of(column), control, columns, quarter)

    def in_order(rng: np.random.Generator, world: VisibleWorld, order: list[int]) -> Iterator[Planted]:
        for column in [column for column in order if bool(IS_ANALYST[column]) == analysts][:_MOST]:
            place = placed(column, True, int(rng.integers(*LATE)))
            columns = list(place.columns)
            if not world.sources.since[columns].any():
                since = world.sources.since.copy()
                since[columns] = place.quarter
                yield place, replace(world.sources, since=since)

    def with_hindsight(rng: np.random.Generator, world: VisibleWorld) -> Iterator[Planted]:
        void = [
            column for column in np.flatnonzero(world.sources.start).tolist() if bool(IS_ANALYST[column]) == analysts
        ]
        column = int(void[int(rng.integers(len(void)))])
        place = placed(column, False, int(world.sources.start[column]))
        loved = list(place.columns[:3])
        for strength in _HINDSIGHT:
            values = _with_hindsight(rng, world, place.quarter, loved, rng.permutation(GROUPS)[:_LOVED], strength)
            yield place, replace(world.sources, values=values)

    def plant(rng: np.random.Generator, world: VisibleWorld, order: list[int], control: bool) -> Iterator[Planted]:
        return in_order(rng, world, order) if control else with_hindsight(rng, world)

    return plant


def _with_hindsight(
    rng: np.random.Generator, world: VisibleWorld, quarter: int, columns: list[int], groups: Integers, strength: float
) -> Integers:
    """Return values whose first quarters correlate, in some groups, with the residuals that followed."""
    values = world.sources.values.copy()
    outcome = world.residuals[:quarter] / world.book.specific
    for place, group in enumerate(groups):
        column = columns[place % len(columns)]
        names = slice(int(group) * GROUP_SIZE, (int(group) + 1) * GROUP_SIZE)
        noise = rng.standard_normal((quarter, GROUP_SIZE))
        scores = strength * outcome[:, names] + np.sqrt(1 - strength**2) * noise
        values[:quarter, names, column] = np.rint(scores * world.sources.scale[column])
    return values


def _copied(rng: np.random.Generator, world: VisibleWorld, order: list[int], control: bool) -> Iterator[Planted]:
    """Yield important sources together with their copies, unaltered."""
    del rng
    clusters = [world.sources.cluster(column).tolist() for column in order[: 3 * _MOST]]
    found: list[int] = []
    for column, cluster in zip(order, clusters, strict=False):
        if len(cluster) >= 3 and not control and column not in found:
            found += cluster
            where = "+".join(SOURCE_NAMES[each] for each in found if each in order[: 3 * _MOST])
            yield SourcePitfall("copies", where, False, tuple(sorted(set(found))), 0), world.sources


def planters(decoys: int = 0) -> Mapping[str, Plant]:
    """Return the planters of errors in data and records by kind."""
    return {
        **{kind: _void(kind) for kind in ("backfill", "predecessor")},
        **{kind: _repairable(kind, decoys) for kind in ("unit", "reversed", "stale")},
    }


_PLANTS: Mapping[str, Plant] = {"copies": _copied, **planters()}

WORLDS, PLANTINGS = 60, 3
"""Numbers of worlds tried for a case, and of plantings tried in each."""
_CONTROL = 1 / 2
"""Probability that a pitfall after the first is a control; a third of all pitfalls are."""


@dataclass(frozen=True)
class AllocationCase:
    """A world as delivered, its posterior, and the certified optimum.

    `textbook` is the better utility of the current book and the optimum without sources; `misread` maps pitfalls to
    weights.
    """

    world: VisibleWorld
    pitfalls: tuple[SourcePitfall, ...]
    belief: Belief | Effects
    problem: TradingProblem
    best: Certified
    ignoring: Floats
    textbook: float
    misread: dict[str, Floats] = field(repr=False)

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
class Study:
    """A world with the weights of all hypotheses under the right reading."""

    world: AllocationWorld
    pitfalls: tuple[SourcePitfall, ...]
    hypotheses: Hypotheses

    @classmethod
    def of(cls, world: AllocationWorld, pitfalls: tuple[SourcePitfall, ...] = ()) -> Study:
        return cls(world, pitfalls, _weighed(world, pitfalls, np.arange(SOURCES)))

    def belief(self) -> Belief:
        return forecast(self.hypotheses, self.world.family)

    def with_pitfall(self, place: SourcePitfall, world: AllocationWorld) -> Study:
        columns, places = np.array(place.columns), (*self.pitfalls, place)
        return Study(world, places, self.hypotheses.with_columns(columns, _weighed(world, places, columns)))

    def misread_belief(self, names: frozenset[str]) -> Belief:
        """Return the posterior after misreading the named pitfalls only."""
        chosen = {column for place in self.pitfalls if place.name in names for column in place.columns}
        columns = np.array(sorted(chosen), dtype=np.int64)
        found = _weighed(self.world, self.pitfalls, columns, names)
        return forecast(self.hypotheses.with_columns(columns, found), self.world.family)


def _weighed(
    world: AllocationWorld, pitfalls: tuple[SourcePitfall, ...], columns: Integers, fallen: frozenset[str] = frozenset()
) -> Hypotheses:
    reading = scored_columns(world.sources, pitfalls, columns, fallen)
    return weigh(reading, world.residuals, world.book.specific, world.family)


def misread_weights(study: Study, names: frozenset[str]) -> Floats:
    """Return the optimal weights after misreading the named pitfalls only."""
    belief = study.misread_belief(names)
    return optimum(study.world.book.problem(belief.alpha, belief.doubt), unique=False).weights


def solved_case(world: VisibleWorld, pitfalls: tuple[SourcePitfall, ...], belief: Belief | Effects) -> AllocationCase:
    """Solve a world under a belief; misreadings are left out."""
    book = world.book
    problem = book.problem(belief.alpha, belief.doubt)
    best, ignoring = optimum(problem), optimum(book.problem(np.zeros(NAMES)), unique=False).weights
    textbook = max(problem.utility(book.current), problem.utility(ignoring))
    return AllocationCase(world, pitfalls, belief, problem, best, ignoring, textbook, {})


def draw_allocation_case(rng: np.random.Generator, names: Sequence[tuple[str, str]], tier: str) -> AllocationCase:
    """Draw a case of a tier with sufficient gain and costly mistakes; rejection uses visible data only."""
    for _ in range(WORLDS):
        clean = Study.of(draw_world(rng, names, TIERS[tier]))
        alpha = clean.belief().alpha
        if _worth(clean.world.book, alpha, alpha) < LEAST_GAIN:
            continue
        for _ in range(PLANTINGS):
            planted = _judged(_plant(rng, clean, TIERS[tier].pitfalls))
            if planted is not None:
                return planted
    raise InternalError(f"allocate: no case of tier {tier} has enough gain in {WORLDS} worlds; adjust TIERS")


def _judged(study: Study) -> AllocationCase | None:
    """Solve a study; None if its gain or the cost of a mistake is too small."""
    if not study.pitfalls:
        return None
    case = solved_case(study.world, study.pitfalls, study.belief())
    if case.gain < LEAST_GAIN:
        return None
    answers: dict[str, Floats] = {}
    for place in study.pitfalls:
        weights = misread_weights(study, frozenset({place.name}))
        if 1.0 - case.share(weights) < LEAST_COST:
            return None
        answers[place.name] = weights
    return replace(case, misread=answers)


def _plant(rng: np.random.Generator, study: Study, count: int) -> Study:
    """Plant up to `count` pitfalls of different kinds, the first of them a trap."""
    controls = rng.random(count) < _CONTROL
    controls[0] = False
    kinds = [str(kind) for kind in rng.permutation(KINDS)]
    for control in controls.tolist():
        least = PLANTED_COST if study.pitfalls else FIRST_COST
        for kind in kinds:
            extended = _first_that_matters(rng, study, kind, control, least)
            if extended is not None:
                kinds.remove(kind)
                study = extended
                break
        if not study.pitfalls:
            break
    return study


def _first_that_matters(rng: np.random.Generator, study: Study, kind: str, control: bool, least: float) -> Study | None:
    """Plant the first pitfall of a kind that costs enough, estimated without limits; None if there is none."""
    taken = frozenset(column for place in study.pitfalls for column in place.columns)
    book = study.world.book
    for place, sources in _candidates(rng, kind, control, study.world, study.belief(), taken):
        extended = study.with_pitfall(place, replace(study.world, sources=sources))
        right, wrong = extended.belief().alpha, extended.misread_belief(frozenset({place.name})).alpha
        gain = _worth(book, right, right)
        if gain >= LEAST_GAIN and 1.0 - _worth(book, wrong, right) / gain >= least:
            return extended
    return None


def _worth(book: AllocationBook, believed: Floats, true: Floats) -> float:
    """Estimate the gain net of costs when trades within groups are sized for believed effects and others are true."""
    believed, true = (
        part - np.repeat(part.reshape(GROUPS, -1).mean(axis=1), len(part) // GROUPS) for part in (believed, true)
    )
    size = np.maximum(np.abs(believed) - book.linear, 0.0) / (2 * book.quadratic)
    size = np.minimum(size, 0.012)  # most names weigh less than 1 % and cannot be sold twice
    return float((np.sign(believed) * size * true - book.linear * size - book.quadratic * size**2).sum())
