"""`finskillbench plan`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.runs.examples import row

from finskillbench import cli
from finskillbench.harness.conditions import Condition
from finskillbench.harness.models import NO_ARGUMENTS
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store.journal import Journal, write_events
from finskillbench.runs.store.record import Dropped, Expense, Finished

NOP = ["--model", "baseline/nop", "--condition", "no_skill"]
needs_llm = pytest.mark.skipif(find_spec("inspect_ai") is None, reason="the extra llm is not installed")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep default run folders inside the test's temporary folder."""
    monkeypatch.chdir(tmp_path)


def figures(printed: str, title: str) -> list[list[str]]:
    """Rows of the table under a title."""
    (table,) = [part for part in printed.split("\n\n") if part.startswith(f"{title}  ")]
    return [line.split() for line in table.splitlines()[2:]]


def test_tables_by_model_and_condition_and_nothing_is_written(edition: Path, capsys, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    conditions = ["--condition", "no_skill", "--condition", "self_generated"]
    arguments = ["--edition", str(edition), "--model", "baseline/nop", "--model", "baseline/reference", *conditions]
    assert cli.main(["plan", *arguments]) == 0
    printed = capsys.readouterr().out
    expected, spread = figures(printed, "Expected"), figures(printed, "From - to")
    assert [row[:-5] for row in expected] == [
        ["baseline/reference", "no_skill"],
        ["self_generated"],
        ["all"],
        ["baseline/nop", "no_skill"],
        ["self_generated"],
        ["all"],
        ["all"],
    ]
    assert expected[3][2:] == ["3", "0", "0", "0", "0.00"]
    assert spread == expected
    assert expected[-1][1] == "12"
    assert "Price unknown" not in printed
    assert sorted(tmp_path.rglob("*")) == before


def test_finished_episodes_are_left_out(edition: Path, capsys) -> None:
    some = ["--edition", str(edition), *NOP]
    assert cli.main(["run", *some]) == 0
    capsys.readouterr()
    assert cli.main(["plan", *some]) == 0
    printed = capsys.readouterr().out
    assert figures(printed, "Expected") == [["baseline/nop", "no_skill", "0", "0", "0", "0", "0.00"]]
    assert "Finished: 3 episodes in runs/run-" in printed


@needs_llm
def test_a_hosted_model_without_a_price(edition: Path, capsys) -> None:
    arguments = ["--edition", str(edition), "--model", "openai-api/nobody/knows-this", "--condition", "no_skill"]
    assert cli.main(["plan", *arguments]) == 0
    printed = capsys.readouterr().out
    # Three episodes as published: 38,783 tokens in 7.46 calls each, a tenth of them written.
    ((*_, calls, read, written, cost),) = figures(printed, "Expected")
    assert (calls, read, written, cost) == ("22", "104,714", "11,635", "unknown")
    assert "openai-api/nobody/knows-this no_skill: published average of eight models" in printed
    assert "A pilot improves the estimate: run with --limit 5, then plan --like with its run folder." in printed
    assert "Price unknown: openai-api/nobody/knows-this; give it in a file with --prices." in printed


def test_whether_the_money_is_enough(edition: Path, capsys) -> None:
    assert cli.main(["plan", "--edition", str(edition), *NOP, "--max-cost", "1"]) == 0
    assert "--max-cost 1.00 USD is expected to be enough." in capsys.readouterr().out


def test_money_that_the_run_folder_has_spent_is_gone(edition: Path, capsys) -> None:
    arguments = ["--edition", str(edition), *NOP, "--out", "mine"]
    assert cli.main(["run", *arguments]) == 0
    with Journal(Path("mine")) as journal:
        journal.append(
            Dropped(Item("baseline/nop", NO_ARGUMENTS, Condition.NO_SKILL, "t", 0), "budget", Expense(1, lost_usd=2.0))
        )
    capsys.readouterr()
    for most, verdict in (("1.5", "stop the run early"), ("2.5", "be enough")):
        assert cli.main(["plan", *arguments, "--max-cost", most]) == 0
        assert f"--max-cost {most}0 USD, of which 2.00 are spent, is expected to {verdict}." in capsys.readouterr().out


@needs_llm
def test_a_model_goes_on_as_in_an_earlier_run(edition: Path, capsys) -> None:
    pilot = Path("pilot")
    pilot.mkdir()
    rows = [row(0, sub_task="rebalancing", model="openai/gpt-5", condition=Condition.NO_SKILL, turns=6)]
    write_events(pilot, map(Finished, rows))
    some = ["--edition", str(edition), "--model", "openai/gpt-5", "--condition", "no_skill", "--subtask"]
    assert cli.main(["plan", *some, "rebalancing", "--like", "pilot"]) == 0
    printed = capsys.readouterr().out
    ((_, _, episodes, calls, read, written, _),) = figures(printed, "Expected")
    assert int(calls) == 6 * int(episodes)
    assert int(read.replace(",", "")) == 1_000 * int(episodes)
    assert int(written) == 50 * int(episodes)
    assert "openai/gpt-5 no_skill: 1 episodes with other arguments in pilot." in printed
    assert "A pilot" not in printed
    assert cli.main(["plan", *some, "rebalancing", "--like", str(edition)]) == 2
    assert "no model has finished an episode with known tokens" in capsys.readouterr().err
