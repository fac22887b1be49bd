"""Experimental conditions: the skills, scripts and tools that an agent is offered.

A condition is an `Arm`, a set of switches, identified by its name. Each folder of user skills is a condition
`skill:NAME`. `library:N` lists the curated packages among distractors, N in all; `faulty:KIND` plants a fault in
them. After a condition with skill documents, `+hinted` and `+forced` change how the agent learns of them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import msgspec
import orjson

from finskillbench.domains import domain as registered
from finskillbench.domains import domains
from finskillbench.domains.faults import FaultKind
from finskillbench.errors import InputError, InternalError
from finskillbench.harness.model import ToolSpec
from finskillbench.harness.skills.faults import FAULTY_PREFIX, faulty
from finskillbench.harness.skills.library import MAX_LISTED, MIN_LISTED, distractors
from finskillbench.harness.skills.loader import SkillPackage, curated, of_other_suites, placebo
from finskillbench.harness.skills.outline import outlines
from finskillbench.harness.skills.user_skills import EMPTY, NO_USER_SKILLS, USER_SKILLS_PREFIX, Memory, UserSkills
from finskillbench.sandbox.process import THIS_PYTHON


class Condition(StrEnum):
    """Names of the built-in conditions, as in rows."""

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


class Activation(StrEnum):
    """Way in which an agent learns of skills, beyond the index of names and descriptions.

    HINTED: the prompt names those of the task. FORCED: it holds their documents, as if they were loaded.
    """

    UNAIDED = ""
    HINTED = "hinted"
    FORCED = "forced"


_USER_SKILLS_NAME = r"[a-z0-9][a-z0-9._-]{0,63}"
LIBRARY_PREFIX = "library:"
_FAULTY_NAME = f"{FAULTY_PREFIX}({'|'.join(FaultKind)})"
_USER_NAME, _LIBRARY_NAME = USER_SKILLS_PREFIX + _USER_SKILLS_NAME, LIBRARY_PREFIX + "[1-9][0-9]{0,2}"
_NAMES = rf"({'|'.join(Condition)}|{_USER_NAME}|{_LIBRARY_NAME}|{_FAULTY_NAME})"
_ACTIVATIONS = "|".join(filter(None, Activation))
ArmName = Annotated[str, msgspec.Meta(pattern=rf"^{_NAMES}(\+({_ACTIVATIONS}))?\Z")]
"""Name of a condition, validated when records and rows are read."""


@dataclass(frozen=True, slots=True)
class Arm:
    """Switches of one condition; everything else is the same in every condition.

    `documents` can be loaded, `scripts` can be run, `inline` puts documents into the prompt. `placebo` or `given`
    packages replace the curated ones. The agent writes its `own` skills, which are `kept` between episodes, and runs
    its own `code`. `activation` draws attention to the task's documents. `library` packages are listed in all if it is
    not 0. `fault` is the kind of the planted fault. The names of the switches enter the digest of a mount.
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
    activation: Activation = Activation.UNAIDED
    library: int = 0
    fault: str = ""

    @property
    def mounts_packages(self) -> bool:
        """Return True if any package reaches the agent."""
        return self.documents or self.scripts or self.inline

    @property
    def indexes_scripts(self) -> bool:
        """Return True if `run_skill_script` lists the scripts with their docstrings, as no document does."""
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

COMMON_TOOLS = ("submit_answer", "get_task_data")


