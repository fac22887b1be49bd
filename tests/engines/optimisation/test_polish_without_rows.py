"""A linear program's system without active rows has no step, where its factors of no size could not be solved."""

from __future__ import annotations

from typing import Any

import numpy as np

from finskillbench.engines.optimisation import polish


def test_no_active_rows_are_no_step() -> None:
    gram: Any = vars(polish)["_Gram"]
    assert gram.of(np.zeros((2, 2)), np.zeros((0, 2))).solve(np.array([1.0, -2.0])).tolist() == [0.0, 0.0]
