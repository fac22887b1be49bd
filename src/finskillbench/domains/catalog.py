"""User catalogs: folders of files (`Domain.catalog`) that replace or extend built-in data of a build."""

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


def _no_dates(content: object) -> Collection[date]:
    del content
    return ()


def _nothing(content: object, panels: Panels, catalog: Catalog) -> Sequence[str]:
    del content, panels, catalog
    return ()


@dataclass(frozen=True)
class CatalogFile(Generic[T]):
    """One kind of file in a catalog.

    name : path in the folder, or a pattern such as `holdings/*.csv` for several files.
    read : parses and checks the files, given as path to bytes; raises CatalogError with every mistake.
    example : text of a valid file: the built-in data.
    dates : as-of dates for which the content needs panels; each is a session or a day after one.
    examine : `(content, panels, catalog) -> mistakes` that only the market and the other files reveal.
    """

    name: str
    read: Callable[[Mapping[str, bytes]], T] = field(repr=False)
    example: Callable[[], Mapping[str, str]] = field(repr=False)
    dates: Callable[[T], Collection[date]] = field(default=_no_dates, repr=False)
    examine: Callable[[T, Panels, Catalog], Sequence[str]] = field(default=_nothing, repr=False)


@dataclass(frozen=True)
class Catalog:
    """Parsed contents by `CatalogFile` name, and the raw `files`, which an edition keeps."""

    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes], repr=False)
    contents: Mapping[str, object] = field(default_factory=dict[str, object])
    dates: tuple[date, ...] = ()

    def of(self, kind: CatalogFile[T]) -> T | None:
        """Return the content of one kind, or None if absent."""
        return cast("T | None", self.contents.get(kind.name))


def examine_catalog(catalog: Catalog, kinds: Sequence[CatalogFile[Any]], panels: Panels) -> None:
    """Check the contents of a catalog against the market; raise CatalogError with every mistake."""
    held = [(kind, content) for kind in kinds if (content := catalog.of(kind)) is not None]
    mistakes = [mistake for kind, content in held for mistake in kind.examine(content, panels, catalog)]
    if mistakes:
        raise CatalogError(mistakes)


def read_catalog_folder(folder: Path, kinds: Sequence[CatalogFile[Any]]) -> Catalog:
    """Read all files of a catalog folder; skip names that begin with a dot.

    Raises InputError for a missing, empty or too large folder, CatalogError with every mistake and unknown file.
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
    contents: dict[str, object] = {}
    dates: set[date] = set()
    mistakes: list[str] = []
    for path in paths:
        name = path.relative_to(folder).as_posix()
        if not any(_fits(name, one) for one in known):
            near = difflib.get_close_matches(name, known, 1) or [f"one of {', '.join(known)}"]
            mistakes.append(f"{name}: not a catalog file; rename it to {near[0]}, or remove it")
        elif path.stat().st_size > LARGEST:
            mistakes.append(f"{name}: larger than {LARGEST:,} bytes; leave out what is not needed")
        else:
            files[name] = path.read_bytes()
    for kind in kinds:
        matching = {name: data for name, data in files.items() if _fits(name, kind.name)}
        if matching:
            try:
                contents[kind.name] = kind.read(matching)
                dates |= set(kind.dates(contents[kind.name]))
            except CatalogError as error:
                mistakes += error.mistakes
    if mistakes:
        raise CatalogError(mistakes)
    return Catalog(files, contents, tuple(sorted(dates)))


def _fits(name: str, pattern: str) -> bool:
    return fnmatch(name, pattern) and name.count("/") == pattern.count("/")
