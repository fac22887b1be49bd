"""Rules for wrong numbers under right keys: digits, units, periods; and the types of all rules.

The weight of an agreement is counted in decimal digits. A number that equals another one rounded to three significant
digits does so by chance once in a thousand, and weighs 3.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache

from finskillbench.domains.checks.agreement import Leaf, leaf_by_leaf
from finskillbench.runs.postprocess.failures.attempt import FinishedAttempt, MisreadAnswer, WrongNumber
from finskillbench.runs.postprocess.failures.counts import FailureCause
from finskillbench.scoring.values import as_number


@dataclass(frozen=True, slots=True)
class DetectedCause:
    """A cause that applies, with one sentence of evidence.

    `explains` are paths of the wrong leaves that it explains; `explains_all`: it may explain everything that is wrong.
    """

    cause: str
    evidence: str
    explains: frozenset[str] = field(default_factory=frozenset[str])
    explains_all: bool = False


@dataclass(frozen=True, slots=True)
class FailureRule:
    """Search for some `causes`; `find` receives earlier findings, `needs_truth` rules need the edition's truth."""

    causes: tuple[str, ...]
    find: Callable[[FinishedAttempt, Sequence[DetectedCause]], Iterator[DetectedCause]]
    needs_truth: bool = False


def shown(value: object) -> str:
    """Format a value for a sentence."""
    text = f"{value:.12g}" if isinstance(value, float) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def several(names: Sequence[str], most: int = 3) -> str:
    """List the first names, and the number of the others."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


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
"""Ratio of a submitted number to the right one, by name."""
_NAMES, _SIZES = zip(*sorted(((w, f) for w, f in FACTORS.items() if f > 0), key=lambda pair: pair[1]), strict=True)
EXACT_TOLERANCE = 1e-9
UNROUNDED_TOLERANCE = 1e-6
"""Relative tolerance for a number that was not rounded."""
MAX_ROUNDING_ERROR = 0.02
"""Maximum rounding error: a number with fewer than two digits determines no factor."""
MIN_TOTAL_DIGITS = 2.5
"""Total number of digits that must agree."""
MIN_SINGLE_DIGITS = 5.0
"""Number of digits at which a single number suffices."""
MIN_SOLE_DIGITS = 2.0
"""Sufficient number of digits of a factor that fits everything that is wrong."""
MAX_GAP = 0.1
"""Maximum relative difference at which few digits suffice, provided that nothing else is wrong."""
MIN_ROUNDED_SHARE, MIN_FACTOR_SHARE = 0.8, 0.6
"""Share of the wrong numbers of a kind that must be rounded, or have the same factor."""


@dataclass(frozen=True, slots=True)
class Match:
    """A pattern that explains numbers: cause, evidence for the first of them, and the numbers."""

    cause: str
    evidence: str
    numbers: tuple[WrongNumber, ...]


@lru_cache(maxsize=2**16)
def last_digit_unit(value: float) -> float:
    """Return the unit of a number's last written digit: 0.01 for 0.14, 1e8 for 26.2e9, 0 for 0."""
    if value == 0:
        return 0.0
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    return max(10.0**exponent, 5e-324) if isinstance(exponent, int) else 0.0


@lru_cache(maxsize=2**16)
def _digits(value: float) -> int:
    """Return the number of significant digits as written."""
    return len(Decimal(repr(value)).normalize().as_tuple().digits)


def is_rounded(submitted: float, expected: float) -> bool:
    """Return True if a number is another one with fewer digits, rounded or truncated."""
    unit = last_digit_unit(submitted)
    if submitted * expected <= 0 or _digits(submitted) >= _digits(expected):
        return False
    gap = abs(submitted - expected)
    return gap <= 0.5 * unit * (1 + 1e-9) or (abs(submitted) < abs(expected) and gap < unit)


def find_rounding(numbers: Sequence[WrongNumber]) -> list[Match]:
    """Find numbers that equal the label with fewer digits.

    They are accepted if most of a kind, or most of all, are rounded and have enough digits in total; or if nothing else
    is wrong and none is far off. A zero counts if others are as coarse. Once one kind is accepted, every rounded number
    is explained.
    """
    rounded = [one for one in numbers if is_rounded(one.submitted, one.expected)]
    if not rounded:
        return []
    coarsest = max(last_digit_unit(one.submitted) for one in rounded)
    explained = rounded + [one for one in numbers if one.submitted == 0 and abs(one.expected) < coarsest]
    is_sole_error = len(explained) == len(numbers) and all(_gap(one) <= MAX_GAP for one in rounded)
    if not is_sole_error and not any(_is_convincing(explained, group) for group in (*_groups(numbers), numbers)):
        return []
    one = max(rounded, key=_gap)
    digits = _in_digits(_digits(one.submitted))
    evidence = f"{one.path} is {shown(one.submitted)}, which is {shown(one.expected)} with {digits}"
    return [Match(FailureCause.PRECISION_LOST, evidence + _count_suffix(explained), tuple(explained))]


