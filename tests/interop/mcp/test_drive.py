"""Commands started over an edition: what they need to be, two at a time over HTTP, and a run that is killed."""

from __future__ import annotations

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from tests.interop.mcp.small import AGENT, NAME, over_stdio

from finskillbench import cli
from finskillbench.errors import InputError
from finskillbench.interop.mcp.command import parse_command
from finskillbench.interop.mcp.drive import drive


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("python 'agent.py", "is no command line"),
        ("python agent.py {promt_file} {mcp_url}", "there is no {promt_file}; there are {mcp_config}, {mcp_url}"),
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


def test_the_command_line_drives_and_prints_a_table(small_edition, tmp_path, capsys) -> None:
    arguments = ["drive", str(small_edition.path), "--name", NAME, "--out", str(tmp_path / "run")]
    arguments += ["--agent-command", over_stdio("submits"), "--condition", "no_skill", "--limit", "1"]
    assert cli.main(arguments) == 0
    assert "Episodes:     3 run\n" in capsys.readouterr().out
    assert cli.main(arguments) == 0
    assert "Episodes:     0 run, 3 kept from before\n" in capsys.readouterr().out


@pytest.mark.enable_socket
def test_two_episodes_are_served_at_once_over_http(small_edition, tmp_path) -> None:
    """Each agent waits for the other to have made a call before it submits."""
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    command = f"{AGENT} meets {{mcp_url}} {{prompt_file}} {meeting}"
    result = drive(
        small_edition,
        command,
        NAME,
        ["no_skill"],
        ["rebalancing"],
        seconds=120,
        max_concurrency=2,
        out=tmp_path / "run",
    )
    assert result.rows["valid_json"].to_list() == [True, True]
    assert result.rows["incidents"].to_list() == [[], []]
    assert len(list(meeting.iterdir())) == 2
