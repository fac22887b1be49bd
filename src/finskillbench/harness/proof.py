"""Check, before a run's first model call, that each condition shows what it grants and nothing else.

The check uses the same tools, prompts and packages as episodes, and compares them with the condition's switches. After
removing the granted texts, it searches the rest for marks of every known package.
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
from finskillbench.harness.conditions import Activation, Mount, arm_of, expected_tools, package_names, script_index
from finskillbench.harness.model import ToolSpec
from finskillbench.harness.prompts.compose import FIXED_TEXTS, arm_prompt, system_prompt
from finskillbench.harness.prompts.tokens import text_tokens
from finskillbench.harness.skills.faults import faults
from finskillbench.harness.skills.library import is_generated
from finskillbench.harness.skills.loader import SCRIPTS, SkillPackage, curated, placebo
from finskillbench.harness.tools.contracts import tool_specs
from finskillbench.harness.tools.toolbox import Toolbox
from finskillbench.scoring.values import is_object

SHORTEST_LINE = 40
"""Minimum characters of a line that identifies a document; shorter ones, such as "Body.", occur anywhere."""
_START = 12
"""Characters by which a mark is looked up first: a library has some 50,000 marks."""


def prove_arms(mounts: Mapping[str, Mount], domains: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Check every condition of a run in every domain of its episodes, and return the findings.

    Returns
    -------
    For each condition, as JSON: `packages`, name to digest; and by domain `digest` of the mount, `tools`, their names
    in wire order, `wire_digest`, SHA-256 of the tools' JSON, and `prompt_appended_digest`, SHA-256 of the text appended
    to the prompt without memory. Of a library also `library`, by domain: the `public` and `generated` distractors and
    the `listing_tokens`, an estimate for the listing of all packages; and `tokens`, estimates for their documents.

    Raises
    ------
    InternalError : a condition shows more or less than it grants; the message names it.
    InputError : the inline condition has no package of a domain.
    """
    shipped = (curated(), placebo())
    ours = [mounted.packages for mounted in mounts.values() if not mounted.arm.given and not mounted.arm.library]
    known = {package.digest: package for group in (*shipped, *ours) for package in group.values()}
    marks = frozenset(mark for package in known.values() for mark in _marks(package))
    # Other packages may quote fixed texts; fixed texts cannot quote them.
    foreign = {
        package.digest: (package, not mounted.arm.library)
        for mounted in mounts.values()
        for package in mounted.packages.values()
        if package.digest not in known
    }
    foreign_marks = {mark for package, indexed in foreign.values() for mark in _marks(package, indexed=indexed)}
    marks |= foreign_marks.difference(_contained(foreign_marks, _fixed_text(mounts.values(), domains)))
    record: dict[str, dict[str, Any]] = {}
    for condition, mounted in mounts.items():
        _prove_packages(condition, mounted, *shipped)
        offered = {domain: mounted.for_domain(domain) for domain in sorted(set(domains))}
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
        if mounted.arm.library:
            record[str(condition)] |= {
                "library": {domain: _library(each, shipped[0]) for domain, each in offered.items()},
                "tokens": {name: text_tokens(package.body) for name, package in sorted(mounted.packages.items())},
            }
    return record


def _library(mounted: Mount, shipped: Mapping[str, SkillPackage]) -> dict[str, int]:
    generated = sum(map(is_generated, mounted.packages.values()))
    own = len(mounted.packages.keys() & shipped.keys())
    listing = "".join(f"\n- {name}: {package.description}" for name, package in mounted.packages.items())
    return {
        "public": len(mounted.packages) - own - generated,
        "generated": generated,
        "listing_tokens": text_tokens(listing),
    }


def wire_json(tools: Sequence[ToolSpec]) -> bytes:
    """Return names, descriptions and parameters of the tools as JSON, in wire order."""
    return orjson.dumps([asdict(tool) for tool in tools])


@dataclass(frozen=True, slots=True)
class _View:
    """Visible parts of one condition at the start of an episode, without memory."""

    tools: tuple[ToolSpec, ...]
    appended: str
    loadable: list[str]
    runnable: list[str]


def _look(mounted: Mount, domain: str) -> _View:
    episode = Episode("proof", domain, "", date.min, "", {}, Prompt("", ""))
    toolbox = Toolbox(episode, dict, mounted)
    return _View(tool_specs(mounted, domain), arm_prompt("", mounted, domain), toolbox.loadable, toolbox.runnable)


def _fixed_text(mounts: Iterable[Mount], domains: Sequence[str]) -> str:
    """Return the tool and rule texts that do not depend on the mounted packages."""
    arms = [each.arm for each in mounts]
    tools = [asdict(tool) for arm in arms for domain in domains for tool in tool_specs(Mount(arm), domain)]
    return "\n".join((*map(system_prompt, arms), *FIXED_TEXTS, *_strings(tools)))


