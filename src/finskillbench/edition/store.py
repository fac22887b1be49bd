"""Files of an edition on disk: JSON lines for episodes, truths and certificates, and a manifest of digests.

    manifest.json   panels/   episodes/<sub_task>.jsonl   truth/<sub_task>.jsonl   certificates/<sub_task>.jsonl
    tables/<task>/<name>.parquet   tables too long for an episode's line
    stages/<sub_task>.jsonl        hidden fields of interactive cases
    catalog/        the user's files as given to the build: mandates, books, scenarios

A public copy holds episodes, tables and panels; it may omit `truth/`, `certificates/`, `stages/` and `catalog/`.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import tempfile
import zlib
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, NotRequired, TypeVar, cast

import msgspec
import orjson
from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from finskillbench.episode import Episode, JsonObject, Truth
from finskillbench.errors import EditionError, InputError
from finskillbench.scoring.values import as_object, is_object

Record = TypeVar("Record", Episode, Truth)

FORMAT = 1
MANIFEST = "manifest.json"
CANARY_FILE = "CANARY.txt"
CANARY = "finskillbench:canary:8d1f2c57-3f0e-4b1c-9a46-2f7c0be1d9a4"
"""Marks episodes for filters of training data; identical in every edition, so that one string finds all."""
CATALOG = "catalog"
STAGES = "stages"
"""Folder of hidden fields of interactive cases, such as the outcome of the next decision."""
WITHHELD = ("truth", "certificates", STAGES, CATALOG)
"""Folders that a public copy may omit."""
LARGEST_TEXT = 2**24
"""Maximum bytes of a manifest or of one line; parsed, at most some 300 MB."""
NAME = r"\w[\w .:+@-]{0,199}"
"""Pattern of task and subtask names, which become file names and are printed."""
LARGEST = 2**63 - 1
"""The largest integer in manifests, records and tables."""


def refuse_inside_edition(out: Path) -> None:
    """Raise `InputError` for an output inside an edition, whose file list it would invalidate."""
    # Both with and without following a link at `out`: the link may be in an edition, or lead into one.
    places = {Path(os.path.realpath(out)), Path(os.path.realpath(out.parent)) / out.name}
    for folder in sorted({folder for place in places for folder in (place, *place.parents)}):
        if _holds_edition(folder):
            raise InputError(f"{out} is inside the edition {folder}; choose another --out")


def _holds_edition(folder: Path) -> bool:
    try:
        manifest = orjson.loads((folder / MANIFEST).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return False
    return isinstance(manifest, dict) and manifest.keys() >= {"format", "files"}


@contextmanager
def new_folder(out: Path) -> Generator[Path]:
    """Create a staging folder and rename it to `out` when complete; on failure remove it.

    Staging folders of killed processes next to `out` are removed first.

    Raises
    ------
    InputError : `out` exists and is not an empty folder, is inside an edition, or was created meanwhile; its parent
        cannot be written.
    """
    if not out.name:
        raise InputError(f"--out {out} does not name a new folder")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} exists and is not an empty folder; choose another folder or remove it")
    refuse_inside_edition(out)
    made = [parent for parent in out.parents if not parent.exists()]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        _sweep(out.parent)
        staging = Path(tempfile.mkdtemp(prefix=f".{out.name}.{_machine_id()}-{os.getpid()}-", dir=out.parent))
    except OSError as error:
        raise InputError(f"{out}: cannot be written: {error.strerror}; choose another --out") from None
    try:
        yield staging
        staging.chmod(0o755)
        try:
            if out.exists():
                out.rmdir()
            staging.replace(out)
        except OSError as error:
            raise InputError(
                f"{out}: created by another process during the build ({error.strerror}); choose another --out"
            ) from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        if not out.exists():
            with suppress(OSError):  # another process may have written there meanwhile
                for parent in made:
                    parent.rmdir()


def _machine_id() -> str:
    """Identify this machine and its process namespace, since process ids are valid only there."""
    ids = Path("/proc/self/ns/pid")
    where = f"{platform.node()} {ids.readlink() if ids.is_symlink() else ''}"
    return f"{zlib.crc32(where.encode()):08x}"


def _sweep(folder: Path) -> None:
    ours = re.compile(rf"\..+\.{_machine_id()}-(\d+)-[a-z0-9_]{{8}}(\.raw\.[a-z0-9_]{{8}})?")
    for left in folder.iterdir():
        name = ours.fullmatch(left.name)
        if name is not None and not _alive(int(name[1])):
            shutil.rmtree(left, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


def write_lines(path: Path, rows: Iterable[JsonObject | Truth]) -> None:
    """Write JSON Lines, a truth by its fields; numbers in their shortest form that reads back exactly."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for row in rows:
            file.write(orjson.dumps(row, option=orjson.OPT_SERIALIZE_NUMPY))
            file.write(b"\n")


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Read JSON Lines; an `EditionError` names file and line."""
    try:
        with path.open("rb") as file:
            lines = iter(lambda: file.readline(LARGEST_TEXT + 1), b"")
            for number, line in enumerate(lines, 1):
                yield _object(line, f"{path}, line {number}")
    except OSError as error:
        raise EditionError(f"{path}: {error.strerror}; rebuild the edition") from None


def _object(line: bytes, where: str) -> dict[str, Any]:
    if len(line) > LARGEST_TEXT:
        raise EditionError(f"{where}: longer than {LARGEST_TEXT:,} bytes; rebuild the edition")
    try:
        row = orjson.loads(line)
        orjson.dumps(row)  # refuse here, once for all readers, any nesting too deep to be written again
    except orjson.JSONDecodeError as error:
        raise EditionError(f"{where}: not JSON ({error}); rebuild the edition") from None
    except orjson.JSONEncodeError as error:
        raise EditionError(f"{where}: nested too deeply ({error}); rebuild the edition") from None
    if not isinstance(row, dict):
        raise EditionError(f"{where}: expected an object; rebuild the edition")
    return cast("dict[str, Any]", row)


def episode_row(episode: Episode) -> JsonObject:
    """Return the fields of an episode in published order: the prompt last."""
    row = {each.name: getattr(episode, each.name) for each in fields(episode)}
    row["prompt"] = row.pop("prompt")
    return row


def read_records(path: Path, kind: type[Record]) -> Iterator[Record]:
    """Read the episodes or truths of one file; an `EditionError` names file, line and field."""
    noun = kind.__name__.lower()
    for number, row in enumerate(read_lines(path), 1):
        absent = next((each.name for each in fields(kind) if each.name not in row), None)
        if absent is not None:
            raise EditionError(f"{path}, line {number}: the {noun} lacks {absent!r}; rebuild the edition")
        try:
            record = msgspec.convert(row, kind)
        except msgspec.ValidationError as error:
            raise EditionError(f"{path}, line {number}: invalid {noun} ({error}); rebuild the edition") from None
        for field in ("task_id", "sub_task"):
            if not re.fullmatch(NAME, getattr(record, field), re.ASCII):
                raise EditionError(
                    f"{path}, line {number}: invalid {noun} ({field} is not a name); rebuild the edition"
                )
        yield record


def digest_files(folder: Path) -> dict[str, str]:
    """Return the sha256 of every file below a folder, by relative path in sorted order."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): digest_file(path) for path in files}


