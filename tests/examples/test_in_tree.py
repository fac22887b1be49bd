"""The subtask of the example written into the source tree: four edits, and no other file or test has to change."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sampling import thorough

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "liquidity-ladder" / "liquidity_ladder"
SKILL = EXAMPLE / "skill" / "liquidity-ladder"
NAME = "liquidity_ladder"
RISK = Path("src", "finskillbench", "domains", "risk")
PACKAGE = RISK / "skill" / "risk-management"
EDITS = {RISK / f"{NAME}.py", RISK / "__init__.py", PACKAGE / "SKILL.md", PACKAGE / "scripts" / f"{NAME}.py"}
IMPORT = f"from finskillbench.domains.risk import {NAME}\n"
FOLDERS = ("src", "packages", "tests", "docs", "examples", "benchmarks", "requirements")
CACHES = ("__pycache__", "*.egg-info")
TESTS = (
    "tests/domains/risk/test_checks.py",
    "tests/domains/shared",
    "tests/edition/test_release.py",
    "tests/harness/programs",
    "tests/harness/skills",
    "tests/harness/test_conditions.py",
    "tests/harness/prompts/test_prompts.py",
    "tests/harness/test_proof.py",
    "tests/harness/test_tools.py",
    "tests/runs/test_verdicts.py",
    "tests/test_public_api.py",
    "tests/test_readme.py",
)
"""What asks the registry, or looks at the texts of the skill packages."""
# Of the tests that try every scorer on hundreds of answers, those of the new subtask will do.
CHOSEN = f"{NAME} or not test_hostile_answers"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout into which the subtask was written, verbatim."""
    home = tmp_path_factory.mktemp("in-tree")
    copy = home / "checkout"
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns(*CACHES))
    for file in (path for path in ROOT.iterdir() if path.is_file()):
        shutil.copy(file, copy)
    if (ROOT.parent / "shared").is_dir():  # real inputs, for the tests of the published release
        (home / "shared").symlink_to(ROOT.parent / "shared")
    shutil.copy(EXAMPLE / "subtask.py", copy / RISK / f"{NAME}.py")
    shutil.copy(SKILL / "scripts" / f"{NAME}.py", copy / PACKAGE / "scripts" / f"{NAME}.py")
    (row,) = re.findall(r"^\| liquidity ladder \|.*\n", (SKILL / "SKILL.md").read_text(), re.MULTILINE)
    _put_behind(copy / PACKAGE / "SKILL.md", r"^\| risk remediation \|.*\n", row)
    _put_behind(copy / RISK / "__init__.py", r"^ +risk_remediation\.SUBTASK,\n", f"        {NAME}.SUBTASK,\n")
    _put_behind(copy / RISK / "__init__.py", r"^from finskillbench\.domains\.risk import constr.*\n", IMPORT)
    return copy


def _put_behind(file: Path, place: str, text: str) -> None:
    changed, times = re.subn(f"({place})", lambda found: found[1] + text, file.read_text(), flags=re.MULTILINE)
    assert times == 1, f"{file} has {times} places for {text!r}"
    file.write_text(changed)


def _python(tree: Path, *arguments: str) -> str:
    """What Python says whose `finskillbench` is the copy; the process must succeed."""
    outer = ("PYTEST_", "FINSKILLBENCH_THOROUGH")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(outer)}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=tree,
        env=environment | {"PYTHONPATH": str(tree / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout


def test_four_files_differ_and_no_other(tree: Path) -> None:
    differing: set[Path] = set()
    for folder in FOLDERS:
        sides = [
            {
                path.relative_to(root): path.read_bytes()
                for path in (root / folder).rglob("*")
                if path.is_file() and not any(path.match(f"{cache}/*") for cache in CACHES)
            }
            for root in (ROOT, tree)
        ]
        differing |= {path for path in sides[0].keys() | sides[1].keys() if sides[0].get(path) != sides[1].get(path)}
    assert differing == EDITS


@pytest.mark.slow
def test_the_registry_of_the_tree_has_it(tree: Path) -> None:
    code = "import finskillbench as f; from finskillbench.domains import domain_of as d; "
    code += f"print(f.__file__, d({NAME!r}).name, [one.name for one in d({NAME!r}).subtasks][-1])"
    assert _python(tree, "-c", code).split() == [
        str(tree / "src" / "finskillbench" / "__init__.py"),
        "risk_management",
        NAME,
    ]


@thorough
@pytest.mark.slow
def test_no_other_test_has_to_change(tree: Path, tmp_path: Path) -> None:
    """Every test that may depend on the subtasks there are passes as it stands, also on the new one."""
    options = ("-q", "-rA", "--no-header", "-p", "no:cacheprovider", "-p", "tests.examples.without_editions")
    said = _python(tree, "-m", "pytest", *options, f"--basetemp={tmp_path / 'nested'}", "-k", CHOSEN, *TESTS)
    passed = re.findall(r"^PASSED (.*)", said, re.MULTILINE)
    assert {test.partition("::")[0].removesuffix(".py") for test in passed} > {
        file.removesuffix(".py") for file in TESTS if file.endswith(".py")
    }
    of_the_ladder = {test.partition("::")[0] for test in passed if NAME in test}
    assert {file for file in of_the_ladder if file.startswith("tests/domains/shared/")}
    assert {"tests/harness/prompts/test_prompts.py", "tests/runs/test_verdicts.py"} < of_the_ladder
