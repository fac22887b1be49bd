"""The edition on disk: one line of JSON for each episode, truth and certificate, and a manifest of digests.

    manifest.json   panels/   episodes/<sub_task>.jsonl   truth/<sub_task>.jsonl   certificates/<sub_task>.jsonl
    tables/<task>/<name>.parquet   what is too long for an episode's line   stages/<sub_task>.jsonl   what moves it on
    catalog/        what somebody brought of his own: mandates, books, scenarios; the files as they were

Episodes, tables and panels are what may be handed out; `truth/`, `certificates/`, `stages/` and `catalog/` may be
withheld.

What the manifest of an edition must say before anything in it is believed.
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
from finskillbench.scoring.values import is_object, mapping

Record = TypeVar("Record", Episode, Truth)

FORMAT = 1
MANIFEST = "manifest.json"
CANARY_FILE = "CANARY.txt"
CANARY = "finskillbench:canary:8d1f2c57-3f0e-4b1c-9a46-2f7c0be1d9a4"
"""Marks episodes for filters of training data: the same in every edition, so that one string finds them all."""
CATALOG = "catalog"
"""The folder of the files that a user brought to the build."""
STAGES = "stages"
"""The folder of what only the stage of an episode knows, such as what comes after the next decision."""
WITHHELD = ("truth", "certificates", STAGES, CATALOG)
"""Folders that an edition may be handed out without."""
LARGEST_TEXT = 2**24
"""Bytes of a manifest, or of one line, at most: some 300 MB once they are read, at worst."""
NAME = r"\w[\w .:+@-]{0,199}"
"""How an edition may call a task or a subtask: it becomes part of names of files, and is printed."""
LARGEST = 2**63 - 1
"""The largest whole number that manifests, records and tables hold."""


def refuse_inside_edition(out: Path) -> None:
    """Refuse an output that is, or lies below, the folder of an edition: one more file would spoil it.

    Raises
    ------
    InputError : naming the edition.
    """
    # With and without following a link at `out` itself: the link may lie in an edition, or lead into one.
    places = {Path(os.path.realpath(out)), Path(os.path.realpath(out.parent)) / out.name}
    for folder in sorted({folder for place in places for folder in (place, *place.parents)}):
        if _holds_edition(folder):
            raise InputError(f"{out} lies in the edition {folder}, which it would spoil; choose another --out")


def _holds_edition(folder: Path) -> bool:
    try:
        manifest = orjson.loads((folder / MANIFEST).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return False
    return isinstance(manifest, dict) and manifest.keys() >= {"format", "files"}


@contextmanager
def new_folder(out: Path) -> Generator[Path]:
    """A folder written beside its place and renamed when complete; nothing is left behind on failure.

    What killed processes left of any such folder in the same place is removed first: they could not do so themselves.

    Raises
    ------
    InputError : if `out` exists and is not an empty folder, lies in an edition, or its parent cannot be written; if
        something else took its place meanwhile.
    """
    if not out.name:
        raise InputError(f"--out {out} is no new folder; name one")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} exists and is not an empty folder; choose another folder or remove it")
    refuse_inside_edition(out)
    made = [parent for parent in out.parents if not parent.exists()]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        _sweep(out.parent)
        staging = Path(tempfile.mkdtemp(prefix=f".{out.name}.{_here()}-{os.getpid()}-", dir=out.parent))
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
                f"{out}: taken while it was being built ({error.strerror}); choose another --out"
            ) from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        if not out.exists():
            with suppress(OSError):  # somebody else may have put something there meanwhile
                for parent in made:
                    parent.rmdir()


def _here() -> str:
    """This machine, and its process ids where a container has its own: ids in names mean nothing elsewhere."""
    ids = Path("/proc/self/ns/pid")
    where = f"{platform.node()} {ids.readlink() if ids.is_symlink() else ''}"
    return f"{zlib.crc32(where.encode()):08x}"


def _sweep(folder: Path) -> None:
    """Remove the staging folders in a folder whose process has died."""
    ours = re.compile(rf"\..+\.{_here()}-(\d+)-[a-z0-9_]{{8}}(\.raw\.[a-z0-9_]{{8}})?")
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
    """Read JSON Lines.

    Raises
    ------
    EditionError : naming file and line.
    """
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
        orjson.dumps(row)  # what is nested deeper than can be written again is refused here, once for all readers
    except orjson.JSONDecodeError as error:
        raise EditionError(f"{where}: not JSON ({error}); rebuild the edition") from None
    except orjson.JSONEncodeError as error:
        raise EditionError(f"{where}: nested too deeply ({error}); rebuild the edition") from None
    if not isinstance(row, dict):
        raise EditionError(f"{where}: expected an object; rebuild the edition")
    return cast("dict[str, Any]", row)


def episode_row(episode: Episode) -> JsonObject:
    """The fields of an episode in the order in which they are published: the prompt last."""
    row = {each.name: getattr(episode, each.name) for each in fields(episode)}
    row["prompt"] = row.pop("prompt")
    return row


def read_records(path: Path, kind: type[Record]) -> Iterator[Record]:
    """The episodes or the truths of one file.

    Raises
    ------
    EditionError : naming file and line, and the first field that is missing or of the wrong type.
    """
    noun = kind.__name__.lower()
    for number, row in enumerate(read_lines(path), 1):
        absent = next((each.name for each in fields(kind) if each.name not in row), None)
        if absent is not None:
            raise EditionError(f"{path}, line {number}: the {noun} lacks {absent!r}; rebuild the edition")
        try:
            record = msgspec.convert(row, kind)
        except msgspec.ValidationError as error:
            raise EditionError(f"{path}, line {number}: no {noun} ({error}); rebuild the edition") from None
        for field in ("task_id", "sub_task"):
            if not re.fullmatch(NAME, getattr(record, field), re.ASCII):
                raise EditionError(f"{path}, line {number}: no {noun} ({field} is no name); rebuild the edition")
        yield record


def digest_files(folder: Path) -> dict[str, str]:
    """sha256 of every file below a folder, by relative path in sorted order."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): digest_file(path) for path in files}


