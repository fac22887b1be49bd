"""Make the bundle of a run: everything to judge it again, without keys and without the path of the home folder."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
    Answer,
    File,
    Manifest,
    Mounted,
    Participant,
    Submitter,
    check_entry,
    check_shown,
    encode,
    sign,
)
from finskillbench.publish.bundle.archive import LARGEST_TRAJECTORY, LIMITS, MOST_FILES, write_bundle
from finskillbench.publish.bundle.judge import first_missing, required
from finskillbench.redaction import redactor_of_process, without_keys
from finskillbench.runs.plan.items import Item
from finskillbench.runs.postprocess.rescore import read_run
from finskillbench.runs.store.journal import read_history, read_trajectory
from finskillbench.runs.store.record import RunRecord
from finskillbench.runs.store.rows import Row, answer_digest, sealed, table_bytes, to_frame

Clean = Callable[[str], str]


def cleaner() -> Clean:
    """Take out the secrets of this process, what looks like a key of a provider, and the user's own folder.

    The latter two because a run may be submitted by another process than the one that knew its keys.
    """
    redact = redactor_of_process()
    home = str(Path.home())
    own = re.compile(rf"{re.escape(home)}(?=/)") if len(home) > 1 else None

    def clean(text: str) -> str:
        text = without_keys(redact(text))
        return own.sub("~", text) if own is not None else text

    return clean


Cutoff = Callable[[str], date | None]
LEFT_OUT: Mapping[str, Any] = {"scoring_details": "{}", "traps": (), "signed": None}
"""What rows say of the truth beside their scores."""


@dataclass(frozen=True, slots=True)
class Written:
    """What was submitted: where it is, its rows, and whether it was signed."""

    path: Path
    rows: int
    signed: bool


def submit(
    run: Path,
    edition: Edition,
    out: Path,
    submitter: Submitter,
    *,
    key: Path | None,
    partial: str | None = None,
    cutoff: Cutoff = lambda _: None,
    trajectories: bool = False,
) -> Written:
    """Write the bundle of a run.

    Parameters
    ----------
    run : its folder.
    edition : what it was run on, with or without truth.
    out : a new file (.zip) or folder.
    key : of the signature; None leaves the bundle unsigned.
    partial : why episodes are missing; None where the run must be whole.
    cutoff : the last day of the training data of a model, where its owner states one.
    trajectories : whether everything that was said and done goes with it.

    Raises
    ------
    InputError : no run, another edition, an episode that is missing or ended in an error without `partial`, a key in an
        answer, or a text that no manifest takes. Nothing is written then.
    """
    record, rows = _rows(run, edition)
    _refuse_incomplete(run, rows, record, edition, partial)
    clean = cleaner()
    for entry in dict.fromkeys(row.item.entry for row in rows):
        check_entry(run, entry)
    answers, told = _submissions(run, rows, clean, with_trajectories=trajectories)
    files = {
        ROWS: table_bytes(to_frame(_shown(run, row, clean) for row in rows)),
        ANSWERS: b"".join(msgspec.json.encode(each) + b"\n" for each in answers),
        **told,
    }
    manifest = _manifest(record, rows, submitter, partial, cutoff, files)
    check_shown(manifest)
    signed = encode(manifest)
    if clean(signed.decode()) != signed.decode():
        raise InputError(f"{run}: its settings or your words hold what looks like a key; leave it out")
    if len(signed) > LARGEST_MANIFEST or len(files) > MOST_FILES - 2:
        raise InputError(f"{run}: {len(files):,} files are more than a bundle takes; leave --trajectories out")
    if large := next((name for name, data in files.items() if len(data) > LIMITS.get(name, LARGEST_TRAJECTORY)), None):
        raise InputError(f"{run}: {large} is larger than a bundle takes; run fewer conditions or repeats for each")
    signature = {} if key is None else {SIGNATURE: sign(signed, key)}
    write_bundle({MANIFEST: signed, **signature, **files}, out)
    return Written(out, len(rows), key is not None)


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
        raise InputError(f"{run}: {_told(failed.item)} ended in an error ({failed.error_cause}); {remedy}")
    finished = {row.item for row in rows}
    if missing := next((item for item in record.items() if item not in finished), None):
        raise InputError(f"{run}: {_told(missing)} was asked for and has not finished; {remedy}")
    if lacking := first_missing(finished, required(edition.episodes())):
        raise InputError(f"{run}: {_told(lacking)} is missing, which a full run plays; {remedy}")


def _submissions(
    run: Path, rows: Iterable[Row], clean: Clean, *, with_trajectories: bool
) -> tuple[list[Answer], dict[str, bytes]]:
    """What was submitted for each row, and the trajectories without what must not leave."""
    answers: list[Answer] = []
    told: dict[str, bytes] = {}
    for row in rows:
        path = run / row.item.trajectory
        trajectory = read_trajectory(path)
        trace = trajectory.trace
        if trajectory.item != row.item or row.answer_digest != _digest(trace.answer):
            raise InputError(f"{path}: is not of the episode that was judged; restore it or run the episode again")
        answer = Answer(
            model=row.model,
            arguments=row.arguments,
            condition=row.condition,
            task_id=row.task_id,
            run_idx=row.run_idx,
            ended=trace.ended,
            answer=trace.answer,
            record=msgspec.Raw(msgspec.json.encode(trace.record)),
        )
        written = msgspec.json.encode(answer).decode()
        if clean(trace.answer or "") != (trace.answer or "") or clean(written) != written:
            raise InputError(f"{path}: the answer holds what looks like a key; run the episode again without it")
        answers.append(answer)
        if with_trajectories:
            text = clean(gzip.decompress(path.read_bytes()).decode())
            told[row.item.trajectory] = gzip.compress(text.encode(), 6, mtime=0)
    return answers, told


def _shown(run: Path, row: Row, clean: Clean) -> Row:
    """The row without what it says of the truth, and without what must not leave."""
    loose = ("error", "served_models", "skills_loaded", "scripts_run", "incidents")
    cleaned = {name: _cleaned(getattr(row, name), clean) for name in loose}
    shown = sealed(replace(row, **LEFT_OUT, **cleaned))
    if any(clean(text) != text for text in (row.model, row.arguments)):
        raise InputError(f"{run}: the name or the arguments of {row.model!r} hold what looks like a key; rename it")
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
) -> Manifest:
    entries = dict.fromkeys(row.item.entry for row in rows)
    conditions = dict.fromkeys(row.condition for row in rows)
    mounts = {name: record.mounts[name] for name in conditions}
    return Manifest(
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


def _told(item: Item) -> str:
    return f"{item.task_id} of {item.entry} under {item.condition}, repeat {item.run_idx}"
