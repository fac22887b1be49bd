"""The proof, before a run's first model call, that each arm shows what it grants and nothing else.

What an agent could see is computed from the very parts that episodes are made of: the tools as they go over the wire,
what the arm puts behind the prompt, the packages that can be loaded, the scripts that can be run. It is compared with
the arm's switches, and what is left after taking away the texts that the arm grants is searched for the marks of every
known package. So a leak is found whether it comes through a mount or through a fixed text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, cast

import orjson

from finskillbench.episode import Episode, Prompt
from finskillbench.errors import InternalError
from finskillbench.harness.conditions import Mount, arm_of, expected_tools, package_names, script_index
from finskillbench.harness.model import ToolSpec
from finskillbench.harness.prompts.compose import FIXED, arm_prompt, system_prompt
from finskillbench.harness.skills.loader import SkillPackage, curated, placebo
from finskillbench.harness.tools.contracts import tool_specs
from finskillbench.harness.tools.toolbox import Toolbox
from finskillbench.scoring.values import is_object

SHORTEST_LINE = 40
"""Lines of a document that are shorter than this are no mark of it: "Body." may stand anywhere."""


def prove_arms(mounts: Mapping[str, Mount], domains: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Prove every arm of a run in every domain of its episodes, and return what was seen.

    Parameters
    ----------
    mounts : what is mounted under each condition of the run.
    domains : the domains (`Episode.skill`) of its episodes.

    Returns
    -------
    For each condition, as JSON: `packages`, name to digest; and by domain `digest` of the mount, `tools`, the names on
    the wire in order, `wire_digest`, SHA-256 of the tools' JSON, and `prompt_appended_digest`, SHA-256 of what the arm
    puts behind the prompt of an agent that remembers nothing.

    Raises
    ------
    InternalError : an arm could see what it must not, or could not see what it grants; the message says what.
    InputError : the inline arm has no package of one of the domains.
    """
    shipped = (curated(), placebo())
    groups = (*shipped, *(mounted.packages for mounted in mounts.values() if not mounted.arm.given))
    known = {package.digest: package for group in groups for package in group.values()}
    marks = frozenset(mark for package in known.values() for mark in _marks(package))
    # Somebody's own package may quote our words; no text of ours can have been taken from it.
    given = [package for mounted in mounts.values() if mounted.arm.given for package in mounted.packages.values()]
    ours = _fixed_words(mounts.values(), domains)
    marks |= {mark for package in given for mark in _marks(package) if mark not in ours}
    record: dict[str, dict[str, Any]] = {}
    for condition, mounted in mounts.items():
        _prove_packages(condition, mounted, *shipped)
        offered = {domain: mounted.of(domain) for domain in sorted(set(domains))}
        views = {domain: _look(each, domain) for domain, each in offered.items()}
        for domain, view in views.items():
            _prove_view(condition, offered[domain], domain, view, marks)
        packages = {name: digest for each in offered.values() for name, digest in each.package_digests().items()}
        record[str(condition)] = {
            "digest": {domain: each.digest for domain, each in offered.items()},
            "packages": dict(sorted(packages.items())),
            "tools": {domain: [tool.name for tool in view.tools] for domain, view in views.items()},
            "wire_digest": {domain: _sha256(wire_json(view.tools)) for domain, view in views.items()},
            "prompt_appended_digest": {domain: _sha256(view.appended.encode()) for domain, view in views.items()},
        }
    return record


def wire_json(tools: Sequence[ToolSpec]) -> bytes:
    """The tools as JSON: names, descriptions and parameters in the order in which a model is given them."""
    return orjson.dumps([asdict(tool) for tool in tools])


@dataclass(frozen=True, slots=True)
class _View:
    """What an agent of one arm could see and do at the start of an episode, memory apart."""

    tools: tuple[ToolSpec, ...]
    appended: str
    loadable: list[str]
    runnable: list[str]


def _look(mounted: Mount, domain: str) -> _View:
    episode = Episode("proof", domain, "", date.min, "", {}, Prompt("", ""))
    toolbox = Toolbox(episode, dict, mounted)
    return _View(tool_specs(mounted, domain), arm_prompt("", mounted, domain), toolbox.loadable, toolbox.runnable)


def _fixed_words(mounts: Iterable[Mount], domains: Sequence[str]) -> str:
    """What every agent of these arms reads of tools and rules, whatever is mounted."""
    arms = [each.arm for each in mounts]
    tools = [asdict(tool) for arm in arms for domain in domains for tool in tool_specs(Mount(arm), domain)]
    return "\n".join((*map(system_prompt, arms), *FIXED, *_strings(tools)))


