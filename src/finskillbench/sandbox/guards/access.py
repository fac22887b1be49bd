"""What a process that runs scripts may read, and the environment it is started with. Standard library only."""

import importlib.metadata
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from . import confine

Readable = list[tuple[Path, int]]
"""Paths with the rights of `confine` on what is below them."""

_SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/localtime", "/dev/urandom", "/dev/random", "/proc/cpuinfo", "/proc/meminfo")
_SYSTEM_LIBRARIES = ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/local/lib")
# Where other distributions are installed, in the middle of the standard library.
_OF_OTHERS = ("site-packages", "dist-packages")


def readable() -> Readable:
    """What a script may read besides its own package: the interpreter, the libraries and little of the system."""
    prefixes = (sys.prefix, sys.base_prefix, sys.exec_prefix)
    parts = [Path(prefix, part) for prefix in prefixes for part in ("lib", "lib64", "share/zoneinfo")]
    installed = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    paths = (*installed, "/usr", "/lib", "/lib64", *_SYSTEM_FILES)
    # Each costs every child an opening: neither those that are absent nor those that lie within another.
    libraries = _there((*map(Path, paths), *parts))
    searched = [Path(name) for name in dict.fromkeys(sys.path) if name]
    folders = [path for path in searched if os.access(path, os.R_OK | os.X_OK) and path.is_dir()]
    others = [path for path in folders if libraries.isdisjoint((path, *path.parents))]
    return [
        *((path, confine.FS_READ) for path in libraries),
        *((path, confine.FS_LIST) for path in others),
        *((path, confine.FS_READ) for folder in others for path in _importable(folder)),
    ]


def _there(paths: Iterable[Path]) -> set[Path]:
    """Those that can be read and lie within no other."""
    there = {path for path in paths if os.access(path, os.R_OK)}
    return {path for path in there if there.isdisjoint(path.parents)}


def _importable(folder: Path) -> Iterator[Path]:
    """What an import finds in a folder of the search path: it may hold other things, which are nobody's business."""
    for entry in folder.iterdir():
        if entry.suffix in (".py", ".so") or os.access(entry / "__init__.py", os.R_OK):
            yield entry


def readable_of(libraries: Path) -> Readable:
    """What a script may read that has the standard library, the links in the folder `libraries`, and nothing else.

    Neither the folder that a library is installed in nor any other of the kind is open, only what has been named.
    """
    standard = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
    named = [path for folder in standard for path in folder.iterdir() if path.name not in _OF_OTHERS]
    linked = [path.resolve() for path in libraries.iterdir()]
    multiarch = sysconfig.get_config_var("MULTIARCH")
    folders = _there(Path(name).resolve() for name in (*_SYSTEM_LIBRARIES, Path(sys.base_prefix, "lib")))
    shared = [path for folder in folders for path in folder.iterdir() if ".so" in path.name or path.name == multiarch]
    zones = Path("/usr/share/zoneinfo")
    files = _there((*map(Path, _SYSTEM_FILES), *named, *linked, *shared, zones))
    return [*((path, confine.FS_READ) for path in (libraries, *files)), *((path, confine.FS_LIST) for path in standard)]


def installed(names: Iterable[str]) -> list[Path]:
    """Every folder and module that the distributions `names`, and those they need, have on the search path.

    Raises
    ------
    PackageNotFoundError : one is not installed.
    """
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
    """Make `folder` one in which an import finds `libraries`, paths of folders and modules, and put it last."""
    folder.mkdir(mode=0o755)
    for library in map(Path, libraries):
        (folder / library.name).symlink_to(library)
    sys.path.append(str(folder))


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of a process that runs scripts: no key or address of the caller's gets in.

    One thread for every numeric library, since a process with threads that work cannot be forked safely, and a fixed
    hash seed, so that a script that walks a set gives the same result twice.
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
        # The allocator of polars, which would otherwise give memory back in a thread.
        "_RJEM_MALLOC_CONF": "background_thread:false",
        **{f"{name}_NUM_THREADS": "1" for name in libraries},
        **extra,
    }
