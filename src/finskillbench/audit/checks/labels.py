"""What a label says of itself: that it was proved, that it is the only right one, that its words are the engine's."""

from __future__ import annotations

from finskillbench.audit.seen import Seen
from finskillbench.findings import Findings
from finskillbench.scoring.values import mapping

_OPTIMAL = "optimal"
_NOT_ASKED = "not asked"
"""How the engine says that any optimum is a right answer, since its value alone is judged."""


def certified(seen: Seen, findings: Findings) -> None:
    """Every label carries a proof, and where certificates are handed out, the one that the proof sums up."""
    proof = seen.label.truth.proof
    findings.expect(proof, seen.task_id, "carries no proof: nothing shows that its answer is right", "proof")
    if proof and seen.bench.edition.has_certificates:
        findings.expect(seen.label.certificate, seen.task_id, "has no certificate", "certificate")


def unique(seen: Seen, findings: Findings) -> None:
    """The answer of an optimum is proved to be the only one, or its value alone is the answer."""
    proof = seen.label.truth.proof
    if not proof:
        findings.fail(seen.task_id, "nothing shows that no other answer is as good", "proof.unique")
    elif proof.get("kind") == _OPTIMAL:
        why = str(proof.get("uniqueness"))
        settled = proof.get("unique") is True or why.startswith(_NOT_ASKED)
        findings.expect(settled, seen.task_id, f"its optimum is {why}", "proof.unique")


def spec_agrees(seen: Seen, findings: Findings) -> None:
    """An episode states the definitions by which its truth was made, in the words of the one place that has them."""
    if seen.subtask is None or seen.subtask.definitions is None:
        return
    definitions = seen.subtask.definitions
    wanted = definitions(seen.episode.input) if callable(definitions) else definitions
    given = mapping(seen.episode.input.get("conventions"))
    absent = sorted(wanted.keys() - given.keys())
    altered = sorted(name for name in wanted.keys() & given.keys() if given[name] != wanted[name])
    message = f"does not state {', '.join(absent)}: the prompt's words are all there is"
    findings.expect(not absent, seen.task_id, message, "conventions")
    message = f"does not state {', '.join(altered)} as the truth was made"
    findings.expect(not altered, seen.task_id, message, "conventions")
