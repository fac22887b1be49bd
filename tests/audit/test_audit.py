"""The engine of the audit, and a planted defect for every check that is asked of every domain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

import orjson
import pytest
from tests.audit import toy

from finskillbench import cli
from finskillbench.domains.examples import GradedExample, Shortcuts
from finskillbench.edition.checks.catalog import CheckReport
from finskillbench.episode import Episode, Profile, Score, Truth
from finskillbench.errors import InputError

Audited = Callable[..., CheckReport]
Task = tuple[Episode, Truth]
SPOILT = 3
"""The episode in which a defect is planted."""


def found(report: CheckReport) -> set[tuple[str, str]]:
    """Check and episode of every finding."""
    return {(check.name, finding.where) for check in report.checks for finding in check.findings}


def spoil(change: Callable[[Episode, Truth], Task]) -> list[Task]:
    tasks: list[Task] = toy.tasks()
    tasks[SPOILT] = change(*tasks[SPOILT])
    return tasks


def with_input(episode: Episode, **more: Any) -> Episode:
    return replace(episode, input={**episode.input, **more})


def test_nothing_is_found_in_an_edition_that_is_in_order(audited: Audited) -> None:
    report = audited(toy.tasks())
    assert found(report) == set()
    assert report.passed
    assert {check.name for check in report.checks} >= {
        "rederived",
        "solvable",
        "leak",
        "certified",
        "ordering",
        "books",
    }
    assert all(check.figures["episodes"] == 6 for check in report.checks)


def test_a_truth_that_the_input_does_not_give_is_not_solvable(audited: Audited) -> None:
    def wrong(episode: Episode, truth: Truth) -> Task:
        return episode, replace(truth, expected_output={**truth.expected_output, "value": 1234.5})

    report = audited(spoil(wrong), "solvable")
    assert found(report) == {("solvable", "bk_val_3")}
    (finding,) = report.checks[0].findings
    assert finding.field == "value"
    assert "1234.5 in the truth" in finding.message


@pytest.mark.parametrize("empty", [{}, None, {"ref": "data/prices.npz", "tickers": ["A", "B"]}])
def test_an_input_that_is_not_there_is_named(empty: Any, audited: Audited) -> None:
    report = audited(spoil(lambda e, t: (with_input(e, prices=empty), t)), "solvable")
    assert found(report) == {("solvable", "bk_val_3")}
    assert [finding.field for finding in report.checks[0].findings] == ["prices"]


LEAKS: dict[str, Callable[[Episode, Truth], Episode]] = {
    "in the words": lambda e, t: replace(
        e, prompt=replace(e.prompt, task_description=f"The book is worth {t.expected_output['value']:,.0f} USD.")
    ),
    "in thousands": lambda e, t: replace(
        e, prompt=replace(e.prompt, task_description=f"Worth {t.expected_output['value'] / 1e3:.2f} thousand.")
    ),
    "in the metadata": lambda e, t: replace(e, metadata={"size": round(t.expected_output["value"], 1)}),
    "as a name in the metadata": lambda e, t: replace(e, metadata={"found": t.proof["second"]}),
    "as what was planted": lambda e, t: replace(e, metadata={"traps": 2}),
    "as a field": lambda e, t: with_input(e, hint={"rounded": round(t.expected_output["value"], 1)}),
    "in a text": lambda e, t: with_input(e, note=f"last valued by the bank at {t.expected_output['value']:.2f} USD"),
    "under its name": lambda e, t: with_input(e, last={"values": 17.0}),
}


@pytest.mark.parametrize("how", LEAKS)
def test_a_truth_that_can_be_read_is_a_leak(how: str, audited: Audited) -> None:
    report = audited(spoil(lambda e, t: (LEAKS[how](e, t), t)), "leak")
    assert found(report) == {("leak", "bk_val_3")}


@pytest.mark.parametrize("others", [{}, {"B": 4321.25}], ids=["alone", "beside an equal one"])
def test_what_the_answer_is_made_from_is_no_leak(others: dict[str, float], audited: Audited) -> None:
    """A quantity of 1 makes the price the value: a number of the truth that stands in the input by right."""

    def single(episode: Episode, truth: Truth) -> Task:
        given = with_input(episode, quantities={"A": 1.0}, prices={"A": 4321.25, **others})
        return given, replace(truth, expected_output=toy.second(given.input))

    assert found(audited(spoil(single), "leak", "solvable")) == set()


def test_a_date_after_the_day_is_named(audited: Audited) -> None:
    report = audited(spoil(lambda e, t: (with_input(e, seen_on={"first": "2025-02-03"}), t)), "point_in_time")
    assert found(report) == {("point_in_time", "bk_val_3")}
    assert "returns 2025-02-03, after 2025-01-31" in report.checks[0].findings[0].message


@pytest.mark.parametrize("day", [date(2024, 1, 1), date(2025, 1, 4)])
def test_a_day_without_trading_is_named(day: date, audited: Audited) -> None:
    report = audited(spoil(lambda e, t: (replace(e, as_of_date=day), t)), "point_in_time")
    assert found(report) == {("point_in_time", "bk_val_3")}
    assert [finding.field for finding in report.checks[0].findings] == ["as_of_date"]


def _gullible(task_id: str, **answers: float) -> Any:
    """A scorer that gives some answers what they do not deserve, in one episode."""

    def scored(answer: Any, truth: Truth, task_input: Any) -> Score:
        fair = toy.scored(answer, truth, task_input)
        given = answers.get(str(answer.get("largest")))
        return Score(given) if given is not None and truth.task_id == task_id else fair

    return dict.fromkeys(Profile, scored)


def test_a_cheat_that_pays_is_named(audited: Audited, register: Any) -> None:
    register(toy.valuation(scorers=_gullible("bk_val_3", AAA=0.9)))
    report = audited(toy.tasks(), "exploits")
    assert found(report) == {("exploits", "bk_val_3")}
    assert report.checks[0].figures["best"]["valuation"]["certified"]["mean"] == pytest.approx(0.15)


def _shortcut(task_input: Any) -> dict[str, Any]:
    return {f"shortcut {i}": {"value": toy.second(task_input)["value"], "largest": "nobody"} for i in range(6)}


def test_a_shortcut_that_earns_too_much_is_named(audited: Audited, register: Any) -> None:
    """Half marks lie at the bound of easy episodes and above that of hard ones."""
    register(toy.valuation(examples=replace(toy.EXAMPLES, shortcuts=Shortcuts(_shortcut))))
    easy = toy.tasks()
    assert audited(easy, "shortcuts").passed
    hard = [(replace(episode, difficulty="hard"), truth) for episode, truth in easy]
    messages = {finding.message for finding in audited(hard, "shortcuts").checks[0].findings}
    assert messages == {"earns 0.500 on average in hard episodes; at most 0.35 is allowed"}


def test_shortcuts_that_earn_more_in_a_harder_tier_are_named(audited: Audited, register: Any) -> None:
    register(
        toy.valuation(
            examples=replace(toy.EXAMPLES, shortcuts=Shortcuts(_shortcut)), scorers=_gullible("bk_val_0", nobody=0.1)
        )
    )
    tasks = [(replace(e, difficulty="medium" if place else "easy"), t) for place, (e, t) in enumerate(toy.tasks())]
    (finding,) = audited(tasks, "shortcuts").checks[0].findings
    assert finding.message == "all shortcuts earn 0.500 on average in medium episodes, 0.100 in easy ones"


def test_a_score_above_one_is_named(audited: Audited, register: Any) -> None:
    register(toy.valuation(scorers=_gullible("bk_val_3", A=1.5)))
    names = {finding.message.split(" scores")[0] for finding in audited(toy.tasks(), "exploits").checks[0].findings}
    assert "a million" in names


def test_values_invented_for_nulls_may_not_be_free(audited: Audited) -> None:
    """The toy's scorer does not look at the note, so that a note invented where there is none costs nothing."""
    spoilt = spoil(lambda e, t: (e, replace(t, expected_output={**t.expected_output, "note": None})))
    report = audited(spoilt, "exploits")
    assert found(report) == {("exploits", "bk_val_3")}
    assert "invented for its nulls scores 1.000" in report.checks[0].findings[0].message


