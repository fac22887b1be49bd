"""Planted faults: they fit the packages, agents see nothing else of them, and two programs have known outcomes."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from finskillbench import run
from finskillbench.analysis.faults import Outcome, concerned, fault_outcomes
from finskillbench.analysis.results import collect
from finskillbench.domains.faults import Edit, FaultKind, differing, matches
from finskillbench.edition import Edition
from finskillbench.episode import JsonObject
from finskillbench.errors import InputError, InternalError
from finskillbench.harness.conditions import mount_all, parse_condition
from finskillbench.harness.programs.checker import Checker
from finskillbench.harness.programs.reference import Reference
from finskillbench.harness.proof import prove_arms
from finskillbench.harness.skills.faults import FAULTY_PREFIX, conforms, faults, faulty
from finskillbench.harness.skills.lint import lint
from finskillbench.harness.skills.loader import curated, read_files

RIGHT = {"weights": {"A": 0.5, "B": 0.5, "C": 0.0}, "kept": {"cap": True}, "flags": ["x", "y"]}


@pytest.mark.parametrize("kind", FaultKind)
def test_a_kind_concerns_several_subtasks_and_changes_only_its_packages(kind: FaultKind) -> None:
    planted = {fault.package: fault for _, fault in faults(kind)}
    assert len([name for fault in planted.values() for name in fault.clauses]) >= 2
    ours, changed = curated(), faulty(kind)
    assert {name for name in ours if ours[name].digest != changed[name].digest} == planted.keys()
    for name in planted:
        assert (changed[name].name, changed[name].description) == (ours[name].name, ours[name].description)
        assert lint(changed[name].root) == lint(ours[name].root)
        assert not {"fault", kind} & set(str(changed[name].root).replace("-", "/").split("/"))


def test_a_fault_that_does_not_fit_the_package_is_refused() -> None:
    _, fault = next(faults())
    files = read_files(curated()[fault.package].root)
    absent = replace(fault, edits=(Edit(("SKILL.md",), "not in it", ""),))
    with pytest.raises(InputError, match=r"SKILL\.md has 'not in it' 0 times, not once"):
        absent.applied(files)


def test_conditions_name_a_kind_and_the_mount_has_its_fault() -> None:
    assert parse_condition("faulty:sign+forced") == "faulty:sign+forced"
    with pytest.raises(InputError, match="'signs' is not a kind of fault; choose from: sign, unit"):
        parse_condition("faulty:signs")
    mounts = mount_all(["faulty:sign", "faulty:unit+hinted"])
    prove_arms(mounts, ["risk_management"])
    with pytest.raises(InternalError, match="changes in none, not in portfolio-construction, risk-management"):
        prove_arms({"faulty:sign": replace(mounts["faulty:sign"], packages=curated())}, ["risk_management"])


@pytest.mark.parametrize(
    ("faulty_answer", "answer", "equal"),
    [
        ({**RIGHT, "weights": {"A": 0.6, "B": 0.4, "C": 0.0}}, {"weights": {"A": 0.600001, "B": 0.4}}, True),
        ({**RIGHT, "weights": {"A": 0.6, "B": 0.4, "C": 0.0}}, {"weights": {"A": 0.6001, "B": 0.4}}, False),
        ({**RIGHT, "weights": {"A": 1.0, "B": 0.0, "C": 0.0}}, {"weights": {"A": 1.0}}, True),
        ({**RIGHT, "weights": {"A": 0.6, "B": 0.4, "C": 0.0}}, {"weights": {"A": 0.6}}, False),
        ({**RIGHT, "list": [{"n": "a", "v": 1, "w": 2}]}, {"list": [{"n": "a", "v": 1}]}, True),
        ({**RIGHT, "list": [{"n": "a", "v": 1, "w": 2}]}, {"list": [{"n": "b", "v": 1}]}, False),
        ({**RIGHT, "kept": {}}, {"weights": {"A": 0.5}, "kept": {"cap": True}}, False),
        ({**RIGHT, "flags": ["x"]}, {"flags": ["x"]}, True),
        ({**RIGHT, "flags": ["x"]}, {"flags": []}, False),
        ({**RIGHT, "flags": []}, {"flags": []}, True),
        ({**RIGHT, "flags": []}, {"weights": {"A": 0.5}}, False),
        ({**RIGHT, "kept": {"cap": False}}, {"kept": {"cap": 0}}, False),
    ],
)
def test_an_answer_is_the_faulty_one_where_that_differs_from_the_right_one(
    faulty_answer: JsonObject, answer: JsonObject, equal: bool
) -> None:
    leaves = differing(faulty_answer, RIGHT)
    assert leaves
    assert matches(faulty_answer, leaves)
    assert not matches(RIGHT, leaves)
    assert not matches({}, leaves)
    assert matches(answer, leaves) is equal


@pytest.mark.parametrize("kind", FaultKind)
def test_a_blind_program_falls_for_every_fault_and_a_checking_one_for_none(
    kind: FaultKind, synthetic_edition: Edition, tmp_path: Path
) -> None:
    conditions = ["curated", f"{FAULTY_PREFIX}{kind}"]
    for number, (_, fault) in enumerate(faults(kind)):
        for name in fault.clauses:
            for episode in synthetic_edition.episodes([name])[:2]:
                truth = synthetic_edition.truth(episode.task_id).expected_output
                assert conforms(name, synthetic_edition.full_input(episode), truth)
        found = run(
            synthetic_edition,
            models=[Reference.name, Checker.name],
            conditions=conditions,
            subtasks=list(fault.clauses),
            limit=3,
            out=tmp_path / str(number),
        )
        rows = concerned(collect(found.rows).rows)
        outcomes = dict(rows.group_by("model").agg(pl.col("outcome").unique()).iter_rows())
        assert outcomes[Reference.name] == [Outcome.FAULTY]
        assert Outcome.FAULTY not in outcomes[Checker.name]
        shares = fault_outcomes(collect(found.rows)).filter(pl.col("model") == Reference.name)
        assert shares["loss_score"].item() <= -0.02
        assert shares["episodes"].item() == rows["episode"].n_unique()
