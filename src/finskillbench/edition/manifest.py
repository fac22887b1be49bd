"""What the manifest of an edition must say before anything in it is believed."""

from __future__ import annotations

from datetime import date
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from finskillbench.errors import EditionError


def _day(text: str) -> str:
    date.fromisoformat(text)
    return text


def _inside(name: str) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or path.as_posix() != name or name == ".":
        raise ValueError("a file of an edition lies in its folder")
    return name


class _Source(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")

    kind: str


class _Manifest(BaseModel):
    """The fields that readers rely on; others (`import`) may be there."""

    model_config = ConfigDict(strict=True, extra="allow")

    digest: str
    files: dict[Annotated[str, AfterValidator(_inside)], str]
    source: _Source
    seed: int | None
    universe: list[str]
    as_of_dates: list[Annotated[str, AfterValidator(_day)]]
    counts: Annotated[dict[str, Annotated[int, Field(ge=0)]], Field(min_length=1)]
    parameters: dict[str, dict[str, Any]]
    notes: list[str]
    versions: dict[str, str]


def check_manifest(path: Path, manifest: dict[str, Any]) -> None:
    """Check the fields of a manifest that was read from `path`.

    Raises
    ------
    EditionError : naming the first field that is missing or wrong, a file that does not lie in the edition's folder,
        or a subtask that is counted without a file of episodes.
    """
    try:
        known = _Manifest.model_validate(manifest)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise EditionError(f"{path}: {field}: {first['msg']}; rebuild the edition") from None
    for name in known.counts:
        if f"episodes/{name}.jsonl" not in known.files:
            raise EditionError(f"{path}: counts.{name}: there is no episodes/{name}.jsonl; rebuild the edition")
