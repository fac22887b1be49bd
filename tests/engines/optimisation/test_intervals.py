"""Weights in one of several intervals: the intervals themselves; searches over them are tested with remediation."""

from __future__ import annotations

import numpy as np
import pytest

from finskillbench.engines.optimisation.intervals import Intervals, intersect, ticket_intervals

INF = np.inf


def test_a_ticket_leaves_a_name_alone_or_moves_it_by_enough() -> None:
    assert ticket_intervals(0.5, 0.125) == [(-INF, 0.375), (0.5, 0.5), (0.625, INF)]
    assert ticket_intervals(0.0, 0.125) == [(-INF, -0.125), (0.0, 0.0), (0.125, INF)]
    assert ticket_intervals(0.5, 0.0) == [(-INF, INF)]


def test_a_position_below_the_ticket_may_be_closed() -> None:
    assert ticket_intervals(0.0625, 0.125) == [(-INF, -0.0625), (0.0, 0.0), (0.0625, 0.0625), (0.1875, INF)]


def test_what_two_rules_allow_is_what_both_do() -> None:
    assert intersect([(0.0, 0.0), (0.25, INF)], [(0.0, 0.125), (0.2, 0.5)]) == [(0.0, 0.0), (0.25, 0.5)]
    assert intersect([(0.0, 0.25)], [(0.25, 1.0)]) == [(0.25, 0.25)]


def test_a_weight_in_a_gap_is_rounded_to_either_side() -> None:
    intervals = Intervals.of([[(0.0, 0.0), (0.2, 0.4)], [(0.0, 1.0)]])
    weights = np.array([0.08, 0.7])
    assert intervals.outside(weights) == pytest.approx([0.08, 0.0])
    low, high = intervals.ends(intervals.rounded(weights, 0.5))
    assert (low.tolist(), high.tolist()) == ([0.0, 0.0], [0.0, 1.0])
    low, high = intervals.ends(intervals.rounded(weights, 0.1))
    assert (low.tolist(), high.tolist()) == ([0.2, 0.0], [0.4, 1.0])


def test_a_name_without_an_allowed_weight_is_refused() -> None:
    with pytest.raises(ValueError, match="without an allowed interval"):
        Intervals.of([[(0.0, 1.0)], []])
