"""Skills of users: folders that are read before anything is run, each a condition.

Their scripts run confined and cold, in an interpreter that has imported nothing of ours: the one that runs this, or one
that is named. What a script says it needs (PEP 723) must be there already; nothing is ever installed.

What the persistent arm carries from one episode of its stream to the next: saved skills, and how answers fared.

The rules for a skill that an agent wrote stand here, because what is remembered was read back from a run folder and
must keep them as well as what is saved now.
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
    """What is wrong with a skill that an agent wrote, in words it can act on; empty where nothing is."""
    if len(name) > MAX_NAME_CHARS or not _NAME.fullmatch(name):
        return f"skill_name takes lower-case letters, digits and single hyphens, at most {MAX_NAME_CHARS} characters"
    if not content.strip():
        return "content is empty"
    if len(content) > MAX_SKILL_CHARS:
        return f"content has {len(content)} characters, the limit is {MAX_SKILL_CHARS}"
    return "" if clean_text(content) == content else "content holds a lone surrogate, which no file can"


@dataclass(frozen=True, slots=True)
class Feedback:
    """The verdict on an earlier answer as the agent hears it: its status and its score, nothing of the truth.

    Raises
    ------
    InputError : the status is none of `finskillbench.episode.Status`, or the score does not lie between 0 and 1.
    """

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
    """The state of a stream before an episode: texts of the saved skills by name, and verdicts, oldest first.

    Raises
    ------
    InputError : more skills than an agent may save, or one that it could not have saved.
    """

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
"""The state before the first episode of a stream, and of every arm that keeps nothing."""


USER_SKILLS_PREFIX = "skill:"
"""What the name of an arm begins with whose packages somebody brings."""


@dataclass(frozen=True, slots=True)
class SkillFolder:
    """Location of a user's skills: one package, with a SKILL.md, or a folder of several.

    `beside` mounts them beside the curated packages, not in place of them; `python` is the interpreter of their
    scripts.
    """

    folder: Path
    keep_curated: bool = False
    python: Path = THIS_PYTHON


@dataclass(frozen=True, slots=True)
class UserSkills:
    """Packages that a condition of a user mounts, by name, and the interpreter of the scripts that are not curated."""

    packages: Mapping[str, SkillPackage]
    python: Path


NO_USER_SKILLS: Mapping[str, UserSkills] = MappingProxyType({})


def parse_skills(skills: Sequence[str], pythons: Sequence[str] = ()) -> dict[str, SkillFolder]:
    """Read `NAME=DIR` or, for skills beside the curated ones, `NAME+=DIR`; and `NAME=PATH` of interpreters.

    Raises
    ------
    InputError : a text of another form, a name given twice, or an interpreter for skills that are not there.
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
    found: dict[str, UserSkills] = {}
    pythons: dict[Path, Path] = {}
    for name, where in skills.items():
        chosen = where if isinstance(where, SkillFolder) else SkillFolder(Path(where))
        # Not resolved: the interpreter of a virtual environment is a link to one that knows nothing of it.
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
