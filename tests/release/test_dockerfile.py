"""The Dockerfile, read and tried as far as that goes without Docker: the image itself is not built here."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest
from release.trial import compare, installed_files, tracked_files
from tests.sampling import thorough

ROOT = Path(__file__).resolve().parents[2]
KNOWN = {"ARG", "FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "ENTRYPOINT", "CMD"}


def _instructions() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in lines]


def _ignored(path: str) -> bool:
    """Whether .dockerignore leaves a path out: the last line that fits it, or a folder above it, decides."""
    left_out = False
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        pattern = line.removeprefix("!").removeprefix("**/")
        parts = path.split("/")
        candidates = ["/".join(parts[: n + 1]) for n in range(len(parts))] + (parts if "**/" in line else [])
        if line and not line.startswith("#") and any(fnmatch(each, pattern) for each in candidates):
            left_out = not line.startswith("!")
    return left_out


def test_it_is_made_of_instructions_that_docker_knows() -> None:
    names = [name for name, _ in _instructions()]
    assert set(names) <= KNOWN
    assert names[0] == "ARG"
    assert names[1] == "FROM"
    assert names.count("ENTRYPOINT") == 1
    for name, rest in _instructions():
        if name in ("ENTRYPOINT", "CMD"):
            assert re.fullmatch(r'\["[^"]+"(, "[^"]+")*\]', rest), rest


def test_its_base_is_one_release_and_it_runs_as_an_ordinary_user() -> None:
    instructions = _instructions()
    (base,) = [rest for name, rest in instructions if name == "ARG"]
    version = re.fullmatch(r"BASE=python:(\d+\.\d+)\.\d+-slim-\w+", base)
    assert version
    assert version[1] in (ROOT / "requirements" / "install.sh").read_text(encoding="utf-8")
    last = max(n for n, (name, _) in enumerate(instructions) if name == "FROM")
    users = [rest for name, rest in instructions[last:] if name == "USER"]
    assert users
    assert users[-1] not in ("root", "0")
    assert f"--uid 10001 {users[-1]}" in " ".join(rest for name, rest in instructions[last:] if name == "RUN")


def test_whatever_it_copies_is_there_and_nothing_else_is_sent() -> None:
    copied = [shlex.split(rest)[:-1] for name, rest in _instructions() if name == "COPY" and "--from" not in rest]
    for path in (path for paths in copied for path in paths):
        assert (ROOT / path).exists(), path
        assert not _ignored(path), path
    for path in ("editions", "runs", ".env", ".git", "tests", ".venv", "src/finskillbench/__pycache__"):
        assert _ignored(path), path
    listed = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert not [path for path in listed.splitlines() if _ignored(path)]


def test_what_is_installed_is_pinned_with_hashes() -> None:
    for rest in (rest for name, rest in _instructions() if name == "RUN" and "pip install" in rest):
        assert "--no-deps --require-hashes -r requirements/run.txt" in rest or "--no-deps --no-index" in rest, rest


@thorough
@pytest.mark.slow
def test_what_it_copies_is_enough_to_install_from(tmp_path: Path) -> None:
    """The last installation of the build, in a folder of what was copied, away from the repository."""
    here, there = tmp_path / "build", tmp_path / "there"
    for name, rest in _instructions():
        paths = shlex.split(rest)
        if name == "COPY" and "--from" not in rest:
            for path in paths[:-1]:
                target = here / (paths[-1] if paths[-1] != "./" else path)
                target.parent.mkdir(parents=True, exist_ok=True)
                ignored = shutil.ignore_patterns("*.egg-info", "__pycache__")
                (shutil.copytree if (ROOT / path).is_dir() else shutil.copy)(
                    ROOT / path, target, **({"ignore": ignored} if (ROOT / path).is_dir() else {})
                )
    (install,) = [rest for name, rest in _instructions() if name == "RUN" and rest.endswith(" .")]
    words = [sys.executable, *shlex.split(install)[1:], "--target", str(there)]
    subprocess.run(words, cwd=here, check=True)
    compare(installed_files(there), tracked_files(), "the image")