@dataclass(frozen=True)
class Mount:
    """A condition with its mounted packages; `digest` identifies both.

    `script_index` lists ("package/scripts/x.py", docstring) if no document lists the scripts. `python` runs the scripts
    of user packages. Only the methods here decide which packages reach tools and prompt.
    """

    arm: Arm
    packages: Mapping[str, SkillPackage] = field(default_factory=dict[str, SkillPackage])
    script_index: tuple[tuple[str, str], ...] = ()
    python: Path = THIS_PYTHON

    @cached_property
    def digest(self) -> str:
        """Return the SHA-256 of the switches and of the digests of the mounted packages."""
        content = {**asdict(self.arm), "packages": self.package_digests(), "script_index": self.script_index}
        return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()

    def package_digests(self) -> dict[str, str]:
        """Return the digests of the mounted packages by name."""
        return {name: self.packages[name].digest for name in sorted(self.packages)}

    def for_domain(self, domain: str) -> Mount:
        """Restrict built-in packages to the suite of `domain`, and a library to its number of packages.

        Raises `InputError` if the suite's own packages fill the library.
        """
        if domain not in self._by_domain:
            self._by_domain[domain] = self._for_domain(domain)
        return self._by_domain[domain]

    @cached_property
    def _by_domain(self) -> dict[str, Mount]:
        return {}

    def _for_domain(self, domain: str) -> Mount:
        excluded = of_other_suites(domain) if self.packages else ()
        planted = {folder.name for folder in excluded} if self.arm.fault else ()
        packages = {
            name: package
            for name, package in self.packages.items()
            if package.root not in excluded and name not in planted
        }
        if self.arm.library:
            packages = dict(islice(packages.items(), self.arm.library))
            if _shipped().issuperset(package.root for package in packages.values()):
                raise InputError(
                    f"condition {self.arm.condition!r}: the {len(packages)} or more packages of {domain} leave no "
                    "place for others; choose a larger library"
                )
        if len(packages) == len(self.packages):
            return self
        index = tuple(entry for entry in self.script_index if entry[0].partition("/")[0] in packages)
        return replace(self, packages=MappingProxyType(packages), script_index=index)

    @property
    def loadable(self) -> Mapping[str, SkillPackage]:
        """Return the packages that `load_skill` and `load_references` serve."""
        return self.packages if self.arm.documents else {}

    def preloaded(self, domain: str) -> dict[str, SkillPackage]:
        """Return the packages whose scripts can be run without loading a skill first."""
        if self.arm.inline:
            return self.packages_of(domain)
        if self.arm.activation is Activation.FORCED:
            return self.packages_for_task(domain)
        return dict(self.packages) if self.arm.indexes_scripts else {}

    def packages_for_task(self, domain: str) -> dict[str, SkillPackage]:
        """Return the packages that an activation names: the user's own, or those of the domain."""
        if not self.arm.given:
            return self.packages_of(domain)
        own = {name: package for name, package in self.packages.items() if package.root not in _shipped()}
        return own or dict(self.packages)

    def packages_of(self, domain: str) -> dict[str, SkillPackage]:
        """Return the mounted packages of a domain by name, its own first; raises `InputError` if there is none."""
        names = package_names(domain)
        found = {name: self.packages[name] for name in names if name in self.packages}
        if not found:
            raise InputError(
                f"condition '{self.arm.condition}' shows each domain its own skill, "
                f"but no package is named {' or '.join(map(repr, names)) or repr(domain)}"
            )
        return found


def _shipped() -> set[Path]:
    return {folder.resolve() for one in domains() for folder in one.skills}


def package_names(domain: str) -> tuple[str, ...]:
    """Return the names of a domain's skill packages, which are their folders' names, its own first."""
    return tuple(folder.name for folder in registered(domain).skills)


def arm_of(name: str) -> Arm:
    """Return the condition called `name`; raise `InputError` listing the known ones otherwise."""
    base, plus, activation = name.partition("+")
    if plus:
        arm = arm_of(base)
        if activation not in {Activation.HINTED, Activation.FORCED} or not arm.documents or arm.placebo:
            raise InputError(
                f"condition {name!r}: only a condition with skill documents, such as curated or skill:NAME, can end "
                "in +hinted or +forced"
            )
        return replace(arm, condition=name, activation=Activation(activation))
    if name in ARMS:
        return ARMS[name]
    if re.fullmatch(USER_SKILLS_PREFIX + _USER_SKILLS_NAME, name):
        return Arm(name, documents=True, scripts=True, given=True)
    if name.startswith(LIBRARY_PREFIX):
        listed = name.removeprefix(LIBRARY_PREFIX)
        if re.fullmatch("[1-9][0-9]{0,2}", listed) and MIN_LISTED <= int(listed) <= MAX_LISTED:
            return Arm(name, documents=True, scripts=True, library=int(listed))
        raise InputError(
            f"condition {name!r}: a library has {MIN_LISTED} to {MAX_LISTED} packages, such as {LIBRARY_PREFIX}100"
        )
    if (kind := name.removeprefix(FAULTY_PREFIX)) != name:
        if kind in {*FaultKind}:
            return Arm(name, documents=True, scripts=True, fault=kind)
        raise InputError(f"condition {name!r}: {kind!r} is not a kind of fault; choose from: {', '.join(FaultKind)}")
    if name.startswith(USER_SKILLS_PREFIX):
        raise InputError(
            f"{name.removeprefix(USER_SKILLS_PREFIX)!r} is not a valid name for skills; use a-z, 0-9, dots, hyphens "
            "and underscores, at most 64, starting with a-z or 0-9"
        )
    raise InputError(
        f"condition {name!r} is unknown; choose from: {', '.join(Condition)}, {LIBRARY_PREFIX}N, {FAULTY_PREFIX}KIND"
    )


