"""What a row's scorer version depends on."""

from __future__ import annotations

import shutil
from dataclasses import replace
from importlib import import_module, resources
from pathlib import Path

import pytest

from finskillbench.domains import subtasks
from finskillbench.episode import Profile
from finskillbench.runs.store import version


def fresh() -> str:
    return version.scorer_version.__wrapped__()


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what the version is made of, which is read in place of the package."""
    package = Path(str(resources.files("finskillbench")))
    for name in version.SCORERS:
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (package / name).is_dir():
            shutil.copytree(package / name, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(package / name, target)
    monkeypatch.setattr(version.resources, "files", lambda package: tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ("domains/risk/skill/risk-management/SKILL.md", True),
        ("domains/risk/checks/data.py", True),
        ("domains/risk/catalog/risk.json", True),
        ("domains/risk/released.py", True),
        ("domains/risk/stress_testing.py", False),
        ("scoring/measures.py", False),
        ("runs/verdicts.py", False),
    ],
)
def test_what_decides_a_score_and_nothing_else_is_in_the_version(source: Path, changed: str, same: bool) -> None:
    before = fresh()
    with (source / changed).open("a") as file:
        file.write("\n")
    assert (fresh() == before) is same


def test_scorers_of_other_packages_are_in_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = fresh()
    module = tmp_path / "scorers_from_outside.py"
    module.write_text("from functools import partial\n\ndef score(*arguments): ...\n\nstrict = partial(score)\n")
    monkeypatch.syspath_prepend(tmp_path)
    outside = replace(
        subtasks()[0], scorers={Profile.STRICT: import_module("scorers_from_outside").strict}, name="another"
    )
    monkeypatch.setattr(version, "subtasks", lambda: (*subtasks(), outside))
    with_outside = fresh()
    assert with_outside != ours
    assert fresh() == with_outside
    with module.open("a") as file:
        file.write("\n")
    assert fresh() not in (ours, with_outside)
