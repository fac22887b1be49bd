"""Skills of users: folders that are read before anything is run, each a condition.

Their scripts run confined and cold, in an interpreter that has imported nothing of ours: the one that runs this, or one
that is named. What a script says it needs (PEP 723) must be there already; nothing is ever installed.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from finskillbench.errors import InputError
from finskillbench.harness.skills.lint import check_needs
from finskillbench.harness.skills.loader import SkillPackage, by_name, curated, load_package, package_folders
from finskillbench.sandbox.process import THIS_PYTHON

GIVEN_ARM = "skill:"
"""What the name of an arm begins with whose packages somebody brings."""


@dataclass(frozen=True, slots=True)
class SkillFolder:
    """Location of a user's skills: one package, with a SKILL.md, or a folder of several.

    `beside` mounts them beside the curated packages, not in place of them; `python` is the interpreter of their
    scripts.
    """

    folder: Path
    beside: bool = False
    python: Path = THIS_PYTHON


@dataclass(frozen=True, slots=True)
class Given:
    """Packages that a condition of a user mounts, by name, and the interpreter of the scripts that are not curated."""

    packages: Mapping[str, SkillPackage]
    python: Path


NOTHING_GIVEN: Mapping[str, Given] = MappingProxyType({})


def parse_skills(skills: Sequence[str], pythons: Sequence[str] = ()) -> dict[str, SkillFolder]:
    """Read `NAME=DIR` or, for skills beside the curated ones, `NAME+=DIR`; and `NAME=PATH` of interpreters.

    Raises
    ------
    InputError : a text of another form, a name given twice, or an interpreter for skills that are not there.
    """
    found: dict[str, SkillFolder] = {}
    for text in skills:
        name, folder = _halves(text, "--skills", "NAME=DIR, or NAME+=DIR beside the curated ones")
        short = name.removesuffix("+")
        if short in found:
            raise InputError(f"--skills {text}: {short!r} was given twice; choose another name")
        found[short] = SkillFolder(Path(folder), beside=name != short)
    for text in pythons:
        name, python = _halves(text, "--skill-python", "NAME=PATH of an interpreter")
        if name not in found:
            raise InputError(f"--skill-python {text}: there is no --skills {name}=DIR")
        found[name] = replace(found[name], python=Path(python))
    return found


def read_given(skills: Mapping[str, SkillFolder | Path | str], *, run_here: bool = True) -> dict[str, Given]:
    """Read the folders of skills, by NAME, into what each arm `skill:NAME` mounts.

    Parameters
    ----------
    skills : folders by NAME; a path alone stands for a folder in place of the curated packages.
    run_here : whether their scripts are to run on this machine, which must then have what they need.

    Raises
    ------
    InputError : no package in a folder, two of the same name, an interpreter that does not run, or a script whose
        needs it does not have.
    SkillError : a package cannot be read.
    """
    given: dict[str, Given] = {}
    pythons: dict[Path, Path] = {}
    for name, where in skills.items():
        chosen = where if isinstance(where, SkillFolder) else SkillFolder(Path(where))
        # Not resolved: the interpreter of a virtual environment is a link to one that knows nothing of it.
        python = Path(shutil.which(str(chosen.python)) or chosen.python).absolute()
        own = by_name(map(load_package, package_folders(chosen.folder)))
        if run_here:
            check_needs(own.values(), python, remedy=f"--skill-python {name}=PATH")
        for package in own.values():
            if pythons.setdefault(package.root, python) != python:
                raise InputError(f"{package.root}: was given two interpreters; run them one after the other")
        packages = by_name([*curated().values(), *own.values()]) if chosen.beside else own
        given[f"{GIVEN_ARM}{name}"] = Given(packages, python)
    return given


def _halves(text: str, option: str, form: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if not name or not value:
        raise InputError(f"{option} {text!r}: write {form}")
    return name, value