def find_factors(numbers: Sequence[WrongNumber]) -> list[Match]:
    """Find the factor by which each kind of numbers is off.

    It is accepted if it fits most of a kind with enough digits in total, or a single number with many. It then explains
    every number that it fits.
    """
    believed = dict.fromkeys(_factor(kind, numbers) for kind in _groups(numbers))
    found: list[Match] = []
    for name in believed:
        if name is None:
            continue
        factor = FACTORS[name]
        fitting = [one for one in numbers if _fits(one, factor)]
        one = max(fitting, key=lambda each: _factor_weight(each, factor))
        evidence = f"{one.path} is {shown(one.submitted)} and should be {shown(one.expected)}: {name}"
        found.append(Match(FailureCause.WRONG_UNIT, evidence + _count_suffix(fitting), tuple(fitting)))
    return found


def _factor(group: Sequence[WrongNumber], all_wrong: Sequence[WrongNumber]) -> str | None:
    """Return the name of the factor of one kind of numbers; None if no factor is accepted."""
    nonzero = [one for one in group if one.expected != 0 and one.submitted != 0]
    weights: dict[str, list[float]] = {}
    for one in nonzero:
        for name in _factors_near(one.submitted / one.expected):
            if (weight := _factor_weight(one, FACTORS[name])) > 0:
                weights.setdefault(name, []).append(weight)
    best: tuple[float, str] | None = None
    for name, agreeing in weights.items():
        factor, total = FACTORS[name], math.fsum(agreeing)
        is_common = len(agreeing) >= MIN_FACTOR_SHARE * len(nonzero)
        fits_all = is_common and all(_fits(one, factor) for one in all_wrong)
        is_convincing = total >= MIN_TOTAL_DIGITS or (
            fits_all and (total >= MIN_SOLE_DIGITS or _is_exact(nonzero, factor))
        )
        is_accepted = (is_common and is_convincing) or max(agreeing) >= MIN_SINGLE_DIGITS
        if is_accepted and (best is None or total > best[0]):
            best = total, name
    return None if best is None else best[1]


def _factors_near(ratio: float) -> Iterator[str]:
    """Yield the factors that a ratio of numbers with few digits may stem from."""
    if ratio < 0:
        yield from (
            name for name, factor in FACTORS.items() if factor < 0 and abs(ratio / factor - 1) < 2 * MAX_ROUNDING_ERROR
        )
        return
    place = bisect_left(_SIZES, ratio * (1 - 2 * MAX_ROUNDING_ERROR))
    while place < len(_SIZES) and _SIZES[place] <= ratio * (1 + 2 * MAX_ROUNDING_ERROR):
        yield _NAMES[place]
        place += 1


def retyped(name: str, field: object, typed: object) -> Match | None:
    """Explain a typed field value by fewer digits or another unit; None if neither applies."""
    leaves = [leaf for leaf in leaf_by_leaf({name: field}, {name: typed}) if not leaf.agrees or leaf.left != leaf.right]
    numbers = list(_numbers(name, leaves))
    if not numbers or len(numbers) < len(leaves):
        return None
    cut = [match for match in find_rounding(numbers) if len(match.numbers) == len(numbers)]
    return next(iter(cut or find_factors(numbers)), None)


def matching_leaf(submitted: object, other: object) -> float:
    """Return the weight, in digits, of a leaf that equals another one; 0 if it does not."""
    if isinstance(submitted, bool) or isinstance(other, bool) or not isinstance(submitted, int | float):
        return 1.0 if submitted == other and submitted is not None else 0.0
    if not isinstance(other, int | float):
        return 0.0
    if isinstance(submitted, int) and isinstance(other, int) and abs(other) < 1000:
        return 1.0 if submitted == other else 0.0
    size = abs(float(other))
    gap = abs(float(submitted) - float(other))
    if size == 0 or gap > max(
        0.5 * last_digit_unit(float(submitted)) * (1 + EXACT_TOLERANCE), UNROUNDED_TOLERANCE * size
    ):
        return 0.0
    return min(_digits(float(submitted)), -math.log10(max(gap / size, 1e-12)))


def _factor_weight(one: WrongNumber, factor: float) -> float:
    """Return the digits to which a number equals the label times a factor; 0 if it does not."""
    wanted = one.expected * factor
    if wanted == 0:
        return 0.0
    gap = abs(one.submitted - wanted) / abs(wanted)
    if gap <= EXACT_TOLERANCE:
        return float(min(_digits(one.expected), 12))
    coarse = 0.5 * last_digit_unit(one.submitted) / abs(one.submitted)
    return -math.log10(2 * coarse) if gap <= coarse <= MAX_ROUNDING_ERROR else 0.0


def _fits(one: WrongNumber, factor: float) -> bool:
    """Return True if a number equals the label times a factor, within its digits."""
    wanted = one.expected * factor
    if one.expected == 0 or one.submitted == 0:
        return one.expected == one.submitted
    return abs(one.submitted - wanted) <= max(
        0.5 * last_digit_unit(one.submitted) * (1 + EXACT_TOLERANCE), EXACT_TOLERANCE * abs(wanted)
    )


def _is_exact(numbers: Sequence[WrongNumber], factor: float) -> bool:
    """Return True if numbers equal the label times a factor exactly, even with few digits."""
    return all(abs(one.submitted - one.expected * factor) <= EXACT_TOLERANCE * abs(one.submitted) for one in numbers)