def digest_file(path: Path) -> str:
    """sha256 of one file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of(files: Mapping[str, str]) -> str:
    """One digest for a listing of digests."""
    listing = "".join(f"{name} {digest}\n" for name, digest in sorted(files.items()))
    return hashlib.sha256(listing.encode()).hexdigest()


def brought_digest(files: Mapping[str, str]) -> str | None:
    """The one digest of the files of a catalog among those of an edition; None where there are none."""
    brought = {name.removeprefix(f"{CATALOG}/"): each for name, each in files.items() if name.startswith(f"{CATALOG}/")}
    return digest_of(brought) if brought else None


def edition_digest(files: Mapping[str, str], brought: str | None = None) -> str:
    """The digest of an edition, for which a catalog counts as one file, so that copies need not name its files.

    `brought` is the digest of the catalog, where `files` do not list it.
    """
    own = {name: each for name, each in files.items() if not name.startswith(f"{CATALOG}/")}
    brought = brought_digest(files) or brought
    return digest_of(own if brought is None else {**own, CATALOG: brought})


def write_manifest(folder: Path, fields: JsonObject) -> None:
    """Digest everything in the folder and write the manifest, last.

    `digest` identifies the content of the files alone; `seal` covers the manifest itself, which also tells things that
    do not change the content (versions of libraries).
    """
    files = {name: digest for name, digest in digest_files(folder).items() if name != MANIFEST}
    write_sealed(folder, {"format": FORMAT, **fields, "digest": edition_digest(files), "files": files})


def write_sealed(folder: Path, manifest: JsonObject) -> None:
    """Write a manifest as it is given, under a new seal."""
    sealed = {**manifest, "seal": seal_of(manifest)}
    (folder / MANIFEST).write_bytes(orjson.dumps(sealed, option=orjson.OPT_INDENT_2) + b"\n")


def seal_of(manifest: JsonObject) -> str:
    """sha256 of a manifest without its seal, whatever the order and spacing of its fields."""
    bare = {name: value for name, value in manifest.items() if name != "seal"}
    return hashlib.sha256(orjson.dumps(bare, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _day(text: str) -> str:
    date.fromisoformat(text)
    return text


def _inside(name: str) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or path.as_posix() != name or name == ".":
        raise ValueError("a file of an edition lies in its folder")
    return name


_STRICT = ConfigDict(strict=True, extra="allow")
_NAME = rf"^(?-u:{NAME})$"
_Whole = Annotated[int, Field(ge=0, le=LARGEST)]


class _Source(TypedDict):
    """Where the raw data came from; `kind` is "synthetic", "raw-dir" or "release"."""

    __pydantic_config__ = _STRICT  # pyright: ignore[reportGeneralTypeIssues] - read by pydantic

    kind: str


class BroughtCatalog(TypedDict):
    """What a user brought to the build: the digest of every file, by its name in the edition's folder `catalog`.

    A copy that is handed out names no file.
    """

    __pydantic_config__ = _STRICT  # pyright: ignore[reportGeneralTypeIssues] - read by pydantic

    digest: str
    files: dict[str, str]


class Manifest(TypedDict):
    """The fields that readers rely on; others (`import`) may be there.

    `filed` are the first and the last filing day of the reports that fundamental episodes are about, if it was asked;
    `subtasks` are those that were registered at the build, whether or not the edition has episodes of them; `work` is
    what `finskillbench.edition.parts` counted, by subtask and difficulty.
    """

    __pydantic_config__ = _STRICT  # pyright: ignore[reportGeneralTypeIssues] - read by pydantic

    digest: str
    files: dict[Annotated[str, AfterValidator(_inside)], str]
    source: _Source
    seed: _Whole | None
    catalog: NotRequired[BroughtCatalog]
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
    """The manifest of the edition in `folder`, once its digest, its seal and its fields are found right.

    Raises
    ------
    EditionError : there is none, it is no JSON or of another format, or was altered; naming the first field that is
        missing or wrong, a file that does not lie in the edition's folder, or a subtask without a file of episodes.
    """
    path = folder / MANIFEST
    if path.is_file() and path.stat().st_size > LARGEST_TEXT:
        raise EditionError(f"{path}: larger than {LARGEST_TEXT:,} bytes; rebuild the edition")
    try:
        manifest = orjson.loads(path.read_bytes())
    except OSError:
        raise EditionError(f"{folder} is no edition: it has no manifest.json; build one with `data build`") from None
    except orjson.JSONDecodeError as error:
        raise EditionError(f"{path}: not JSON ({error}); rebuild the edition") from None
    if not is_object(manifest) or manifest.get("format") != FORMAT:
        raise EditionError(f"{path}: not of format {FORMAT}; rebuild the edition with this version")
    files = manifest.get("files")
    brought = mapping(manifest.get("catalog")).get("digest")
    if not is_object(files) or edition_digest(files, brought) != manifest.get("digest"):
        raise EditionError(f"{path}: its digest does not match its list of files; rebuild the edition")
    try:
        seal = seal_of(manifest)
    except TypeError:  # nested deeper than anything we write
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
            raise EditionError(f"{path}: counts.{name}: there is no episodes/{name}.jsonl; rebuild the edition")
    return cast("Manifest", manifest)
