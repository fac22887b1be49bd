"""What a script says it needs, in the block of PEP 723 at its head, and whether an interpreter has it."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from finskillbench.errors import InputError
from finskillbench.harness.skills.loader import SkillPackage, script_text
from finskillbench.sandbox.process import environment

# The reference expression of the specification.
_BLOCK = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")
_OLDEST = "3.11"
_ASK = """\
import importlib.metadata, json, platform
found = [(each.metadata["Name"], each.version) for each in importlib.metadata.distributions()]
print(json.dumps({"version": platform.python_version(), "installed": dict(pair for pair in found if pair[0])}))
"""
_ANSWER_SECONDS = 30.0


class _Interpreter(msgspec.Struct, frozen=True):
    """An interpreter by what it says of itself: its version, and what is installed."""

    version: str
    installed: dict[str, str]


def check_needs(packages: Iterable[SkillPackage], python: Path, *, remedy: str) -> None:
    """Refuse scripts whose needs an interpreter does not have; nothing is installed, and no script is run.

    Parameters
    ----------
    packages : whose scripts are looked at.
    python : the interpreter that is to run them.
    remedy : how another is named.

    Raises
    ------
    InputError : the interpreter does not run or is too old, a block cannot be read, or something is not there.
    """
    for package in packages:
        for name in package.scripts:
            there = _interpreter(python)
            path = package.root / name
            wanted, requirements = _needs(path, script_text(package, name))
            if there.version not in wanted:
                raise InputError(f"{path}: needs Python {wanted}, {python} is {there.version}; name another: {remedy}")
            for requirement in requirements:
                if lacking := _lacking(requirement, there):
                    raise InputError(
                        f"{path}: needs {requirement}, and {python} has {lacking}; nothing is installed here, name an "
                        f"interpreter that has it: {remedy}"
                    )


@cache
def _interpreter(python: Path) -> _Interpreter:
    try:
        asked = subprocess.run(
            [python, "-P", "-c", _ASK],
            env=environment(python),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ANSWER_SECONDS,
            check=False,
        )
        found = msgspec.json.decode(asked.stdout, type=_Interpreter)
    except (OSError, subprocess.TimeoutExpired, msgspec.DecodeError):
        raise InputError(f"{python}: not an interpreter of Python {_OLDEST} or later") from None
    names = {str(canonicalize_name(name)): version for name, version in found.installed.items()}
    return _Interpreter(found.version, names)


def _needs(path: Path, text: str) -> tuple[SpecifierSet, list[Requirement]]:
    """The versions of Python that a script runs under, and its dependencies; anything and nothing where it is silent.

    Raises
    ------
    InputError : its block cannot be read, or there are two.
    """
    blocks = [match for match in _BLOCK.finditer(text) if match["type"] == "script"]
    if not blocks:
        return SpecifierSet(), []
    try:
        if len(blocks) > 1:
            raise ValueError("there are two")
        content = "".join(line[2:] or "\n" for line in blocks[0]["content"].splitlines(keepends=True))
        block: Mapping[str, Any] = tomllib.loads(content)
        dependencies = msgspec.convert(block.get("dependencies", []), list[str])
        wanted = msgspec.convert(block.get("requires-python", ""), str)
        return SpecifierSet(wanted), [Requirement(each) for each in dependencies]
    except (ValueError, msgspec.ValidationError, InvalidRequirement, InvalidSpecifier) as error:
        why = " ".join(str(error).split())
        raise InputError(f"{path}: its block of dependencies (PEP 723) cannot be read: {why}") from None


def _lacking(requirement: Requirement, there: _Interpreter) -> str:
    """What an interpreter has in place of a requirement; empty where it is met, or is not for this interpreter."""
    short = ".".join(there.version.split(".")[:2])
    if requirement.marker and not requirement.marker.evaluate(
        {"python_version": short, "python_full_version": there.version}
    ):
        return ""
    version = there.installed.get(canonicalize_name(requirement.name))
    if version is None:
        return "none"
    return "" if requirement.specifier.contains(version, prereleases=True) else version
