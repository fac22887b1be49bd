"""Reading the bundle of a stranger: every file against its digest, every row against its answer, the signature.

What holds without the edition is checked here; `finskillbench.runs.bundle.judge` holds it against the truth.
"""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import msgspec
import polars as pl
import pyarrow.parquet as pq

from finskillbench.errors import InputError
from finskillbench.harness.entries import Entry
from finskillbench.runs.bundle.archive import Contents, open_bundle
from finskillbench.runs.bundle.manifest import ANSWERS, MANIFEST, ROWS, SIGNATURE, Answer, Manifest, decode
from finskillbench.runs.bundle.plain import check_entry, check_submitter
from finskillbench.runs.bundle.sign import Signer, signer_of
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store.rows import SCHEMA, Row, answer_digest, from_frame

MOST_ROWS = 1_000_000
LARGEST_TABLE = 2**30
"""Bytes that the rows may unpack to."""
LARGEST_LINE = 2**24
_MOST_TEXT = 100_000
_LATEST = datetime(2100, 1, 1, tzinfo=UTC)
_AMOUNTS = (
    *("cost_usd", "latency_seconds", "queue_seconds", "retry_seconds"),
    *("turns", "tool_calls", "data_calls", "retries", "run_idx", "episodes"),
    *("total_input_tokens", "total_cached_tokens", "total_output_tokens", "total_reasoning_tokens"),
)
_MOST = 1e12


@dataclass(frozen=True, slots=True)
class Bundle:
    """What somebody submits: rows and answers in the same order; `signer` is None of an unsigned one.

    `digest` is that of the manifest, which covers everything. `trajectories` counts those that came with it.
    """

    path: Path
    digest: str
    manifest: Manifest
    signer: Signer | None
    rows: Sequence[Row]
    answers: Sequence[Answer]
    trajectories: int


def read_bundle(path: Path, *, signers: Path | None = None, unsigned: bool = False) -> Bundle:
    """Read a bundle.

    Parameters
    ----------
    path : a ZIP archive or a folder.
    signers : a file of allowed signers; None takes every key.
    unsigned : whether a bundle without a signature is taken.

    Raises
    ------
    InputError : in one line, the first thing that does not fit: a file, a digest, the signature, a row or an answer.
    """
    contents = open_bundle(path)
    data = contents.read(MANIFEST)
    signer = _signer(contents, data, signers, unsigned=unsigned)
    manifest = decode(data, str(path))
    try:
        check_submitter(manifest.submitter)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    _check_files(contents, manifest)
    rows = _rows(contents)
    answers = list(_answers(contents))
    _check_rows(path, manifest, rows, answers)
    trajectories = len(contents.sizes.keys() - {MANIFEST, SIGNATURE, ROWS, ANSWERS})
    return Bundle(path, hashlib.sha256(data).hexdigest(), manifest, signer, rows, answers, trajectories)


def _signer(contents: Contents, data: bytes, signers: Path | None, *, unsigned: bool) -> Signer | None:
    if SIGNATURE not in contents.sizes:
        if unsigned:
            return None
        raise InputError(f"{contents.path}: is not signed; sign it, or take it with --allow-unsigned")
    try:
        return signer_of(data, contents.read(SIGNATURE), signers)
    except ValueError as error:
        raise InputError(f"{contents.path}: {SIGNATURE}: {error}; submit the run again") from None


def _check_files(contents: Contents, manifest: Manifest) -> None:
    """Every file is listed and as it was signed, and every one that is listed is there."""
    there = contents.sizes.keys() - {MANIFEST, SIGNATURE}
    for name in sorted(there ^ manifest.files.keys()):
        told = "is not listed in the manifest" if name in there else "is listed in the manifest and is missing"
        raise InputError(f"{contents.path}: {name} {told}; submit the run again")
    for name, listed in manifest.files.items():
        if listed.size != contents.sizes[name]:
            raise InputError(f"{contents.path}: {name} was altered after it was signed; submit the run again")
        digest = hashlib.sha256()
        for chunk in contents.chunks(name):
            digest.update(chunk)
        if digest.hexdigest() != listed.sha256:
            raise InputError(f"{contents.path}: {name} was altered after it was signed; submit the run again")


