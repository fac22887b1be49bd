"""Write the bundle of a run, with all that is needed to judge it again, without keys and home path."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import msgspec

from finskillbench.edition import Edition
from finskillbench.episode import Status
from finskillbench.errors import InputError
from finskillbench.publish.bundle import (
    ANSWERS,
    FORMAT,
    LARGEST_MANIFEST,
    MANIFEST,
    ROWS,
    SIGNATURE,
    AnswerRecord,
    BundleManifest,
    File,
    Mounted,
    Participant,
    Submitter,
    check_entry,
    check_manifest_texts,
    encode_manifest,
    sign,
)
from finskillbench.publish.bundle.archive import LARGEST_TRAJECTORY, LIMITS, MOST_FILES, write_bundle
from finskillbench.publish.bundle.judge import first_missing, headline_tasks
from finskillbench.redaction import cleaner
from finskillbench.runs.plan.items import Item
from finskillbench.runs.postprocess.rescore import read_run
from finskillbench.runs.store.journal import read_history, read_trajectory
from finskillbench.runs.store.record import RunRecord
from finskillbench.runs.store.rows import Row, answer_digest, table_bytes, to_frame, with_digest

Clean = Callable[[str], str]
Cutoff = Callable[[str], date | None]
WITHHELD_COLUMNS: Mapping[str, Any] = {"scoring_details": "{}", "traps": (), "signed": None}
"""Columns of rows that reveal the truth, with their replacements."""


@dataclass(frozen=True, slots=True)
class WrittenBundle:
    """Path of a written bundle, its number of rows, and whether it is signed."""

    path: Path
    rows: int
    signed: bool


def submit_run(
    run: Path,
    edition: Edition,
    out: Path,
    submitter: Submitter,
    *,
    key: Path | None,
    partial: str | None = None,
    cutoff: Cutoff = lambda _: None,
    trajectories: bool = False,
) -> WrittenBundle:
    """Write the bundle of a run.

    Parameters
    ----------
    run : its folder. edition : that of the run, with or without truth. out : a new file (.zip) or folder.
    key : signs the bundle; None leaves it unsigned. partial : reason for missing episodes; None requires all.
    cutoff : returns the training cut-off of a model, if its owner states one. trajectories : include full trajectories.

    Raises
    ------
    InputError : no run, another edition, a missing or failed episode without `partial`, a key in an answer, or an
        invalid text. Nothing is written then.
    """
    record, rows = _rows(run, edition)
    _refuse_incomplete(run, rows, record, edition, partial)
    clean = cleaner()
    for entry in dict.fromkeys(row.item.model_key for row in rows):
        check_entry(run, entry)
    answers, attachments = _submissions(run, rows, clean, with_trajectories=trajectories)
    files = {
        ROWS: table_bytes(to_frame(_shown(run, row, clean) for row in rows)),
        ANSWERS: b"".join(msgspec.json.encode(each) + b"\n" for each in answers),
        **attachments,
    }
    manifest = _manifest(record, rows, submitter, partial, cutoff, files)
    check_manifest_texts(manifest)
    signed = encode_manifest(manifest)
    if clean(signed.decode()) != signed.decode():
        raise InputError(f"{run}: its settings or your texts contain what looks like a key; remove it")
    if len(signed) > LARGEST_MANIFEST or len(files) > MOST_FILES - 2:
        raise InputError(f"{run}: {len(files):,} files are more than a bundle takes; remove --trajectories")
    if large := next((name for name, data in files.items() if len(data) > LIMITS.get(name, LARGEST_TRAJECTORY)), None):
        raise InputError(f"{run}: {large} is larger than a bundle takes; run fewer conditions or repeats for each")
    signature = {} if key is None else {SIGNATURE: sign(signed, key)}
    write_bundle({MANIFEST: signed, **signature, **files}, out)
    return WrittenBundle(out, len(rows), key is not None)


def _rows(run: Path, edition: Edition) -> tuple[RunRecord, list[Row]]:
    record = read_run(run)
    if record.edition_digest != edition.digest:
        raise InputError(
            f"{run}: was run on another edition ({record.edition_digest[:12]}, {edition.path} is "
            f"{edition.digest[:12]}); name its edition with --edition"
        )
    found = read_history(run).rows
    rows = [found[item] for item in record.in_order(found)]
    if not rows:
        raise InputError(f"{run}: no episode has finished; resume the run")
    return record, rows


def _refuse_incomplete(
    run: Path, rows: Sequence[Row], record: RunRecord, edition: Edition, partial: str | None
) -> None:
    if partial is not None:
        if not partial.strip():
            raise InputError("--partial needs a reason, which the leaderboard shows")
        return
    remedy = "resume the run, or submit it with --partial REASON, unranked"
    if failed := next((row for row in rows if row.status is Status.ERROR), None):
        raise InputError(f"{run}: {_item_label(failed.item)} ended in an error ({failed.error_cause}); {remedy}")
    finished = {row.item for row in rows}
    if missing := next((item for item in record.items() if item not in finished), None):
        raise InputError(f"{run}: {_item_label(missing)} was requested and has not finished; {remedy}")
    if lacking := first_missing(finished, headline_tasks(edition.episodes())):
        raise InputError(f"{run}: {_item_label(lacking)} is missing from a full run; {remedy}")


def _submissions(
    run: Path, rows: Iterable[Row], clean: Clean, *, with_trajectories: bool
) -> tuple[list[AnswerRecord], dict[str, bytes]]:
    """Return the answers of all rows, and their cleaned trajectories."""
    answers: list[AnswerRecord] = []
    attachments: dict[str, bytes] = {}
    for row in rows:
        path = run / row.item.trajectory
        trajectory = read_trajectory(path)
        trace = trajectory.trace
        if trajectory.item != row.item or row.answer_digest != _digest(trace.answer):
            raise InputError(f"{path}: does not belong to the judged episode; restore it or run the episode again")
        answer = AnswerRecord(
            **asdict(row.item),
            ended=trace.ended,
            answer=trace.answer,
            record=msgspec.Raw(msgspec.json.encode(trace.record)),
        )
        written = msgspec.json.encode(answer).decode()
        if clean(trace.answer or "") != (trace.answer or "") or clean(written) != written:
            raise InputError(f"{path}: the answer contains what looks like a key; run the episode again without it")
        answers.append(answer)
        if with_trajectories:
            text = clean(gzip.decompress(path.read_bytes()).decode())
            attachments[row.item.trajectory] = gzip.compress(text.encode(), 6, mtime=0)
    return answers, attachments


def _shown(run: Path, row: Row, clean: Clean) -> Row:
    """Return a row without truth and secrets."""
    loose = ("error", "served_models", "skills_loaded", "scripts_run", "incidents")
    cleaned = {name: _cleaned(getattr(row, name), clean) for name in loose}
    shown = with_digest(replace(row, **WITHHELD_COLUMNS, **cleaned))
    if any(clean(text) != text for text in (row.model, row.arguments)):
        raise InputError(f"{run}: the name or the arguments of {row.model!r} contain what looks like a key; rename it")
    return shown


def _cleaned(value: str | Sequence[str] | None, clean: Clean) -> str | tuple[str, ...] | None:
    if value is None or isinstance(value, str):
        return None if value is None else clean(value)
    return tuple(clean(each) for each in value)


def _manifest(
    record: RunRecord,
    rows: Sequence[Row],
    submitter: Submitter,
    partial: str | None,
    cutoff: Cutoff,
    files: Mapping[str, bytes],
) -> BundleManifest:
    entries = dict.fromkeys(row.item.model_key for row in rows)
    conditions = dict.fromkeys(row.condition for row in rows)
    mounts = {name: record.mounts[name] for name in conditions}
    return BundleManifest(
        format=FORMAT,
        submitter=submitter,
        edition=record.edition_digest,
        entrants=tuple(
            Participant(model=entry.model, arguments=entry.arguments, cutoff=cutoff(entry.model)) for entry in entries
        ),
        mounts={name: Mounted(digest=each["digest"], packages=each["packages"]) for name, each in mounts.items()},
        partial=partial,
        rows=len(rows),
        prompts_digest=record.prompts_digest,
        scorer_version=record.scorer_version,
        versions=record.versions,
        sandbox=record.sandbox,
        files={name: File(sha256=hashlib.sha256(data).hexdigest(), size=len(data)) for name, data in files.items()},
    )


def _digest(answer: str | None) -> str | None:
    return None if answer is None else answer_digest(answer)


def _item_label(item: Item) -> str:
    return f"{item.task_id} of {item.model_key} under {item.condition}, repeat {item.run_idx}"
