"""Commands started over an edition: what they need to be, two at a time over HTTP, and a run that is killed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import polars as pl
import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from tests.integrations.mcp.small import AGENT, NAME, over_stdio, traces
from tests.sampling import thorough

from finskillbench import cli
from finskillbench.errors import InputError
from finskillbench.integrations.mcp.drive import drive_agent, parse_command

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("python 'agent.py", "cannot be parsed"),
        ("python agent.py {promt_file} {mcp_url}", "unknown placeholder {promt_file}; available: {mcp_config}"),
        ("python agent.py {prompt_file}", "could not reach its tools"),
        ("no-such-program {mcp_url}", "the program 'no-such-program' is not found"),
    ],
)
def test_a_command_that_cannot_be_started_is_refused(
    command: str, message: str, small_edition, tmp_path, capsys
) -> None:
    with pytest.raises(InputError, match=message.replace("{", r"\{")):
        parse_command(command)
    arguments = ["drive", str(small_edition.path), "--name", NAME, "--out", str(tmp_path / "run")]
    assert cli.main([*arguments, "--agent-command", command]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert not (tmp_path / "run").exists()


def test_files_are_those_of_the_folder_where_the_command_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").touch()
    (tmp_path / "tests").mkdir()
    words = parse_command("python agent.py --config=agent.py --plain=other.py -m tests {mcp_url}")
    file = str(tmp_path / "agent.py")
    assert words[1:] == (file, f"--config={file}", "--plain=other.py", "-m", "tests", "{mcp_url}")


def test_an_agent_that_cannot_start_is_one_error(small_edition, tmp_path, monkeypatch, capsys, caplog) -> None:
    monkeypatch.setattr("finskillbench.integrations.mcp.drive._WAITS", ())
    arguments = ["drive", str(small_edition.path), "--name", NAME, "--out", str(tmp_path / "run")]
    arguments += ["--condition", "no_skill", "--agent-command", f"{sys.executable} absent.py {{mcp_config}}"]
    assert cli.main(arguments) == 1
    captured = capsys.readouterr()
    assert (captured.out + captured.err + caplog.text).count("absent.py") == 1
    assert "Mean score" not in captured.out


def test_the_command_line_drives_and_prints_a_table(small_edition, tmp_path, capsys) -> None:
    arguments = ["drive", str(small_edition.path), "--name", NAME, "--out", str(tmp_path / "run")]
    arguments += ["--agent-command", over_stdio("submits"), "--condition", "no_skill", "--limit", "1"]
    assert cli.main(arguments) == 0
    assert "Episodes:     3 run\n" in capsys.readouterr().out
    assert cli.main(arguments) == 0
    assert "Episodes:     0 run, 3 kept from before\n" in capsys.readouterr().out


def test_a_limit_on_cost_is_kept_as_the_agent_tells_it(small_edition, tmp_path, capsys) -> None:
    arguments = ["drive", str(small_edition.path), "--name", NAME, "--out", str(tmp_path / "run"), "--max-cost", "1.2"]
    arguments += ["--condition", "no_skill", "--max-concurrency", "1"]
    assert cli.main([*arguments, "--agent-command", f"{AGENT} submits {{mcp_config}}"]) == 2
    assert "--max-cost needs {usage_file} in --agent-command" in capsys.readouterr().err
    assert cli.main([*arguments, "--agent-command", over_stdio("spends")]) == 1
    printed = capsys.readouterr().out
    assert "Episodes:     2 run, 4 not run" in printed
    assert "--max-cost 1.2 is reached: 1.00 USD are spent" in printed


def test_skills_of_ones_own_are_an_arm(small_edition, tmp_path, capsys) -> None:
    skill = tmp_path / "mine" / "my-skill"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: my-skill\ndescription: Says what to do.\n---\nDo it.\n")
    arguments = ["drive", str(small_edition.path), "--name", NAME, "--out", str(tmp_path / "run"), "--limit", "1"]
    arguments += ["--agent-command", over_stdio("solve"), "--condition", "no_skill", "--skills", f"mine={skill}"]
    assert cli.main(arguments) == 0
    rows = pl.read_parquet(tmp_path / "run" / "rows.parquet").sort("condition")
    assert rows["condition"].to_list() == ["no_skill"] * 3 + ["skill:mine"] * 3
    assert rows["skills_loaded"].to_list() == [[]] * 3 + [["my-skill"]] * 3


@thorough
def test_an_agent_of_the_official_kit_reads_the_file_that_names_its_tools(small_edition, tmp_path) -> None:
    program = Path(__file__).with_name("kit_agent.py")
    command = f"{sys.executable} {program} {{mcp_config}} {{prompt_file}}"
    result = drive_agent(
        small_edition, command, NAME, conditions=["no_skill"], subtasks=["rebalancing"], limit=1, out=tmp_path / "run"
    )
    (trace,) = traces(result)
    assert json.loads(trace.answer) == {"tools": ["submit_answer", "get_task_data"]}
    assert (trace.ended, trace.incidents) == ("submitted", ())


@pytest.mark.enable_socket
def test_two_episodes_are_served_at_once_over_http(small_edition, tmp_path) -> None:
    """Each agent waits for the other to have made a call before it submits."""
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    command = f"{AGENT} meets {{mcp_url}} {{prompt_file}} {meeting}"
    result = drive_agent(
        small_edition,
        command,
        NAME,
        conditions=["no_skill"],
        subtasks=["rebalancing"],
        seconds=600,
        max_concurrency=2,
        out=tmp_path / "run",
    )
    assert result.rows["valid_json"].to_list() == [True, True]
    assert result.rows["incidents"].to_list() == [[], []]
    assert len(list(meeting.iterdir())) == 2
