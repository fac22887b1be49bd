"""What is wrong with the numbers of an answer that have the right keys: digits, units, periods."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from finskillbench.domains.checks.agreement import Leaf
from finskillbench.runs.afterwards.failures.attempt import Attempt, Told, WrongNumber
from finskillbench.runs.afterwards.failures.causes import FailureCause
from finskillbench.runs.afterwards.failures.rules.base import Found, Rule, shown
from finskillbench.runs.afterwards.failures.rules.matching import Match, matching_leaf, rounding, unit

PERIOD_DIGITS = 5.0
"""Digits that must agree with another period's figures: there are hundreds of them on file."""


def precision(attempt: Attempt, before: Sequence[Found]) -> Iterator[Found]:
    """Numbers of one kind are the label's with fewer digits, and the label itself would lose points with them."""
    yield from _costly(attempt, before, rounding)


def wrong_unit(attempt: Attempt, before: Sequence[Found]) -> Iterator[Found]:
    """Numbers of one kind are the label's times a factor of units, and the label itself would lose points with them."""
    yield from _costly(attempt, before, unit)


def misread(attempt: Attempt, before: Sequence[Found]) -> Iterator[Found]:
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
    words = f"{leaf.path} is {shown(leaf.second)} as for {told.misreading.words}, and should be {shown(leaf.first)}"
    yield Found(told.misreading.cause, words, frozenset(leaf.path for leaf in agreeing))


def _agreement(told: Told, wrong: dict[str, Leaf]) -> tuple[float, list[Leaf]]:
    """The digits in which wrong values agree with a misreading, and these values; none where chance may do it."""
    weights = {
        path: matching_leaf(leaf.second, told.values[path]) for path, leaf in wrong.items() if path in told.values
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
    Rule((FailureCause.WRONG_UNIT,), wrong_unit, needs_truth=True),
    Rule((FailureCause.WRONG_PERIOD,), misread, needs_truth=True),
)
