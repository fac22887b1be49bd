"""Whether numbers are others rounded, or others in another unit; and how much says that it is no chance.

The weight of what agrees is counted in decimal digits: a number that equals another one rounded to three significant
digits agrees by chance once in a thousand, and weighs 3.

What a rule is and what it finds.

What is wrong with the numbers of an answer that have the right keys: digits, units, periods.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache

from finskillbench.domains.checks.agreement import Leaf, leaf_by_leaf
from finskillbench.runs.postprocess.failures.attempt import Attempt, Told, WrongNumber
from finskillbench.runs.postprocess.failures.counts import FailureCause
from finskillbench.scoring.values import as_number


@dataclass(frozen=True, slots=True)
class Found:
    """A cause that applies.

    cause : its name.
    evidence : one sentence with the values.
    explains : paths of the wrong leaves of the answer that it explains.
    explains_all : whether whatever is wrong in the answer may come of it.
    """

    cause: str
    evidence: str
    explains: frozenset[str] = field(default_factory=frozenset[str])
    explains_all: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """One way to look for causes; `needs_truth` says that it cannot be tried without the edition's truth.

    `find` is given what was found before; `causes` are those that it may find.
    """

    causes: tuple[str, ...]
    find: Callable[[Attempt, Sequence[Found]], Iterator[Found]]
    needs_truth: bool = False


def shown(value: object) -> str:
    """A value in a sentence."""
    words = f"{value:.12g}" if isinstance(value, float) else repr(value)
    return words if len(words) <= 60 else words[:57] + "..."


def several(places: Sequence[str], most: int = 3) -> str:
    """The first of some names, and how many more there are."""
    more = len(places) - most
    return ", ".join(places[:most]) + (f" and {more} more" if more > 0 else "")


FACTORS: Mapping[str, float] = {
    "a percentage for a decimal": 1e2,
    "basis points for a decimal": 1e4,
    "a decimal for a percentage": 1e-2,
    "a decimal for basis points": 1e-4,
    "thousands": 1e-3,
    "millions": 1e-6,
    "billions": 1e-9,
    "a thousand times too much": 1e3,
    "a million times too much": 1e6,
    "a billion times too much": 1e9,
    "annual for daily": 252.0,
    "daily for annual": 1 / 252.0,
    "annual for daily volatility": math.sqrt(252.0),
    "daily for annual volatility": 1 / math.sqrt(252.0),
    "annual for monthly": 12.0,
    "monthly for annual": 1 / 12.0,
    "annual for monthly volatility": math.sqrt(12.0),
    "monthly for annual volatility": 1 / math.sqrt(12.0),
    "the sign turned": -1.0,
}
"""What a given number is, and what it then is of the right one."""
_NAMES, _SIZES = zip(*sorted(((w, f) for w, f in FACTORS.items() if f > 0), key=lambda pair: pair[1]), strict=True)
EXACT = 1e-9
SAME = 1e-6
"""A number that was not rounded is another one up to this share of it."""
COARSEST = 0.02
"""A number given to fewer than two digits says nothing of a factor."""
ENOUGH = 2.5
"""Digits that must agree in all before a pattern is believed."""
ALONE = 5.0
"""Digits at which one number needs no others of its kind that agree."""
ENOUGH_ALONE = 2.0
"""Digits of a factor that are enough where it fits whatever is wrong."""
FAR = 0.1
"""Few digits are believed only of numbers that are not further off, and where nothing else is wrong."""
MOST_SHARE, LEAST_SHARE = 0.8, 0.6
"""Share of the wrong numbers of a kind that must be rounded, or be off by the same factor."""


@dataclass(frozen=True, slots=True)
class Match:
    """A pattern that explains numbers: its cause, the numbers, and one sentence with the first of them."""

    cause: str
    evidence: str
    numbers: tuple[WrongNumber, ...]


@lru_cache(maxsize=2**16)
def granule(value: float) -> float:
    """The unit of a number's last digit as it is written: 0.01 of 0.14, 1e8 of 26.2e9; 0 of 0."""
    if value == 0:
        return 0.0
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    return max(10.0**exponent, 5e-324) if isinstance(exponent, int) else 0.0


@lru_cache(maxsize=2**16)
def _digits(value: float) -> int:
    """How many significant digits a number is written with."""
    return len(Decimal(repr(value)).normalize().as_tuple().digits)


def rounded(given: float, expected: float) -> bool:
    """Whether a number is another one with fewer digits, rounded or cut off."""
    unit = granule(given)
    if given * expected <= 0 or _digits(given) >= _digits(expected):
        return False
    gap = abs(given - expected)
    return gap <= 0.5 * unit * (1 + 1e-9) or (abs(given) < abs(expected) and gap < unit)


