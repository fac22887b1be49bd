"""Skills that somebody brings: what is read, what is refused before anything is run, and who runs their scripts."""

import asyncio
import json
import sys
import venv
from pathlib import Path

import pytest

from finskillbench.errors import FinSkillBenchError, InputError, InternalError, SkillError
from finskillbench.harness import proof
from finskillbench.harness.conditions import mount_all
from finskillbench.harness.proof import prove_arms
from finskillbench.harness.skills import runner
from finskillbench.harness.skills.loader import curated
from finskillbench.harness.skills.runner import MountedScripts, check_guards
from finskillbench.harness.skills.template import package_files
from finskillbench.harness.skills.user_skills import SkillFolder, parse_skills, read_user_skills
from finskillbench.harness.tools.contracts import LOAD_REFERENCES
from finskillbench.sandbox.process import THIS_PYTHON

DOMAIN = "risk_management"


def write(folder: Path, name: str = "my-notes", *, script: str | None = None) -> Path:
    for path, text in package_files(name).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(script if script is not None and path.endswith(".py") else text)
    return folder


def call(given, script: Path, **payload):
    """What a script of the arms' mounts gives."""
    with MountedScripts(mount_all(given, given).values()) as scripts:
        return asyncio.run(scripts.run(script, json.dumps(payload).encode()))


def test_a_folder_is_one_package_or_several(tmp_path: Path) -> None:
    one = write(tmp_path / "one" / "my-notes")
    several = tmp_path / "several"
    for name in ("b-notes", "a-notes"):
        write(several / name, name)
    (several / "README.md").write_text("No skill.")
    given = read_user_skills({"one": one, "several": several, "both": SkillFolder(one, keep_curated=True)})
    assert {arm: list(each.packages) for arm, each in given.items()} == {
        "skill:one": ["my-notes"],
        "skill:several": ["a-notes", "b-notes"],
        "skill:both": sorted([*curated(), "my-notes"]),
    }


def test_what_stands_on_the_command_line(tmp_path: Path) -> None:
    found = parse_skills(["a=x", "b+=y=z"], ["b=python3"])
    assert found == {
        "a": SkillFolder(Path("x")),
        "b": SkillFolder(Path("y=z"), keep_curated=True, python=Path("python3")),
    }


@pytest.mark.parametrize(
    ("skills", "pythons", "message"),
    [
        (["x"], [], r"--skills 'x': write NAME=DIR"),
        (["=x"], [], r"write NAME=DIR"),
        (["a="], [], r"write NAME=DIR"),
        (["a=x", "a+=y"], [], r"'a' is used twice"),
        (["a=x"], ["b=python3"], r"there is no --skills b=DIR"),
        (["a=x"], ["python3"], r"write NAME=PATH"),
    ],
)
def test_a_wrong_option_is_told_in_one_line(skills, pythons, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_skills(skills, pythons)


def test_a_folder_that_holds_no_skills_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no SKILL.md in it or in a folder below it; `finskillbench skills new DIR`"):
        read_user_skills({"mine": tmp_path})
    with pytest.raises(InputError, match=r"nowhere: no such folder of skills"):
        read_user_skills({"mine": tmp_path / "nowhere"})
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "SKILL.md").write_text("no front matter")
    with pytest.raises(FinSkillBenchError, match=r"broken/SKILL.md: "):
        read_user_skills({"mine": tmp_path})


def test_two_packages_of_one_name_are_refused(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        write(tmp_path / folder)
    with pytest.raises(InputError, match=r"one and .*two are both named my-notes; rename one"):
        read_user_skills({"mine": tmp_path})
    ours = write(tmp_path / "ours" / "risk-management", "risk-management")
    with pytest.raises(InputError, match=r"are both named risk-management; rename one"):
        read_user_skills({"mine": SkillFolder(ours, keep_curated=True)})
    assert list(read_user_skills({"mine": ours})["skill:mine"].packages) == ["risk-management"]


def test_arms_of_somebodys_own_are_proved_beside_the_others(tmp_path: Path) -> None:
    given = read_user_skills({"mine": write(tmp_path), "both": SkillFolder(tmp_path, keep_curated=True)})
    mounts = mount_all(["no_skill", "curated", *given], given)
    record = prove_arms(mounts, (DOMAIN,))
    assert record["skill:both"]["packages"] == {**record["curated"]["packages"], **record["skill:mine"]["packages"]}
    assert len({each["digest"][DOMAIN] for each in record.values()}) == len(mounts)
    before = mounts["skill:mine"].digest
    (tmp_path / "references" / "conventions.md").write_text("Other words.")
    given = read_user_skills({"mine": tmp_path})
    assert mount_all(given, given)["skill:mine"].digest != before


def test_a_package_that_quotes_our_words_is_no_leak_and_one_that_leaks_is_found(tmp_path: Path, monkeypatch) -> None:
    folder = write(tmp_path)
    (folder / "scripts/total.py").rename(folder / "scripts/name.py")
    (folder / "SKILL.md").write_text(f"{(folder / 'SKILL.md').read_text()}\n{LOAD_REFERENCES.description}\n")
    given = read_user_skills({"mine": folder})
    mounts = mount_all(["scripts_only", *given], given)
    assert prove_arms(mounts, (DOMAIN,))
    mounts |= mount_all(["self_generated"])
    monkeypatch.setattr(proof, "arm_prompt", lambda base, mounted, _: "Try my-notes." if mounted.arm.own else base)
    with pytest.raises(InternalError, match=r"condition self_generated: .* the words 'my-notes'"):
        prove_arms(mounts, (DOMAIN,))


HOSTILE = '''"""Look around."""
import os, pathlib, sys
def main(payload):
    refused = []
    for name in payload["secrets"]:
        try:
            pathlib.Path(name).read_bytes()
        except OSError:
            refused.append(name)
    try:
        os.fork()
    except OSError:
        refused.append("fork")
    warm = [name for name in sys.modules if name.startswith(("numpy", "finskillbench.engines"))]
    return {"refused": refused, "warm": warm, "prefix": sys.prefix}
'''


def test_scripts_of_others_run_cold_and_confined(tmp_path: Path) -> None:
    own = write(tmp_path / "mine", script=HOSTILE)
    secret = tmp_path / "beside" / "truth.json"
    secret.parent.mkdir()
    secret.write_text("{}")
    venv.create(tmp_path / "bare", with_pip=False)
    secrets = [str(secret), __file__]
    for python, prefix in ((THIS_PYTHON, sys.prefix), (tmp_path / "bare/bin/python", tmp_path / "bare")):
        given = read_user_skills({"mine": SkillFolder(own, python=python)})
        result = call(given, own / "scripts/total.py", secrets=secrets)
        assert result.output == {"refused": [*secrets, "fork"], "warm": [], "prefix": str(prefix)}, result.error


def test_where_a_guard_is_missing_they_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "sandbox_guards", lambda: {"files": False, "calls": True})
    given = read_user_skills({"both": SkillFolder(write(tmp_path), keep_curated=True)})
    mounts = mount_all(["curated", *given], given).values()
    with pytest.raises(
        InputError, match=r"^my-notes: not part of FinSkillBench, and this machine cannot confine .*--allow-unconfined"
    ):
        check_guards(mounts, allow_unconfined=False)
    assert check_guards(mounts, allow_unconfined=True)