def digest_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of(files: Mapping[str, str]) -> str:
    listing = "".join(f"{name} {digest}\n" for name, digest in sorted(files.items()))
    return hashlib.sha256(listing.encode()).hexdigest()


def catalog_digest(files: Mapping[str, str]) -> str | None:
    """Return the digest of an edition's catalog files; None if it has none."""
    members = {name.removeprefix(f"{CATALOG}/"): each for name, each in files.items() if name.startswith(f"{CATALOG}/")}
    return digest_of(members) if members else None


def edition_digest(files: Mapping[str, str], known_digest: str | None = None) -> str:
    """Return the digest of an edition; a catalog counts as one file, by `known_digest` if `files` omit it."""
    counted = {name: each for name, each in files.items() if not name.startswith(f"{CATALOG}/")}
    known_digest = catalog_digest(files) or known_digest
    return digest_of(counted if known_digest is None else {**counted, CATALOG: known_digest})


def write_manifest(folder: Path, fields: JsonObject) -> None:
    """Digest every file in the folder, then write the manifest.

    `digest` identifies the content of the files; `seal` covers the manifest with fields that do not affect the content,
    such as library versions.
    """
    files = {name: digest for name, digest in digest_files(folder).items() if name != MANIFEST}
    write_sealed(folder, {"format": FORMAT, **fields, "digest": edition_digest(files), "files": files})


def write_sealed(folder: Path, manifest: JsonObject) -> None:
    """Write a manifest unchanged, with a new seal."""
    sealed = {**manifest, "seal": seal_of(manifest)}
    (folder / MANIFEST).write_bytes(orjson.dumps(sealed, option=orjson.OPT_INDENT_2) + b"\n")


