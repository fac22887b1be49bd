"""Why episodes failed, by rule, from their trajectories; and how the output of scripts was used.

`failures_of` a run, `use_of` a run; `explain` a single trajectory.
"""

from finskillbench.runs.postprocess.failures.attempt import Known
from finskillbench.runs.postprocess.failures.counts import MEANINGS, FailureCause, meaning, place_of
from finskillbench.runs.postprocess.failures.runs import Failure, explain, failures_of, rows_of, use_of

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