def test_who_writes_on_while_a_run_goes_on_does_not_change_it(tmp_path: Path) -> None:
    own = write(tmp_path)
    script = own / "scripts/total.py"
    (own / "scripts/helper.py").write_text("FACTOR = 10\n")
    script.write_text('"""."""\nfrom helper import FACTOR\n\n\ndef main(payload):\n    return {"factor": FACTOR}\n')
    given = read_user_skills({"mine": own})
    with MountedScripts(mount_all(given, given).values()) as scripts:
        (own / "scripts/helper.py").write_text("FACTOR = 11\n")
        script.write_text("def main(payload):\n    return {}\n")
        result = asyncio.run(scripts.run(script, b"{}"))
    assert result.output == {"factor": 10}, result.error
    with pytest.raises(SkillError, match="changed since it was read"):
        call(given, script)


def test_curated_scripts_stay_warm_beside_them(tmp_path: Path) -> None:
    given = read_user_skills({"both": SkillFolder(write(tmp_path), keep_curated=True)})
    runners = MountedScripts(mount_all(given, given).values())._runners
    ours = {package.root for package in curated().values()}
    assert {root for root, runner in runners.items() if runner._preload} == ours
    assert {*runners} == {*ours, tmp_path}


NEEDS = '''# /// script
# requires-python = "{python}"
# dependencies = ["{dependency}", "nothing-here; python_version < '3'"]
# ///
"""Add up."""
def main(payload):
    return {{}}
'''


@pytest.mark.parametrize(
    ("python", "dependency", "message"),
    [
        (">=3.11", "numpy>=1", None),
        (">=3.11", "NumPy >= 999", r"needs NumPy>=999, and .* has \d\S*; a run installs nothing, .*--skill-python"),
        (">=3.11", "no-such-package", r"total.py: needs no-such-package, and .* has none; a run installs nothing"),
        (">=4", "numpy", r"needs Python >=4, .*; name another: --skill-python mine=PATH"),
        (">=3.11", "not a requirement", r"its block of dependencies \(PEP 723\) cannot be read"),
    ],
)
def test_what_a_script_needs_must_be_there(tmp_path: Path, python: str, dependency: str, message: str | None) -> None:
    folder = write(tmp_path, script=NEEDS.format(python=python, dependency=dependency))
    if message is None:
        assert read_user_skills({"mine": folder})
        return
    with pytest.raises(InputError, match=message) as caught:
        read_user_skills({"mine": folder})
    assert "\n" not in str(caught.value)


def test_another_interpreter_runs_them_with_what_it_has(tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    python = tmp_path / "bare" / "bin" / "python"
    own = write(tmp_path / "own")
    assert call(
        read_user_skills({"mine": SkillFolder(own, python=python)}), own / "scripts/total.py", values={"a": 2}
    ).output
    needing = write(tmp_path / "needing", script=NEEDS.format(python=">=3", dependency="numpy"))
    assert read_user_skills({"mine": needing})
    with pytest.raises(InputError, match=rf"needs numpy, and {python} has none"):
        read_user_skills({"mine": SkillFolder(needing, python=python)})


def test_an_interpreter_that_is_none_is_refused(tmp_path: Path) -> None:
    own = write(tmp_path)
    for python in (tmp_path / "nowhere", Path("/bin/false"), tmp_path / "SKILL.md"):
        with pytest.raises(InputError, match=rf"^{python}: not an interpreter of Python"):
            read_user_skills({"mine": SkillFolder(own, python=python)})
    twice = {"a": SkillFolder(own), "b": SkillFolder(own, python=Path(sys.base_prefix) / "bin/python3")}
    if twice["b"].python != THIS_PYTHON:
        with pytest.raises(InputError, match="two interpreters"):
            read_user_skills(twice)
