"""Run scripts of skill packages: built-in ones in a warm process, others in a cold, confined one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from finskillbench.domains import domains, withheld_folders
from finskillbench.errors import InputError
from finskillbench.harness.conditions import Mount
from finskillbench.harness.skills.loader import SkillPackage, curated, write_package
from finskillbench.harness.skills.outline import outlines
from finskillbench.redaction import logger
from finskillbench.sandbox.limits import ScriptResult
from finskillbench.sandbox.runner import ScriptRunner

_log = logger(__name__)


def script_runner(*, allow_unconfined: bool = False, trusted: Iterable[Path] = ()) -> ScriptRunner:
    """Return an unstarted runner with the curated scripts' imports and the domains' warm-up preloaded.

    A module missing in the warm process costs each call some 100 ms.
    """
    warm_up = [one.warm_up for one in domains() if one.warm_up is not None]
    packages = curated().values()
    folders = [Path("/")] if allow_unconfined else [*(package.root for package in packages), *trusted]
    return ScriptRunner(preload=imports_of(packages), warm_up=warm_up, trusted=folders, withheld=withheld_folders())


class MountedScripts:
    """Context manager that runs the scripts of mounts: curated ones warm, user packages cold.

    A cold process, one per interpreter, has imported only the sandbox. User scripts run from a copy made on entering.
    Distractors of a library, of which few are run, are copied and their process is started when one is run.
    """

    def __init__(self, mounts: Iterable[Mount], *, allow_unconfined: bool = False) -> None:
        mounts = list(mounts)
        ours = _ours(mounts)
        trusted = [Path("/")] if allow_unconfined else []
        cold: dict[Path, ScriptRunner] = {}
        warm: ScriptRunner | None = None
        self._runners: dict[Path, ScriptRunner] = {}
        self._user_packages: list[SkillPackage] = []
        self._distractors: dict[Path, SkillPackage] = {}
        for mounted in mounts:
            for package in mounted.packages.values() if mounted.arm.scripts else ():
                if not package.scripts or package.root in self._runners:
                    continue
                if package.root in ours:
                    warm = warm or script_runner(allow_unconfined=allow_unconfined, trusted=ours)
                    self._runners[package.root] = warm
                else:
                    other = ScriptRunner(python=mounted.python, trusted=trusted, withheld=withheld_folders())
                    runner = cold.setdefault(mounted.python, other)
                    self._runners[package.root] = runner
                    if mounted.arm.library:
                        self._distractors[package.root] = package
                    else:
                        self._user_packages.append(package)
        self._copies: dict[Path, Path] = {}
        self._folder, self._running = Path(), set[ScriptRunner]()
        self._stack = ExitStack()

    def __enter__(self) -> MountedScripts:
        with ExitStack() as stack:
            self._folder = Path(stack.enter_context(TemporaryDirectory(prefix="finskillbench-skills-")))
            self._folder.chmod(0o755)  # a superuser's scripts run as other users
            for package in self._user_packages:
                self._copies[package.root] = self._copied(package)
            at_once = [runner for root, runner in self._runners.items() if root not in self._distractors]
            for runner in dict.fromkeys(at_once):
                stack.enter_context(runner)
            self._running = {*at_once}
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    async def run(self, script: Path, payload: bytes) -> ScriptResult:
        """Run a script of a mounted package, as `ScriptRunner.run`."""
        root = next(folder for folder in script.parents if folder in self._runners)
        if root in self._distractors and root not in self._copies:
            self._copies[root] = self._copied(self._distractors[root])
            if self._runners[root] not in self._running:
                self._running.add(self._stack.enter_context(self._runners[root]))
        return await self._runners[root].run(self._copies.get(root, root) / script.relative_to(root), payload)

    def _copied(self, package: SkillPackage) -> Path:
        """Copy a package's files to a folder; raises `SkillError` if they changed after reading."""
        folder = self._folder / str(len(self._copies))
        write_package(package, folder)
        return folder


def _ours(mounts: Iterable[Mount]) -> set[Path]:
    """Return the folders of curated packages, also of those with a planted fault."""
    groups = [curated(), *(each.packages for each in mounts if each.arm.fault)]
    return {package.root for group in groups for package in group.values()}


@cache
def sandbox_guards() -> Mapping[str, bool]:
    """Return the guards that a started sandbox finds on this machine."""
    with ScriptRunner() as bare:
        return bare.guards


def check_guards(mounts: Iterable[Mount], *, allow_unconfined: bool) -> Mapping[str, bool]:
    """Return the sandbox's guards and log missing ones; empty if the mounts run no code.

    Raises `InputError` if guards are missing for user packages or agents' code, without `allow_unconfined`.
    """
    mounts = list(mounts)
    packages = [package for each in mounts if each.arm.scripts for package in each.packages.values()]
    roots = {package.name: package.root for package in packages if package.scripts}
    code = ["code of an agent"] if any(each.arm.code for each in mounts) else []
    if not roots and not code:
        return {}
    guards = sandbox_guards()
    missing = ", ".join(name for name, held in guards.items() if not held)
    if missing:
        shipped = _ours(mounts)
        unconfined = [*sorted(name for name, root in roots.items() if root not in shipped), *code]
        if unconfined and not allow_unconfined:
            raise InputError(
                f"{', '.join(unconfined)}: not part of FinSkillBench, and this machine cannot confine it (missing: "
                f"{missing}; see finskillbench doctor); --allow-unconfined runs it anyway"
            )
        _log.warning("scripts run without these guards of the sandbox: %s (see finskillbench doctor)", missing)
    return guards


def imports_of(packages: Iterable[SkillPackage]) -> list[str]:
    """Return the sorted modules that scripts of `packages` import and a warm process may preload.

    Modules of the sandbox and of `engines` start no threads, so that the process can be forked safely.
    """
    found: set[str] = set()
    for package in packages:
        libraries = {"finskillbench", *_library_of(package.root)}
        pure = ("finskillbench.sandbox.", *(f"{library}.engines." for library in libraries))
        found |= {name for each in outlines(package).values() for name in each.modules if name.startswith(pure)}
    return sorted(found)


def _library_of(folder: Path) -> list[str]:
    """Return the import name of the library that contains a folder, empty if there is none."""
    return [parent.name for parent in folder.parents if (parent / "__init__.py").is_file()][-1:]
