"""Explain failed episodes from their trajectories, and measure how script outputs were used."""

from finskillbench.runs.postprocess.failures.attempt import LabelledTask
from finskillbench.runs.postprocess.failures.counts import MEANINGS, FailureCause, cause_rank, meaning
from finskillbench.runs.postprocess.failures.runs import Failure, explain_failure, failures_of, rows_of, use_of

__all__ = [
    "MEANINGS",
    "Failure",
    "FailureCause",
    "LabelledTask",
    "cause_rank",
    "explain_failure",
    "failures_of",
    "meaning",
    "rows_of",
    "use_of",
]
