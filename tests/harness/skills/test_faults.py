"""Planted faults: they fit the packages, agents see nothing else of them, and two programs have known outcomes."""

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from finskillbench import run
from finskillbench.analysis.faults import Outcome, concerned, fault_outcomes
from finskillbench.analysis.results import collect
from finskillbench.domains.faults import DETAIL, Edit, FaultKind, differing, in_order, matches
from finskillbench.edition import Edition
from finskillbench.episode import JsonObject, Submission
from finskillbench.errors import InputError, InternalError
from finskillbench.harness.conditions import mount_all, parse_condition
from finskillbench.harness.programs.checker import Checker
from finskillbench.harness.programs.reference import Reference
from finskillbench.harness.proof import prove_arms
from finskillbench.harness.skills.faults import FAULTY_PREFIX, blind_answer, conforms, fault_of, faults, faulty
from finskillbench.harness.skills.lint import lint
from finskillbench.harness.skills.loader import curated, read_files
from finskillbench.harness.skills.recipes import find_recipe
from finskillbench.runs.verdicts import judge

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
    packages = mounts["faulty:sign"].packages
    told = {**packages, "risk-management": replace(packages["risk-management"], description="Has a fault.")}
    with pytest.raises(InternalError, match="other descriptions of risk-management"):
        prove_arms({"faulty:sign": replace(mounts["faulty:sign"], packages=told)}, ["risk_management"])


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


def test_the_order_of_keys_is_no_difference() -> None:
    faulty_answer = {**RIGHT, "trades": [{"symbol": "A", "change": 1.0}, {"symbol": "B", "change": 2.0}]}
    answer = {"trades": [{"change": 1.0, "symbol": "A"}, {"change": 2.0, "symbol": "B"}], "more": 1}
    assert matches(in_order(answer, faulty_answer), differing(faulty_answer, RIGHT))
    assert in_order(answer, {"trades": []}) == in_order(answer, {}) == answer


def test_only_json_values_are_stated_for_keys() -> None:
    recipe = find_recipe("Give `cap` as `the largest`, `kept` as `true`.\n| x y | `a.py` | b | cap, kept |\n", "x_y")
    assert recipe is not None
    assert recipe.submission({"cap": 1, "kept": False}) == {"cap": 1, "kept": True}


@pytest.mark.parametrize(
    "text", ["{}", '{"post_trade_compliant": true}', '{"trades": 1, "post_trade_compliant": true}']
)
def test_a_malformed_answer_is_judged_under_a_planted_fault(text: str, synthetic_edition: Edition) -> None:
    details: list[JsonObject] = []
    for episode in synthetic_edition.episodes(["risk_remediation"])[:3]:
        truth, task_input = synthetic_edition.truth(episode.task_id), synthetic_edition.full_input(episode)
        verdict = judge(Submission(episode.task_id, text, "submitted"), truth, task_input, "faulty:contradiction")
        details.append(verdict.details[DETAIL])
    assert not any(detail["equal"] for detail in details)


@pytest.mark.parametrize(("kind", "sub_task"), [("sign", "stress_testing"), ("factor", "unconstrained_optimization")])
def test_losses_of_followed_faults_are_positive(kind: str, sub_task: str, synthetic_edition: Edition) -> None:
    _, fault = fault_of(kind, sub_task) or pytest.fail("no fault")
    found = 0
    for episode in synthetic_edition.episodes([sub_task]):
        truth, task_input = synthetic_edition.truth(episode.task_id), synthetic_edition.full_input(episode)
        text = json.dumps(blind_answer(fault, sub_task, task_input))
        verdict = judge(Submission(episode.task_id, text, "submitted"), truth, task_input, f"faulty:{kind}")
        if (effect := verdict.details.get(DETAIL)) is None:
            continue
        found += 1
        assert effect["equal"]
        if kind == "sign":
            right, nav = truth.expected_output["estimated_pnl_pct"], task_input["portfolio"]["total_nav"]
            assert (effect["loss"], effect["unit"]) == (pytest.approx(2 * abs(right) * nav, rel=1e-6), "USD")
        else:
            assert (effect["loss"] > 0.0, effect["unit"]) == (True, "bp")
    assert found


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
