"""When two labelled portfolios are one: episodes that repeat an answer pass for more evidence than they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from finskillbench.scoring.measures import l2

DIFFERENT = 0.05
"""L2 distance of weights from which two labels count as different: the threshold of the scores under `paper`."""


def is_different(weights: Mapping[str, float], others: Iterable[Mapping[str, float]]) -> bool:
    """Whether weights lie at least `DIFFERENT` from each of the others."""
    return all(l2(weights, other) >= DIFFERENT for other in others)


def distinct(portfolios: Iterable[Mapping[str, float]]) -> int:
    """How many of the portfolios are different from every one counted before."""
    kept: list[Mapping[str, float]] = []
    for weights in portfolios:
        if is_different(weights, kept):
            kept.append(weights)
    return len(kept)
