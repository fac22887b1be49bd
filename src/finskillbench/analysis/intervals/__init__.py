"""Means with intervals that know which episodes belong together: `estimate` gives a line for each group of a frame."""

from finskillbench.analysis.intervals.estimate import Method, Weighting, estimate

__all__ = ["Method", "Weighting", "estimate"]
