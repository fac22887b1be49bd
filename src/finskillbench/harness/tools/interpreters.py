"""Confined interpreters for `run_python`, with this library for skills or without it.

Each is tested before use, because access to the library, or to what domains withhold, would invalidate a condition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from finskillbench.domains import withheld_folders
from finskillbench.domains.tables import dump
from finskillbench.errors import InputError
from finskillbench.harness.conditions import Arm, Condition
from finskillbench.harness.skills.loader import SCRIPTS, SkillPackage, curated
from finskillbench.harness.skills.runner import imports_of
from finskillbench.sandbox import snippet, start
from finskillbench.sandbox.limits import KIB, MIB, ScriptLimits
from finskillbench.sandbox.runner import ScriptRunner

LIBRARIES = ("numpy", "scipy", "polars")
"""Distributions available to an agent's code in addition to the standard library."""
LIMITS = ScriptLimits(result_bytes=2 * snippet.MOST_BYTES, file_bytes=16 * MIB, printed_bytes=16 * KIB)

_PRELOAD = ("numpy", "scipy.linalg", "scipy.optimize", "scipy.sparse", "scipy.stats", "polars")
_SCRIPT = Path(snippet.__file__)
_LIBRARY = Path(__file__).resolve().parents[2]
_TRIAL = """
import gc, importlib, importlib.util, os, sys
from pathlib import Path
import numpy, polars, scipy.optimize

def attempts(root):
    module = root / "engines" / "fields.py"
    yield "import", lambda: importlib.import_module("finskillbench")
    yield "import of an engine", lambda: importlib.import_module("finskillbench.engines.fields")
    yield "source", lambda: module.read_text()
    yield "folder", lambda: os.listdir(root)
    caches = importlib.util.cache_from_source(str(module)), importlib.util.cache_from_source(str(root / "__init__.py"))
    for cache in caches:
        yield "byte code", lambda: open(cache, "rb").read()
    def load():
        spec = importlib.util.spec_from_file_location("found", module)
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    yield "loading by path", load
    def search():
        sys.path.insert(0, str(root.parent))
        sys.path_importer_cache.clear()
        importlib.invalidate_caches()
        return importlib.import_module("finskillbench.engines.fields")
    yield "import by the search path", search

def found():
    for name, attempt in attempts(Path(library)):
        try:
            attempt()
        except (ImportError, OSError):
            continue
        yield name
    for each in (*sys.modules.values(), *gc.get_objects()):
        if isinstance(each, type(sys)) and each.__name__.partition(".")[0] == "finskillbench":
            yield "modules in memory"
            break

assert polars.DataFrame({"a": [1, 2]}).filter(polars.col("a") > 1).height == 1
list(found())
"""
"""Code that attempts every known access to the library; its value lists the successful ones."""
_TRIAL_OF_WITHHELD = """
import sys

def readable(path):
    try:
        return bool(open(path, "rb").read(1))
    except OSError:
        return False

loaded = [getattr(each, "__file__", None) for each in list(sys.modules.values())]
[path for path in withheld if path in loaded or readable(path)][:3]
"""
"""Code that tries to read withheld files; its value lists three that are readable, or modules in memory."""


@dataclass(frozen=True, slots=True)
class CodeResult:
    """Result of a piece of code: `value` and `printed` as shown, `error` if it failed, and its files.

    `files` (name to base64) stay for the next piece; `files_notice` states why they differ from the code's files.
    """

    value: Any
    printed: str
    error: str | None
    files: Mapping[str, str]
    files_notice: str | None


class Interpreter:
    """Runs agents' code in child processes of one warm process, which `runner` keeps."""

    def __init__(self, runner: ScriptRunner) -> None:
        self._runner = runner

    async def run(
        self, code: str, names: Mapping[str, Any], files: Mapping[str, str], packages: Iterable[SkillPackage] = ()
    ) -> CodeResult:
        """Run `code` with variables `names`, `files` of earlier pieces and importable scripts of `packages`."""
        roots = [package.root for package in packages]
        payload = {"code": code, "names": names, "files": files, "search": [str(root / SCRIPTS) for root in roots]}
        result = await self._runner.run(_SCRIPT, dump(payload), roots)
        printed = result.printed
        if len(printed.encode()) >= LIMITS.printed_bytes:
            printed += f"... (cut after {LIMITS.printed_bytes} bytes)"
        if result.output is None:
            return CodeResult(None, printed, result.error, files, "the files are as they were before this call")
        out = result.output
        return CodeResult(out.get("value"), printed, out.get("error"), out.get("files", files), out.get("note"))


def code_runner(*, with_library: bool, limits: ScriptLimits = LIMITS, trusted: Sequence[Path] = ()) -> ScriptRunner:
    """Return an unstarted runner, with this library and all others or with `LIBRARIES` alone."""
    ours = imports_of(curated().values()) if with_library else []
    libraries = None if with_library else LIBRARIES
    return ScriptRunner(
        limits,
        preload=(*_PRELOAD, *ours),
        warm_up=[f"{start.NAME}.snippet:warm_up"],
        trusted=trusted,
        threads=True,
        libraries=libraries,
        withheld=withheld_folders(),
    )


class Interpreters:
    """Context manager for the interpreters that some conditions need.

    Raises InputError on entering if this machine cannot isolate an agent's code from the library.
    """

    def __init__(self, arms: Iterable[Arm], *, allow_unconfined: bool = False) -> None:
        self._wanted = sorted({arm.scripts for arm in arms if arm.code})
        self._trusted = [Path("/")] if allow_unconfined else []
        self._interpreters: dict[bool, Interpreter] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for with_library in self._wanted:
                runner = code_runner(with_library=with_library, trusted=self._trusted)
                interpreter = Interpreter(stack.enter_context(runner))
                _prove(interpreter, with_library=with_library)
                self._interpreters[with_library] = interpreter
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def for_arm(self, arm: Arm) -> Interpreter | None:
        """Return the interpreter of a condition's agents, None if they have none."""
        return self._interpreters.get(arm.scripts) if arm.code else None


def _prove(interpreter: Interpreter, *, with_library: bool) -> None:
    """Attempt every access that would invalidate the condition; raise InputError if one succeeds.

    Without the library these are the known accesses to it; a granted library that fails is an error too. With it, they
    are the files that domains withhold.
    """
    if with_library:
        files = [str(path) for folder in withheld_folders() for path in folder.rglob("*.py*")]
        trial, names = _TRIAL_OF_WITHHELD, {"withheld": files}
        what, found = "with skills", "it reads what domains withhold:"
    else:
        trial, names = _TRIAL, {"library": str(_LIBRARY)}
        what, found = "without this library", "it finds this library by"
    with ThreadPoolExecutor(1, "trial") as pool:  # the caller's thread may run an event loop
        ran = pool.submit(asyncio.run, interpreter.run(trial, names, {})).result()
    if ran.error is not None or ran.value:
        why = ran.error or f"{found} {', '.join(ran.value)}"
        name = Condition.CODE_CURATED if with_library else Condition.CODE
        raise InputError(
            f"condition {name}: the interpreter {what} failed its test: {' '.join(why.split())}; see "
            "finskillbench doctor"
        )
