"""What a remediation is judged by shown again: the least cost, what it says of the mandate, and the least excess.

A bound under every cure comes from a program of its own (`cure`), which shares nothing with the engine: another
formulation, another solver, names decided by whole numbers instead of branches. Nothing stored is taken for granted
but the weights that are said to attain the least.
"""

from __future__ import annotations

import numpy as np

from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.domains.risk.remediation.cure import Cure
from finskillbench.episode import Episode, JsonObject
from finskillbench.findings import Findings
from finskillbench.scoring.values import mapping

ACCEPTED_GAIN = 1e-6
ACCEPTED_BY_NAME = 1e-5
"""What a whole number that a solver takes for one may leave, times the largest weight, over some names."""
_SAME = 1e-6
_GOALS = {"least_turnover": "turnover", "least_cost": "cost", "least_excess": "excess"}
"""What each stage of a certificate minimises."""


def least_cost(subject: Subject, findings: Findings) -> None:
    """No cheaper cure exists than the certified one; where it is out of reach, none comes nearer to the mandate."""
    if not (subject.edition.has_truth and subject.edition.has_certificates):
        findings.skip("the edition was handed out without truth or certificates")
        return
    episodes = [episode for episode in subject.episodes if "violations" in episode.input]
    stored = subject.edition.certificates(episodes[0].sub_task) if episodes else {}
    for episode in episodes:
        certificate = mapping(stored.get(episode.task_id))
        if certificate:
            with examining(episode.task_id, findings):
                _examine(subject, episode, certificate, findings)


def _examine(subject: Subject, episode: Episode, certificate: JsonObject, findings: Findings) -> None:
    task_input: JsonObject = subject.input_of(episode)
    complies = subject.edition.truth(episode.task_id).expected_output.get("post_trade_compliant")
    decisive = "least_cost" if complies else "least_excess"
    findings.expect(decisive in certificate, episode.task_id, f"is {complies}, without its proof", decisive)
    for stage, stored in certificate.items():
        cure, objective = Cure(task_input, _GOALS[stage]), float(stored["objective"])
        if stage != "least_excess":
            value = cure.value(np.array(stored["weights"], dtype=float))
            message = f"states {objective:.9g}; its weights come to {value:.9g}"
            findings.expect(abs(value - objective) <= _SAME, episode.task_id, message, f"{stage}.objective")
        bound = _bounded(episode, cure, stored, stage, findings)
        if stage == "least_turnover":
            message = f"is {complies}; {cure.left:.6f} of turnover is left, at least {bound:.6f} is needed"
            findings.expect(bound > cure.left, episode.task_id, message, "post_trade_compliant")


def _bounded(episode: Episode, cure: Cure, stored: JsonObject, stage: str, findings: Findings) -> float:
    """The bound under every cure, which a stage's objective is not above by more than rounding, nor below it."""
    accepted = ACCEPTED_BY_NAME if cure.named or cure.ticket else ACCEPTED_GAIN
    objective = float(stored["objective"])
    weights = np.array(stored["weights"], dtype=float)
    bound = cure.bound(weights, objective - accepted / 10, objective + accepted)
    if cure.open and (cure.named or cure.ticket) and bound < objective:  # tangents let through ever other names to hold
        findings.add(f"{stage}_left_open")
        return bound
    findings.add(f"{stage}_bounded")
    findings.widest(f"{stage}_greatest_gain", objective - bound)
    message = f"states {objective:.9g}; a bound under every cure is {bound:.9g}"
    findings.expect(abs(objective - bound) <= accepted, episode.task_id, message, f"{stage}.weights")
    return bound
