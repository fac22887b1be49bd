"""Labels that no check looks at, and inputs of another type than their subtask's."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.edition.examined import validated
from tests.editions import one_process
from tests.registry import DOMAINS, SUBTASKS

from finskillbench.domains import Answer, domain, domain_of, domains, subtask_named
from finskillbench.edition import Edition
from finskillbench.edition.checks.catalog import checks_of
from finskillbench.edition.checks.engine import validate_edition
from finskillbench.edition.checks.labels import every_label_touched
from finskillbench.errors import InputError
from finskillbench.findings import CheckState, Findings


def test_a_label_that_no_check_looks_at_fails_the_edition(slim: Edition, monkeypatch: pytest.MonkeyPatch) -> None:
    known = next(one for one in domains() if "risk_identification" in {each.name for each in one.subtasks})
    silent = tuple(
        replace(one, rederive=None, proof=lambda label, findings: None) if one.name == "risk_identification" else one
        for one in known.subtasks
    )
    registry = tuple(replace(one, subtasks=silent, checks={}) if one is known else one for one in domains())
    monkeypatch.setattr("finskillbench.edition.load.domains", lambda: registry)
    check = validated(slim).checks[-1]
    assert (check.domain, check.name, check.state) == ("edition", "labels", CheckState.FAIL)
    named = {finding.where for finding in check.findings}
    assert {episode.task_id for episode in slim.episodes(["risk_identification"])} <= named
    assert not named & {episode.task_id for episode in slim.episodes(["stress_testing", "normalization"])}


def test_a_subtask_that_no_domain_knows_is_unchecked(slim: Edition) -> None:
    findings = Findings()
    every_label_touched(slim, set(), True, findings)
    assert {finding.where for finding in findings.found} == {episode.task_id for episode in slim.episodes()}


def test_an_input_of_another_type_is_named(workshop: Any) -> None:
    workshop.edit("episodes", "stress_testing", lambda row: row["input"]["portfolio"].update(total_nav="much"), index=1)
    task_id = workshop.rows("episodes", "stress_testing")[1]["task_id"]
    report = workshop.validated("risk_management")
    found = [f for check in report.checks if check.name == "stress_testing" for f in check.findings]
    assert [finding.where for finding in found] == [task_id]
    assert "portfolio.total_nav" in found[0].message


def test_definitions_are_checked_in_an_edition_without_truth(workshop: Any) -> None:
    workshop.edit("episodes", "stress_testing", lambda row: row["input"]["conventions"].update(units="thousands"))
    task_id = workshop.rows("episodes", "stress_testing")[0]["task_id"]
    for part in ("truth", "certificates"):
        shutil.rmtree(workshop.folder / part)
    report = workshop.validated("risk_management")
    found = [(check.name, f.where, f.message) for check in report.checks for f in check.findings]
    assert found == [("stress_testing", task_id, "conventions: units is not defined as the engine computes it")]


class _Foreign(Answer):
    """An answer type of a package that is not ours."""


@pytest.mark.parametrize(
    ("registered", "change", "missing"),
    [
        ((), {}, False),
        ((), {"build": None}, False),
        (("later",), {}, True),
        (("later",), {"build": None}, False),
        (None, {}, True),
        (None, {"answer": _Foreign}, False),
    ],
)
def test_a_subtask_that_the_build_did_not_know_is_not_missing(
    registered: tuple[str, ...] | None,
    change: dict[str, Any],
    missing: bool,
    workshop: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def state(manifest: dict[str, Any]) -> None:
        manifest.pop("subtasks", None)
        if registered is not None:
            manifest["subtasks"] = [
                *manifest["counts"],
                *(f"{name} {one.name}" for name in registered for one in known),
            ]

    known = [one for one in DOMAINS if "coverage" in one.checks]
    workshop.edit_json("manifest.json", state)
    later = [replace(one.subtasks[0], name=f"later {one.name}", prefix="later", **change) for one in known]
    registry = tuple(
        replace(one, subtasks=(*one.subtasks, more), checks={"coverage": one.checks["coverage"]})
        for one, more in zip(known, later, strict=True)
    )
    monkeypatch.setattr("finskillbench.edition.load.domains", lambda: registry)
    monkeypatch.setattr(
        "finskillbench.edition.checks.catalog.label_check", lambda subtask: lambda subject, findings: None
    )
    with one_process():  # another would have another registry
        report = validate_edition(workshop.reload(), only=[one.name for one in known])
    found = [(f.where, f.message) for check in report.checks for f in check.findings if f.state is CheckState.FAIL]
    assert found == [(one.name, "has no episodes") for one in later if missing]


def test_a_proof_that_was_taken_away_fails_its_label(workshop: Any) -> None:
    """Of each subtask that is derived again, its first label: these are found, and nothing else."""
    wanted: list[tuple[str, str, str]] = []
    for name in [one.name for one in SUBTASKS if one.rederive is not None]:
        workshop.edit("truth", name, lambda row: row.update(proof={}))
        task_id = workshop.rows("truth", name)[0]["task_id"]
        wanted.append((name, task_id, "its proof does not state an independent derivation that agrees"))
    report = workshop.validated()
    found = [(c.name, f.where, f.message) for c in report.checks for f in c.findings if f.state is CheckState.FAIL]
    assert sorted(found) == sorted(wanted)


def _nudge(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda row: row["input"].update({name: row["input"][name] * (1 + 1e-14)})


ONLY_BUILT = [
    ("truth", "stress_testing", 0, lambda row: row.update(proof={})),
    ("truth", "risk_identification", 0, lambda row: row.update(proof={})),
    ("episodes", "black_litterman", 0, _nudge("tau")),
    ("episodes", "black_litterman", 1, _nudge("risk_aversion")),
]


@pytest.mark.parametrize("built", [True, False])
def test_an_imported_label_need_not_state_what_only_a_build_writes(built: bool, workshop: Any) -> None:
    for part, subtask, index, change in ONLY_BUILT:
        workshop.edit(part, subtask, change, index)
    if not built:
        workshop.edit_json("manifest.json", lambda manifest: manifest["source"].update(kind="release"))
    report = workshop.validated(*{domain_of(subtask).name for _, subtask, _, _ in ONLY_BUILT})
    altered = {(name, workshop.rows(part, name)[index]["task_id"]) for part, name, index, _ in ONLY_BUILT}
    found = [
        (check.name, f.where)
        for check in report.checks
        if check.name in {name for name, _ in altered}
        for f in check.findings
        if f.state is CheckState.FAIL
    ]
    assert sorted(found) == (sorted(altered) if built else [])


def test_a_check_that_is_called_like_a_subtask_is_refused() -> None:
    known = domain("risk_management")
    taken = replace(known, checks={**known.checks, "stress_testing": lambda subject, findings: None})
    with pytest.raises(InputError, match=r"domain risk_management: its check stress_testing .* rename the check"):
        checks_of(taken)


def test_a_subtask_without_a_second_derivation_or_a_proof_is_refused() -> None:
    with pytest.raises(InputError, match=r"subtask stress_testing has neither `rederive` nor `proof`.*; add one"):
        replace(subtask_named("stress_testing"), rederive=None, proof=None)