def _rows(contents: Contents) -> list[Row]:
    path, remedy = contents.path, "submit the run again"
    try:
        # By Arrow, which tells the sizes before it reads.
        file = cast("Any", pq.ParquetFile(io.BytesIO(contents.read(ROWS))))
        footer = file.metadata
        unpacked = sum(footer.row_group(place).total_byte_size for place in range(footer.num_row_groups))
        if footer.num_rows > MOST_ROWS or max(unpacked, 8 * footer.num_rows * footer.num_columns) > LARGEST_TABLE:
            raise ValueError(f"it declares {footer.num_rows:,} rows of {unpacked:,} bytes")
        table = file.read()
        table.validate(full=True)
        frame = cast("pl.DataFrame", cast("Any", pl).from_arrow(table))
        if dict(frame.schema) != dict(SCHEMA):
            raise ValueError("its columns are not those of docs/rows.md")
        return from_frame(frame)
    except InputError:
        raise
    except (Exception, pl.exceptions.PanicException) as error:  # noqa: BLE001 - libraries raise anything on chosen bytes
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise InputError(f"{path}: {ROWS}: {reason[:200]}; {remedy}") from None


def _answers(contents: Contents) -> Iterable[Answer]:
    decoder = msgspec.json.Decoder(Answer)
    for number, line in enumerate(_lines(contents), 1):
        where = f"{contents.path}: {ANSWERS}, line {number}"
        if len(line) > LARGEST_LINE:
            raise InputError(f"{where}: longer than {LARGEST_LINE:,} bytes; submit the run again")
        try:
            yield decoder.decode(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{where}: {error}; submit the run again") from None


def _lines(contents: Contents) -> Iterable[bytes]:
    kept = b""
    for chunk in contents.chunks(ANSWERS):
        *whole, kept = (kept + chunk).split(b"\n")
        yield from whole
        if len(kept) > LARGEST_LINE:
            break
    if kept:
        yield kept


def _check_rows(path: Path, manifest: Manifest, rows: Sequence[Row], answers: Sequence[Answer]) -> None:
    if not len(rows) == len(answers) == manifest.rows:
        raise InputError(
            f"{path}: the manifest says {manifest.rows} rows; there are {len(rows)}, and {len(answers)} answers"
        )
    harnesses: dict[Entry, str] = {}
    for each in manifest.entrants:
        entry = Entry(each.model, each.arguments)
        harnesses[entry] = check_entry(path, entry).harness
    seen: set[Item] = set()
    for row, answer in zip(rows, answers, strict=True):
        where = f"{path}: {row.task_id[:80]!a} of {row.model[:80]!a} under {row.condition}, repeat {row.run_idx}"
        if answer.item != row.item:
            raise InputError(f"{where}: the answer beside it is of {answer.task_id[:80]!a}; submit the run again")
        if row.item in seen:
            raise InputError(f"{where}: is there twice; submit the run again")
        seen.add(row.item)
        if row.answer_digest != (None if answer.answer is None else answer_digest(answer.answer)):
            raise InputError(f"{where}: its answer is not the one that was judged; submit the run again")
        if row.item.entry not in harnesses:
            raise InputError(f"{where}: the manifest names no such model with these arguments")
        mounted = manifest.mounts.get(row.condition)
        if mounted is None or row.mount != mounted.digest:
            raise InputError(f"{where}: was played with other skills than the manifest says under {row.condition}")
        if row.edition != manifest.edition:
            raise InputError(f"{where}: is of another edition ({row.edition[:12]}) than the manifest says")
        if row.harness != (stated := harnesses[row.item.entry]):
            raise InputError(f"{where}: its harness is {row.harness[:80]!a}, and {stated!a} by its arguments")
        _check_amounts(where, row)
    if unplayed := harnesses.keys() - {row.item.entry for row in rows}:
        raise InputError(f"{path}: the manifest names {min(unplayed).model[:80]!a}, of which there is no row")


def _check_amounts(where: str, row: Row) -> None:
    for name in _AMOUNTS:
        value = getattr(row, name)
        if value is not None and not (math.isfinite(value) and 0 <= value <= _MOST):
            raise InputError(f"{where}: {name} is {value}, which no episode can have")
    for name in ("started", "ended"):
        moment = getattr(row, name)
        if moment is not None and moment > _LATEST:
            raise InputError(f"{where}: {name} is {moment:%Y-%m-%d}, which is not yet")
    texts = [value for value in _values(row) if isinstance(value, str)]
    if any(len(text) > _MOST_TEXT for text in texts):
        raise InputError(f"{where}: holds a text of more than {_MOST_TEXT:,} characters")


def _values(row: Row) -> Iterable[object]:
    for name in SCHEMA:
        value = getattr(row, name)
        yield from value if isinstance(value, tuple) else (value,)
