"""One trajectory that did not earn full marks: every cause that applies, the primary one first."""

from __future__ import annotations

from dataclasses import dataclass

from finskillbench.episode import Status
from finskillbench.runs.afterwards.failures.attempt import Attempt, Known, OutputUse, output_use
from finskillbench.runs.afterwards.failures.causes import place_of
from finskillbench.runs.afterwards.failures.rules import RULES
from finskillbench.runs.afterwards.failures.rules.base import Found
from finskillbench.runs.store.trajectories import Trajectory


@dataclass(frozen=True, slots=True)
class Failure:
    """Why one episode did not earn full marks.

    cause : the primary one, by the order of `FailureCause`.
    causes : all that apply, in that order.
    evidence : one sentence with the values, of the primary cause.
    output_use : what of the scripts' outputs was submitted.
    not_tried : causes that no rule could look for without the edition's truth.
    """

    cause: str
    causes: tuple[str, ...]
    evidence: str
    output_use: OutputUse
    not_tried: tuple[str, ...]


def explain(trajectory: Trajectory, status: Status, known: Known | None = None) -> Failure:
    """Say why an episode that did not earn full marks failed; whether it did is for its row to say.

    Parameters
    ----------
    trajectory : what was said and done.
    status : that of its row.
    known : what its edition knows of the task; without it the rules that need a label are left out.
    """
    attempt = Attempt(trajectory, status, known)
    found: list[Found] = []
    not_tried: set[str] = set()
    for rule in RULES:
        if rule.needs_truth and known is None:
            not_tried.update(rule.causes)
        else:
            found.extend(rule.find(attempt, found))
    found.sort(key=lambda each: place_of(each.cause))
    causes = tuple(dict.fromkeys(each.cause for each in found))
    return Failure(
        cause=causes[0],
        causes=causes,
        # Names that a model wrote may hold what no text file can.
        evidence=found[0].evidence.encode("utf-8", "backslashreplace").decode(),
        output_use=output_use(attempt.answer, attempt.runs),
        not_tried=tuple(sorted(not_tried - set(causes), key=place_of)),
    )
