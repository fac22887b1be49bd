"""The active book that a current portfolio holds beside its benchmark."""

from __future__ import annotations

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.portfolio.objects.month_end import MonthEnd


def of_few_names(month: MonthEnd, rng: np.random.Generator) -> Floats:
    """(n,) weights of a third to half of the names, drawn and weighted around the benchmark."""
    n = len(month.tickers)
    count = int(rng.integers(max(n // 3, 2), max(n // 2, 2) + 1))
    names = rng.choice(n, count, replace=False, p=month.benchmark)
    weights = np.zeros(n)
    weights[names] = month.benchmark[names] * np.exp(rng.normal(0.0, 0.5, count))
    return weights / weights.sum()
