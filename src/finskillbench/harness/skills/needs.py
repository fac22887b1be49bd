"""Requirements that a script states in its block of PEP 723, against what an interpreter has."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from finskillbench.errors import InputError
from finskillbench.harness.skills.documents import MAX_BLOCK_CHARS
from finskillbench.harness.skills.loader import SkillPackage, script_text
from finskillbench.sandbox.process import environment

_START, _END = "# /// script", "# ///"
_TYPE = re.compile(r"# /// [a-zA-Z0-9-]+")
_OLDEST = "3.11"
_ASK = """\
import importlib.metadata, json, platform
found = [(each.metadata["Name"], each.version) for each in importlib.metadata.distributions()]
print(json.dumps({"version": platform.python_version(), "installed": dict(pair for pair in found if pair[0])}))
"""
_ANSWER_SECONDS = 30.0


class _Interpreter(msgspec.Struct, frozen=True):
    """Version and installed packages that an interpreter reports."""

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
            wanted, requirements = read_needs(path, script_text(package, name))
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


def read_needs(path: Path, text: str) -> tuple[SpecifierSet, list[Requirement]]:
    """The versions of Python that a script runs under, and its dependencies; anything and nothing where it is silent.

    Raises
    ------
    InputError : its block cannot be read, or there are two.
    """
    blocks = script_blocks(text)
    if not blocks:
        return SpecifierSet(), []
    try:
        if len(blocks) > 1:
            raise ValueError("there are two")
        if len(blocks[0]) > MAX_BLOCK_CHARS:
            raise ValueError(f"it has more than {MAX_BLOCK_CHARS} characters")
        block: Mapping[str, Any] = tomllib.loads(blocks[0])
        dependencies = msgspec.convert(block.get("dependencies", []), list[str])
        wanted = msgspec.convert(block.get("requires-python", ""), str)
        requirements = [Requirement(each) for each in dependencies]
        for requirement in requirements:
            _applies(requirement, _OLDEST)
        return SpecifierSet(wanted), requirements
    except RecursionError:
        why = "it is nested too deeply"
    except (ValueError, msgspec.ValidationError) as error:
        why = " ".join(str(error).split())
    raise InputError(f"{path}: its block of dependencies (PEP 723) cannot be read: {why}")


def script_blocks(text: str) -> list[str]:
    """TOML of the blocks of type `script` in a script, in time linear in its length.

    By PEP 723 a block is a run of comment lines from its start to the last end in the run; one without an end, or
    without a line between, is none. The reference expression of the PEP finds the same blocks in quadratic time.
    """
    blocks: list[str] = []
    for is_comment, group in groupby(text.split("\n"), key=lambda line: line == "#" or line.startswith("# ")):
        run = list(group)
        ends = [number for number, line in enumerate(run) if line == _END]
        starts = [number for number, line in enumerate(run) if _TYPE.fullmatch(line)]
        if is_comment and ends and starts and starts[0] + 1 < ends[-1] and run[starts[0]] == _START:
            blocks.append("".join(f"{line[2:]}\n" for line in run[starts[0] + 1 : ends[-1]]))
    return blocks


def _lacking(requirement: Requirement, there: _Interpreter) -> str:
    """Version that an interpreter has in place of a requirement; empty if it is met or not for this interpreter."""
    if not _applies(requirement, there.version):
        return ""
    version = there.installed.get(canonicalize_name(requirement.name))
    if version is None:
        return "none"
    return "" if requirement.specifier.contains(version, prereleases=True) else version


def _applies(requirement: Requirement, version: str) -> bool:
    """Return True if a requirement is for this `version` of Python."""
    short = ".".join(version.split(".")[:2])
    environment = {"python_version": short, "python_full_version": version}
    return requirement.marker is None or requirement.marker.evaluate(environment)
