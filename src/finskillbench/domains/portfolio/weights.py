"""The one measure that all optimisation subtasks share under `paper`: distance to the labelled weights."""

from __future__ import annotations

from collections.abc import Mapping

from finskillbench.scoring.measures import clip, l2


def weight_score(predicted: Mapping[str, float], expected: Mapping[str, float], threshold: float) -> float:
    """clip(1 - L2/(4θ)) over the union of tickers, θ = `threshold` (fraction of NAV); 0 without any weight."""
    if not predicted:
        return 0.0
    return clip(1.0 - l2(predicted, expected) / (4.0 * threshold))
