"""What a row's scorer version depends on."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
from dataclasses import replace
from importlib import import_module, resources
from pathlib import Path

import pytest

from finskillbench.domains import subtasks
from finskillbench.episode import Profile
from finskillbench.runs.store import code_digest, version


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
    monkeypatch.setattr(code_digest.resources, "files", lambda package: tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ("domains/risk/skill/risk-management/SKILL.md", True),
        ("domains/risk/checks/data.py", True),
        ("domains/risk/catalog/risk.json", True),
        ("domains/risk/released.py", True),
        ("domains/risk/stress_testing.py", False),
        ("scoring/values.py", False),
        ("runs/verdicts.py", False),
    ],
)
def test_what_decides_a_score_and_nothing_else_is_in_the_version(source: Path, changed: str, same: bool) -> None:
    before = fresh()
    with (source / changed).open("a") as file:
        file.write("\nADDED = 1\n")
    assert (fresh() == before) is same


MODULE = '''"""A module."""

import math
from finskillbench.scoring.values import as_number, share

def score(answer):
    """Score an answer."""
    # one is the limit
    return min(as_number(answer), 1)
'''


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("A module.", "Another text.", True),
        ("    # one is the limit\n", "", True),
        ('    """Score an answer."""\n', "", True),
        ("import math\nfrom", "from", False),
        ("finskillbench.scoring.values", "finskillbench.elsewhere", True),
        ("as_number, share", "share, as_number", True),
        ("import as_number, sha", "import as_number\nfrom finskillbench.scoring.values import sha", True),
        ("min(as_number(answer), 1)", "(min(\n    as_number(answer), 1))", True),
        ("as_number(answer)", "share(answer)", False),
        ("1)", "2)", False),
        ("1)", "1.0)", False),
    ],
)
def test_only_code_is_in_the_version(source: Path, old: str, new: str, same: bool) -> None:
    assert old in MODULE
    (source / "scoring/one.py").write_text(MODULE)
    before = fresh()
    (source / "scoring/one.py").unlink()
    (source / "scoring/renamed.py").write_text(MODULE.replace(old, new))
    assert (fresh() == before) is same


def test_empty_texts_of_format_strings_do_not_count() -> None:
    """Python 3.12.1 parses some of them where other versions have none."""
    words: list[list[str]] = []
    for empty in ([], [ast.Constant("")]):
        tree = ast.parse("f'{left:{width}}'", mode="eval")
        tree.body.values += empty
        words.append([])
        code_digest._collect(tree, words[-1], [])
    assert words[0] == words[1]
    assert "'left'" in words[0]


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


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a package, which is taken for ours."""
    package = tmp_path / "src" / "finskillbench"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (tmp_path / "notes.txt").write_text("")
    # The machine's own settings, such as hooks and signatures, are none of this repository's.
    for name, value in {"GLOBAL": os.devnull, "SYSTEM": os.devnull}.items():
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "begin")
    monkeypatch.setattr(version.resources, "files", lambda name: package)
    return tmp_path


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def commit() -> str | None:
    return version.code_commit.__wrapped__()


def test_a_checkout_has_its_commit_and_says_where_it_was_changed(checkout: Path) -> None:
    package, head = checkout / "src" / "finskillbench", git(checkout, "rev-parse", "HEAD")
    assert commit() == head
    (checkout / "notes.txt").write_text("beside the package")
    assert commit() == head
    (package / "new.py").write_text("")
    assert commit() == f"{head}-dirty"
    (package / "new.py").unlink()
    (package / "__init__.py").write_text("a = 1\n")
    assert commit() == f"{head}-dirty"


@pytest.mark.parametrize(
    ("noted", "found"),
    [
        (None, None),
        ('{"url": "file:///x", "dir_info": {"editable": true}}', None),
        ('{"url": "https://x", "vcs_info": {"vcs": "git", "commit_id": "abc"}}', "abc"),
        ("{", None),
    ],
)
def test_an_installed_package_has_what_its_installer_noted(checkout: Path, monkeypatch, noted, found) -> None:
    """An environment in somebody's own repository is no checkout of ours."""
    git(checkout, "rm", "-q", "--cached", "src/finskillbench/__init__.py")

    class Installed:
        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return noted

    monkeypatch.setattr(version, "distribution", lambda name: Installed())
    assert commit() == found
    monkeypatch.setenv("PATH", "")  # no git at all
    assert commit() == found
