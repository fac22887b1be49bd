"""Write episodes and labels as Parquet with the canary in every row, and search files for the canary."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from finskillbench.domains import find_subtask
from finskillbench.domains.tables import refers_to_table
from finskillbench.edition.load import Edition
from finskillbench.edition.store import CANARY
from finskillbench.episode import Episode, Truth
from finskillbench.errors import InputError
from finskillbench.scoring.values import is_array, is_object

DATA = "data"
TRUTH = "truth"
SPLIT = "test"
"""The only split: episodes are for evaluation, not for training."""
SHARD_BYTES = 2**28
"""Bytes of text per shard; hubs recommend files well below 5 GB and preview smaller ones sooner."""
_GROUP_ROWS = 256
_JSON = orjson.OPT_SERIALIZE_NUMPY


@dataclass(frozen=True, slots=True)
class HubColumn:
    """A column; `kind` is "text", "json" (text that holds JSON), "date" or "texts" (a list of texts)."""

    name: str
    kind: str
    meaning: str


@dataclass(frozen=True, slots=True)
class HubShard:
    """A file of a configuration: path in the folder, rows, bytes and SHA-256."""

    config: str
    path: str
    rows: int
    size: int
    digest: str


_ID = (
    HubColumn("canary", "text", "marks the row, for filters to exclude it from training data"),
    HubColumn("task_id", "text", "name of the episode in the edition"),
)
EPISODE_COLUMNS = (
    *_ID,
    HubColumn("domain", "text", "domain of the subtask"),
    HubColumn("sub_task", "text", "subtask"),
    HubColumn("as_of_date", "date", "as-of date of the episode; later data may not be used"),
    HubColumn("difficulty", "text", "easy, medium or hard"),
    HubColumn("task_description", "text", "description of the task"),
    HubColumn("output_instructions", "text", "instructions on the answer"),
    HubColumn("answer_schema", "json", "JSON Schema of the answer; null for a subtask that is not registered"),
    HubColumn("input", "json", "input of the agent as JSON; large parts are references to files of the folder edition"),
    HubColumn("references", "texts", "the referenced files"),
)
TRUTH_COLUMNS = (
    *_ID,
    HubColumn("sub_task", "text", "subtask"),
    HubColumn("expected_output", "json", "the label"),
    HubColumn("verification", "json", "comparison of an answer with the label"),
    HubColumn("proof", "json", "proof of the label"),
)


def write_episode_shards(edition: Edition, folder: Path, most: int = SHARD_BYTES) -> tuple[HubShard, ...]:
    """Write the episodes of every subtask below `data/`; `most` limits the bytes of text per shard."""
    return _write(edition, folder, DATA, EPISODE_COLUMNS, lambda name: map(_episode, edition.episodes([name])), most)


def write_truth_shards(edition: Edition, folder: Path, most: int = SHARD_BYTES) -> tuple[HubShard, ...]:
    """Write the labels of every subtask below `truth/`; EditionError if the edition has none."""

    def labels(name: str) -> Iterator[dict[str, Any]]:
        return (_truth(edition.truth(episode.task_id)) for episode in edition.episodes([name]))

    return _write(edition, folder, TRUTH, TRUTH_COLUMNS, labels, most)


def _write(
    edition: Edition,
    folder: Path,
    part: str,
    columns: Sequence[HubColumn],
    rows: Callable[[str], Iterable[dict[str, Any]]],
    most: int,
) -> tuple[HubShard, ...]:
    schema = _schema(columns, edition.digest)
    written: list[HubShard] = []
    for name in edition.sub_tasks:
        parts = list(_split(rows(name), most))
        for number, each in enumerate(parts):
            path = f"{part}/{name}/{SPLIT}-{number:05}-of-{len(parts):05}.parquet"
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            table = cast("Any", pa).Table.from_pylist(each, schema=schema)
            cast("Any", pq).write_table(table, folder / path, compression="zstd", row_group_size=_GROUP_ROWS)
            content = (folder / path).read_bytes()
            written.append(HubShard(name, path, len(each), len(content), hashlib.sha256(content).hexdigest()))
    return tuple(written)


def _schema(columns: Sequence[HubColumn], digest: str) -> Any:
    arrow = cast("Any", pa)
    text = arrow.string()
    kinds = {"text": text, "json": text, "date": arrow.date32(), "texts": arrow.list_(text)}
    fields = [arrow.field(each.name, kinds[each.kind], metadata={"meaning": each.meaning}) for each in columns]
    return arrow.schema(fields, metadata={"canary": CANARY, "edition": digest})


def _split(rows: Iterable[dict[str, Any]], most: int) -> Iterator[list[dict[str, Any]]]:
    """Split rows into lists of at most `most` bytes of text and at least one row."""
    part: list[dict[str, Any]] = []
    held = 0
    for row in rows:
        size = sum(len(value) for value in row.values() if isinstance(value, str))
        if part and held + size > most:
            yield part
            part, held = [], 0
        part.append(row)
        held += size
    if part:
        yield part


def _episode(episode: Episode) -> dict[str, Any]:
    subtask = find_subtask(episode.sub_task)
    schema = None if subtask is None else _json(subtask.answer.model_json_schema())
    return {
        "canary": CANARY,
        "task_id": episode.task_id,
        "domain": episode.skill,
        "sub_task": episode.sub_task,
        "as_of_date": episode.as_of_date,
        "difficulty": episode.difficulty,
        "task_description": episode.prompt.task_description,
        "output_instructions": episode.prompt.output_instructions,
        "answer_schema": schema,
        "input": _json(episode.input),
        "references": sorted({name for value in episode.input.values() for name in _named(value)}),
    }


def _truth(truth: Truth) -> dict[str, Any]:
    return {
        "canary": CANARY,
        "task_id": truth.task_id,
        "sub_task": truth.sub_task,
        "expected_output": _json(truth.expected_output),
        "verification": _json(truth.verification),
        "proof": _json(truth.proof),
    }


def _named(value: object) -> Iterator[str]:
    """Yield the files of the edition that an input value refers to, at any depth."""
    if refers_to_table(value):
        yield value["table"]
    elif is_object(value):
        if isinstance(named := value.get("ref"), str):
            yield named
        for each in value.values():
            yield from _named(each)
    elif is_array(value):
        for each in value:
            yield from _named(each)


def _json(value: object) -> str:
    return orjson.dumps(value, option=_JSON).decode()


GUID = CANARY.rpartition(":")[2]
"""The unique part of the canary, which remains if the text before it was cut off."""
_MARK = GUID.encode()
_CHUNK = 2**20
_GZIP = b"\x1f\x8b"


def has_canary(text: str | bytes) -> bool:
    """Return true if a text contains the canary, in any case."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return _MARK in data.lower()


def file_has_canary(path: Path) -> bool:
    """Return true if a file contains the canary, also if it is gzipped; InputError if it is unreadable."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == _GZIP
        return _found(_chunks(path, packed=False)) or (packed and _found(_chunks(path, packed=True)))
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read ({error}); name a file") from None


def _found(chunks: Iterator[bytes]) -> bool:
    kept = b""
    for chunk in chunks:
        if has_canary(kept + chunk):
            return True
        kept = chunk[-len(_MARK) :]
    return False


def _chunks(path: Path, *, packed: bool) -> Iterator[bytes]:
    with gzip.open(path, "rb") if packed else path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk
