"""Whether B is worse than A beyond chance, in the headline or in any subtask.

Each group and part is a hypothesis "B is not worse than A by more than the margin". Its p-value is two-sided, so that a
single one is rejected exactly where its 95 % interval lies below -margin: from t with the clustered standard error
where an interval can be said, else from the sign test over the clusters that moved. Holm's procedure holds the chance
that any is rejected by mistake to 5 %, however they depend on each other. A part in which no score moved cannot be
rejected and is no hypothesis (Tarone 1990).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import polars as pl
from scipy.special import stdtr

from finskillbench.analysis.inference import Signs, cluster_signs, holm
from finskillbench.analysis.intervals import estimate
from finskillbench.analysis.results import EPISODE
from finskillbench.domains.base import HEADLINE
from finskillbench.reports.compare.gates import Outcome
from finskillbench.reports.compare.paired import LEAST_CHANGE, Paired

LEVEL = 0.05


class Hypothesis(NamedTuple):
    """One part of one group: the mean difference, its interval where one can be said, and the p-value against it."""

    part: str
    group: tuple[str, ...]
    mean: float
    low: float | None
    high: float | None
    p: float


class Rejected(NamedTuple):
    """A hypothesis that does not hold, with its p-value adjusted for all that were asked."""

    hypothesis: Hypothesis
    adjusted: float
    asked: int


def regressions(paired: Paired, margin: float = 0.0) -> list[Rejected]:
    """What fell by more than a margin beyond chance, the surest first.

    Parameters
    ----------
    margin : how much of a mean score may be lost, 0 or more.
    """
    return _rejected(list(_hypotheses(paired.frame, paired.shown, margin)))


def check_regression(paired: Paired, margin: float = 0.0) -> Outcome:
    """The gate: nothing regressed, not even had the episodes of B that ended in an error scored 0.

    Episodes of A that B was never asked for are told.
    """
    found = regressions(paired, margin)
    if found:
        first = found[0]
        more = f"; {len(found) - 1} more fell too" if len(found) > 1 else ""
        return Outcome(False, f"{_told(first, margin)}{more}")
    failed = _failed_in_b(paired)
    if failed.height:
        frame = pl.concat([paired.frame.select(failed.columns), failed])
        if worst := _rejected(list(_hypotheses(frame, paired.shown, margin))):
            return Outcome(
                False,
                f"{failed.height} episodes with a score in A ended in an error in B: with 0 for these, "
                f"{_told(worst[0], margin)}",
            )
    absent = _absent_in_b(paired)
    unseen = f"; {absent} of the {paired.sides.a.results.episodes.height} episodes of A are not in B" if absent else ""
    return Outcome(True, f"nothing fell by more than {margin:g} beyond chance{unseen}")


def _told(found: Rejected, margin: float) -> str:
    each = found.hypothesis
    where = f" ({', '.join(each.group)})" if each.group else ""
    interval = "" if each.low is None else f" [{each.low:+.3f}, {each.high:+.3f}]"
    limit = f", more than {margin:g}" if margin else ""
    p = "p < 0.0001" if found.adjusted < 1e-4 else f"p = {found.adjusted:.4f}"
    return f"{each.part}{where} fell by {-each.mean:.3f}{interval}{limit} ({p} by Holm over {found.asked})"


def _hypotheses(frame: pl.DataFrame, shown: list[str], margin: float) -> Iterator[Hypothesis]:
    moved = pl.col("difference").abs().max().over([*shown, "sub_task"]) > LEAST_CHANGE
    for part, of in ((HEADLINE, frame.filter("headline")), ("sub_task", frame)):
        if part == HEADLINE:
            by = shown
            chosen = of.filter((pl.col("difference").abs().max().over(by or pl.lit(0))) > LEAST_CHANGE)
        else:
            by = [*shown, "sub_task"]
            chosen = of.filter(moved)
        if chosen.is_empty():
            continue
        chosen = chosen.with_columns(_=pl.lit(0))
        keys = by or ["_"]
        signs = cluster_signs(chosen, keys, margin)
        for line in estimate(chosen, by=keys).iter_rows(named=True):
            key = tuple(line[name] for name in keys)
            p = _p(line["mean"], line["error"], line["freedom"], signs[key], margin)
            group = tuple(line[name] for name in shown)
            yield Hypothesis(line.get("sub_task", part), group, line["mean"], line["low"], line["high"], p)


def _p(mean: float, error: float | None, freedom: float | None, signs: Signs, margin: float) -> float:
    if mean >= -margin:
        return 1.0
    if error is not None and freedom is not None:
        return float(2 * stdtr(freedom, (mean + margin) / error))
    return signs.p(mean + margin)


def _rejected(asked: list[Hypothesis]) -> list[Rejected]:
    adjusted = zip(asked, holm([each.p for each in asked]), strict=True)
    found = [Rejected(each, p, len(asked)) for each, p in adjusted if p is not None and p <= LEVEL]
    return sorted(found, key=lambda each: (each.adjusted, each.hypothesis.mean))


def _absent_in_b(paired: Paired) -> int:
    """How many episodes A has a score for and B no row of."""
    keys = [*paired.sides.keys, "episode"]
    return paired.sides.a.results.episodes.join(paired.sides.b.results.rows, on=keys, how="anti").height


def _failed_in_b(paired: Paired) -> pl.DataFrame:
    """Episodes that A has a score for and B only errors, as pairs in which B has 0."""
    keys = [*paired.sides.keys, "episode"]
    a, b = paired.sides.a.results, paired.sides.b.results
    tried = b.rows.select(keys).unique().join(b.episodes.select(keys), on=keys, how="anti")
    lost = a.episodes.join(tried, on=keys, how="semi", maintain_order="left")
    return lost.with_columns(difference=-pl.col("score")).select(
        *[name for name in EPISODE if name in keys], "sub_task", "cluster", "headline", "difference"
    )