def test_a_truth_that_does_not_score_one_is_named(audited: Audited, register: Any) -> None:
    tasks = toy.tasks()
    largest = tasks[SPOILT][1].expected_output["largest"]
    register(toy.valuation(scorers=_gullible("bk_val_3", **{largest: 0.9})))
    report = audited(tasks, "floor_and_ceiling")
    assert found(report) == {("floor_and_ceiling", "bk_val_3")}
    assert {finding.message for finding in report.checks[0].findings} == {
        "the truth itself scores 0.900",
        "the reference program with skills scores 0.900",
    }


def test_without_a_skill_the_reference_follows_what_the_prompt_prints(audited: Audited) -> None:
    (check,) = audited(toy.tasks(), "floor_and_ceiling").checks
    assert check.figures["means"]["valuation"]["baseline/reference without a skill"] == 1.0


def test_a_floor_that_is_too_high_is_named(audited: Audited, register: Any) -> None:
    register(toy.valuation(scorers=_gullible("bk_val_3", **{"": 0.3})))
    report = audited(toy.tasks(), "floor_and_ceiling")
    assert found(report) == {("floor_and_ceiling", "bk_val_3")}
    assert "baseline/trivial scores 0.050 on average" in report.checks[0].findings[0].message


def test_a_rung_outside_its_band_is_named(audited: Audited, register: Any) -> None:
    register(toy.valuation(scorers=_gullible("bk_val_3", nobody=0.8)))
    report = audited(toy.tasks(), "ordering")
    assert found(report) == {("ordering", "bk_val_3")}
    (finding,) = report.checks[0].findings
    assert (finding.field, finding.message) == ("wrong name", "scores 0.800, its band is 0.500 to 0.500")


