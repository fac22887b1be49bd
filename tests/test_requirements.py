"""The lock files hold what pyproject.toml asks for: an environment made of one has all that its commands import."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


@pytest.mark.parametrize(
    ("file", "extras"), [("run", []), *((extra, [extra]) for extra in EXTRAS), ("dev", list(EXTRAS))]
)
def test_a_lock_file_pins_every_dependency_in_its_range(file: str, extras: list[str]) -> None:
    text = (ROOT / "requirements" / f"{file}.txt").read_text(encoding="utf-8")
    pins = {canonicalize_name(name): version for name, version in re.findall(r"^([\w.-]+)==([\w.+!-]+)", text, re.M)}
    for asked in (*PROJECT["dependencies"], *(each for extra in extras for each in EXTRAS[extra])):
        wanted = Requirement(asked)
        version = pins.get(canonicalize_name(wanted.name))
        assert version is not None, f"{wanted.name} is not pinned in requirements/{file}.txt: make lock"
        assert wanted.specifier.contains(version, prereleases=True), f"{asked}, but {version}: make lock"
