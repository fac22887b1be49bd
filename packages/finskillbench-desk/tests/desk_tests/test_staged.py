"""Episodes that are played move by move, in runs: given up half-way and resumed, judged by their record, handed out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from finskillbench import cli
from finskillbench.edition import Edition
from finskillbench.errors import Cause, InputError, ProviderError
from finskillbench.harness.model import ToolCall, Turn, Usage
from finskillbench.integrations.task_files.write import export_tasks
from finskillbench.runs.config import EpisodeSelection
from finskillbench.runs.execute.run import run

NAME = "trade_over_time"


class Trader:
    """Holds still for so many decisions and hands in; it fails in the middle of its first try where it is told to."""

    name = "test/trader"

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails

    async def generate(self, messages, tools, tool_choice) -> Turn:
        taken = sum(message.role == "assistant" for message in messages)
        if self.fails and taken == 3:
            raise ProviderError("the line went dead", Cause.BAD_REQUEST)
        usage = Usage(output_tokens=5, cost_usd=0.0)
        if taken < 5:
            return Turn(tool_calls=(ToolCall("a", "advance", '{"trades": {}}'),), usage=usage)
        answer = json.dumps({"decisions": 5, "record": {"moves": ["of its own making"]}})
        return Turn(tool_calls=(ToolCall("s", "submit_answer", json.dumps({"answer": answer})),), usage=usage)


def rows(edition: Edition, out: Path, model: Trader):
    found = run(edition, [model], ["no_skill"], [NAME], limit=1, out=out).rows
    return found.drop("started", "ended", "latency_seconds", "queue_seconds", "retry_seconds")


def test_what_was_given_up_half_way_begins_anew(synthetic_edition: Edition, tmp_path: Path) -> None:
    """A broken episode leaves no move behind: resumed, it is the episode that was never broken."""
    whole = rows(synthetic_edition, tmp_path / "whole", Trader())
    broken = rows(synthetic_edition, tmp_path / "resumed", Trader(fails=True))
    assert broken["status"].to_list() == ["error"]
    resumed = rows(synthetic_edition, tmp_path / "resumed", Trader())
    assert whole.equals(resumed)
    assert whole["turns"].to_list() == [6]


def test_the_record_is_ours_whatever_the_answer_says(synthetic_edition: Edition, tmp_path: Path) -> None:
    found = rows(synthetic_edition, tmp_path / "run", Trader())
    details = json.loads(found["scoring_details"][0])
    assert details["certified"]["decisions"] == 5


def test_folders_hold_tables_and_no_game(synthetic_edition: Edition, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"{NAME} is interactive and cannot be exported"):
        export_tasks(synthetic_edition, tmp_path / "no", chosen=EpisodeSelection(subtasks=[NAME], limit=1))
    record = export_tasks(
        synthetic_edition, tmp_path / "yes", chosen=EpisodeSelection(subtasks=["forensic_screen"], limit=1)
    )
    (folder,) = record.tasks
    data = tmp_path / "yes" / folder / "data"
    episode = synthetic_edition.episodes(["forensic_screen"])[0]
    table = synthetic_edition.full_input(episode)["statements"]
    lines = (data / "statements.csv").read_text().splitlines()
    assert lines[0].split(",") == list(table)
    assert len(lines) == table.rows + 1


def test_interactive_episodes_that_are_left_out_are_counted(
    synthetic_edition: Edition, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["export-tasks", str(synthetic_edition.path), str(tmp_path / "out"), "--suite", "desk", "--limit", "1"]
    assert cli.main([*arguments, "--format", "harbor"]) == 0
    count = synthetic_edition.counts[NAME]
    assert f"Left out: {count} episodes of {NAME}, which is interactive" in capsys.readouterr().out
