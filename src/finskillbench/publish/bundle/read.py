"""Read an untrusted bundle: check files against digests, rows against answers, and the signature.

Only checks without the edition are done here; `finskillbench.publish.bundle.judge` compares with the truth.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from finskillbench.errors import InputError
from finskillbench.harness.models import ModelKey
from finskillbench.publish.bundle import (
    ANSWERS,
    MANIFEST,
    ROWS,
    SIGNATURE,
    AnswerRecord,
    BundleManifest,
    Signer,
    check_display_text,
    check_entry,
    check_manifest_texts,
    decode_manifest,
    signer_of,
)
from finskillbench.publish.bundle.archive import Contents, open_bundle, read_rows
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store.rows import Row, answer_digest

LARGEST_LINE = 2**24
LARGEST_RECORD = 2**20
"""Maximum bytes of the record of one interactive episode."""
_EARLIEST, _LATEST = datetime(2020, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
_AMOUNTS = (
    *("cost_usd", "saved_usd", "latency_seconds", "queue_seconds", "retry_seconds"),
    *("turns", "tool_calls", "data_calls", "retries", "run_idx", "episodes", "reused_calls"),
    *("total_input_tokens", "total_cached_tokens", "total_output_tokens", "total_reasoning_tokens"),
)
_MOST = 1e12
_SHOWN = ("code_version", "commit", "scorer_version")


@dataclass(frozen=True, slots=True)
class Bundle:
    """A submitted run: rows and answers in the same order; `signer` is None if unsigned.

    `digest` is that of the manifest, which covers everything. `trajectories` is the number of included ones.
    """

    path: Path
    digest: str
    manifest: BundleManifest
    signer: Signer | None
    rows: Sequence[Row]
    answers: Sequence[AnswerRecord]
    trajectories: int


def read_bundle(path: Path, *, signers: Path | None = None, unsigned: bool = False) -> Bundle:
    """Read a bundle, a ZIP archive or a folder.

    Parameters
    ----------
    signers : a file of allowed signers; None accepts every key. unsigned : accept a bundle without a signature.

    Raises
    ------
    InputError : with the first invalid file, digest, signature, row or answer, in one line.
    """
    with open_bundle(path) as contents:
        data = contents.read(MANIFEST)
        signer = _signer(contents, data, signers, unsigned=unsigned)
        manifest = decode_manifest(data, str(path))
        try:
            check_manifest_texts(manifest)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        _check_files(contents, manifest)
        rows = read_rows(contents)
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


def _check_files(contents: Contents, manifest: BundleManifest) -> None:
    there = contents.sizes.keys() - {MANIFEST, SIGNATURE}
    for name in sorted(there ^ manifest.files.keys()):
        problem = "is not listed in the manifest" if name in there else "is listed in the manifest, but missing"
        raise InputError(f"{contents.path}: {name} {problem}; submit the run again")
    for name, listed in manifest.files.items():
        if listed.size != contents.sizes[name]:
            raise InputError(f"{contents.path}: {name} was altered after it was signed; submit the run again")
        digest = hashlib.sha256()
        for chunk in contents.chunks(name):
            digest.update(chunk)
        if digest.hexdigest() != listed.sha256:
            raise InputError(f"{contents.path}: {name} was altered after it was signed; submit the run again")


def _answers(contents: Contents) -> Iterable[AnswerRecord]:
    decoder = msgspec.json.Decoder(AnswerRecord)
    for number, line in enumerate(_lines(contents), 1):
        where = f"{contents.path}: {ANSWERS}, line {number}"
        if len(line) > LARGEST_LINE:
            raise InputError(f"{where}: longer than {LARGEST_LINE:,} bytes; submit the run again")
        try:
            answer = decoder.decode(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{where}: {error}; submit the run again") from None
        if len(answer.record) > LARGEST_RECORD:
            raise InputError(f"{where}: its record is longer than {LARGEST_RECORD:,} bytes; submit the run again")
        yield answer


def _lines(contents: Contents) -> Iterable[bytes]:
    kept = b""
    for chunk in contents.chunks(ANSWERS):
        *whole, kept = (kept + chunk).split(b"\n")
        yield from whole
        if len(kept) > LARGEST_LINE:
            break
    if kept:
        yield kept


def _check_rows(path: Path, manifest: BundleManifest, rows: Sequence[Row], answers: Sequence[AnswerRecord]) -> None:
    if not len(rows) == len(answers) == manifest.rows:
        raise InputError(
            f"{path}: the manifest lists {manifest.rows} rows, but there are {len(rows)}, and {len(answers)} answers"
        )
    harnesses: dict[ModelKey, str] = {}
    for each in manifest.entrants:
        entry = ModelKey(each.model, each.arguments)
        harnesses[entry] = check_entry(path, entry).harness
    seen: set[Item] = set()
    plain: set[str] = set()
    for row, answer in zip(rows, answers, strict=True):
        where = f"{path}: {row.task_id[:80]!a} of {row.model[:80]!a} under {row.condition}, repeat {row.run_idx}"
        if answer.item != row.item:
            raise InputError(f"{where}: its answer is for {answer.task_id[:80]!a}; submit the run again")
        if row.item in seen:
            raise InputError(f"{where}: is a duplicate; submit the run again")
        seen.add(row.item)
        if row.answer_digest != (None if answer.answer is None else answer_digest(answer.answer)):
            raise InputError(f"{where}: its answer is not the one that was judged; submit the run again")
        if row.item.model_key not in harnesses:
            raise InputError(f"{where}: the manifest names no such model with these arguments")
        mounted = manifest.mounts.get(row.condition)
        if mounted is None or row.mount != mounted.digest.get(row.domain):
            raise InputError(f"{where}: was run with other skills than the manifest lists under {row.condition}")
        if row.edition != manifest.edition:
            raise InputError(f"{where}: is of edition {row.edition[:12]}, not that of the manifest")
        if row.harness != (stated := harnesses[row.item.model_key]):
            raise InputError(f"{where}: its harness is {row.harness[:80]!a}, but {stated!a} by its arguments")
        _check_amounts(where, row)
        for name in _SHOWN:
            if (text := getattr(row, name)) is not None and text not in plain:
                try:
                    check_display_text(name, text)
                except InputError as error:
                    raise InputError(f"{where}: {error}") from None
                plain.add(text)
    if unplayed := harnesses.keys() - {row.item.model_key for row in rows}:
        raise InputError(f"{path}: the manifest names {min(unplayed).model[:80]!a}, which has no rows")


def _check_amounts(where: str, row: Row) -> None:
    for name in _AMOUNTS:
        value = getattr(row, name)
        if value is not None and not (math.isfinite(value) and 0 <= value <= _MOST):
            raise InputError(f"{where}: {name} is {value}, which no episode can have")
    for name in ("started", "ended"):
        moment = getattr(row, name)
        if moment is not None and not _EARLIEST <= moment <= _LATEST:
            raise InputError(f"{where}: {name} is {moment:%Y-%m-%d}, outside of {_EARLIEST:%Y} to {_LATEST:%Y}")
