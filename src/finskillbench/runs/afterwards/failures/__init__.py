"""Why episodes failed, by rule, from their trajectories; and how the output of scripts was used.

`failures_of` a run, `use_of` a run; `explain` a single trajectory.
"""

from finskillbench.runs.afterwards.failures.attempt import Known
from finskillbench.runs.afterwards.failures.counts import MEANINGS, FailureCause, meaning, place_of
from finskillbench.runs.afterwards.failures.runs import Failure, explain, failures_of, rows_of, use_of

__all__ = [
    "MEANINGS",
    "Failure",
    "FailureCause",
    "Known",
    "explain",
    "failures_of",
    "meaning",
    "place_of",
    "rows_of",
    "use_of",
]
