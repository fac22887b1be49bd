"""Parse skill scripts in a child process with limited time and memory.

CPython's parser is quadratic in places: 1 MiB of `import a.a.a` takes more than 16 GiB, 1 MiB of f-strings 250 s.
"""

from __future__ import annotations

import inspect
import subprocess
from functools import cache
from pathlib import Path

import msgspec

from finskillbench.errors import SkillError
from finskillbench.harness.skills import outline_child
from finskillbench.harness.skills.loader import SkillPackage, script_text
from finskillbench.sandbox.process import THIS_PYTHON

PARSE_SECONDS = 0.5
"""Processor time for one script; the longest of 979 public ones, 142 KB, takes 0.1 s."""
_MEMORY_BYTES = 256 * 1024 * 1024
_WALL_SECONDS = 60.0


class Main(msgspec.Struct, frozen=True):
    """Function `main` of a script: its line, and whether its signature is (payload: dict) -> dict."""

    line: int
    takes_one: bool
    typed: bool


class Outline(msgspec.Struct, frozen=True):
    """Outline of a script's syntax tree, or a syntax `error`, or a `limit` of the parser.

    `modules` are top-level imports, `imported` all imported modules and members.
    """

    error: str = ""
    limit: str = ""
    docstring: str | None = None
    main: Main | None = None
    modules: tuple[str, ...] = ()
    imported: tuple[str, ...] = ()

    @property
    def notes(self) -> str:
        """Return the cleaned docstring, empty without one."""
        return inspect.cleandoc(self.docstring or "")


def outlines(package: SkillPackage) -> dict[str, Outline]:
    """Return the outline of every script of a package by name; raises `SkillError` beyond a limit of the parser."""
    if not package.scripts:
        return {}
    sources = tuple((name, script_text(package, name)) for name in package.scripts)
    return _parsed(package.root, sources)


@cache
def _parsed(root: Path, sources: tuple[tuple[str, str], ...]) -> dict[str, Outline]:
    try:
        parsed = subprocess.run(
            [THIS_PYTHON, "-I", "-S", outline_child.__file__, str(PARSE_SECONDS), str(_MEMORY_BYTES)],
            input=msgspec.json.encode(dict(sources)),
            capture_output=True,
            timeout=_WALL_SECONDS,
            check=False,
        ).stdout
    except subprocess.TimeoutExpired as error:
        parsed = error.stdout or b""
    found = [msgspec.json.decode(line, type=Outline) for line in parsed.split(b"\n")[:-1]]
    if len(found) < len(sources):
        found.append(Outline(limit=f"it takes more than {PARSE_SECONDS:g} s or too much memory"))
    for (name, _), outline in zip(sources, found, strict=False):
        if outline.limit:
            raise SkillError(f"{root / name}: cannot be parsed, {outline.limit}; make it shorter or simpler")
    return {name: outline for (name, _), outline in zip(sources, found, strict=True)}
