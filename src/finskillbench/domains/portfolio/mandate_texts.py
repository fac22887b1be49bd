"""Grammar of tool-use mandates: draws demands, which imply the call, and sentences that state them.

A demand is one limit, or two that belong together; an amendment or a limit for large accounts may revise it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import msgspec
from numpy.random import Generator

from finskillbench.domains.building import read_catalog
from finskillbench.engines.portfolio.problem import Objective

_FACTORS = {
    "mkt_rf": "the market",
    "smb": "size",
    "hml": "value",
    "rmw": "profitability",
    "cma": "investment",
    "mom": "momentum",
}
_SPELLED_FRACTIONS = {1000: "one tenth", 2000: "one fifth", 2500: "one quarter"}
_EXCLUSIVE = (
    {"min_weight", "min_names"},
    {"min_weight", "max_names"},
    {"min_weight", "names_between"},
    {"min_weight", "excluded_sectors"},
    {"min_names", "max_names", "names_between"},
    {"max_turnover", "two_way_turnover"},
    {"max_tracking_error", "monthly_tracking_error"},
    {"neutral", "neutral_default"},
)
"""Sets of demands that repeat or contradict each other; a mandate contains at most one of each set."""
_LONG_ONLY = {"min_weight", "min_names", "max_names", "names_between"}
"""Demands without their usual meaning if short positions are allowed."""
_CONVERTED = ("two_way_turnover", "monthly_tracking_error")
"""Demands stated over another horizon or basis than the API's."""
_REVISABLE = {
    "max_weight": "the position limit",
    "max_sector_weight": "the sector ceiling",
    "two_way_turnover": "the limit on two-way turnover",
    "monthly_tracking_error": "the limit on monthly tracking error",
    "max_turnover": "the turnover limit",
    "max_tracking_error": "the tracking error limit",
}
"""Single-number demands that a later statement may replace, with their names in amendments."""
AMENDMENTS = ("First amendment", "Second amendment")
"""Openings of amendments; an amendment replaces the limit that it names."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """Demands of a mandate by difficulty, in addition to its objective.

    required, further : groups of kinds with one kind of each, and number of additional kinds.
    amended, met : demands replaced by an amendment, or by a limit for account sizes that this account reaches.
    unmet, asides : limits for account sizes that this account does not reach, and statements that limit nothing.
    sectors : sectors with a cap relative to their benchmark weight.
    """

    required: tuple[tuple[str, ...], ...]
    further: int
    amended: int
    met: int
    unmet: int
    asides: int
    sectors: int


_SINGLE, _BOTH = (("max_weight", "max_sector_weight"),), tuple((kind,) for kind in _CONVERTED)
PLANS = {
    "easy": _Plan((*_SINGLE, _CONVERTED), further=1, amended=1, met=0, unmet=0, asides=1, sectors=0),
    "medium": _Plan(
        (*_SINGLE, *_BOTH, ("relative_sector",)), further=1, amended=1, met=1, unmet=0, asides=2, sectors=1
    ),
    "hard": _Plan(
        (("max_weight",), ("max_sector_weight",), *_BOTH, ("relative_sector",)),
        further=1,
        amended=2,
        met=2,
        unmet=2,
        asides=2,
        sectors=2,
    ),
}
_SHORT_SHARE = 0.15


class MandateSentences(TypedDict):
    """The catalog of sentences."""

    about: str
    openings: list[str]
    objectives: dict[str, list[str]]
    limits: dict[str, list[str]]
    barred: list[str]
    allowed: list[str]
    asides: list[str]


@dataclass(frozen=True, slots=True)
class MandateUniverse:
    """Universe of a mandate: sectors, number of names, and benchmark weights of the sectors."""

    sectors: tuple[str, ...]
    size: int
    benchmark: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ComposedMandate:
    """Text of a mandate, the call that it implies, and its template (objective and kinds of demands)."""

    text: str
    call: dict[str, Any]
    template: str


def built_in_sentences() -> MandateSentences:
    """Return the sentences that ship with the benchmark."""
    return msgspec.convert(read_catalog("finskillbench.domains.portfolio", "mandates.json"), MandateSentences)


def compose(
    objective: Objective, difficulty: str, universe: MandateUniverse, vocabulary: MandateSentences, rng: Generator
) -> ComposedMandate:
    """Draw the demands of a mandate and the sentences that state them."""
    plan, short = PLANS[difficulty], bool(rng.random() < _SHORT_SHARE)
    kinds = _kinds(vocabulary, plan, universe, rng, short=short)
    call: dict[str, Any] = {"objective": objective.value}
    limits: dict[str, Any] = {"long_only": not short}
    aim = _pick(vocabulary["objectives"][objective.value], rng)
    if objective is Objective.MAX_SHARPE:
        call["risk_aversion"] = int(rng.integers(3, 20)) / 2
        aim = aim.format(x=f"{call['risk_aversion']:g}")
    revisable = [kind for kind in kinds if kind in _REVISABLE]
    revised = _drawn(revisable, plan.amended + plan.met, rng)
    account = 10 * int(rng.integers(15, 80))
    amended, met = revised[: plan.amended], revised[plan.amended :]
    unmet = _drawn([kind for kind in revisable if kind not in amended], plan.unmet, rng)
    sentences, amendments, conditions = list[str](), list[str](), list[tuple[int, str]]()
    for kind in kinds:
        phrases = vocabulary["limits"][kind]
        if kind not in (*revised, *unmet):
            count = plan.sectors if kind == "relative_sector" else 1
            sentences += [draw_statement(kind, phrases, limits, universe, rng) for _ in range(count)]
            continue
        versions = _versions(kind, phrases, 1 + (kind in revised) + (kind in unmet), universe, rng)
        if kind in amended:
            (_, original_text), (revised_limit, revised_text) = versions
            sentences.append(original_text)
            amendments.append(f"{AMENDMENTS[len(amendments)]}, replacing {_REVISABLE[kind]} set above: {revised_text}")
            limits |= revised_limit
            continue
        versions.sort(key=lambda version: -max(version[0].values()))  # larger accounts get tighter limits
        sentences.append(versions[0][1])
        limits |= versions[kind in met][0]
        if kind in met:
            conditions.append((_size(account // 3, account, rng), versions[1][1]))
        if kind in unmet:
            conditions.append((_size(account + 10, 2 * account, rng), versions[-1][1]))
    sentences.append(_pick(vocabulary["allowed" if short else "barred"], rng))
    sentences += [_aside([one], universe, rng) for one in _drawn(vocabulary["asides"], plan.asides, rng)]
    if conditions:
        sentences.append(f"The account holds USD {account} million.")
    by_size = [f"Once the account has reached USD {size} million: {sentence}" for size, sentence in sorted(conditions)]
    body = [aim, *_drawn(sentences, len(sentences), rng), *by_size, *amendments]
    text = " ".join((_pick(vocabulary["openings"], rng), *body))
    template = ", ".join((objective.value, *sorted(kinds), *sorted(revised), *(["short"] if short else [])))
    return ComposedMandate(text, {**call, "constraints": limits}, template)


def _versions(
    kind: str, sentences: Sequence[str], count: int, universe: MandateUniverse, rng: Generator
) -> list[tuple[dict[str, float], str]]:
    found: list[tuple[dict[str, float], str]] = []
    while len(found) < count:
        limit: dict[str, float] = {}
        sentence = draw_statement(kind, sentences, limit, universe, rng)
        if all(limit != other for other, _ in found):
            found.append((limit, sentence))
    return found


def _size(low: int, high: int, rng: Generator) -> int:
    return 10 * int(rng.integers(-(-low // 10), high // 10 + 1))


def draw_statement(
    kind: str, sentences: Sequence[str], limits: dict[str, Any], universe: MandateUniverse, rng: Generator
) -> str:
    """Draw a limit, add it to `limits`, and return a sentence that states it; asides add no limit."""
    return _aside(sentences, universe, rng) if kind == "asides" else _DRAWS[kind](limits, universe, sentences, rng)


def _kinds(
    vocabulary: MandateSentences, plan: _Plan, universe: MandateUniverse, rng: Generator, *, short: bool
) -> list[str]:
    unfit = _LONG_ONLY if short else set[str]()
    if universe.size > 100:
        unfit = unfit | {"min_weight"}  # with thousands of names the floor is below one basis point
    known = [kind for kind in vocabulary["limits"] if kind not in {*unfit, "relative_sector"}]
    chosen = [_pick(choices, rng) for choices in plan.required]
    for kind in _drawn(known, len(known), rng):
        clash = any(kind in exclusive and exclusive & set(chosen) for exclusive in _EXCLUSIVE)
        if kind not in chosen and not clash and len(chosen) < len(plan.required) + plan.further:
            chosen.append(kind)
    return chosen


def _drawn(names: Sequence[str], count: int, rng: Generator) -> list[str]:
    places: list[int] = rng.permutation(len(names)).tolist()
    return [names[place] for place in places[:count]]


def _pick(sentences: Sequence[str], rng: Generator) -> str:
    return sentences[int(rng.integers(len(sentences)))]


def _aside(sentences: Sequence[str], universe: MandateUniverse, rng: Generator) -> str:
    share, error = _share(25 * int(rng.integers(16, 60)), rng), _rate(25 * int(rng.integers(4, 25)), rng)
    held, money = int(rng.integers(universe.size // 2, universe.size)), 10 * int(rng.integers(5, 90))
    return _pick(sentences, rng).format(x=share, te=error, n=money, k=held)


def _share(basis_points: int, rng: Generator) -> str:
    if basis_points in _SPELLED_FRACTIONS:
        return _SPELLED_FRACTIONS[basis_points]
    return f"{basis_points / 10_000:g} of NAV" if rng.random() < 0.2 else _rate(basis_points, rng)


def _rate(basis_points: int, rng: Generator) -> str:
    percent = f"{basis_points / 100:g}"
    return _pick([f"{percent}%", f"{percent}%", f"{percent} percent", f"{basis_points} basis points"], rng)


def _points(basis_points: int, rng: Generator) -> str:
    return _pick([f"{basis_points / 100:g} percentage points", f"{basis_points} basis points"], rng)


_Limits = dict[str, Any]
_Draw = Callable[[_Limits, MandateUniverse, Sequence[str], Generator], str]


def _of_points(
    name: str, low: int, high: int, step: int, *, written: Callable[[int, Generator], str] = _share, multiple: int = 1
) -> _Draw:
    """Return a draw from low, low + step, ... high basis points; the text states `multiple` times the limit."""

    def draw(limits: _Limits, universe: MandateUniverse, sentences: Sequence[str], rng: Generator) -> str:
        del universe
        points = low + step * int(rng.integers((high - low) // step + 1))
        limits[name] = points / 10_000
        return _pick(sentences, rng).format(x=written(multiple * points, rng))

    return draw


def _max_weight(limits: _Limits, universe: MandateUniverse, sentences: Sequence[str], rng: Generator) -> str:
    """Draw a cap under which the universe can hold one and a half portfolios."""
    least = max(400, 25 * -(-15_000 // (25 * universe.size)))
    return _of_points("max_weight", least, least + 800, 25)(limits, universe, sentences, rng)


def _min_weight(limits: _Limits, universe: MandateUniverse, sentences: Sequence[str], rng: Generator) -> str:
    """Draw a floor that takes a tenth to a half of the portfolio."""
    step = 5 if universe.size <= 50 else 1
    low, high = (max(step, share // universe.size // step * step) for share in (1000, 5000))
    return _of_points("min_weight", low, high, step)(limits, universe, sentences, rng)


def _max_sector_weight(limits: _Limits, universe: MandateUniverse, sentences: Sequence[str], rng: Generator) -> str:
    """Draw a cap under which the sectors can hold one and a half portfolios, above every relative cap."""
    largest = math.ceil(100 * max(universe.benchmark.values()))
    least = max(1400, 100 * -(-150 // len(universe.sectors)), 100 * (largest + 3))
    return _of_points("max_sector_weight", least, least + 2000, 100)(limits, universe, sentences, rng)


def _sector_limits(limits: _Limits, universe: MandateUniverse, sentences: Sequence[str], rng: Generator) -> str:
    taken = {*limits.get("sector_limits", {}), *limits.get("excluded_sectors", ())}
    free = [sector for sector in universe.sectors if sector not in taken]
    clauses: list[str] = []
    for sector in _drawn(free, int(rng.integers(1, 3)), rng):
        points = 50 * int(rng.integers(4, 25))
        limits.setdefault("sector_limits", {})[sector] = points / 10_000
        clauses.append(_pick(sentences, rng).format(sector=sector, x=_share(points, rng)))
    return " ".join(clauses)


def _excluded_sectors(limits: _Limits, universe: MandateUniverse, sentences: Sequence[str], rng: Generator) -> str:
    capped = limits.get("sector_limits", {})
    free = [sector for sector in universe.sectors if sector not in capped]
    names = sorted(_drawn(free, int(rng.integers(1, 3)), rng))
    limits["excluded_sectors"] = names
    return _pick(sentences, rng).format(sectors=" and ".join(names))


def _relative_sector(limits: _Limits, universe: MandateUniverse, sentences: Sequence[str], rng: Generator) -> str:
    """Draw a cap stated as an excess over the sector's benchmark weight; no plain cap equals it."""
    taken = {*limits.get("sector_limits", {}), *limits.get("excluded_sectors", ())}
    (sector,) = _drawn([sector for sector in universe.sectors if sector not in taken], 1, rng)
    weight, above = 10 * round(1000 * universe.benchmark[sector]), 25 + 50 * int(rng.integers(2, 6))
    limits.setdefault("sector_limits", {})[sector] = (weight + above) / 10_000
    return _pick(sentences, rng).format(sector=sector, b=f"{weight / 100:g}%", x=_points(above, rng))


