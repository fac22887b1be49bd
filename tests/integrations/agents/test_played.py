"""Whole episodes in Claude Code, Codex CLI, OpenHands and mini-swe-agent, with a model on loopback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from tests.integrations.agents.play import PLAYERS, PORTFOLIO, RISK, Player, environment
from tests.integrations.agents.stand_in import stand_in
from tests.integrations.mcp.small import NAME, over_stdio, traces

from finskillbench.edition import Edition
from finskillbench.harness.conditions import mount_all
from finskillbench.harness.skills.loader import curated, placebo
from finskillbench.integrations.mcp.drive import drive_agent
from finskillbench.runs.execute.run import run

pytestmark = [pytest.mark.slow, pytest.mark.enable_socket]


def _installed(player: Player) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        not player.is_installed, reason=f"{player.executable} is neither on PATH nor in .venv-agents"
    )


@pytest.mark.parametrize("player", [pytest.param(each, id=each.harness, marks=_installed(each)) for each in PLAYERS])
def test_an_episode_is_played_scored_and_told_by_its_log(
    player: Player, training_edition: Edition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conditions, part = ["no_skill", "placebo", "curated"], {"subtasks": ["tool_use_parameterization"], "limit": 1}
    with stand_in(player.script) as model:
        for name, value in environment(model.address).items():
            monkeypatch.setenv(name, value)
        result = drive_agent(
            training_edition,
            player.command(model.address),
            f"agent/{player.harness}",
            harness=player.harness,
            conditions=conditions,
            seconds=120,
            out=tmp_path / "run",
            **part,
        )
    rows = {row["condition"]: row for row in result.rows.to_dicts()}
    assert [rows[each]["incidents"] for each in conditions] == [[], [], []]
    assert {row["harness"] for row in rows.values()} == {player.harness}

    # What the stand-in read and ran, and nothing else; the script in the shell is a use as well.
    assert [rows[each]["skills_loaded"] for each in conditions] == [[], [], [RISK, PORTFOLIO]]
    scripts = [f"{PORTFOLIO}/scripts/read_mandate.py", f"{PORTFOLIO}/scripts/check_constraints.py"]
    assert [rows[each]["scripts_run"] for each in conditions] == [[], [], scripts]
    assert {trace.condition: trace.tools for trace in traces(result)} == {
        "no_skill": ("submit_answer", "get_task_data"),
        "placebo": ("submit_answer", "get_task_data"),
        "curated": ("submit_answer", "get_task_data", "run_skill_script"),
    }

    # The model saw the skills of its condition by name, and none of another one.
    names = {*curated(), *placebo()}
    seen = {frozenset(name for name in names if name in json.dumps(request)) for request in model.requests}
    assert seen == {
        frozenset(each.for_domain("portfolio_construction").packages) for each in mount_all(conditions).values()
    }

    # The same answer in our own loop has the same scores.
    ours = run(training_edition, ["baseline/reference"], ["curated"], out=tmp_path / "ours", **part)
    (expected,) = ours.rows["scores"].to_list()
    assert rows["curated"]["scores"] == expected


def test_a_log_without_calls_is_an_incident(small_edition: Edition, tmp_path: Path) -> None:
    command = f"{over_stdio('submits')} {{log_file}}"
    part = {"conditions": ["curated"], "subtasks": ["rebalancing"], "limit": 1, "out": tmp_path / "run"}
    (trace,) = traces(drive_agent(small_edition, command, NAME, harness="codex", **part))
    assert (trace.ended, trace.incidents, trace.skills_loaded) == ("submitted", ("adapter_failed",), ())
    assert trace.error is not None
    assert "{log_file} holds no tool call in the format of --harness" in trace.error
