"""Skills of users, each a condition, and the memory of the persistent condition.

User scripts run confined, in a cold process of this interpreter or a named one. Their PEP 723 requirements must be
installed. Remembered skills are read from a run folder and checked by the same rules as new ones.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from finskillbench.episode import Status
from finskillbench.errors import InputError
from finskillbench.harness.model import clean_text
from finskillbench.harness.skills.lint import check_needs
from finskillbench.harness.skills.loader import SkillPackage, by_name, curated, load_package, package_folders
from finskillbench.sandbox.process import THIS_PYTHON

MAX_SAVED_SKILLS = 3
MAX_SKILL_CHARS = 20_000
MAX_NAME_CHARS = 64
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)


def skill_problem(name: str, content: str) -> str:
    """Return the problem of a skill that an agent wrote, as a message for the agent; empty if valid."""
    if len(name) > MAX_NAME_CHARS or not _NAME.fullmatch(name):
        return f"skill_name takes lower-case letters, digits and single hyphens, at most {MAX_NAME_CHARS} characters"
    if not content.strip():
        return "content is empty"
    if len(content) > MAX_SKILL_CHARS:
        return f"content has {len(content)} characters, the limit is {MAX_SKILL_CHARS}"
    return "" if clean_text(content) == content else "content holds a lone surrogate, which no file can"


@dataclass(frozen=True, slots=True)
class Feedback:
    """Verdict on an earlier answer as shown to the agent; raises `InputError` for an invalid status or score."""

    task_id: str
    status: str
    score: float | None

    def __post_init__(self) -> None:
        if self.status not in _STATUSES:
            raise InputError(f"verdict on {self.task_id}: status {self.status!r} is unknown; restore the run folder")
        if self.score is not None and not 0.0 <= self.score <= 1.0:
            raise InputError(f"verdict on {self.task_id}: score {self.score} is not in [0, 1]; restore the run folder")


_STATUSES = frozenset(status.value for status in Status)


@dataclass(frozen=True, slots=True)
class Memory:
    """Saved skills by name and verdicts, oldest first, before an episode; raises `InputError` for invalid skills."""

    skills: Mapping[str, str] = field(default_factory=dict[str, str])
    verdicts: tuple[Feedback, ...] = ()

    def __post_init__(self) -> None:
        if len(self.skills) > MAX_SAVED_SKILLS:
            raise InputError(
                f"remembered skills: {len(self.skills)}, at most {MAX_SAVED_SKILLS} can be; restore the run folder"
            )
        for name, content in self.skills.items():
            if problem := skill_problem(name, content):
                raise InputError(f"remembered skill {name[:80]!r}: {problem}; restore the run folder")


EMPTY = Memory()
"""Memory before the first episode of a stream, and in conditions without memory."""


USER_SKILLS_PREFIX = "skill:"
"""Prefix of the names of conditions with user skills."""


@dataclass(frozen=True, slots=True)
class SkillFolder:
    """Folder of a user's skills: one package, with a SKILL.md, or several.

    `keep_curated` mounts them in addition to the curated packages; `python` runs their scripts.
    """

    folder: Path
    keep_curated: bool = False
    python: Path = THIS_PYTHON


@dataclass(frozen=True, slots=True)
class UserSkills:
    """Packages of a user's condition by name, and the interpreter of those that are not curated."""

    packages: Mapping[str, SkillPackage]
    python: Path


NO_USER_SKILLS: Mapping[str, UserSkills] = MappingProxyType({})


def parse_skills(skills: Sequence[str], pythons: Sequence[str] = ()) -> dict[str, SkillFolder]:
    """Parse `NAME=DIR`, or `NAME+=DIR` to keep the curated skills, and `NAME=PATH` of interpreters.

    Raises `InputError` for invalid syntax, a repeated name, or an interpreter for unknown skills.
    """
    found: dict[str, SkillFolder] = {}
    for text in skills:
        name, folder = _split_option(text, "--skills", "NAME=DIR, or NAME+=DIR to keep the curated ones")
        short = name.removesuffix("+")
        if short in found:
            raise InputError(f"--skills {text}: {short!r} is used twice; choose another name")
        found[short] = SkillFolder(Path(folder), keep_curated=name != short)
    for text in pythons:
        name, python = _split_option(text, "--skill-python", "NAME=PATH of an interpreter")
        if name not in found:
            raise InputError(f"--skill-python {text}: there is no --skills {name}=DIR")
        found[name] = replace(found[name], python=Path(python))
    return found


def read_user_skills(
    skills: Mapping[str, SkillFolder | Path | str], *, run_locally: bool = True
) -> dict[str, UserSkills]:
    """Read skill folders by NAME into the packages of each condition `skill:NAME`.

    With `run_locally`, interpreters are checked for the scripts' requirements.

    Raises
    ------
    InputError : no package in a folder, duplicate names, a failing interpreter, or a missing requirement.
    SkillError : a package cannot be read.
    """
    found: dict[str, UserSkills] = {}
    pythons: dict[Path, Path] = {}
    for name, where in skills.items():
        chosen = where if isinstance(where, SkillFolder) else SkillFolder(Path(where))
        # Not resolved: a virtual environment's interpreter is a link to one outside it.
        python = Path(shutil.which(str(chosen.python)) or chosen.python).absolute()
        loaded = by_name(map(load_package, package_folders(chosen.folder)))
        if run_locally:
            check_needs(loaded.values(), python, remedy=f"--skill-python {name}=PATH")
        for package in loaded.values():
            if pythons.setdefault(package.root, python) != python:
                raise InputError(f"{package.root}: was given two interpreters; use one run for each")
        packages = by_name([*curated().values(), *loaded.values()]) if chosen.keep_curated else loaded
        found[f"{USER_SKILLS_PREFIX}{name}"] = UserSkills(packages, python)
    return found


def _split_option(text: str, option: str, form: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if not name or not value:
        raise InputError(f"{option} {text!r}: write {form}")
    return name, value
