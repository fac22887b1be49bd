"""The runner of the scripts of skill packages, warm for those that ship."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from contextlib import suppress

from finskillbench.domains import domains
from finskillbench.harness.skills.loader import SkillPackage, curated, script_text
from finskillbench.sandbox.runner import ScriptRunner

_PURE = ("finskillbench.engines.", "finskillbench.sandbox.")
"""Rooms whose modules start no thread, so that a process that has imported them can be forked safely."""


def script_runner() -> ScriptRunner:
    """A runner, to be entered, whose process has imported what the curated scripts need and done the domains' warm-up.

    A module that a script imports and the process does not costs every call some 100 ms.
    """
    warm_up = [one.warm_up for one in domains() if one.warm_up is not None]
    return ScriptRunner(preload=imports_of(curated().values()), warm_up=warm_up)


def imports_of(packages: Iterable[SkillPackage]) -> list[str]:
    """The modules of this library's pure rooms that the scripts of `packages` import at their top level, sorted."""
    found: set[str] = set()
    for package in packages:
        for name in package.scripts:
            with suppress(SyntaxError):  # the call of such a script says what is wrong with it
                for node in ast.parse(script_text(package, name)).body:
                    found |= _imported(node)
    return sorted(name for name in found if name.startswith(_PURE))


def _imported(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    return {node.module} if isinstance(node, ast.ImportFrom) and node.module is not None else set()
