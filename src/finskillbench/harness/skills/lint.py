"""Lint of a skill package: the Agent Skills specification by skills-ref, then the rules of this project.

It reads a package as a run does, by the same code, and executes nothing of it. Each message states what was found.
"""

import platform
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, cast

from skills_ref import validator

from finskillbench.errors import InputError, SkillError
from finskillbench.harness.skills.documents import is_binary
from finskillbench.harness.skills.evals import eval_problems
from finskillbench.harness.skills.loader import (
    REFERENCES,
    SCRIPTS,
    SkillPackage,
    parse_package,
    read_document,
    scan_files,
    script_text,
)
from finskillbench.harness.skills.needs import read_needs
from finskillbench.harness.skills.outline import Outline, outlines
from finskillbench.sandbox.process import printable

MAX_BODY_LINES, MAX_BODY_TOKENS = 500, 5_000
MAX_PROBLEMS = 200
"""Problems that are listed; of more, the number is."""
# The usual estimate for English text; tokenizers differ by some 20 %.
_CHARS_PER_TOKEN = 4
_WHEN = re.compile(
    r"\b(when|whenever|if (you|the|a|an)|used? ([\w-]+ ){0,3}(for|if|to|on|in|as|before|after|during|with|whenever)"
    r"|(best|preferred|intended|suited|suitable|meant) ([\w-]+ ){0,2}for|triggers?|trigger(ed|ing)? (on|by)|invoke)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[\w./~-]+")
_FILE = re.compile(r"(?:references|scripts|assets)/[\w./-]*\w\.[A-Za-z]\w*")
# Modules that Python or pytest finds by their names; no agent runs them.
_NO_ENTRY = re.compile(r"__init__\.py|conftest\.py|test_.*\.py|.*_test\.py")


def lint(path: Path) -> list[str]:
    """Problems of the package in the folder `path`, one line each; empty if there are none."""
    problems = [" ".join(printable(problem).split()) for problem in _problems(Path(path).resolve())]
    if len(problems) > MAX_PROBLEMS:
        return [*problems[:MAX_PROBLEMS], f"and {len(problems) - MAX_PROBLEMS} more problems"]
    return problems


def _problems(root: Path) -> list[str]:
    try:
        files, hidden = scan_files(root)
    except SkillError as error:
        return [str(error)]
    problems = [f"{name!r} is hidden and left out of the package" for name in hidden]
    try:
        package = parse_package(root, files)
    except SkillError as error:
        return [*problems, str(error)]
    return [
        *problems,
        *_specification(read_document(root, files)[0], root),
        *_description(package),
        *_body(package),
        *_references(package, files),
        *_mentioned(package, {*files, *hidden}),
        *eval_problems(package),
        *_scripts(package),
    ]


def _specification(fields: dict[str, Any], root: Path) -> list[str]:
    """Problems of front matter by the reference implementation of the specification, which has no complete types."""
    return cast("Any", validator).validate_metadata(fields, root)


def _description(package: SkillPackage) -> Iterator[str]:
    if not _WHEN.search(package.description):
        yield "description does not say when to use the skill; add a sentence 'Use when ...'"


def _body(package: SkillPackage) -> Iterator[str]:
    lines, tokens = len(package.body.splitlines()), len(package.body) // _CHARS_PER_TOKEN
    if not package.body:
        yield "SKILL.md has no instructions below its front matter"
    if lines >= MAX_BODY_LINES:
        yield f"SKILL.md has {lines} lines of instructions, keep it under {MAX_BODY_LINES}; move detail to references/"
    if tokens >= MAX_BODY_TOKENS:
        yield (
            f"SKILL.md has about {tokens} tokens of instructions, keep it under {MAX_BODY_TOKENS}; "
            "move detail to references/"
        )


def _references(package: SkillPackage, files: Mapping[str, bytes]) -> Iterator[str]:
    for name in package.references:
        if not _is_mentioned(package, name):
            yield f"{name} is mentioned neither in SKILL.md nor in another reference; say when to read it"
    for name, data in files.items():
        if name.startswith(REFERENCES) and is_binary(data):
            yield f"{name} is not text in UTF-8, so an agent is not shown it; move it to assets/ or save it as UTF-8"


def _mentioned(package: SkillPackage, there: set[str]) -> Iterator[str]:
    """Yield the files that SKILL.md mentions by their path in the package and that are not in its folder."""
    for name in sorted({path for word in _WORD.findall(package.body) if (path := _own_path(package.name, word))}):
        if name not in there:
            yield f"SKILL.md mentions {name}, which is not in the package"


def _own_path(package: str, word: str) -> str:
    """Return the path within the package that a word names; empty if it names none, or a file elsewhere."""
    for folder in (REFERENCES, SCRIPTS, "assets/"):
        before, found, after = word.partition(folder)
        # Below a variable or another folder it may be anywhere.
        if found and (before in ("", "./") or f"/{before}".endswith(f"/{package}/")):
            path = f"{folder}{after}".rstrip(".")
            return path if _FILE.fullmatch(path) and ".." not in path and "//" not in path else ""
    return ""


def _is_mentioned(package: SkillPackage, name: str) -> bool:
    """Return True if SKILL.md or a reference other than `name` has the name of this file."""
    file = PurePosixPath(name).name
    texts = [package.body, *(text for other, text in package.references.items() if other != name)]
    expression = re.compile(rf"(?<![\w.\-]){re.escape(file)}(?![\w\-])")
    return any(file in text and expression.search(text) is not None for text in texts)


def _scripts(package: SkillPackage) -> Iterator[str]:
    try:
        found = outlines(package)
    except SkillError as error:
        yield str(error)
        return
    helpers = {part for outline in found.values() for name in outline.imported for part in name.split(".")}
    for name, outline in found.items():
        try:
            read_needs(Path(name), script_text(package, name))
        except InputError as error:
            yield str(error)
        if outline.error:
            yield f"{name} is not Python {platform.python_version()}: {outline.error}"
        elif outline.main is not None or not _is_helper(name, helpers):
            if not _is_mentioned(package, name):
                yield f"{name} is not mentioned in SKILL.md or a reference; say when to run it, and on what"
            yield from (f"{name} {problem}" for problem in _entry(outline))


def _is_helper(name: str, helpers: set[str]) -> bool:
    """Return True for a module that another script imports, or that Python or pytest finds by its name."""
    path = PurePosixPath(name)
    return path.stem in helpers or _NO_ENTRY.fullmatch(path.name) is not None


def _entry(outline: Outline) -> Iterator[str]:
    """Yield what keeps a script from being run by `run_skill_script`, or from being understood."""
    if not outline.notes:
        yield "has no module docstring; say what it takes and returns"
    main = outline.main
    if main is None:
        yield "has no function main(payload: dict) -> dict, so run_skill_script cannot run it"
    elif not main.takes_one:
        yield f"line {main.line}: main must take one argument, the payload of run_skill_script"
    elif not main.typed:
        yield f"line {main.line}: main must be annotated (payload: dict) -> dict"