def parse_condition(name: str) -> str:
    """Return the canonical name of a condition; raise `InputError` listing the known ones otherwise."""
    return str(arm_of(name).condition)


def mount(
    condition: str,
    packages: Mapping[str, SkillPackage],
    placebos: Mapping[str, SkillPackage],
    user_skills: Mapping[str, UserSkills] = NO_USER_SKILLS,
    library: Path | None = None,
) -> Mount:
    """Mount the packages of one condition.

    `packages` and `placebos` are curated and irrelevant packages by name, `user_skills` the packages of each
    `skill:NAME` condition, `library` a folder of distractors. Raises `InputError` for an unknown condition or missing
    packages.
    """
    arm = arm_of(condition)
    if not arm.mounts_packages:
        return Mount(arm)
    if arm.given:
        base = condition.partition("+")[0]
        if base not in user_skills:
            name = base.removeprefix(USER_SKILLS_PREFIX)
            raise InputError(f"condition {condition!r} has no folder of skills; name it: --skills {name}=DIR")
        return Mount(arm, user_skills[base].packages, python=user_skills[base].python)
    mounted = placebos if arm.placebo else faulty(arm.fault) if arm.fault else packages
    if not mounted:
        kind = "placebo" if arm.placebo else "curated"
        raise InputError(f"condition '{arm.condition}' mounts {kind} skills, but no package was found")
    if arm.library:
        fewest = min(sum(each.root not in of_other_suites(one.name) for each in mounted.values()) for one in domains())
        others = distractors(max(arm.library - fewest, 0), library, {*packages, *placebos})
        return Mount(arm, MappingProxyType({**mounted, **others}))
    return Mount(arm, MappingProxyType(dict(mounted)), script_index(mounted) if arm.indexes_scripts else ())


def mount_all(
    conditions: Iterable[str], user_skills: Mapping[str, UserSkills] = NO_USER_SKILLS, library: Path | None = None
) -> dict[str, Mount]:
    """Mount each of `conditions` over the built-in packages and the user's, as `mount`."""
    packages, placebos = curated(), placebo()
    return {condition: mount(condition, packages, placebos, user_skills, library) for condition in conditions}


def script_index(packages: Mapping[str, SkillPackage]) -> tuple[tuple[str, str], ...]:
    """Return ("package/scripts/x.py", docstring) for each script of `packages`."""
    return tuple(
        (f"{name}/{script}", outline.notes)
        for name, package in sorted(packages.items())
        for script, outline in outlines(package).items()
    )


def expected_tools(arm: Arm, domain: str, subtask_tools: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the names of the tools that a condition offers in `domain`, in wire order."""
    names: list[str] = [*COMMON_TOOLS]
    names += registered(domain).tools
    names += subtask_tools
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
    mounted: Mount, tools: Sequence[ToolSpec], domain: str, memory: Memory = EMPTY, subtask_tools: Iterable[str] = ()
) -> None:
    """Check tools, packages and memory of one episode; raises `InternalError` if its condition excludes or lacks one.

    `finskillbench.harness.proof` checks everything else, once per run.
    """
    offered = tuple(tool.name for tool in tools)
    expected = expected_tools(mounted.arm, domain, subtask_tools)
    condition = mounted.arm.condition
    if offered != expected:
        raise InternalError(f"condition {condition}: offered tools are {offered}, expected {expected}")
    if mounted.packages and not mounted.arm.mounts_packages:
        raise InternalError(f"condition {condition}: packages {sorted(mounted.packages)} are mounted, none is allowed")
    if (memory.skills or memory.verdicts) and not mounted.arm.kept:
        remembered = f"skills {sorted(memory.skills)} and {len(memory.verdicts)} verdicts"
        raise InternalError(f"condition {condition}: {remembered} are remembered, nothing is allowed")
