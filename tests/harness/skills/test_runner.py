"""The runner that a run uses: warm for the scripts that ship, closed to others where it cannot confine them."""

import ast
import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from finskillbench.errors import InputError
from finskillbench.harness.conditions import ARMS, Condition, Mount, mount
from finskillbench.harness.skills import runner as runner_module
from finskillbench.harness.skills.loader import SkillPackage, curated, load_package
from finskillbench.harness.skills.runner import check_guards, imports_of, script_runner


def test_it_has_every_import_of_the_curated_scripts(tmp_path: Path) -> None:
    """A module that a script imports and the warm process does not costs every call of it some 100 ms."""
    scripts = [package.root / name for package in curated().values() for name in package.scripts]
    trees = [ast.parse(script.read_text(encoding="utf-8")) for script in scripts]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    wanted = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    wanted |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    wanted -= {script.stem for script in scripts}  # a package's scripts import one another
    loaded = tmp_path / "loaded.py"
    loaded.write_text(
        "import sys\ndef main(payload):\n    return {'missing': sorted({*payload['wanted']} - {*sys.modules})}\n"
    )
    with script_runner() as runner:
        result = asyncio.run(runner.run(loaded, json.dumps({"wanted": sorted(map(str, wanted))}).encode()))
    assert result.output == {"missing": []}, result.error


@pytest.mark.parametrize(
    ("script", "modules"),
    [
        ("import polars\nfrom finskillbench.panels import read_panels\n", []),
        ("import finskillbench.engines.fields, json\n", ["finskillbench.engines.fields"]),
        ("from finskillbench.sandbox.script import cli\n", ["finskillbench.sandbox.script"]),
        ("def main(payload:\n", []),
    ],
)
def test_it_imports_nothing_that_may_start_a_thread(tmp_path: Path, script: str, modules: list[str]) -> None:
    root = tmp_path / "bond-ladder"
    (root / "scripts").mkdir(parents=True)
    (root / "SKILL.md").write_text("---\nname: bond-ladder\ndescription: Builds ladders.\n---\nDo it.\n")
    (root / "scripts" / "build.py").write_text(script)
    assert imports_of([load_package(root)]) == modules


@pytest.fixture
def stranger(tmp_path: Path) -> Mount:
    """An arm that mounts a package with a script, which did not ship with this library."""
    package = SkillPackage("bond-ladder", "Builds.", tmp_path, "body", {}, ("scripts/build.py",), "d" * 64)
    return Mount(ARMS[Condition.CURATED], {package.name: package})


def test_scripts_of_others_are_refused_where_they_cannot_be_confined(
    stranger: Mount, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    guards = {"files": False, "calls": True}
    monkeypatch.setattr(runner_module, "sandbox_guards", lambda: guards)
    with pytest.raises(
        InputError, match=r"^bond-ladder: not part of FinSkillBench.*missing: files.*--allow-unconfined"
    ):
        check_guards([stranger], allow_unconfined=False)
    assert not caplog.messages
    ours = mount(Condition.CURATED, curated(), {})
    assert check_guards([ours], allow_unconfined=False) == guards
    assert check_guards([ours, stranger], allow_unconfined=True) == guards
    assert ["files" in line for line in caplog.messages] == [True, True]
    with pytest.raises(
        InputError, match=r"^code of an agent: not part of FinSkillBench.*missing: files.*--allow-unconfined"
    ):
        check_guards([Mount(ARMS[Condition.CODE])], allow_unconfined=False)


def test_nothing_is_asked_or_said_where_no_script_is_mounted(
    stranger: Mount, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(runner_module, "sandbox_guards", lambda: pytest.fail("asked"))
    assert check_guards([replace(stranger, arm=ARMS[Condition.DOCS_ONLY])], allow_unconfined=False) == {}
    monkeypatch.setattr(runner_module, "sandbox_guards", lambda: {"files": True})
    assert check_guards([stranger], allow_unconfined=False) == {"files": True}
    assert not caplog.messages
