"""Lint a skill package by the Agent Skills specification and rules of this project, without executing any of it.

It also checks the requirements in PEP 723 blocks of scripts against an interpreter.
"""

from __future__ import annotations

import platform
import re
import subprocess
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Any, cast

import msgspec
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from skills_ref import validator

from finskillbench.errors import InputError, SkillError
from finskillbench.harness.skills.documents import MAX_BLOCK_CHARS, is_binary
from finskillbench.harness.skills.loader import (
    REFERENCES,
    SCRIPTS,
    SkillPackage,
    parse_package,
    read_document,
    scan_files,
    script_text,
)
from finskillbench.harness.skills.outline import Outline, outlines
from finskillbench.harness.skills.template import eval_problems
from finskillbench.sandbox.process import interpreter_environment, printable_text

_START, _END = "# /// script", "# ///"
_TYPE = re.compile(r"# /// [a-zA-Z0-9-]+")
_OLDEST = "3.11"
_QUERY = """\
import importlib.metadata, json, platform
found = [(each.metadata["Name"], each.version) for each in importlib.metadata.distributions()]
print(json.dumps({"version": platform.python_version(), "installed": dict(pair for pair in found if pair[0])}))
"""
_ANSWER_SECONDS = 30.0


class _Interpreter(msgspec.Struct, frozen=True):
    version: str
    installed: dict[str, str]


def check_needs(packages: Iterable[SkillPackage], python: Path, *, remedy: str) -> None:
    """Check scripts' requirements against an interpreter; installs nothing and runs no script.

    `remedy` is the option that selects another interpreter, for messages. Raises `InputError` if the interpreter fails
    or is too old, a block cannot be read, or a requirement is missing.
    """
    for package in packages:
        for name in package.scripts:
            interpreter = _interpreter(python)
            path = package.root / name
            wanted, requirements = read_needs(path, script_text(package, name))
            if interpreter.version not in wanted:
                raise InputError(
                    f"{path}: needs Python {wanted}, {python} is {interpreter.version}; name another: {remedy}"
                )
            for requirement in requirements:
                if lacking := _lacking(requirement, interpreter):
                    raise InputError(
                        f"{path}: needs {requirement}, and {python} has {lacking}; a run installs nothing, name an "
                        f"interpreter that has it: {remedy}"
                    )


@cache
def _interpreter(python: Path) -> _Interpreter:
    try:
        result = subprocess.run(
            [python, "-P", "-c", _QUERY],
            env=interpreter_environment(python),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ANSWER_SECONDS,
            check=False,
        )
        found = msgspec.json.decode(result.stdout, type=_Interpreter)
    except (OSError, subprocess.TimeoutExpired, msgspec.DecodeError):
        raise InputError(f"{python}: not an interpreter of Python {_OLDEST} or later") from None
    names = {str(canonicalize_name(name)): version for name, version in found.installed.items()}
    return _Interpreter(found.version, names)


def read_needs(path: Path, text: str) -> tuple[SpecifierSet, list[Requirement]]:
    """Return a script's Python versions and dependencies, unrestricted and empty without a block.

    Raises `InputError` if its block cannot be read, or there are two.
    """
    blocks = script_blocks(text)
    if not blocks:
        return SpecifierSet(), []
    try:
        if len(blocks) > 1:
            raise ValueError("there are two")
        if len(blocks[0]) > MAX_BLOCK_CHARS:
            raise ValueError(f"it has more than {MAX_BLOCK_CHARS} characters")
        block: Mapping[str, Any] = tomllib.loads(blocks[0])
        dependencies = msgspec.convert(block.get("dependencies", []), list[str])
        wanted = msgspec.convert(block.get("requires-python", ""), str)
        requirements = [Requirement(each) for each in dependencies]
        for requirement in requirements:
            _applies(requirement, _OLDEST)
        return SpecifierSet(wanted), requirements
    except RecursionError:
        why = "it is nested too deeply"
    except (ValueError, msgspec.ValidationError) as error:
        why = " ".join(str(error).split())
    raise InputError(f"{path}: its block of dependencies (PEP 723) cannot be read: {why}")