def _monthly_error(limits: _Limits, universe: MandateUniverse, sentences: Sequence[str], rng: Generator) -> str:
    del universe
    points = 5 * int(rng.integers(6, 36))
    limits["max_tracking_error"] = round(points / 10_000 * math.sqrt(12), 6)
    return _pick(sentences, rng).format(x=_rate(points, rng))


def _names(*names: str) -> _Draw:
    def draw(limits: _Limits, universe: MandateUniverse, sentences: Sequence[str], rng: Generator) -> str:
        low = int(rng.integers(int(0.5 * universe.size), int(0.75 * universe.size) + 1))
        high = int(rng.integers(int(0.8 * universe.size), universe.size))
        counts = (high,) if names == ("max_names",) else (low, high)
        limits.update(zip(names, counts, strict=False))
        return _pick(sentences, rng).format(x=counts[0], y=counts[-1])

    return draw


def _neutral(limits: _Limits, universe: MandateUniverse, sentences: Sequence[str], rng: Generator) -> str:
    tolerance = limits["neutrality_tolerance"] = round(0.005 * int(rng.integers(4, 17)), 3)
    return _neutral_default(limits, universe, [_pick(sentences, rng).replace("{x}", f"{tolerance:g}")], rng)


def _neutral_default(limits: _Limits, universe: MandateUniverse, sentences: Sequence[str], rng: Generator) -> str:
    del universe
    chosen = _drawn(list(_FACTORS), int(rng.integers(1, 4)), rng)
    factors = [name for name in _FACTORS if name in chosen]
    limits["neutral_factors"] = factors
    spoken = [_FACTORS[name] for name in factors]
    listed = spoken[0] if len(spoken) == 1 else f"{', '.join(spoken[:-1])} and {spoken[-1]}"
    return _pick(sentences, rng).format(factors=listed)


_DRAWS: Mapping[str, _Draw] = {
    "max_weight": _max_weight,
    "min_weight": _min_weight,
    "max_sector_weight": _max_sector_weight,
    "sector_limits": _sector_limits,
    "excluded_sectors": _excluded_sectors,
    "min_names": _names("min_names"),
    "max_names": _names("max_names"),
    "names_between": _names("min_names", "max_names"),
    "max_turnover": _of_points("max_turnover", 400, 3500, 100),
    "two_way_turnover": _of_points("max_turnover", 400, 3500, 100, multiple=2),
    "max_tracking_error": _of_points("max_tracking_error", 100, 600, 25, written=_rate),
    "monthly_tracking_error": _monthly_error,
    "relative_sector": _relative_sector,
    "neutral": _neutral,
    "neutral_default": _neutral_default,
}
