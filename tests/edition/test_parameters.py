"""Every parameter of every verification belongs to the proof: altered alone, it is found, and nothing else is."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

from tests.sampling import THOROUGH, sampled

from finskillbench.domains import Subtask, domain_of
from finskillbench.domains.checks.examination import Shared, Subject
from finskillbench.edition import Edition
from finskillbench.edition.checks.catalog import checks_of
from finskillbench.episode import Episode, Truth
from finskillbench.findings import Finding, Findings

PLANTED = {"portfolio_type": "planted_risks", "regime": "dates"}
"""What checks of the risk domain hold to the portfolio and to the panels, where the others are held by the label's."""


@dataclass(frozen=True)
class Altered(Edition):
    """The edition with one episode of each subtask and, of one of them, another truth."""

    truths: Collection[Truth] = ()

    def episodes(self, sub_tasks: Collection[str] | None = None) -> tuple[Episode, ...]:
        firsts = {one.sub_task: one for one in reversed(super().episodes(sub_tasks))}
        return tuple(firsts[name] for name in self.sub_tasks if name in firsts)

    def truth(self, task_id: str) -> Truth:
        return next((one for one in self.truths if one.task_id == task_id), None) or super().truth(task_id)


def _found(edition: Edition, truth: Truth, key: str) -> list[Finding]:
    """What the check that is in charge of a key says of an edition with this truth."""
    owner = domain_of(truth.sub_task)
    findings = Findings()
    subject = Subject(Shared(Altered(edition.path, edition.manifest, (truth,))), owner)
    checks_of(owner)[PLANTED.get(key, truth.sub_task)](subject, findings)
    return [one for one in findings.found if one.where.startswith(truth.task_id)]


def _others(value: Any) -> Iterator[Any]:
    """Values that are not this one, of its type and of others."""
    yield from (None, "x", {"x": value})
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (value * 1.001, -value, 0.0 if value else 1.0)
    elif isinstance(value, list):
        yield from (value[1:], value[::-1] if len(value) > 1 else [*value, "x"], [])
    elif isinstance(value, dict):
        yield from ({name: 2 * one if isinstance(one, int | float) else None for name, one in value.items()}, {})


def _verification(edition: Edition, sub_task: str) -> Truth:
    return edition.truth(edition.episodes([sub_task])[0].task_id)


def test_a_parameter_that_was_altered_is_found(subtask: Subtask, slim: Edition) -> None:
    sub_task = subtask.name
    truth = _verification(slim, sub_task)
    stated = truth.verification
    changed = [(key, {**stated, key: other}) for key, value in stated.items() for other in sampled(_others(value), 3)]
    if subtask.interactive is not None:  # to look at one takes seconds: one for each third or sixth key
        changed = list({key: (key, altered) for key, altered in changed}.values())[:: 3 if THOROUGH else 6]
    else:
        changed += [(key, {name: value for name, value in stated.items() if name != key}) for key in stated]
        changed = sampled(changed, 3)
    missed = [
        (key, verification.get(key, "absent"))
        for key, verification in changed
        if not _found(slim, replace(truth, verification=verification), key)
    ]
    assert not missed
    assert _found(slim, replace(truth, verification={**stated, "partial_credit_weight": 1.0}), sub_task)
    assert not _found(slim, truth, sub_task)


def test_the_build_writes_what_the_subtask_says(subtask: Subtask, slim: Edition) -> None:
    for episode in slim.episodes([subtask.name]):
        truth = slim.truth(episode.task_id)
        proved = subtask.verification.proved
        proved = proved(truth.expected_output) if callable(proved) else proved
        assert list(truth.verification) == ["method", *subtask.verification.parameters, *proved]


def test_a_parameter_is_named_with_its_task(workshop: Any) -> None:
    workshop.edit("truth", "risk_identification", lambda row: row["verification"].update(top_k=7), index=2)
    task_id = workshop.rows("truth", "risk_identification")[2]["task_id"]
    found = [f for check in workshop.validated("risk_management").checks for f in check.findings]
    assert [(f.where, f.message, f.field) for f in found] == [
        (task_id, "verification.top_k is 7, not 5", "verification.top_k")
    ]


def test_an_imported_release_keeps_its_own_parameters(workshop: Any) -> None:
    workshop.edit(
        "truth", "normalization", lambda row: row["verification"].update(tolerance_pct=7.5, partial_credit=True)
    )
    workshop.edit_json("manifest.json", lambda manifest: manifest["source"].update(kind="release"))
    found = [f for check in workshop.validated("fundamental_analysis").checks for f in check.findings]
    assert not [f for f in found if "verification" in f.message]
