"""The experimental arms: which procedural resources are mounted, and the proof of it.

An arm is a few switches, so that a new one is a line in `ARMS`: whether documents can be loaded, whether scripts can be
run, whether the documents stand in the prompt, whether irrelevant packages take the place of the curated ones, whether
the agent writes its own, whether it keeps them from one episode to the next, and whether it can run code of its own.

Beside the arms that are always there, any folder of packages that somebody brings is an arm `skill:NAME`. So an arm is
known by its name, a text, and `arm_of` says what it grants.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import msgspec
import orjson

from finskillbench.domains import domain as registered
from finskillbench.errors import InputError, InternalError
from finskillbench.harness.model import ToolSpec
from finskillbench.harness.skills.loader import SkillPackage, curated, of_other_suites, placebo
from finskillbench.harness.skills.outline import outlines
from finskillbench.harness.skills.user_skills import EMPTY, NO_USER_SKILLS, USER_SKILLS_PREFIX, Memory, UserSkills
from finskillbench.sandbox.process import THIS_PYTHON

if TYPE_CHECKING:  # the registry loads every numerical library, which starting a command must not pay for
    pass


class Condition(StrEnum):
    """Names of the arms that are always there, as they appear in rows."""

    NO_SKILL = "no_skill"
    CURATED = "curated"
    SELF_GENERATED = "self_generated"
    DOCS_ONLY = "docs_only"
    SCRIPTS_ONLY = "scripts_only"
    INLINE = "inline"
    PLACEBO = "placebo"
    SELF_GENERATED_PERSISTENT = "self_generated_persistent"
    CODE = "code"
    CODE_CURATED = "code_curated"


_USER_SKILLS_NAME = r"[a-z0-9][a-z0-9._-]{0,63}"
ArmName = Annotated[str, msgspec.Meta(pattern=rf"^({'|'.join(Condition)}|{USER_SKILLS_PREFIX}{_USER_SKILLS_NAME})\Z")]
"""The name of an arm, as records and rows are checked for it when they are read."""


@dataclass(frozen=True, slots=True)
class Arm:
    """What one condition grants; everything else is the same in every condition.

    `documents` can be loaded, `scripts` can be run, `inline` documents stand in the prompt, `placebo` packages take the
    place of the curated ones, or packages that were `given`, the agent writes its `own` skills, they are `kept` from
    one episode to the next, and it runs `code` of its own. The names enter the digest of a mount.
    """

    condition: str
    documents: bool = False
    scripts: bool = False
    inline: bool = False
    placebo: bool = False
    given: bool = False
    own: bool = False
    kept: bool = False
    code: bool = False

    @property
    def mounts_packages(self) -> bool:
        """Whether any package reaches the agent."""
        return self.documents or self.scripts or self.inline

    @property
    def indexes_scripts(self) -> bool:
        """Whether `run_skill_script` lists the scripts with their notes, as no document does."""
        return self.scripts and not self.documents and not self.inline


ARMS: Mapping[str, Arm] = MappingProxyType(
    {
        Condition.NO_SKILL: Arm(Condition.NO_SKILL),
        Condition.CURATED: Arm(Condition.CURATED, documents=True, scripts=True),
        Condition.SELF_GENERATED: Arm(Condition.SELF_GENERATED, own=True),
        Condition.DOCS_ONLY: Arm(Condition.DOCS_ONLY, documents=True),
        Condition.SCRIPTS_ONLY: Arm(Condition.SCRIPTS_ONLY, scripts=True),
        Condition.INLINE: Arm(Condition.INLINE, scripts=True, inline=True),
        Condition.PLACEBO: Arm(Condition.PLACEBO, documents=True, placebo=True),
        Condition.SELF_GENERATED_PERSISTENT: Arm(Condition.SELF_GENERATED_PERSISTENT, own=True, kept=True),
        Condition.CODE: Arm(Condition.CODE, code=True),
        Condition.CODE_CURATED: Arm(Condition.CODE_CURATED, documents=True, scripts=True, code=True),
    }
)

ALWAYS = ("submit_answer", "get_task_data")


@dataclass(frozen=True)
class Mount:
    """An arm with the packages that were really mounted; `digest` identifies both.

    `script_index` lists the scripts with their own notes, where no document does: ("package/scripts/x.py", notes);
    `python` runs the scripts of packages that were given.
    What an agent meets of the packages - tools, toolbox and prompt - is decided by the methods here and nowhere else.
    """

    arm: Arm
    packages: Mapping[str, SkillPackage] = field(default_factory=dict[str, SkillPackage])
    script_index: tuple[tuple[str, str], ...] = ()
    python: Path = THIS_PYTHON

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the arm's switches and the digest of each mounted package."""
        content = {
            **asdict(self.arm),
            "packages": self.package_digests(),
            "script_index": self.script_index,
        }
        return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()

    def package_digests(self) -> dict[str, str]:
        """Name to digest of each mounted package; empty where nothing is mounted."""
        return {name: self.packages[name].digest for name in sorted(self.packages)}

    def of(self, domain: str) -> Mount:
        """Return what an episode of `domain` is offered: of the packages that ship, those of its suite."""
        others = of_other_suites(domain) if self.packages else ()
        packages = {name: package for name, package in self.packages.items() if package.root not in others}
        if len(packages) == len(self.packages):
            return self
        index = tuple(entry for entry in self.script_index if entry[0].partition("/")[0] in packages)
        return replace(self, packages=MappingProxyType(packages), script_index=index)

    @property
    def loadable(self) -> Mapping[str, SkillPackage]:
        """The packages whose documents `load_skill` and `load_references` return."""
        return self.packages if self.arm.documents else {}

    def preloaded(self, domain: str) -> dict[str, SkillPackage]:
        """The packages whose scripts can be run without loading a skill first, as nothing can be loaded."""
        if self.arm.inline:
            return self.packages_of(domain)
        return dict(self.packages) if self.arm.indexes_scripts else {}

    def packages_of(self, domain: str) -> dict[str, SkillPackage]:
        """The packages of a domain that are mounted, its own before those of extensions, by name.

        Raises
        ------
        InputError : there is none.
        """
        names = package_names(domain)
        found = {name: self.packages[name] for name in names if name in self.packages}
        if not found:
            raise InputError(
                f"condition '{self.arm.condition}' shows each domain its own skill, "
                f"and none is named {' or '.join(map(repr, names)) or repr(domain)}"
            )
        return found


