"""Distractors of the library conditions: packages of public repositories, and generated ones that help with no subtask.

Generated packages combine a task with an object of `distractors.toml`: near neighbours of the subtasks, other work in
finance, and office work. Their random numbers depend on their names alone, so every process generates the same files.
They lie in a temporary folder of this process.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from itertools import chain, cycle, islice, zip_longest
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any

from finskillbench.domains import subtasks
from finskillbench.errors import InputError, SkillError
from finskillbench.harness.skills.lint import specification_problems
from finskillbench.harness.skills.loader import (
    SKILL_FILE,
    SkillPackage,
    digest,
    parse_package,
    read_document,
    read_files,
    scratch,
    write_files,
)

MIN_LISTED, MAX_LISTED = 4, 800
"""Fewest and most packages of a library; the tables allow a few more."""
PUBLIC_SHARE = 3
"""One of so many distractors is public if a library is named."""
_SCRATCH = "library"
_ORDER = ("neighbours", "finance", "neighbours", "generic")
_SECTIONS = {  # heading, number of sentences, and mark of a list
    "purpose": ("Purpose", (3, 7), ""),
    "needs": ("What you need", (3, 6), "- "),
    "steps": ("Procedure", (7, 13), "1. "),
    "checks": ("Checks before you finish", (4, 9), "- "),
    "mistakes": ("Common mistakes", (3, 7), "- "),
    "answers": ("Questions that come up", (3, 7), "- "),
}


def distractors(count: int, library: Path | None, taken: Collection[str]) -> dict[str, SkillPackage]:
    """Return `count` packages by name; a smaller count gives the first ones of a larger count.

    Parameters
    ----------
    library : folder with public packages at any depth, for a third of the distractors; None: all are generated.
    taken : names of other packages, which are skipped.

    Raises
    ------
    InputError : `library` is no folder, or has too few usable packages.
    """
    public = [] if library is None else _public(library, -(-count // PUBLIC_SHARE), taken)
    names = {*taken, *(package.name for package in public)}
    generated = (_generated(*parts) for parts in _combinations() if _name(*parts) not in names)
    sources = [iter(public), *[generated] * (PUBLIC_SHARE - 1)] if public else [generated]
    return {package.name: package for package in map(next, islice(cycle(sources), count))}


def is_generated(package: SkillPackage) -> bool:
    """Return True for a package that this module generated."""
    return package.root.parent == scratch(_SCRATCH)


def _public(library: Path, count: int, taken: Collection[str]) -> list[SkillPackage]:
    """Read usable packages of a folder, in an order that depends on their paths in it alone."""
    if not library.is_dir():
        raise InputError(f"--library {library}: no such folder; name a folder with skill packages")
    paths = {path.parent.relative_to(library).as_posix() for path in library.rglob(SKILL_FILE)}
    found: dict[str, SkillPackage] = {}
    for path in sorted(paths, key=lambda path: hashlib.sha256(path.encode()).digest()):
        package = _usable(library / path)
        if package is not None and package.name not in taken:
            found.setdefault(package.name, package)
        if len(found) == count:
            return list(found.values())
    raise InputError(
        f"--library {library}: has {len(found)} usable packages (valid, of other names than ours), but {count} are "
        "needed; name a larger folder"
    )


def _usable(path: Path) -> SkillPackage | None:
    """Read a package; None if it is invalid, has a description of several lines, or names a subtask."""
    root = path.resolve()
    try:
        files = read_files(root)
        package = parse_package(root, files)
    except SkillError:
        return None
    text = "\n".join((package.description, package.body, *package.references.values()))
    helps = any("_" in subtask.name and subtask.name in text for subtask in subtasks())
    if helps or "\n" in package.description or specification_problems(read_document(root, files)[0], root):
        return None
    return package


@cache
def _tables() -> Mapping[str, Any]:
    return tomllib.loads((Path(__file__).parent / "distractors.toml").read_text(encoding="utf-8"))


@cache
def _combinations() -> tuple[tuple[str, str, str], ...]:
    """Return group, object and task of every package, groups in turn and each in a fixed random order."""
    groups: dict[str, Iterator[tuple[str, str, str]]] = {}
    for name, group in _tables()["groups"].items():
        pairs = [(name, each, task) for each in group["objects"] for task in _tables()["tasks"][group["tasks"]]]
        groups[name] = iter(Random(name).sample(pairs, len(pairs)))
    rounds = zip_longest(*(groups[name] for name in _ORDER))
    return tuple(found for found in chain.from_iterable(rounds) if found is not None)


def _name(group: str, thing: str, task: str) -> str:
    return f"{thing}-{task}"


@cache
def _generated(group: str, thing: str, task: str) -> SkillPackage:
    """Generate a package and write its files."""
    tables, name = _tables(), _name(group, thing, task)
    phrase, listed = tables["groups"][group]["objects"][thing]
    verb, goal, kind, *own_steps = tables["tasks"][tables["groups"][group]["tasks"]][task]
    rng, parts = Random(name), listed.split(", ")
    values = {"verb": verb, "object": phrase, "goal": goal.format(object=phrase, part=parts[0])}
    parts_text = f"{', '.join(parts[:-1])} and {parts[-1]}"

    def filled(text: str) -> str:
        return text.format(part=rng.choice(parts), parts=parts_text, name=name, **values)

    description = filled(rng.choice(tables["text"]["description"]))
    body = [f"# {name.replace('-', ' ').capitalize()}"]
    for section, (heading, (least, most), mark) in _SECTIONS.items():
        pool = tables["text"][section]
        chosen = [pool[place] for place in sorted(rng.sample(range(len(pool)), rng.randint(least, most)))]
        if section == "steps":
            chosen[2:2] = own_steps
        body += [f"## {heading}", (f"\n{mark}" if mark else " ").join(["", *map(filled, chosen)]).strip()]
    for part in parts:
        chosen = rng.sample(tables["text"]["details"], rng.randint(2, 5))
        body += [f"## {part.capitalize()}", " ".join(text.format(part=part) for text in chosen)]
    files: dict[str, bytes] = {}
    if kind:
        code = tables["scripts"][kind]
        script, usage = f"scripts/{kind}.py", code.split('"""')[1]
        body += ["## Script", f"Run `{script}` on the input of one batch. {usage}"]
        files[script] = f'"""{name.replace("-", " ").capitalize()}: {usage}"""\n{code}'.encode()
    text = "\n\n".join(body)
    files[SKILL_FILE] = f"---\nname: {name}\ndescription: '{description}'\n---\n\n{text}\n".encode()
    root = scratch(_SCRATCH) / name
    write_files(files, root)
    scripts = tuple(path for path in files if path != SKILL_FILE)
    return SkillPackage(name, description, root, text, MappingProxyType({}), scripts, digest(files))
