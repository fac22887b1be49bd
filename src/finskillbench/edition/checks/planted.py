"""Check of planted faults: each answer is wrong, different, and contradicted by what the agent can read."""

from __future__ import annotations

from finskillbench.domains.faults import LEAST_LOSS, differing
from finskillbench.edition.checks.agent_view import EpisodeView
from finskillbench.findings import Findings
from finskillbench.harness.skills.faults import blind_answer, conforms, faults


def check_faults(view: EpisodeView, findings: Findings) -> None:
    """Check every fault that concerns the episode, and count these by kind.

    A faulty answer scores `LEAST_LOSS` below the truth or less, differs from it beyond rounding, contradicts a passage
    of the prompt, and fails the independent check by the printed conventions, which the truth passes.
    """
    sub_task, truth = view.episode.sub_task, view.label.truth
    if not view.context.shared.built or not truth.proof:
        return
    concerned = False
    for _, fault in faults():
        if sub_task not in fault.clauses:
            continue
        answer = blind_answer(fault, sub_task, view.full_input)
        if answer is None or view.score(answer) > 1.0 - LEAST_LOSS:
            continue  # the script refuses the input, or the fault changes nothing
        concerned = True
        findings.add(fault.kind)
        clause = fault.clauses[sub_task]
        findings.expect(differing(answer, truth.expected_output), view.task_id, "equals the truth", fault.kind)
        findings.expect(clause in view.prompt, view.task_id, f"the prompt does not state {clause!r}", fault.kind)
        checked = conforms(sub_task, view.full_input, answer)
        findings.expect(checked is False, view.task_id, "the faulty answer keeps the printed conventions", fault.kind)
    if concerned:
        kept = conforms(sub_task, view.full_input, truth.expected_output)
        findings.expect(kept, view.task_id, "the truth fails the independent check of the printed conventions")
