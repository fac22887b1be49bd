"""What is computed over episodes: score within a budget, documents and scripts, coverage and its bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from tests.oracles.report.cells import Cell, Row, entry_of, mean, score_of


def _episodes(rows: Sequence[Row], value: Callable[[Row], float | None]) -> list[float]:
    """The value of each episode: the mean over its repeats, so that one counts once however often it was run."""
    repeats: dict[tuple[object, str, str], list[float]] = {}
    for row in rows:
        told = value(row)
        if told is not None:
            repeats.setdefault((entry_of(row), row["condition"], row["task_id"]), []).append(told)
    return [sum(values) / len(values) for values in repeats.values()]


def within(rows: Sequence[Row], column: str, budget: float) -> float | None:
    """S(B): mean over judged episodes of the score where it cost at most B, and of 0 where it cost more."""

    def gained(row: Row) -> float | None:
        score = score_of(row)
        return None if score is None else score if row[column] <= budget else 0.0

    return mean(_episodes(rows, gained))


def area_within(rows: Sequence[Row], column: str, most: float) -> float | None:
    """Integral of S(B) from 0 to `most` over `most`, step by step between the amounts that were spent."""
    spent = sorted({float(row[column]) for row in rows if score_of(row) is not None})
    edges = [0.0, *[amount for amount in spent if 0 < amount < most], float(most)]
    area = 0.0
    for left, right in pairwise(edges):
        height = within(rows, column, left)
        if height is None:
            return None
        area += height * (right - left)
    return area / most


def factorial(
    found: Sequence[Cell], arms: tuple[str, str, str, str] = ("no_skill", "docs_only", "scripts_only", "curated")
) -> dict[str, list[tuple[str, str, float]]]:
    """The 2x2 contrasts of each episode that has all four arms, as (cluster, sub_task, value).

    `arms` are neither, the first alone, the second alone, both. A main effect is the mean of the factor's two simple
    effects, the interaction what both together bring beyond the sum of each alone (Montgomery, ch. 5, not halved).
    """
    scores: dict[tuple[object, str], dict[str, Cell]] = {}
    for cell in found:
        scores.setdefault((cell.entry, cell.task_id), {})[cell.condition] = cell
    result: dict[str, list[tuple[str, str, float]]] = {"first": [], "second": [], "interaction": []}
    for here in scores.values():
        if any(arm not in here for arm in arms):
            continue
        neither, first, second, both = (here[arm].score for arm in arms)
        where = here[arms[0]].cluster, here[arms[0]].sub_task
        result["first"].append((*where, ((first - neither) + (both - second)) / 2))
        result["second"].append((*where, ((second - neither) + (both - first)) / 2))
        result["interaction"].append((*where, (both - second) - (first - neither)))
    return result


def coverage(rows: Sequence[Row]) -> float | None:
    """Share of rows with a verdict."""
    return mean([float(score_of(row) is not None) for row in rows])


def bounds(rows: Sequence[Row]) -> tuple[float | None, float | None]:
    """Mean over episodes if every row without a verdict were 0, and if it were 1."""
    return tuple(mean(_filled(rows, missing)) for missing in (0.0, 1.0))


def _filled(rows: Sequence[Row], missing: float) -> list[float]:
    return _episodes(rows, lambda row: missing if score_of(row) is None else score_of(row))


def difference_bounds(rows: Sequence[Row], treatment: str, reference: str) -> tuple[float, float] | None:
    """Mean difference over episodes run under both, at its worst and at its best for the treatment (Manski 1990)."""
    sides: dict[tuple[object, str], dict[str, list[Row]]] = {}
    for row in rows:
        sides.setdefault((entry_of(row), row["task_id"]), {}).setdefault(row["condition"], []).append(row)
    both = [side for side in sides.values() if treatment in side and reference in side]
    if not both:
        return None
    worst = [_filled(side[treatment], 0.0)[0] - _filled(side[reference], 1.0)[0] for side in both]
    best = [_filled(side[treatment], 1.0)[0] - _filled(side[reference], 0.0)[0] for side in both]
    return sum(worst) / len(both), sum(best) / len(both)
