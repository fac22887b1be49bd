"""Readable paths and environment of script processes. Standard library only."""

import importlib.metadata
import os
import re
import sys
import sysconfig
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from . import confine

Readable = list[tuple[Path, int]]
"""Paths with their Landlock rights, which hold for everything below."""

_SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/localtime", "/dev/urandom", "/dev/random", "/proc/cpuinfo", "/proc/meminfo")
_SYSTEM_LIBRARIES = ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/local/lib")
# Third-party packages, installed inside of the standard library's folder.
_PACKAGE_FOLDERS = ("site-packages", "dist-packages")


def readable(withheld: Iterable[str]) -> Readable:
    """Return the paths readable in addition to the script's package: interpreter, libraries, some system files.

    Nothing in the folders `withheld` is readable.
    """
    prefixes = (sys.prefix, sys.base_prefix, sys.exec_prefix)
    parts = [Path(prefix, part) for prefix in prefixes for part in ("lib", "lib64", "share/zoneinfo")]
    installed = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    paths = (*installed, "/usr", "/lib", "/lib64", *_SYSTEM_FILES)
    # Each path costs every child an open call: leave out absent and nested paths.
    libraries = _there((*map(Path, paths), *parts))
    searched = [Path(name) for name in dict.fromkeys(sys.path) if name]
    folders = [path for path in searched if os.access(path, os.R_OK | os.X_OK) and path.is_dir()]
    outside = [path for path in folders if libraries.isdisjoint((path, *path.parents))]
    every = [
        *((path, confine.FS_READ) for path in libraries),
        *((path, confine.FS_LIST) for path in outside),
        *((path, confine.FS_READ) for folder in outside for path in _importable(folder)),
    ]
    return list(_without(every, [Path(path).resolve() for path in withheld]))


def _without(paths: Readable, withheld: Collection[Path]) -> Iterator[tuple[Path, int]]:
    """Yield the paths; entries instead of a folder that holds a withheld one, since rights hold for all below."""
    for path, rights in paths:
        place = path.resolve()
        inside = [each for each in withheld if each.is_relative_to(place)]
        if rights != confine.FS_READ or not inside:
            yield path, rights
        elif place not in inside:
            yield path, confine.FS_LIST
            yield from _without([(entry, rights) for entry in path.iterdir()], inside)


def _there(paths: Iterable[Path]) -> set[Path]:
    there = {path for path in paths if os.access(path, os.R_OK)}
    return {path for path in there if there.isdisjoint(path.parents)}


def _importable(folder: Path) -> Iterator[Path]:
    """Yield the importable entries of a search-path folder; other content stays closed."""
    for entry in folder.iterdir():
        if entry.suffix in (".py", ".so") or os.access(entry / "__init__.py", os.R_OK):
            yield entry


def readable_of(libraries: Path) -> Readable:
    """Return the readable paths for the standard library and the links in `libraries`, without other packages."""
    standard = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
    named = [path for folder in standard for path in folder.iterdir() if path.name not in _PACKAGE_FOLDERS]
    linked = [path.resolve() for path in libraries.iterdir()]
    multiarch = sysconfig.get_config_var("MULTIARCH")
    folders = _there(Path(name).resolve() for name in (*_SYSTEM_LIBRARIES, Path(sys.base_prefix, "lib")))
    shared = [path for folder in folders for path in folder.iterdir() if ".so" in path.name or path.name == multiarch]
    zones = Path("/usr/share/zoneinfo")
    files = _there((*map(Path, _SYSTEM_FILES), *named, *linked, *shared, zones))
    return [*((path, confine.FS_READ) for path in (libraries, *files)), *((path, confine.FS_LIST) for path in standard)]


def installed(names: Iterable[str]) -> list[Path]:
    """Return the top-level paths of distributions and their dependencies; PackageNotFoundError if one is missing."""
    found: dict[Path, None] = {}
    pending, seen = list(names), set[str]()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        distribution = importlib.metadata.distribution(name)
        for file in distribution.files or ():
            if ".." not in file.parts and file.parts[0] != "__pycache__":
                found[Path(str(distribution.locate_file(file.parts[0])))] = None
        needed = [each for each in distribution.requires or () if "extra ==" not in each]
        pending += [re.split(r"[^\w.-]", each, maxsplit=1)[0] for each in needed]
    return list(found)


def link(libraries: Iterable[str], folder: Path) -> None:
    """Create a folder of links to `libraries` (paths) and append it to the search path."""
    folder.mkdir(mode=0o755)
    for library in map(Path, libraries):
        (folder / library.name).symlink_to(library)
    sys.path.append(str(folder))


def script_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Return the full environment of a script process, without the caller's keys and addresses.

    Numeric libraries get one thread, since working threads make forks unsafe. A fixed hash seed makes set order
    repeatable.
    """
    libraries = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "RAYON")
    return {
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        "PYTHONUTF8": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "VECLIB_MAXIMUM_THREADS": "1",
        "POLARS_MAX_THREADS": "1",
        "POLARS_ASYNC_THREAD_COUNT": "1",
        # Keeps the allocator of polars from starting a thread.
        "_RJEM_MALLOC_CONF": "background_thread:false",
        **{f"{name}_NUM_THREADS": "1" for name in libraries},
        **extra,
    }