def _prove_packages(
    condition: str, mounted: Mount, shipped: Mapping[str, SkillPackage], placebos: Mapping[str, SkillPackage]
) -> None:
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
    # A user's condition may mount any package, even a placebo to evaluate it.
    _check(condition, arm.given or not mistaken, f"{kind} packages: {_listed(mistaken)}")
    if arm.fault:
        changed = {name for name, package in packages.items() if package.digest != shipped[name].digest}
        planted = {fault.package for _, fault in faults(arm.fault)}
        _check(
            condition, changed == planted, f"changes in {_listed(sorted(changed))}, not in {_listed(sorted(planted))}"
        )
        renamed = [name for name, package in packages.items() if package.description != shipped[name].description]
        _check(condition, not renamed, f"other descriptions of {_listed(renamed)}")
    index = script_index(packages) if arm.indexes_scripts else ()
    _check(condition, mounted.script_index == index, f"an index of scripts: {_listed(dict(mounted.script_index))}")


def _prove_view(condition: str, mounted: Mount, domain: str, view: _View, marks: frozenset[str]) -> None:
    arm = mounted.arm
    names = tuple(tool.name for tool in view.tools)
    _check(condition, names == expected_tools(arm, domain), f"in {domain} the tools {_listed(names)}")
    documents = sorted(mounted.packages) if arm.documents else []
    _check(condition, view.loadable == documents, f"in {domain} the skills {_listed(view.loadable)}")
    scripts = [f"{name}/{script}" for name, package in _runnable(mounted, domain) for script in package.scripts]
    _check(condition, view.runnable == scripts, f"in {domain} the scripts {_listed(view.runnable)}")
    appends = arm.inline or arm.own or bool(arm.activation)
    _check(condition, bool(view.appended) == appends, f"in {domain} behind the prompt {_brief(view.appended)}")
    wire = _strings([asdict(tool) for tool in view.tools])
    rest = "\n".join((system_prompt(arm), *FIXED_TEXTS, *wire, view.appended))
    for granted in _granted(mounted, domain):
        _check(condition, granted in rest, f"in {domain} no sign of what it grants: {_brief(granted)}")
        rest = rest.replace(granted, "", 1)
    found = min(_contained(marks, rest), key=rest.index, default=None)
    _check(condition, found is None, f"in {domain} the words {_brief(found or '')}")


def _runnable(mounted: Mount, domain: str) -> list[tuple[str, SkillPackage]]:
    """Return the packages whose scripts can be run before a skill is loaded."""
    arm = mounted.arm
    if arm.activation is Activation.FORCED:
        return list(mounted.packages_for_task(domain).items()) if arm.scripts else []
    if not arm.scripts or arm.documents:
        return []
    names = package_names(domain) if arm.inline else mounted.packages
    return [(name, mounted.packages[name]) for name in names if name in mounted.packages]


def _granted(mounted: Mount, domain: str) -> Iterator[str]:
    """Yield every package text shown before a skill is loaded, the longest first within a package."""
    arm = mounted.arm
    for name, package in sorted(mounted.packages.items()):
        if arm.documents:
            yield f"\n- {name}: {package.description}"
        if arm.inline and name in package_names(domain):
            yield package.body
            yield from package.references.values()
    for name, package in mounted.packages_for_task(domain).items() if arm.activation else ():
        yield name if arm.activation is Activation.HINTED else package.body
    if arm.indexes_scripts:
        for path, notes in mounted.script_index:
            yield f"\n- {path}: {notes}"


def _contained(marks: Iterable[str], text: str) -> list[str]:
    """Return the marks that occur in a text; a look-up of their beginnings rules out nearly all others."""
    starts = {text[at : at + _START] for at in range(len(text))}
    return [mark for mark in marks if (len(mark) < _START or mark[:_START] in starts) and mark in text]


def _marks(package: SkillPackage, *, indexed: bool = True) -> Iterator[str]:
    """Yield texts that identify a package; docstrings of scripts, which are slow to parse, only if it is `indexed`."""
    # A one-word name such as "notes" may occur anywhere; as an index entry it may not.
    yield package.name if "-" in package.name else f"- {package.name}:"
    yield from _lines(package.description)
    yield from (path.removeprefix(SCRIPTS) for path in package.scripts)
    for _, notes in script_index({package.name: package}) if indexed else ():
        yield from _lines(notes)
    for document in (package.body, *package.references.values()):
        yield from _lines(document)


def _lines(text: str) -> Iterator[str]:
    return (line for line in map(str.strip, text.splitlines()) if len(line) >= SHORTEST_LINE)


def _strings(value: Any) -> Iterator[str]:
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