def script_blocks(text: str) -> list[str]:
    """Return the TOML of a script's `script` blocks, in time linear in its length.

    By PEP 723 a block is a run of comment lines from its start to the last end in the run, with at least one line
    between. The PEP's reference expression finds the same blocks in quadratic time.
    """
    blocks: list[str] = []
    for is_comment, group in groupby(text.split("\n"), key=lambda line: line == "#" or line.startswith("# ")):
        run = list(group)
        ends = [number for number, line in enumerate(run) if line == _END]
        starts = [number for number, line in enumerate(run) if _TYPE.fullmatch(line)]
        if is_comment and ends and starts and starts[0] + 1 < ends[-1] and run[starts[0]] == _START:
            blocks.append("".join(f"{line[2:]}\n" for line in run[starts[0] + 1 : ends[-1]]))
    return blocks


def _lacking(requirement: Requirement, interpreter: _Interpreter) -> str:
    """Return the version installed instead of a requirement; empty if it is met or does not apply."""
    if not _applies(requirement, interpreter.version):
        return ""
    version = interpreter.installed.get(canonicalize_name(requirement.name))
    if version is None:
        return "none"
    return "" if requirement.specifier.contains(version, prereleases=True) else version


def _applies(requirement: Requirement, version: str) -> bool:
    short = ".".join(version.split(".")[:2])
    environment = {"python_version": short, "python_full_version": version}
    return requirement.marker is None or requirement.marker.evaluate(environment)


MAX_BODY_LINES, MAX_BODY_TOKENS = 500, 5_000
MAX_PROBLEMS = 200
"""Maximum number of listed problems; the rest is counted."""
# Common estimate for English text; tokenizers differ by some 20 %.
_CHARS_PER_TOKEN = 4
_WHEN = re.compile(
    r"\b(when|whenever|if (you|the|a|an)|used? ([\w-]+ ){0,3}(for|if|to|on|in|as|before|after|during|with|whenever)"
    r"|(best|preferred|intended|suited|suitable|meant) ([\w-]+ ){0,2}for|triggers?|trigger(ed|ing)? (on|by)|invoke)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[\w./~-]+")
_FILE = re.compile(r"(?:references|scripts|assets)/[\w./-]*\w\.[A-Za-z]\w*")
# Modules that Python or pytest finds by name; agents do not run them.
_NO_ENTRY = re.compile(r"__init__\.py|conftest\.py|test_.*\.py|.*_test\.py")


def lint(path: Path) -> list[str]:
    """Return the problems of the package in the folder `path`, one line each."""
    problems = [" ".join(printable_text(problem).split()) for problem in _problems(Path(path).resolve())]
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
        *specification_problems(read_document(root, files)[0], root),
        *_description(package),
        *_body(package),
        *_references(package, files),
        *_mentioned(package, {*files, *hidden}),
        *eval_problems(package),
        *_scripts(package),
    ]


def specification_problems(fields: dict[str, Any], root: Path) -> list[str]:
    """Check front matter by skills-ref, which is not fully typed."""
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
    for name in sorted({path for word in _WORD.findall(package.body) if (path := _package_path(package.name, word))}):
        if name not in there:
            yield f"SKILL.md mentions {name}, which is not in the package"


def _package_path(package: str, word: str) -> str:
    """Return the package path in a word; empty if there is none or it is elsewhere."""
    for folder in (REFERENCES, SCRIPTS, "assets/"):
        before, found, after = word.partition(folder)
        # After a variable or another folder it may be anywhere.
        if found and (before in ("", "./") or f"/{before}".endswith(f"/{package}/")):
            path = f"{folder}{after}".rstrip(".")
            return path if _FILE.fullmatch(path) and ".." not in path and "//" not in path else ""
    return ""


def _is_mentioned(package: SkillPackage, name: str) -> bool:
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
    """Return True for a module that another script imports, or that Python or pytest finds by name."""
    path = PurePosixPath(name)
    return path.stem in helpers or _NO_ENTRY.fullmatch(path.name) is not None


def _entry(outline: Outline) -> Iterator[str]:
    """Yield problems that prevent a script from running by `run_skill_script`, or a missing docstring."""
    if not outline.notes:
        yield "has no module docstring; say what it takes and returns"
    main = outline.main
    if main is None:
        yield "has no function main(payload: dict) -> dict, so run_skill_script cannot run it"
    elif not main.takes_one:
        yield f"line {main.line}: main must take one argument, the payload of run_skill_script"
    elif not main.typed:
        yield f"line {main.line}: main must be annotated (payload: dict) -> dict"