def rounding(numbers: Sequence[WrongNumber]) -> list[Match]:
    """The numbers that are the label's with fewer digits.

    They are believed where most of a kind are so, or most of all, and together they have digits enough; or where
    nothing else is wrong and none is far off. A zero counts where the others are as coarse. Once believed of one kind,
    every number that is so is explained.
    """
    kept = [one for one in numbers if rounded(one.given, one.expected)]
    if not kept:
        return []
    coarsest = max(granule(one.given) for one in kept)
    explained = kept + [one for one in numbers if one.given == 0 and abs(one.expected) < coarsest]
    alone = len(explained) == len(numbers) and all(_gap(one) <= FAR for one in kept)
    if not alone and not any(_believed(explained, kind) for kind in (*_kinds(numbers), numbers)):
        return []
    one = max(kept, key=_gap)
    words = f"{one.path} is {shown(one.given)}, which is {shown(one.expected)} with {_in_digits(_digits(one.given))}"
    return [Match(FailureCause.PRECISION_LOST, words + _beside(explained), tuple(explained))]


def unit(numbers: Sequence[WrongNumber]) -> list[Match]:
    """For each kind of numbers the factor by which they are off.

    It is believed where most of a kind are off by it and together agree to digits enough, or one alone to many. Once
    believed, it explains every number that it fits.
    """
    believed = dict.fromkeys(_factor(kind, numbers) for kind in _kinds(numbers))
    found: list[Match] = []
    for words in believed:
        if words is None:
            continue
        factor = FACTORS[words]
        fitting = [one for one in numbers if _fits(one, factor)]
        one = max(fitting, key=lambda each: _factor_weight(each, factor))
        evidence = f"{one.path} is {shown(one.given)} and should be {shown(one.expected)}: {words}"
        found.append(Match(FailureCause.WRONG_UNIT, evidence + _beside(fitting), tuple(fitting)))
    return found


def _factor(kind: Sequence[WrongNumber], every: Sequence[WrongNumber]) -> str | None:
    """The factor by which numbers of one kind are off, by its name; None where none is believed."""
    told = [one for one in kind if one.expected != 0 and one.given != 0]
    weights: dict[str, list[float]] = {}
    for one in told:
        for words in _near(one.given / one.expected):
            if (weight := _factor_weight(one, FACTORS[words])) > 0:
                weights.setdefault(words, []).append(weight)
    best: tuple[float, str] | None = None
    for words, agreeing in weights.items():
        factor, whole = FACTORS[words], math.fsum(agreeing)
        widely = len(agreeing) >= LEAST_SHARE * len(told)
        nothing_else = widely and all(_fits(one, factor) for one in every)
        enough = whole >= ENOUGH or (nothing_else and (whole >= ENOUGH_ALONE or _is_exact(told, factor)))
        believed = (widely and enough) or max(agreeing) >= ALONE
        if believed and (best is None or whole > best[0]):
            best = whole, words
    return None if best is None else best[1]


def _near(ratio: float) -> Iterator[str]:
    """The factors that a ratio may be, written with few digits."""
    if ratio < 0:
        yield from (words for words, factor in FACTORS.items() if factor < 0 and abs(ratio / factor - 1) < 2 * COARSEST)
        return
    place = bisect_left(_SIZES, ratio * (1 - 2 * COARSEST))
    while place < len(_SIZES) and _SIZES[place] <= ratio * (1 + 2 * COARSEST):
        yield _NAMES[place]
        place += 1


def retyped(name: str, field: object, typed: object) -> Match | None:
    """How what was typed for a field differs from it, if it is the same with fewer digits or in another unit."""
    leaves = [leaf for leaf in leaf_by_leaf({name: field}, {name: typed}) if not leaf.agrees or leaf.left != leaf.right]
    numbers = list(_numbers(name, leaves))
    if not numbers or len(numbers) < len(leaves):
        return None
    cut = [match for match in rounding(numbers) if len(match.numbers) == len(numbers)]
    return next(iter(cut or unit(numbers)), None)


def matching_leaf(given: object, other: object) -> float:
    """The weight, in digits, of a leaf that equals another one; 0 where it does not."""
    if isinstance(given, bool) or isinstance(other, bool) or not isinstance(given, int | float):
        return 1.0 if given == other and given is not None else 0.0
    if not isinstance(other, int | float):
        return 0.0
    if isinstance(given, int) and isinstance(other, int) and abs(other) < 1000:
        return 1.0 if given == other else 0.0
    size = abs(float(other))
    gap = abs(float(given) - float(other))
    if size == 0 or gap > max(0.5 * granule(float(given)) * (1 + EXACT), SAME * size):
        return 0.0
    return min(_digits(float(given)), -math.log10(max(gap / size, 1e-12)))


def _factor_weight(one: WrongNumber, factor: float) -> float:
    """The digits to which a number is the label's times a factor; 0 where it is not."""
    wanted = one.expected * factor
    if wanted == 0:
        return 0.0
    gap = abs(one.given - wanted) / abs(wanted)
    if gap <= EXACT:
        return float(min(_digits(one.expected), 12))
    coarse = 0.5 * granule(one.given) / abs(one.given)
    return -math.log10(2 * coarse) if gap <= coarse <= COARSEST else 0.0


