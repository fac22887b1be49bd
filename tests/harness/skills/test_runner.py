"""The runner that a run uses: warm for the scripts that ship."""

import ast
import asyncio
import json
from pathlib import Path

import pytest

from finskillbench.harness.skills.loader import curated, load_package
from finskillbench.harness.skills.runner import imports_of, script_runner


def test_it_has_every_import_of_the_curated_scripts(tmp_path: Path) -> None:
    """A module that a script imports and the warm process does not costs every call of it some 100 ms."""
    scripts = [package.root / name for package in curated().values() for name in package.scripts]
    trees = [ast.parse(script.read_text(encoding="utf-8")) for script in scripts]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    wanted = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    wanted |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
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
