"""`finskillbench doctor`: check this machine for what a run needs."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import typer

EXAMPLE = "Example: finskillbench doctor"

_EXTRAS = ("inspect-ai", "openai", "anthropic", "google-genai", "mcp")
_MIN_FREE_BYTES = 2**30


def doctor() -> None:
    """Check interpreter, sandbox guards, extras, extensions, cores, disk and clock. Exit code 1 if one is missing.

    Without all sandbox guards only scripts that ship with finskillbench are run, and every run reports it.
    """
    lines = [*_machine(), *_sandbox()]
    for name, passed, text in lines:
        typer.echo(f"{'ok' if passed else 'MISSING':<9}{name:<13}{text}")
    if not all(good for _, good, _ in lines):
        raise typer.Exit(1)


def _machine() -> Iterator[tuple[str, bool, str]]:
    from platformdirs import user_cache_path

    yield "interpreter", True, f"{platform.python_implementation()} {platform.python_version()}, {sys.executable}"
    yield "library", True, f"finskillbench {version('finskillbench')}, {Path(__file__).parents[1]}"
    yield "extras", True, ", ".join(f"{name} {_installed(name)}" for name in _EXTRAS)
    yield from _extensions()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    yield "cores", True, f"{cores} for this process, {platform.system()} {platform.release()}, {platform.machine()}"
    for name, folder in (("disk, cache", user_cache_path("finskillbench")), ("disk, here", Path.cwd())):
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        free = shutil.disk_usage(existing).free
        yield (
            name,
            free >= _MIN_FREE_BYTES,
            f"{free / 2**30:.1f} GiB free at {folder}; an edition and its runs need 1 GiB",
        )
    now = datetime.now(UTC)
    installed = datetime.fromtimestamp(Path(__file__).stat().st_mtime, UTC)
    yield "clock", now >= installed, f"{now:%Y-%m-%d %H:%M:%S} UTC; must be later than the installation of the library"


def _sandbox() -> Iterator[tuple[str, bool, str]]:
    from finskillbench.harness.skills.runner import sandbox_guards
    from finskillbench.sandbox.guarantees import GUARDS

    for name, active in sandbox_guards().items():
        yield name, active, GUARDS[name].line


def _extensions() -> Iterator[tuple[str, bool, str]]:
    """Yield the state of every harness, and each entry point that cannot be loaded."""
    from finskillbench.errors import InputError
    from finskillbench.extensions import GROUPS, HARNESSES, registered_extensions

    for name, entry in ((name, entry) for group in GROUPS for name, entry in registered_extensions(group).items()):
        try:
            harness = entry.load(object)
        except InputError as error:
            yield "extension", False, str(error)
            continue
        if entry.entry.group == HARNESSES and isinstance(harness, type):
            try:
                yield name, True, str(harness(None))
            except InputError as error:
                yield name, True, f"- ({error})"


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "-"
