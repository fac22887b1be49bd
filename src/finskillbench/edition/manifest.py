"""What the manifest of an edition must say before anything in it is believed."""

from __future__ import annotations

from datetime import date
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, NotRequired, cast

import orjson
from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from finskillbench.edition.store import FORMAT, LARGEST, LARGEST_TEXT, MANIFEST, NAME, edition_digest, seal_of
from finskillbench.errors import EditionError
from finskillbench.scoring.values import is_object, mapping


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


class Source(TypedDict):
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
    what `finskillbench.edition.work` counted, by subtask and difficulty.
    """

    __pydantic_config__ = _STRICT  # pyright: ignore[reportGeneralTypeIssues] - read by pydantic

    digest: str
    files: dict[Annotated[str, AfterValidator(_inside)], str]
    source: Source
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
