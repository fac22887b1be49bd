"""The lock files pin all that an environment made of them needs, since pip installs them without resolving."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.metadata import Distribution, distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
REQUIREMENTS = ROOT / "requirements"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def _inputs(*names: str) -> list[str]:
    lines = [line for name in names for line in (REQUIREMENTS / f"{name}.in").read_text(encoding="utf-8").splitlines()]
    return [asked for line in lines if (asked := line.partition("#")[0].strip())]


RUN = [*PROJECT["dependencies"], *_inputs("build")]
SETS = {"run": RUN} | {extra: [*RUN, *EXTRAS[extra]] for extra in EXTRAS}
SETS["dev"] = [*RUN, *(asked for extra in EXTRAS.values() for asked in extra), *_inputs("dev")]


def _lock(name: str) -> str:
    return (REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8")


def _applies(requirement: Requirement, extras: Iterable[str]) -> bool:
    return not requirement.marker or any(requirement.marker.evaluate({"extra": extra}) for extra in ("", *extras))


@cache
def _installed(*path: str) -> dict[str, Distribution]:
    found = distributions(path=list(path)) if path else distributions()
    return {canonicalize_name(each.metadata["Name"]): each for each in found}


def _unpinned(roots: Iterable[str], lock: str, installed: dict[str, Distribution]) -> list[str]:
    """Return what `roots` need under this Python, by the metadata of installed packages, and `lock` does not pin."""
    pinned = [Requirement(line) for line in re.findall(r"^[\w.-]+(?:\[.*\])?==[^\\\n]+", lock, re.MULTILINE)]
    pins = {canonicalize_name(pin.name): pin for pin in pinned if _applies(pin, ())}
    waiting: list[tuple[str, str, frozenset[str]]] = [(root, "", frozenset()) for root in roots]
    seen = set(waiting)
    problems: list[str] = []
    while waiting:
        text, parent, extras = waiting.pop()
        asked = Requirement(text)
        if not _applies(asked, extras):
            continue
        name = canonicalize_name(asked.name)
        pin = pins.get(name)
        version = next(iter(pin.specifier)).version if pin else ""
        # An extra that names another one of the same package brings it along.
        missing = asked.extras - pin.extras if pin and name != parent else set()
        if not pin or missing or not asked.specifier.contains(version, prereleases=True):
            problems.append(f"{asked} is needed, {pin} is pinned: make lock")
        elif name not in installed or installed[name].version != version:
            problems.append(f"{pin} is pinned, but this environment has another version")
        else:
            needs = {(each, name, frozenset(asked.extras)) for each in installed[name].requires or ()}
            waiting += needs - seen
            seen |= needs
    return problems


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_a_lock_file_pins_what_its_set_needs(name: str) -> None:
    assert not _unpinned(SETS[name], _lock(name), _installed())


def test_the_lock_file_of_hermes_pins_what_it_needs() -> None:
    site = [str(path) for path in ROOT.glob(".venv-hermes/lib/python3*/site-packages")]
    if not site:
        pytest.skip("make hermes was not run")
    assert not _unpinned(_inputs("hermes"), _lock("hermes"), _installed(*site))


@pytest.mark.parametrize(
    ("pin", "planted", "problem"),
    [
        ("pyasn1-modules==", "absent==", "pyasn1-modules>="),
        ("google-auth[requests]==", "google-auth==", "google-auth[requests]"),
        ("inspect-ai==0.", "inspect-ai==9.", "inspect-ai==0.3.285"),
    ],
)
def test_a_planted_defect_is_found(pin: str, planted: str, problem: str) -> None:
    lock = _lock("llm")
    assert f"\n{pin}" in lock
    (found,) = _unpinned(SETS["llm"], lock.replace(f"\n{pin}", f"\n{planted}"), _installed())
    assert found.startswith(problem)