def _prove_packages(
    condition: str, mounted: Mount, shipped: Mapping[str, SkillPackage], placebos: Mapping[str, SkillPackage]
) -> None:
    """Check switches and packages, whatever becomes of them on the wire."""
    arm, packages = arm_of(condition), mounted.packages
    _check(condition, mounted.arm == arm, f"what its switches {asdict(mounted.arm)} grant, not those of the arm")
    _check(condition, arm.mounts_packages or not packages, f"mounted packages: {_listed(packages)}")
    _check(condition, bool(packages) == arm.mounts_packages, "no package, though the arm shows some")
    renamed = [name for name, package in packages.items() if package.name != name]
    _check(condition, not renamed, f"packages under another name: {_listed(renamed)}")
    wrong = shipped if arm.placebo else placebos
    digests = {package.digest for package in wrong.values()}
    mistaken = [name for name, package in packages.items() if name in wrong or package.digest in digests]
    kind = "curated" if arm.placebo else "placebo"
    # Which packages an arm of somebody's own mounts is theirs to say: a placebo may be evaluated too.
    _check(condition, arm.given or not mistaken, f"{kind} packages: {_listed(mistaken)}")
    index = script_index(packages) if arm.indexes_scripts else ()
    _check(condition, mounted.script_index == index, f"an index of scripts: {_listed(dict(mounted.script_index))}")


def _prove_view(condition: str, mounted: Mount, domain: str, view: _View, marks: frozenset[str]) -> None:
    """Check tools, words, loadable documents and runnable scripts of one arm in one domain."""
    arm = mounted.arm
    names = tuple(tool.name for tool in view.tools)
    _check(condition, names == expected_tools(arm, domain), f"in {domain} the tools {_listed(names)}")
    documents = sorted(mounted.packages) if arm.documents else []
    _check(condition, view.loadable == documents, f"in {domain} the skills {_listed(view.loadable)}")
    scripts = [f"{name}/{script}" for name, package in _runnable(mounted, domain) for script in package.scripts]
    _check(condition, view.runnable == scripts, f"in {domain} the scripts {_listed(view.runnable)}")
    appends = arm.inline or arm.own
    _check(condition, bool(view.appended) == appends, f"in {domain} behind the prompt {_brief(view.appended)}")
    wire = _strings([asdict(tool) for tool in view.tools])
    rest = "\n".join((system_prompt(arm), *FIXED, *wire, view.appended))
    for granted in _granted(mounted, domain):
        _check(condition, granted in rest, f"in {domain} no sign of what it grants: {_brief(granted)}")
        rest = rest.replace(granted, "", 1)
    found = min((mark for mark in marks if mark in rest), key=rest.index, default=None)
    _check(condition, found is None, f"in {domain} the words {_brief(found or '')}")


def _runnable(mounted: Mount, domain: str) -> list[tuple[str, SkillPackage]]:
    """Packages whose scripts this arm may run before anything is loaded, by its switches alone."""
    arm = mounted.arm
    if not arm.scripts or arm.documents:
        return []
    names = package_names(domain) if arm.inline else mounted.packages
    return [(name, mounted.packages[name]) for name in names if name in mounted.packages]


def _granted(mounted: Mount, domain: str) -> Iterator[str]:
    """Every text of a package that this arm shows before anything is loaded, longest first within a package."""
    arm = mounted.arm
    for name, package in sorted(mounted.packages.items()):
        if arm.documents:
            yield f"\n- {name}: {package.description}"
        if arm.inline and name in package_names(domain):
            yield package.body
            yield from package.references.values()
    if arm.indexes_scripts:
        for path, notes in mounted.script_index:
            yield f"\n- {path}: {notes}"


def _marks(package: SkillPackage) -> Iterator[str]:
    """Texts that betray a package wherever they stand."""
    # A name of one word ("notes") may stand in any text; as an entry of an index it may not.
    yield package.name if "-" in package.name else f"- {package.name}:"
    yield from _lines(package.description)
    for path, notes in script_index({package.name: package}):
        yield path.partition("/scripts/")[2]
        yield from _lines(notes)
    for document in (package.body, *package.references.values()):
        yield from _lines(document)


def _lines(text: str) -> Iterator[str]:
    return (line for line in map(str.strip, text.splitlines()) if len(line) >= SHORTEST_LINE)


def _strings(value: Any) -> Iterator[str]:
    """Every string in a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif is_object(value):
        for key, member in value.items():
            yield key
            yield from _strings(member)
    elif isinstance(value, list | tuple):
        for member in cast("Sequence[Any]", value):
            yield from _strings(member)


def _check(condition: str, holds: bool, seen: str) -> None:
    if not holds:
        raise InternalError(f"condition {condition}: an agent could see {seen}; the run was not started")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def _brief(text: str) -> str:
    return ascii(text if len(text) <= 80 else text[:77] + "...")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
