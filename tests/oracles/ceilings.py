"""What the right answer scores under the published scorers, which count what a label has to leave open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def published_ceiling(sub_task: str, label: Mapping[str, Any]) -> float:
    """Score of the label itself under `paper` and `strict`; 1 wherever the published scorer gives it full marks.

    Normalisation: "each expected key counts one; null or absent: no match", so the share of metrics that are known.
    Drivers: the mean of the active terms, of which the first is "0 if none expected": a filing whose segments do not
    add up has no revenue drivers, and then one term of 0 beside those on margins (two) and on revenue (one, unless it
    did not change). Earnings quality scores only what the label gives.
    """
    if sub_task == "normalization":
        metrics = label["metrics"]
        return sum(value is not None for value in metrics.values()) / len(metrics)
    if sub_task == "driver_decomposition" and not label["top_revenue_drivers"]:
        right = 2 * bool(label["margin_drivers"]) + bool(label["revenue_delta"])
        return right / (1 + right)
    return 1.0