def seal_of(manifest: JsonObject) -> str:
    """Return the sha256 of a manifest without its seal, independent of field order and spacing."""
    bare = {name: value for name, value in manifest.items() if name != "seal"}
    return hashlib.sha256(orjson.dumps(bare, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _day(text: str) -> str:
    date.fromisoformat(text)
    return text


def _inside(name: str) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or path.as_posix() != name or name == ".":
        raise ValueError("the path leads out of the edition's folder")
    return name


_STRICT = ConfigDict(strict=True, extra="allow")
_NAME = rf"^(?-u:{NAME})$"
_Whole = Annotated[int, Field(ge=0, le=LARGEST)]


class _Source(TypedDict):
    """Origin of the raw data; `kind` is "synthetic", "raw-dir" or "release"."""

    __pydantic_config__ = _STRICT  # pyright: ignore[reportGeneralTypeIssues] - read by pydantic

    kind: str


class CatalogDigests(TypedDict):
    """Digests of the user's catalog and of its files; a public copy lists no files."""

    __pydantic_config__ = _STRICT  # pyright: ignore[reportGeneralTypeIssues] - read by pydantic

    digest: str
    files: dict[str, str]


class Manifest(TypedDict):
    """Required manifest fields; others (`import`) are allowed.

    `filed` holds the first and last filing day if the build was restricted; `subtasks` all subtasks registered at the
    build, with or without episodes; `work` the counts of `finskillbench.edition.parts` by subtask and difficulty.
    """

    __pydantic_config__ = _STRICT  # pyright: ignore[reportGeneralTypeIssues] - read by pydantic

    digest: str
    files: dict[Annotated[str, AfterValidator(_inside)], str]
    source: _Source
    seed: _Whole | None
    catalog: NotRequired[CatalogDigests]
    filed: NotRequired[list[Annotated[str, AfterValidator(_day)]]]
    universe: list[str]
    as_of_dates: list[Annotated[str, AfterValidator(_day)]]
    counts: Annotated[dict[Annotated[str, Field(pattern=_NAME)], _Whole], Field(min_length=1)]
    subtasks: NotRequired[list[str]]
    work: NotRequired[dict[str, dict[str, dict[str, float]]]]
    parameters: dict[str, dict[str, Any]]
    notes: list[str]
    versions: dict[str, str]


_MANIFEST = TypeAdapter(Manifest)


def read_manifest(folder: Path) -> Manifest:
    """Read and verify the manifest of an edition: digest, seal and fields.

    Raises
    ------
    EditionError : no manifest, invalid JSON, another format, or altered content; the first missing or invalid field,
        a file outside of the edition's folder, or a subtask without an episode file.
    """
    path = folder / MANIFEST
    if path.is_file() and path.stat().st_size > LARGEST_TEXT:
        raise EditionError(f"{path}: larger than {LARGEST_TEXT:,} bytes; rebuild the edition")
    try:
        manifest = orjson.loads(path.read_bytes())
    except OSError:
        raise EditionError(
            f"{folder} is not an edition: it has no manifest.json; build one with `data build`"
        ) from None
    except orjson.JSONDecodeError as error:
        raise EditionError(f"{path}: not JSON ({error}); rebuild the edition") from None
    if not is_object(manifest) or manifest.get("format") != FORMAT:
        raise EditionError(f"{path}: not of format {FORMAT}; rebuild the edition with this version")
    files = manifest.get("files")
    stated_digest = as_object(manifest.get("catalog")).get("digest")
    if not is_object(files) or edition_digest(files, stated_digest) != manifest.get("digest"):
        raise EditionError(f"{path}: its digest does not match its list of files; rebuild the edition")
    try:
        seal = seal_of(manifest)
    except TypeError:  # nested deeper than any manifest that we write
        seal = None
    if seal is None or seal != manifest.get("seal"):
        raise EditionError(f"{path} was altered since the edition was built; restore or rebuild it")
    try:
        _MANIFEST.validate_python(manifest)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise EditionError(f"{path}: {field}: {first['msg']}; rebuild the edition") from None
    for name in manifest["counts"]:
        if f"episodes/{name}.jsonl" not in files:
            raise EditionError(f"{path}: counts.{name}: episodes/{name}.jsonl is missing; rebuild the edition")
    return cast("Manifest", manifest)
