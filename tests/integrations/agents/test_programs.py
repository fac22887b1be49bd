"""Logs of four programs, as their tested versions write them: what was read, and what was run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from tests.integrations.agents.play import PORTFOLIO, RISK

from finskillbench.edition import Edition
from finskillbench.errors import InputError
from finskillbench.harness.agents import Agent, Task, Tools
from finskillbench.harness.conditions import mount_all
from finskillbench.harness.skills.loader import curated, read_files, write_package
from finskillbench.integrations.mcp import drive
from finskillbench.integrations.mcp.drive import parse_harness
from finskillbench.integrations.mcp.programs import PROGRAMS, skills_used
from finskillbench.runs.execute.run import run

Uses = list[tuple[str, str]]


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def claude_code(uses: Uses) -> str:
    lines = [{"type": "system", "subtype": "init", "skills": [PORTFOLIO, RISK]}]
    for number, (command, result) in enumerate(uses):
        call = {"type": "tool_use", "id": f"c{number}", "name": "Bash", "input": {"command": command}}
        answer = {"type": "tool_result", "tool_use_id": f"c{number}", "content": [{"type": "text", "text": result}]}
        lines.append({"type": "assistant", "message": {"content": [call]}})
        lines.append({"type": "user", "message": {"content": [answer]}})
    return "\n".join(map(json.dumps, lines))


def codex(uses: Uses) -> str:
    lines = []
    for command, result in uses:
        item = {"type": "command_execution", "command": f"/bin/bash -lc {command!r}", "aggregated_output": result}
        lines += [{"type": "item.started", "item": item}, {"type": "item.completed", "item": item}]
    return "\n".join(map(json.dumps, lines))


def openhands(uses: Uses) -> str:
    lines = ["Initializing agent..."]
    for number, (command, result) in enumerate(uses):
        action = {"kind": "ActionEvent", "tool_call_id": f"c{number}", "action": {"command": command}}
        content = [{"type": "text", "text": result}]
        seen = {"kind": "ObservationEvent", "tool_call_id": f"c{number}", "observation": {"content": content}}
        lines += [json.dumps(action), "Agent is working", json.dumps(seen)]
    return "\n".join(lines)


def mini_swe_agent(uses: Uses) -> str:
    messages: list[dict[str, object]] = [{"role": "user", "content": curated()[RISK].body}]
    for number, (command, result) in enumerate(uses):
        action = {"command": command, "tool_call_id": f"c{number}"}
        messages.append({"role": "assistant", "extra": {"actions": [action]}})
        shown = json.dumps({"returncode": 0, "output": result}, indent=1)
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": shown, "extra": {"raw_output": ""}})
    return json.dumps({"messages": messages}, indent=2)


def used(uses: Uses, program: str = "codex", *, scripts: bool = True) -> tuple[list[str], list[str]]:
    log = {"claude-code": claude_code, "codex": codex, "openhands": openhands, "mini-swe-agent": mini_swe_agent}
    return skills_used(PROGRAMS[program].read(log[program](uses).encode()), curated(), scripts=scripts)


def body(name: str, form: Callable[[int, str], str] = lambda _, line: line, lines: int | None = None) -> str:
    return "\n".join(form(number, line) for number, line in enumerate(curated()[name].body.splitlines()[:lines], 1))


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_log_tells_what_was_read_in_order_and_what_was_run(program: str) -> None:
    run = f"cd x && python3 .agents/skills/{PORTFOLIO}/scripts/optimize.py --input task.json"
    uses = [(f"cat {RISK}/SKILL.md", body(RISK)), ("cat SKILL.md", body(PORTFOLIO)), (run, "{}"), ("ls", RISK)]
    assert used(uses, program) == ([RISK, PORTFOLIO], [f"{PORTFOLIO}/scripts/optimize.py"])
    assert used(uses, program, scripts=False) == ([RISK, PORTFOLIO], [])
    assert used([("ls", "")], program) == ([], [])
    assert list(PROGRAMS[program].read(b"")) == list(PROGRAMS[program].read(b'[1] {"\n\xff')) == []


def test_a_result_of_counters_is_text() -> None:
    message = {"role": "tool", "content": "1\r2\r3", "extra": {"raw_output": ""}}
    assert list(PROGRAMS["mini-swe-agent"].read(json.dumps({"messages": [message]}).encode())) == [("", "1\r2\r3")]


@pytest.mark.parametrize(
    "form",
    [
        lambda number, line: f"{number}\t{line}",
        lambda number, line: f"{number:6}→{line}",
        lambda number, line: f"skills/SKILL.md:{number}:{line}",
    ],
    ids=["cat -n", "editor", "grep"],
)
def test_numbered_lines_are_lines(form: Callable[[int, str], str]) -> None:
    assert used([("", body(PORTFOLIO, form))])[0] == [PORTFOLIO]


def test_the_index_and_a_single_line_are_no_reading_and_a_reference_is_one() -> None:
    package = curated()[PORTFOLIO]
    (line,) = (line for line in package.body.splitlines() if line.startswith("Never retype"))
    assert used([("", package.description), ("", line), ("", line)])[0] == []
    assert used([("", body(PORTFOLIO, lines=5))])[0] == []
    assert used([("", package.references["references/methods.md"])])[0] == [PORTFOLIO]


@pytest.mark.parametrize(
    ("command", "is_run"),
    [
        ("python3.12 -u skills/portfolio-construction/scripts/optimize.py < x", True),
        ("cd skills/portfolio-construction && python -m scripts.optimize", True),
        ("cd skills/portfolio-construction/scripts && python - <<E\nfrom optimize import main\nE", True),
        ("uv run portfolio-construction/scripts/optimize.py", True),
        ("cat portfolio-construction/scripts/optimize.py", False),
        ("python portfolio-construction/other.py; cat portfolio-construction/scripts/optimize.py", False),
        ("python elsewhere/optimize.py", False),
    ],
)
def test_a_run_needs_an_interpreter_and_the_script(command: str, is_run: bool) -> None:
    assert used([(command, "")])[1] == [f"{PORTFOLIO}/scripts/optimize.py"] * is_run


def test_after_a_document_its_script_needs_no_path() -> None:
    assert used([("", body(PORTFOLIO)), ("python optimize.py", "")])[1] == [f"{PORTFOLIO}/scripts/optimize.py"]


def test_documents_come_without_scripts_where_a_condition_grants_none(tmp_path: Path) -> None:
    package = curated()[PORTFOLIO]
    write_package(package, tmp_path, scripts=False)
    assert set(read_files(tmp_path)) == {"SKILL.md", *package.references}


@pytest.mark.parametrize(("condition", "granted"), [("docs_only", False), ("curated", True)])
def test_a_program_gets_scripts_where_its_condition_grants_them(
    condition: str, granted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drive, "prompt_text", lambda task: "")
    task: Any = SimpleNamespace(mounted=mount_all([condition])[condition])
    nothing: Any = None
    command = drive.Command(("agent",), nothing, PROGRAMS["codex"])
    asyncio.run(command._prepare(tmp_path, nothing, task, nothing))
    assert (tmp_path / ".agents" / "skills" / PORTFOLIO / "SKILL.md").is_file()
    assert bool(list(tmp_path.rglob("scripts"))) is granted


def test_an_agent_with_files_names_the_skill_of_a_script(small_edition: Edition, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / "skills" / name / "SKILL.md", f"---\nname: {name}\ndescription: Adds.\n---\nRun it.\n")
        write(tmp_path / "skills" / name / "scripts" / "add.py", f"def main(payload):\n    return {{'is': '{name}'}}\n")
    results: list[dict[str, Any]] = []

    async def solve(task: Task, tools: Tools) -> dict[str, Any]:
        assert {tool.name for tool in task.tools}.isdisjoint({"load_skill", "load_references"})
        assert sorted(task.mounted.loadable) == ["one", "two"]
        results.append(await tools.call("run_skill_script", script_path="scripts/add.py"))
        results.append(await tools.call("run_skill_script", script_path="one/scripts/add.py"))
        tools.used(["two"], ["two/scripts/add.py"])
        return {}

    part = {"subtasks": ["rebalancing"], "limit": 1, "out": tmp_path / "run", "allow_unconfined": True}
    agent, skills = Agent("files", solve, reads_files=True), {"own": tmp_path / "skills"}
    (row,) = run(small_edition, conditions=["skill:own"], agents=[agent], skills=skills, **part).rows.to_dicts()
    assert "in several skills; name one as SKILL/scripts/add.py" in results[0]["error"]
    assert results[1]["output"] == {"is": "one"}
    assert (row["skills_loaded"], row["scripts_run"]) == (["two"], ["one/scripts/add.py", "two/scripts/add.py"])


def test_an_unknown_program_or_a_missing_log_is_one_line() -> None:
    assert parse_harness("mcp", "agent {mcp_url}") is None
    with pytest.raises(InputError, match="choose from: mcp, claude-code, codex, openhands, mini-swe-agent"):
        parse_harness("claude", "agent {log_file}")
    with pytest.raises(InputError, match=r"--harness codex needs \{log_file\} in --agent-command"):
        parse_harness("codex", "agent {mcp_url}")