def test_a_worse_answer_that_scores_more_is_named(audited: Audited, register: Any) -> None:
    def rising(label: Any) -> list[GradedExample]:
        truth, name, twice = toy.ladder(label)
        wide = replace(name, least=0.0), replace(twice, least=0.0, most=1.0)
        return [truth, *(reversed(wide) if label.truth.task_id == "bk_val_3" else wide)]

    register(toy.valuation(examples=replace(toy.EXAMPLES, graded=rising)))
    report = audited(toy.tasks(), "ordering")
    assert found(report) == {("ordering", "bk_val_3")}
    assert "the better answer 'twice the value'" in report.checks[0].findings[0].message


def test_a_subtask_without_a_ladder_is_named(audited: Audited, register: Any) -> None:
    register(toy.valuation(examples=replace(toy.EXAMPLES, graded=None)))
    report = audited(toy.tasks(), "ordering")
    assert found(report) == {("ordering", "valuation")}
    assert report.passed  # a package that is not ours need not have one


def test_checks_of_a_domain_are_run_under_their_names(audited: Audited, register: Any) -> None:
    def examine(subject: Any, findings: Any) -> None:
        findings.fail(subject.episodes[SPOILT].task_id, "does not balance", "value")

    register(audits={"double entry": examine})
    report = audited(toy.tasks(), "double_entry")
    assert found(report) == {("double_entry", "bk_val_3")}
    assert report.checks[0].domain == "bookkeeping"


def test_a_label_that_is_not_derived_again_is_named(audited: Audited) -> None:
    report = audited(spoil(lambda e, t: (e, replace(t, proof={}))), "rederived")
    assert found(report) == {("rederived", "bk_val_3")}


def test_a_label_without_a_proof_is_named(audited: Audited) -> None:
    report = audited(spoil(lambda e, t: (e, replace(t, proof={}))), "certified", "unique")
    assert found(report) == {("certified", "bk_val_3"), ("unique", "bk_val_3")}


def test_an_optimum_that_is_not_the_only_one_is_named(audited: Audited) -> None:
    several = {"kind": "optimal", "unique": False, "uniqueness": "not unique: another optimum is known"}
    report = audited(spoil(lambda e, t: (e, replace(t, proof=several))), "certified", "unique")
    assert found(report) == {("unique", "bk_val_3")}


@pytest.mark.parametrize("stated", [{}, {"value": "quantity times price, in thousands"}])
def test_a_definition_that_is_not_the_label_s_is_named(stated: dict[str, str], audited: Audited, register: Any) -> None:
    known = {"value": "quantity times price"}
    register(toy.valuation(definitions=known))
    tasks = [(with_input(episode, conventions=known), truth) for episode, truth in toy.tasks()]
    tasks[SPOILT] = with_input(tasks[SPOILT][0], conventions=stated), tasks[SPOILT][1]
    assert found(audited(tasks, "spec_agrees")) == {("spec_agrees", "bk_val_3")}


def test_an_unknown_check_is_refused(audited: Audited) -> None:
    with pytest.raises(InputError, match="there is no check astrology; choose from: rederived, solvable"):
        audited(toy.tasks(), "astrology")


@pytest.mark.slow
def test_many_episodes_are_shared_out_to_processes(audited: Audited) -> None:
    """Other processes load the registry anew, so that the toy is none of theirs: every episode is a finding."""
    report = audited(toy.tasks(130), "solvable")
    assert report.checks[0].figures["episodes"] == 130
    assert {finding.where for finding in report.checks[0].findings} == {f"bk_val_{i}" for i in range(130)}


def test_the_command_prints_and_writes_the_report(
    audited: Audited, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    audited(spoil(lambda e, t: (with_input(e, prices={}), t)), "ordering")
    edition, out = str(tmp_path / "edition"), tmp_path / "audit.json"
    assert cli.main(["audit", edition, "--check", "solvable", "--check", "ordering", "--json", str(out)]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("all\nFAIL  solvable labels 5, episodes 6\n      FAIL bk_val_3: prices: the answer depends")
    report = orjson.loads(out.read_bytes())
    assert report["passed"] is False
    assert report["checks"][0]["findings"] == [
        {
            "state": "FAIL",
            "where": "bk_val_3",
            "message": "the answer depends on it, but it is empty",
            "field": "prices",
        }
    ]
    assert cli.main(["audit", edition, "--check", "point_in_time"]) == 0
    assert cli.main(["audit", edition, "--check", "astrology"]) == 2
