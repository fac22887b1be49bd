"""Every label derived again, or its proof rechecked: the one loop over labels that all subtasks share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from finskillbench.domains.agreement import compare
from finskillbench.domains.base import DomainCheck, Label, Subtask
from finskillbench.domains.definitions import examine_definitions
from finskillbench.domains.examination import Subject, examining
from finskillbench.episode import JsonObject
from finskillbench.errors import EditionError
from finskillbench.findings import Findings


def label_check(subtask: Subtask) -> DomainCheck:
    """The check of one subtask's labels: its definitions, its second derivation and its proof, label by label.

    A label on which neither expected anything is a defect of its own: nobody has looked at it.
    """

    def check(subject: Subject, findings: Findings) -> None:
        if not subject.edition.has_truth:
            findings.skip("the edition was handed out without truth")
            return
        if not subject.of(subtask.name):
            findings.skip(f"the edition has no episodes of {subtask.name.replace('_', ' ')}")
            return
        for label in _labels(subject, subtask, findings):
            with examining(label.truth.task_id, findings, fatal=subject.built):
                _examine(subtask, subject, label, findings)

    check.__doc__ = f"The labels of {subtask.name}."
    return check


def _labels(subject: Subject, subtask: Subtask, findings: Findings) -> Iterator[Label]:
    """Each episode with its resolved input, label and certificate; what cannot be read becomes a finding."""
    certificates: Mapping[str, JsonObject] = {}
    if subject.edition.has_certificates:
        with examining(f"certificates/{subtask.name}.jsonl", findings, fatal=subject.built):
            certificates = subject.edition.certificates(subtask.name)
    for episode in subject.of(subtask.name):
        with examining(episode.task_id, findings, fatal=subject.built):
            truth, task_input = subject.edition.truth(episode.task_id), subject.input_of(episode)
            _refuse_unresolved(task_input)
            yield Label(episode, task_input, truth, certificates.get(episode.task_id, {}))


def _refuse_unresolved(task_input: Mapping[str, Any]) -> None:
    for name, value in task_input.items():
        if isinstance(value, Mapping) and "ref" in value:
            raise EditionError(f"cannot be derived: {name} refers to {value['ref']}, which the edition does not hold")


def _examine(subtask: Subtask, subject: Subject, label: Label, findings: Findings) -> None:
    task_id, truth = label.truth.task_id, label.truth
    if subtask.definitions is not None:
        examine_definitions(label.episode, subtask.definitions, findings, needed=None if subject.built else ())
    findings.expect(truth.verification.get("method") == subtask.method, task_id, f"is not judged by {subtask.method}")
    before = findings.expectations
    if subtask.second is not None:
        compare(truth.expected_output, subtask.second(label.task_input), task_id, findings)
    if subtask.proof is not None:
        subtask.proof(label, findings)
    if findings.expectations > before:
        findings.touched.add(task_id)
    findings.add("labels")
