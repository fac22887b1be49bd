"""Means with intervals that know which episodes belong together.

`estimate` is for tables: one line for each group of a frame. `paired_difference` is for two arms of scores by task.
"""

from finskillbench.analysis.intervals.estimate import Method, Weighting, estimate
from finskillbench.analysis.intervals.paired import Difference, paired_difference

__all__ = ["Difference", "Method", "Weighting", "estimate", "paired_difference"]
