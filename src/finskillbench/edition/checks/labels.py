"""Rederive every label or recheck its proof, for all subtasks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date

import msgspec

from finskillbench.domains.base import DomainCheck, Subtask
from finskillbench.domains.checks.agreement import record_differences
from finskillbench.domains.checks.coverage import examine_definitions
from finskillbench.domains.checks.examination import ExaminedEdition, Subject, examining
from finskillbench.domains.checks.proofs import expect_agreement
from finskillbench.domains.examples import Label
from finskillbench.episode import Episode, JsonObject, Prompt, Truth
from finskillbench.errors import EditionError
from finskillbench.findings import CheckState, Findings
from finskillbench.scoring.values import is_object, json_equal


def label_check(subtask: Subtask) -> DomainCheck:
    """Return the check of one subtask's labels: inputs, definitions, independent derivation and proof.

    `findings.touched` collects the labels with an expectation or a finding.
    """

    def check(subject: Subject, findings: Findings) -> None:
        episodes = subject.of(subtask.name)
        if not episodes:
            findings.skip(f"the edition has no episodes of {subtask.name.replace('_', ' ')}")
            return
        with_truth = subject.edition.has_truth
        if not with_truth:
            findings.skip("the edition has no truth")
        certificates = _certificates(subject, subtask, findings)
        hidden = _hidden(subject, subtask, findings)
        for episode in episodes:
            findings.touched.add(episode.task_id)  # any error below is a finding about it
            with examining(episode.task_id, findings, fatal=subject.built):
                _refuse_untyped(subtask, episode)
                _examine_definitions(subtask, subject, episode, findings)
                if with_truth:
                    label = _label(subject, episode, certificates.get(episode.task_id, {}), hidden)
                    if subject.edition.has_certificates:
                        findings.expect(label.certificate, episode.task_id, "has no certificate")
                    _examine(subtask, label, findings)

    check.__doc__ = f"The labels of {subtask.name}."
    return check


def every_label_touched(edition: ExaminedEdition, touched: Collection[str], built: bool, findings: Findings) -> None:
    """Check that some check examined every label; `built` is False for imports, which get warnings."""
    if not edition.has_truth:
        findings.skip("the edition has no truth")
        return
    findings.figures["labels"] = 0
    add = findings.fail if built else findings.warn
    for sub_task in edition.sub_tasks:
        if not edition.episodes([sub_task]):
            add(sub_task, "has no episodes, but the manifest counts some")
    for episode in edition.episodes():
        findings.add("labels")
        if episode.task_id not in touched:
            add(episode.task_id, f"no check examined this label of {episode.sub_task}")


def _certificates(subject: Subject, subtask: Subtask, findings: Findings) -> Mapping[str, JsonObject]:
    if subject.edition.has_certificates:
        with examining(f"certificates/{subtask.name}.jsonl", findings, fatal=subject.built):
            return subject.edition.certificates(subtask.name)
    return {}


def _hidden(subject: Subject, subtask: Subtask, findings: Findings) -> Mapping[str, JsonObject]:
    """Return hidden fields of a subtask's interactive cases, after opening each case once."""
    if subtask.open_interactive_state is None or not subject.edition.has_stages:
        return {}
    for episode in subject.of(subtask.name):
        with examining(episode.task_id, findings):
            subject.edition.open_interactive_state(episode)
    with examining(f"stages/{subtask.name}.jsonl", findings):
        return subject.edition.hidden(subtask.name)
    return {}


def _refuse_untyped(subtask: Subtask, episode: Episode) -> None:
    if subtask.input is None:
        return
    try:
        msgspec.convert(episode.input, subtask.input)
    except msgspec.ValidationError as error:
        raise EditionError(f"its input does not fit {subtask.name}: {error}") from None


def _examine_definitions(subtask: Subtask, subject: Subject, episode: Episode, findings: Findings) -> None:
    if subtask.definitions is not None:
        definitions = subtask.definitions(episode.input) if callable(subtask.definitions) else subtask.definitions
        examine_definitions(episode, definitions, findings, needed=None if subject.built else ())


def _label(subject: Subject, episode: Episode, certificate: JsonObject, hidden: Mapping[str, JsonObject]) -> Label:
    task_input = subject.input_of(episode)
    truth = subject.edition.truth(episode.task_id)
    return Label(episode, task_input, truth, certificate, subject.built, hidden.get(episode.task_id, {}))


def _examine_parameters(subtask: Subtask, truth: Truth, findings: Findings) -> None:
    """Check that a verification states the subtask's parameters, what is proved of the label, and nothing else."""
    proved = subtask.verification.proved
    proved = proved(truth.expected_output) if callable(proved) else proved
    wanted = subtask.verification.for_label({})
    for key in sorted({*wanted, *proved, *truth.verification} - {"method"}):
        where, stated = f"verification.{key}", truth.verification.get(key)
        if key not in truth.verification:
            findings.fail(truth.task_id, f"{where} is absent", where)
        elif key not in wanted:
            findings.expect(key in proved, truth.task_id, f"{where} is no parameter of {subtask.name}", where)
        else:
            same = json_equal(stated, wanted[key])
            findings.expect(same, truth.task_id, f"{where} is {stated!r:.80}, not {wanted[key]!r}", where)


def defects(subtask: Subtask, truth: Truth, task_input: JsonObject) -> list[str]:
    """List the errors that a label's independent derivation and proof find, without its certificate."""
    findings = Findings()
    episode = Episode(truth.task_id, "", subtask.name, date.min, "", task_input, Prompt("", ""))
    with examining(truth.task_id, findings):
        _examine(subtask, Label(episode, task_input, truth, {}, bool(truth.proof)), findings)
    return [finding.message for finding in findings.found if finding.state is CheckState.FAIL]


def _examine(subtask: Subtask, label: Label, findings: Findings) -> None:
    task_id, truth = label.truth.task_id, label.truth
    for name, value in label.task_input.items():
        if is_object(value) and "ref" in value:
            raise EditionError(f"cannot be derived: {name} refers to {value['ref']}, which the edition does not hold")
    method = subtask.verification.method
    findings.expect(truth.verification.get("method") == method, task_id, f"is not judged by {method}")
    if label.built:
        _examine_parameters(subtask, truth, findings)
    before = findings.expectations, len(findings.found)
    if subtask.rederive is not None:
        expect_agreement(label, findings)
        record_differences(subtask.derived_again(truth.expected_output, label.task_input), task_id, findings)
    if subtask.proof is not None:
        subtask.proof(label, findings)
    if (findings.expectations, len(findings.found)) == before:
        findings.touched.discard(task_id)
    findings.add("labels")
