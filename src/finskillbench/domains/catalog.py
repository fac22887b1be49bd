"""What a user brings to a build: a folder of files, each in place of what is built in or beside it.

A domain names the files that it reads (`Domain.catalog`); whoever builds an edition reads the folder before anything
else, and hands what it says to every `prepare` through the build context.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from finskillbench.errors import CatalogError, InputError
from finskillbench.panels import Panels
from finskillbench.sources.catalog.document import LARGEST

T = TypeVar("T")

MOST_FILES = 200


def _no_dates(said: object) -> Collection[date]:
    del said
    return ()


def _nothing(said: object, panels: Panels, catalog: Catalog) -> Sequence[str]:
    del said, panels, catalog
    return ()


@dataclass(frozen=True)
class CatalogFile(Generic[T]):
    """A file that a catalog may hold.

    Attributes
    ----------
    name : its path in the folder; a pattern, such as `holdings/*.csv`, for one of which there may be several.
    read : `path -> bytes` of those that are there to what they say, checked as far as the files alone allow; raises
        CatalogError with every mistake.
    example : the text of a file that works: what is built in.
    dates : as-of dates that what is said needs panels for; each is a session or a day after one.
    examine : `(said, panels, catalog) -> mistakes`, what only the market and the other files show.
    """

    name: str
    read: Callable[[Mapping[str, bytes]], T] = field(repr=False)
    example: Callable[[], Mapping[str, str]] = field(repr=False)
    dates: Callable[[T], Collection[date]] = field(default=_no_dates, repr=False)
    examine: Callable[[T, Panels, Catalog], Sequence[str]] = field(default=_nothing, repr=False)


@dataclass(frozen=True)
class Catalog:
    """What a catalog folder says, by the name of the `CatalogFile`; empty where nobody brought one.

    `files` are its files as they are on disk, which an edition keeps.
    """

    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes], repr=False)
    said: Mapping[str, object] = field(default_factory=dict[str, object])
    dates: tuple[date, ...] = ()

    def of(self, kind: CatalogFile[T]) -> T | None:
        """What the files of a kind say; None where there are none."""
        return cast("T | None", self.said.get(kind.name))


def examine_catalog(catalog: Catalog, kinds: Sequence[CatalogFile[Any]], panels: Panels) -> None:
    """Hold what a catalog says against the market that it is built on.

    Raises
    ------
    CatalogError : every mistake that this shows.
    """
    held = [(kind, said) for kind in kinds if (said := catalog.of(kind)) is not None]
    mistakes = [told for kind, said in held for told in kind.examine(said, panels, catalog)]
    if mistakes:
        raise CatalogError(mistakes)


def read_catalog_folder(folder: Path, kinds: Sequence[CatalogFile[Any]]) -> Catalog:
    """Every file of a folder, read as its kind says; what begins with a dot is passed over.

    Raises
    ------
    InputError : no folder, or one that holds nothing.
    CatalogError : every mistake of every file, and every file that is of no kind.
    """
    if not folder.is_dir():
        raise InputError(f"--catalog must name a folder of catalog files, not {folder}")
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    known = [kind.name for kind in kinds]
    if not paths:
        raise InputError(f"--catalog {folder} is empty; it may hold {', '.join(known)}")
    if len(paths) > MOST_FILES:
        raise InputError(f"--catalog {folder} holds {len(paths)} files, more than {MOST_FILES}; name another folder")
    files: dict[str, bytes] = {}
    said: dict[str, object] = {}
    dates: set[date] = set()
    mistakes: list[str] = []
    for path in paths:
        name = path.relative_to(folder).as_posix()
        if not any(_fits(name, one) for one in known):
            near = difflib.get_close_matches(name, known, 1) or [f"one of {', '.join(known)}"]
            mistakes.append(f"{name}: no file of a catalog; call it {near[0]}, or remove it")
        elif path.stat().st_size > LARGEST:
            mistakes.append(f"{name}: larger than {LARGEST:,} bytes; leave out what is not needed")
        else:
            files[name] = path.read_bytes()
    for kind in kinds:
        own = {name: data for name, data in files.items() if _fits(name, kind.name)}
        if own:
            try:
                said[kind.name] = kind.read(own)
                dates |= set(kind.dates(said[kind.name]))
            except CatalogError as error:
                mistakes += error.mistakes
    if mistakes:
        raise CatalogError(mistakes)
    return Catalog(files, said, tuple(sorted(dates)))


def _fits(name: str, pattern: str) -> bool:
    return fnmatch(name, pattern) and name.count("/") == pattern.count("/")
