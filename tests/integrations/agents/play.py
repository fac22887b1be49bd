"""What the stand-in plays in each program: calls in its own form, over tools and skills of one episode."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integrations.agents.stand_in import Call

PORTFOLIO, RISK = "portfolio-construction", "risk-management"
RECIPES = Path(__file__).parents[3] / "examples" / "agents"
_INSTALLED = Path(sys.prefix).parent / ".venv-agents"
SEARCHED = os.pathsep.join([os.environ["PATH"], str(_INSTALLED / "bin"), str(_INSTALLED / "node_modules" / ".bin")])
_RUN = {
    "script_path": f"{PORTFOLIO}/scripts/read_mandate.py",
    "inject_task_fields": ["scenario_description", "sectors"],
}
_KEY = '"optimizer_call"'
_LIST = "ls -A . .claude/skills .agents/skills"


@dataclass(frozen=True)
class Player:
    """A program by its name in `--harness`, its executable, and its recipe's arguments."""

    harness: str
    executable: str
    arguments: str

    @property
    def is_installed(self) -> bool:
        return shutil.which(self.executable, path=SEARCHED) is not None

    def command(self, address: str) -> str:
        return f"sh {RECIPES / self.harness}.sh {self.arguments.format_map(_Places(address=address))}"

    def shell(self, command: str) -> Call:
        if self.harness == "codex":
            return "exec_command", {"cmd": command}
        name = {"claude-code": "Bash", "openhands": "terminal", "mini-swe-agent": "bash"}[self.harness]
        return name, {"command": command} | self._more

    def tool(self, name: str, arguments: dict[str, Any]) -> Call:
        if self.harness == "mini-swe-agent":
            return self.shell(f"./tool {name} {shlex.quote(json.dumps(arguments))}")
        prefix = {"claude-code": "mcp__finskillbench__", "codex": "mcp__finskillbench/", "openhands": ""}
        return prefix[self.harness] + name, arguments | self._more

    def read(self, skill: str) -> Call:
        """Read a skill in the program's own way."""
        if self.harness == "claude-code":
            return "Skill", {"skill": skill}
        if self.harness == "openhands":
            return "invoke_skill", {"name": skill} | self._more
        return self.shell(f"cat .agents/skills/{skill}/SKILL.md")

    @property
    def _more(self) -> dict[str, str]:
        return {"security_risk": "LOW"} if self.harness == "openhands" else {}

    def script(self, request: str, results: Sequence[str]) -> Call | None:
        """List folders, read two of the curated skills, run a script by the tool and by the shell, and submit."""
        is_curated = PORTFOLIO in request
        steps = [self.shell(_LIST)]
        if is_curated:
            by_shell = f"ls; python3 */skills/{PORTFOLIO}/scripts/check_constraints.py --help"
            steps += [self.read(RISK), self.read(PORTFOLIO), self.shell(by_shell), self.tool("run_skill_script", _RUN)]
        done = len(results)
        if done == len(steps):
            answer = {"optimizer_call": _optimizer_call(results[-1]) if is_curated else {}}
            return self.tool("submit_answer", {"answer": json.dumps(answer)})
        if done < len(steps):
            return steps[done]
        return self.shell("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT") if self.executable == "mini" else None


class _Places(dict[str, str]):
    """Keeps the placeholders of a command line."""

    def __missing__(self, key: str) -> str:
        return f"{{{key}}}"


PLAYERS = [
    Player("claude-code", "claude", "claude-sonnet-4-5 {mcp_config} {prompt_file} {log_file}"),
    Player("codex", "codex", "gpt-5 {mcp_url} {prompt_file} {log_file} {address}/v1"),
    Player("openhands", "openhands", "{mcp_config} {prompt_file} {log_file}"),
    Player("mini-swe-agent", "mini", "openai/gpt-4o {mcp_url} {prompt_file} {log_file} {address}/v1"),
]


def environment(address: str) -> dict[str, str]:
    """Variables that send each program to the stand-in."""
    return {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{SEARCHED}",
        "ANTHROPIC_API_KEY": "none",
        "ANTHROPIC_BASE_URL": address,
        "OPENAI_API_KEY": "none",
        "LLM_API_KEY": "none",
        "LLM_BASE_URL": f"{address}/v1",
        "LLM_MODEL": "openai/gpt-4o",
    }


def _optimizer_call(result: str) -> Any:
    """Return that part of a script's output in a result, which may be JSON inside of JSON."""
    while _KEY not in result:
        if "\\" not in result:
            return result  # scored 0, so that the test fails without a retry
        result = result.replace("\\\\", "\\").replace('\\"', '"')
    return json.JSONDecoder().raw_decode(result[result.index("{", result.index(_KEY)) :])[0]
