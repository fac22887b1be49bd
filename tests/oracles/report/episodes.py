"""What is computed over episodes: score within a budget, documents and scripts, coverage and its bounds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tests.oracles.report.cells import Cell, Row, mean, score_of


def within(rows: Sequence[Row], column: str, budget: float) -> float | None:
    """S(B): mean over judged rows of the score where it cost at most B, and of 0 where it cost more."""
    gained = []
    for row in rows:
        score, spent = score_of(row), row[column]
        if score is None or spent is None:
            continue
        gained.append(score if spent <= budget else 0.0)
    return mean(gained)


def area_within(rows: Sequence[Row], column: str, most: float) -> float | None:
    """Integral of S(B) from 0 to `most` over `most`, step by step between the amounts that were spent."""
    spent = sorted({float(row[column]) for row in rows if score_of(row) is not None and row[column] is not None})
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
    """Mean score if every row without a verdict were 0, and if it were 1."""
    scores = [score_of(row) for row in rows]
    worst = mean([0.0 if score is None else score for score in scores])
    best = mean([1.0 if score is None else score for score in scores])
    return worst, best


def difference_bounds(treated: Sequence[Row], reference: Sequence[Row]) -> tuple[float, float] | None:
    """Difference of two conditions' means, at its worst and at its best for the treatment (Manski 1990)."""
    (worst, best), (low, high) = bounds(treated), bounds(reference)
    if worst is None or best is None or low is None or high is None:
        return None
    return worst - high, best - low
