"""The runner of the scripts of skill packages, warm for those that ship, and what it takes to let others in."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from finskillbench.domains import domains
from finskillbench.errors import InputError
from finskillbench.harness.conditions import Mount
from finskillbench.harness.skills.loader import SkillPackage, curated, script_text
from finskillbench.redaction import logger
from finskillbench.sandbox.runner import ScriptRunner

_PURE = ("finskillbench.engines.", "finskillbench.sandbox.")
"""Rooms whose modules start no thread, so that a process that has imported them can be forked safely."""
_OURS = Path(__file__).resolve().parents[2]
"""The folder of this library: packages below it run also where the sandbox lacks a guard."""

_log = logger(__name__)


def script_runner(*, allow_unconfined: bool = False) -> ScriptRunner:
    """A runner, to be entered, whose process has imported what the curated scripts need and done the domains' warm-up.

    A module that a script imports and the process does not costs every call some 100 ms. Where guards are missing it
    refuses the scripts of others, unless `allow_unconfined`.
    """
    warm_up = [one.warm_up for one in domains() if one.warm_up is not None]
    trusted = [Path("/") if allow_unconfined else _OURS]
    return ScriptRunner(preload=imports_of(curated().values()), warm_up=warm_up, trusted=trusted)


@cache
def sandbox_guards() -> Mapping[str, bool]:
    """Which guards the sandbox has on this machine, as one that is started for it finds them."""
    with ScriptRunner() as bare:
        return bare.guards


def check_guards(mounts: Iterable[Mount], *, allow_unconfined: bool) -> Mapping[str, bool]:
    """Say in one line which guards the scripts that are mounted must do without; all guards, if there are scripts.

    Raises
    ------
    InputError : guards are missing, a package with scripts is not ours, and `allow_unconfined` is not given.
    """
    packages = [package for each in mounts if each.arm.scripts for package in each.packages.values()]
    roots = {package.name: package.root for package in packages if package.scripts}
    if not roots:
        return {}
    guards = sandbox_guards()
    missing = ", ".join(name for name, held in guards.items() if not held)
    if missing:
        others = sorted(name for name, root in roots.items() if not root.is_relative_to(_OURS))
        if others and not allow_unconfined:
            raise InputError(
                f"{', '.join(others)}: not ours, and this machine cannot confine its scripts (missing: {missing}; see "
                "finskillbench doctor); --allow-unconfined runs them all the same"
            )
        _log.warning("scripts run without these guards of the sandbox: %s (see finskillbench doctor)", missing)
    return guards


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
