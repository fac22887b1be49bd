"""Code that makes cases is out of reach of agents' code and of skill scripts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from finskillbench.errors import InputError
from finskillbench.harness.conditions import ARMS, Condition
from finskillbench.harness.skills.runner import script_runner
from finskillbench.harness.tools import interpreters
from finskillbench.harness.tools.interpreters import Interpreter, Interpreters, code_runner
from finskillbench_desk.domain import DOMAIN


@pytest.fixture(scope="module")
def interpreter() -> Iterator[Interpreter]:
    """The interpreter of agents that have skills."""
    with code_runner(with_library=True) as runner:
        yield Interpreter(runner)


@pytest.mark.parametrize("folder", DOMAIN.withheld, ids=lambda folder: folder.name)
def test_code_with_skills_reads_no_module_that_makes_cases(folder: Path, interpreter: Interpreter) -> None:
    module = f"finskillbench_desk.{folder.name}"
    for code in (f"import {module}", f"open({str(folder / '__init__.py')!r}).read()"):
        assert "PermissionError" in (asyncio.run(interpreter.run(code, {}, {})).error or ""), code
    loaded = f"import sys\n[name for name in sys.modules if name.startswith({module!r})]"
    assert asyncio.run(interpreter.run(loaded, {}, {})).value == []


def test_code_with_skills_reads_the_engines_of_the_suite(interpreter: Interpreter) -> None:
    code = "from finskillbench_desk.engines.panel import least_squares\nleast_squares.__name__"
    assert asyncio.run(interpreter.run(code, {}, {})).value == "least_squares"


def test_a_script_reads_no_module_that_makes_cases(tmp_path: Path) -> None:
    script = tmp_path / "curious.py"
    script.write_text("def main(payload):\n    import finskillbench_desk.allocate.laws\n    return {}\n")
    with script_runner(allow_unconfined=True) as runner:
        result = asyncio.run(runner.run(script, b"{}"))
    assert not result.ok
    assert "PermissionError" in (result.error or "")


def test_an_interpreter_that_reads_what_is_withheld_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = interpreters.ScriptRunner
    monkeypatch.setattr(interpreters, "ScriptRunner", lambda *known, **how: honest(*known, **{**how, "withheld": ()}))
    with pytest.raises(InputError, match=r"condition code_curated: .*it reads what domains withhold: .*allocate"):
        Interpreters([ARMS[Condition.CODE_CURATED]]).__enter__()