def _fits(one: WrongNumber, factor: float) -> bool:
    """Whether a number is the label's times a factor, as far as its digits say."""
    wanted = one.expected * factor
    if one.expected == 0 or one.given == 0:
        return one.expected == one.given
    return abs(one.given - wanted) <= max(0.5 * granule(one.given) * (1 + EXACT), EXACT * abs(wanted))


def _is_exact(numbers: Sequence[WrongNumber], factor: float) -> bool:
    """Whether numbers are the label's times a factor to the last of what may be few digits."""
    return all(abs(one.given - one.expected * factor) <= EXACT * abs(one.given) for one in numbers)


def _believed(explained: Sequence[WrongNumber], kind: Sequence[WrongNumber]) -> bool:
    """Whether so many of some numbers are rounded, and with so many digits in all, that it is no chance."""
    places = {one.path for one in explained}
    among = [one for one in kind if one.path in places]
    weight = math.fsum(math.log10(max(abs(one.expected) / granule(one.given), 1.0)) for one in among if one.given)
    return weight >= ENOUGH and len(among) >= MOST_SHARE * len(kind)


def _kinds(numbers: Sequence[WrongNumber]) -> list[list[WrongNumber]]:
    found: dict[str, list[WrongNumber]] = {}
    for one in numbers:
        found.setdefault(one.group, []).append(one)
    return list(found.values())


def _gap(one: WrongNumber) -> float:
    return abs(one.given - one.expected) / abs(one.expected)


def _in_digits(count: int) -> str:
    return "1 digit" if count == 1 else f"{count} digits"


def _beside(numbers: Sequence[WrongNumber]) -> str:
    return f" (and {len(numbers) - 1} more like it)" if len(numbers) > 1 else ""


def _numbers(name: str, leaves: Iterable[Leaf]) -> Iterator[WrongNumber]:
    for leaf in leaves:
        first, second = as_number(leaf.left), as_number(leaf.right)
        if first is not None and second is not None:
            yield WrongNumber(leaf.path, name, first, second, whole=False)


PERIOD_DIGITS = 5.0
"""Digits that must agree with another period's figures: there are hundreds of them on file."""


def precision(attempt: Attempt, before: Sequence[Found]) -> Iterator[Found]:
    """Numbers of one kind are the label's with fewer digits, and the label itself would lose points with them."""
    yield from _costly(attempt, before, rounding)


def _wrong_unit(attempt: Attempt, before: Sequence[Found]) -> Iterator[Found]:
    """Numbers of one kind are the label's times a factor of units, and the label itself would lose points with them."""
    yield from _costly(attempt, before, unit)


def _misread(attempt: Attempt, before: Sequence[Found]) -> Iterator[Found]:
    """Wrong values are those of one of the subtask's misreadings, such as another period: the one most agrees with."""
    explained = _explained(before)
    wrong = {leaf.path: leaf for leaf in attempt.leaves if not leaf.absent and leaf.path not in explained}
    if attempt.known is None or not wrong:
        return
    best: tuple[float, Told, list[Leaf]] | None = None
    for told in attempt.known.misreadings:
        weight, agreeing = _agreement(told, wrong)
        if agreeing and (best is None or weight > best[0]):
            best = weight, told, agreeing
    if best is None:
        return
    _, told, agreeing = best
    leaf = agreeing[0]
    words = f"{leaf.path} is {shown(leaf.right)} as for {told.misreading.description}, and should be {shown(leaf.left)}"
    yield Found(told.misreading.cause, words, frozenset(leaf.path for leaf in agreeing))


def _agreement(told: Told, wrong: dict[str, Leaf]) -> tuple[float, list[Leaf]]:
    """The digits in which wrong values agree with a misreading, and these values; none where chance may do it."""
    weights = {
        path: matching_leaf(leaf.right, told.values[path]) for path, leaf in wrong.items() if path in told.values
    }
    agreeing = [wrong[path] for path, weight in weights.items() if weight > 0]
    exactly = any(weight > 1.0 for weight in weights.values())
    whole = math.fsum(weights.values())
    if (exactly and whole >= PERIOD_DIGITS) or (not exactly and 1 < len(agreeing) == told.in_label):
        return whole, agreeing
    return 0.0, []


def _costly(
    attempt: Attempt, before: Sequence[Found], pattern: Callable[[Sequence[WrongNumber]], list[Match]]
) -> Iterator[Found]:
    """The numbers that a pattern explains, if they cost points by themselves."""
    explained = _explained(before)
    numbers = [one for one in attempt.wrong_numbers if not one.whole and one.path not in explained]
    found = pattern(numbers)
    values = {one.path: one.given for match in found for one in match.numbers}
    if values and attempt.costs(values):
        most = max(found, key=lambda match: len(match.numbers))
        yield Found(most.cause, most.evidence, frozenset(values))


def _explained(before: Sequence[Found]) -> frozenset[str]:
    return frozenset[str]().union(*(found.explains for found in before))


RULES = (
    Rule((FailureCause.PRECISION_LOST,), precision, needs_truth=True),
    Rule((FailureCause.WRONG_UNIT,), _wrong_unit, needs_truth=True),
    Rule((FailureCause.WRONG_PERIOD,), _misread, needs_truth=True),
)
