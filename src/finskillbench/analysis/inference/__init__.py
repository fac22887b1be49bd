"""What figures can bear: proportions, many comparisons at once, and how small an effect would have been seen.

`detectable` and `adjust` add columns to the lines of `finskillbench.analysis.intervals.estimate`.
"""

from finskillbench.analysis.inference.multiplicity import adjust, benjamini_hochberg, holm
from finskillbench.analysis.inference.power import clusters_needed, detectable, detectable_effect
from finskillbench.analysis.inference.proportions import proportions, wilson

__all__ = [
    "adjust",
    "benjamini_hochberg",
    "clusters_needed",
    "detectable",
    "detectable_effect",
    "holm",
    "proportions",
    "wilson",
]