def package_names(domain: str) -> tuple[str, ...]:
    """Names of the skill packages of a domain, its own before those of extensions; a folder bears its skill's name."""
    return tuple(folder.name for folder in registered(domain).skills)


def arm_of(name: str) -> Arm:
    """Return the arm called `name`; raise `InputError` listing the known ones otherwise."""
    if name in ARMS:
        return ARMS[name]
    if re.fullmatch(USER_SKILLS_PREFIX + _USER_SKILLS_NAME, name):
        return Arm(name, documents=True, scripts=True, given=True)
    if name.startswith(USER_SKILLS_PREFIX):
        raise InputError(
            f"{name.removeprefix(USER_SKILLS_PREFIX)!r} is no name for skills; take lower-case letters, digits, dots, hyphens "
            "and underscores, at most 64, the first a letter or digit"
        )
    raise InputError(f"condition {name!r} is unknown; choose from: {', '.join(Condition)}")


def parse_condition(name: str) -> str:
    """Return the name of an arm as it stands in rows; raise `InputError` listing the known ones otherwise."""
    return str(arm_of(name).condition)


def mount(
    condition: str,
    packages: Mapping[str, SkillPackage],
    placebos: Mapping[str, SkillPackage],
    given: Mapping[str, UserSkills] = NO_USER_SKILLS,
) -> Mount:
    """Mount what the arm of `condition` grants.

    Parameters
    ----------
    condition : the name of the arm.
    packages, placebos : the curated packages and the irrelevant ones, by name.
    given : what each arm of somebody's own mounts, by its name.

    Raises
    ------
    InputError : no such arm, or the arm needs packages and there are none.
    """
    arm = arm_of(condition)
    if not arm.mounts_packages:
        return Mount(arm)
    if arm.given:
        if condition not in given:
            name = condition.removeprefix(USER_SKILLS_PREFIX)
            raise InputError(f"condition {condition!r} has no folder of skills; name it: --skills {name}=DIR")
        return Mount(arm, given[condition].packages, python=given[condition].python)
    mounted = placebos if arm.placebo else packages
    if not mounted:
        kind = "placebo" if arm.placebo else "curated"
        raise InputError(f"condition '{arm.condition}' mounts {kind} skills, but no package was found")
    return Mount(arm, MappingProxyType(dict(mounted)), script_index(mounted) if arm.indexes_scripts else ())


def mount_all(conditions: Iterable[str], given: Mapping[str, UserSkills] = NO_USER_SKILLS) -> dict[str, Mount]:
    """Mount every arm of some `conditions` over the packages that ship and those that were `given`, as `mount`."""
    packages, placebos = curated(), placebo()
    return {condition: mount(condition, packages, placebos, given) for condition in conditions}


def script_index(packages: Mapping[str, SkillPackage]) -> tuple[tuple[str, str], ...]:
    """Every script of `packages` (name to package) with its own notes: ("package/scripts/x.py", notes)."""
    return tuple(
        (f"{name}/{script}", outline.notes)
        for name, package in sorted(packages.items())
        for script, outline in outlines(package).items()
    )


def expected_tools(arm: Arm, domain: str, own: Iterable[str] = ()) -> tuple[str, ...]:
    """Names of the tools that an agent of this arm is offered for an episode of `domain`, in wire order.

    `own` are those that the episode's subtask brings.
    """
    names: list[str] = [*ALWAYS]
    names += registered(domain).tools
    names += own
    if arm.documents or arm.own:
        names.append("load_skill")
    if arm.documents:
        names.append("load_references")
    if arm.scripts:
        names.append("run_skill_script")
    if arm.own:
        names.append("save_skill")
    if arm.code:
        names.append("run_python")
    return tuple(names)


def prove_mount(
    mounted: Mount, tools: Sequence[ToolSpec], domain: str, memory: Memory = EMPTY, own: Iterable[str] = ()
) -> None:
    """Check that an episode offers what its arm grants, no less and no more.

    `finskillbench.harness.proof` looks at everything, once a run; this is the part that can differ by episode.

    Raises
    ------
    InternalError : the tools on the wire differ from the arm's, or packages or memories are there that none may be.
    """
    offered = tuple(tool.name for tool in tools)
    expected = expected_tools(mounted.arm, domain, own)
    condition = mounted.arm.condition
    if offered != expected:
        raise InternalError(f"condition {condition}: tools on offer are {offered}, expected {expected}")
    if mounted.packages and not mounted.arm.mounts_packages:
        raise InternalError(f"condition {condition}: packages {sorted(mounted.packages)} are mounted, none may be")
    if (memory.skills or memory.verdicts) and not mounted.arm.kept:
        remembered = f"skills {sorted(memory.skills)} and {len(memory.verdicts)} verdicts"
        raise InternalError(f"condition {condition}: {remembered} are remembered, nothing may be")