def _is_convincing(explained: Sequence[WrongNumber], group: Sequence[WrongNumber]) -> bool:
    """Return True if enough numbers of a kind are rounded, with enough digits in total, to exclude chance."""
    paths = {one.path for one in explained}
    among = [one for one in group if one.path in paths]
    weight = math.fsum(
        math.log10(max(abs(one.expected) / last_digit_unit(one.submitted), 1.0)) for one in among if one.submitted
    )
    return weight >= MIN_TOTAL_DIGITS and len(among) >= MIN_ROUNDED_SHARE * len(group)


def _groups(numbers: Sequence[WrongNumber]) -> list[list[WrongNumber]]:
    found: dict[str, list[WrongNumber]] = {}
    for one in numbers:
        found.setdefault(one.group, []).append(one)
    return list(found.values())


def _gap(one: WrongNumber) -> float:
    return abs(one.submitted - one.expected) / abs(one.expected)


def _in_digits(count: int) -> str:
    return "1 digit" if count == 1 else f"{count} digits"


def _count_suffix(numbers: Sequence[WrongNumber]) -> str:
    return f" (and {len(numbers) - 1} more like it)" if len(numbers) > 1 else ""


def _numbers(name: str, leaves: Iterable[Leaf]) -> Iterator[WrongNumber]:
    for leaf in leaves:
        expected, submitted = as_number(leaf.left), as_number(leaf.right)
        if expected is not None and submitted is not None:
            yield WrongNumber(leaf.path, name, expected, submitted, is_discrete=False)


MIN_MISREADING_DIGITS = 5.0
"""Digits that must agree with a misreading, since there are hundreds of other periods on file."""


def precision_lost(attempt: FinishedAttempt, before: Sequence[DetectedCause]) -> Iterator[DetectedCause]:
    """Detect numbers of one kind with fewer digits than the label, if these cost points."""
    yield from _costly(attempt, before, find_rounding)


def _wrong_unit(attempt: FinishedAttempt, before: Sequence[DetectedCause]) -> Iterator[DetectedCause]:
    """Detect numbers of one kind that are the label's times a factor of units, if these cost points."""
    yield from _costly(attempt, before, find_factors)


def _misread(attempt: FinishedAttempt, before: Sequence[DetectedCause]) -> Iterator[DetectedCause]:
    """Detect the misreading, such as another period, that agrees best with the wrong values."""
    explained = _explained(before)
    wrong = {leaf.path: leaf for leaf in attempt.leaves if not leaf.absent and leaf.path not in explained}
    if attempt.task is None or not wrong:
        return
    best: tuple[float, MisreadAnswer, list[Leaf]] | None = None
    for misread in attempt.task.misreadings:
        weight, agreeing = _agreement(misread, wrong)
        if agreeing and (best is None or weight > best[0]):
            best = weight, misread, agreeing
    if best is None:
        return
    _, misread, agreeing = best
    leaf = agreeing[0]
    evidence = (
        f"{leaf.path} is {shown(leaf.right)} as for {misread.misreading.description}, and should be {shown(leaf.left)}"
    )
    yield DetectedCause(misread.misreading.cause, evidence, frozenset(leaf.path for leaf in agreeing))


def _agreement(misread: MisreadAnswer, wrong: dict[str, Leaf]) -> tuple[float, list[Leaf]]:
    """Return weight and leaves of the agreement with a misreading; 0 if chance may explain it."""
    weights = {
        path: matching_leaf(leaf.right, misread.values[path]) for path, leaf in wrong.items() if path in misread.values
    }
    agreeing = [wrong[path] for path, weight in weights.items() if weight > 0]
    exactly = any(weight > 1.0 for weight in weights.values())
    total = math.fsum(weights.values())
    if (exactly and total >= MIN_MISREADING_DIGITS) or (not exactly and 1 < len(agreeing) == misread.in_label):
        return total, agreeing
    return 0.0, []


def _costly(
    attempt: FinishedAttempt, before: Sequence[DetectedCause], pattern: Callable[[Sequence[WrongNumber]], list[Match]]
) -> Iterator[DetectedCause]:
    """Yield the numbers that a pattern explains, if they cost points by themselves."""
    explained = _explained(before)
    numbers = [one for one in attempt.wrong_numbers if not one.is_discrete and one.path not in explained]
    found = pattern(numbers)
    values = {one.path: one.submitted for match in found for one in match.numbers}
    if values and attempt.costs(values):
        most = max(found, key=lambda match: len(match.numbers))
        yield DetectedCause(most.cause, most.evidence, frozenset(values))


def _explained(before: Sequence[DetectedCause]) -> frozenset[str]:
    return frozenset[str]().union(*(found.explains for found in before))


RULES = (
    FailureRule((FailureCause.PRECISION_LOST,), precision_lost, needs_truth=True),
    FailureRule((FailureCause.WRONG_UNIT,), _wrong_unit, needs_truth=True),
    FailureRule((FailureCause.WRONG_PERIOD,), _misread, needs_truth=True),
)
