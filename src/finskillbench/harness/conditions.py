"""The experimental arms: which procedural resources are mounted, and the proof of it.

An arm is four switches, so that a new one is a line in `ARMS`: whether curated documents can be loaded, whether
their scripts can be run, whether the documents stand in the prompt, and whether the agent writes its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

import orjson

from finskillbench.errors import InputError, InternalError
from finskillbench.harness.model import ToolSpec
from finskillbench.skills.loader import SkillPackage


class Condition(StrEnum):
    """Names of the arms, as they appear in rows."""

    NO_SKILL = "no_skill"
    CURATED = "curated"
    SELF_GENERATED = "self_generated"


@dataclass(frozen=True, slots=True)
class Arm:
    """What one condition grants; everything else is the same in every condition."""

    condition: Condition
    documents: bool = False
    scripts: bool = False
    inline: bool = False
    own: bool = False

    @property
    def mounts_packages(self) -> bool:
        """Whether any curated material reaches the agent."""
        return self.documents or self.scripts or self.inline


ARMS: Mapping[Condition, Arm] = MappingProxyType(
    {
        Condition.NO_SKILL: Arm(Condition.NO_SKILL),
        Condition.CURATED: Arm(Condition.CURATED, documents=True, scripts=True),
        Condition.SELF_GENERATED: Arm(Condition.SELF_GENERATED, own=True),
    }
)

ALWAYS = ("submit_answer", "load_skill", "load_references", "get_task_data")
FUNDAMENTAL = "fundamental_analysis"


@dataclass(frozen=True, slots=True)
class Mount:
    """An arm with the packages that were really mounted; `digest` identifies both."""

    arm: Arm
    packages: Mapping[str, SkillPackage] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """SHA-256 over the arm's switches and the digest of each mounted package."""
        content = {
            "condition": self.arm.condition.value,
            "documents": self.arm.documents,
            "scripts": self.arm.scripts,
            "inline": self.arm.inline,
            "own": self.arm.own,
            "packages": self.package_digests(),
        }
        return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()

    def package_digests(self) -> dict[str, str]:
        """Name to digest of each mounted package; empty where nothing is mounted."""
        return {name: self.packages[name].digest for name in sorted(self.packages)}


def parse_condition(name: str) -> Condition:
    """Return the condition called `name`; raise `InputError` listing the known ones otherwise."""
    try:
        return Condition(name)
    except ValueError:
        known = ", ".join(Condition)
        raise InputError(f"condition {name!r} is unknown; choose from: {known}") from None


def mount(condition: Condition, packages: Mapping[str, SkillPackage]) -> Mount:
    """Mount what the arm of `condition` grants out of the curated `packages` (name to package).

    Raises
    ------
    InputError : the arm needs packages and there are none.
    """
    arm = ARMS[condition]
    if not arm.mounts_packages:
        return Mount(arm)
    if not packages:
        raise InputError(f"condition {condition.value!r} mounts curated skills, but no package was found")
    return Mount(arm, MappingProxyType(dict(packages)))


def expected_tools(arm: Arm, domain: str) -> tuple[str, ...]:
    """Names of the tools that an agent of this arm is offered for an episode of `domain`, in wire order."""
    names: list[str] = [*ALWAYS]
    if domain == FUNDAMENTAL:
        names.append("query_xbrl")
    if arm.scripts:
        names.append("run_skill_script")
    if arm.own:
        names.append("save_skill")
    return tuple(names)


def prove_mount(mounted: Mount, tools: Sequence[ToolSpec], domain: str) -> None:
    """Check that an episode offers what its arm grants, no less and no more.

    Raises
    ------
    InternalError : the tools on the wire differ from the arm's, or packages are mounted where none may be.
    """
    offered = tuple(tool.name for tool in tools)
    expected = expected_tools(mounted.arm, domain)
    condition = mounted.arm.condition.value
    if offered != expected:
        raise InternalError(f"condition {condition}: tools on offer are {offered}, expected {expected}")
    if mounted.packages and not mounted.arm.mounts_packages:
        raise InternalError(f"condition {condition}: packages {sorted(mounted.packages)} are mounted, none may be")
