"""Bundles that somebody has tampered with: each plants one thing and says what must be told of it."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import math
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from finskillbench.publish.bundle import ANSWERS, MANIFEST, ROWS, SIGNATURE, sign
from finskillbench.runs.store.rows import from_frame, row_digest, table_bytes, to_frame

Files = dict[str, bytes]


@dataclass
class Forger:
    """Rewrites a bundle as one who owns the key could: digests and signature fit again unless told otherwise."""

    path: Path
    key: Path

    def files(self) -> Files:
        with zipfile.ZipFile(self.path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}

    def write(self, files: Files, *, signed: bool = True) -> Path:
        if signed:
            files[SIGNATURE] = sign(files[MANIFEST], self.key)
        with zipfile.ZipFile(self.path, "w") as archive:
            for name, data in files.items():
                archive.writestr(name, data)
        return self.path

    def listed(self, files: Files, **changes: Any) -> Files:
        """The files with a manifest that lists them as they are, and says other things."""
        manifest = {**json.loads(files[MANIFEST]), **changes}
        manifest["files"] = {
            name: {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
            for name, data in files.items()
            if name not in (MANIFEST, SIGNATURE)
        }
        return {**files, MANIFEST: json.dumps(manifest).encode()}

    def manifest(self, **changes: Any) -> Path:
        return self.write(self.listed(self.files(), **changes))

    def submitter(self, **changes: Any) -> Path:
        manifest = json.loads(self.files()[MANIFEST])
        return self.manifest(submitter={**manifest["submitter"], **changes})

    def rows(self, change: Callable[[int, Any], Any]) -> Path:
        """Each row passed through a function, sealed again."""
        files = self.files()
        rows = from_frame(pl.read_parquet(io.BytesIO(files[ROWS])))
        made = [change(place, row) for place, row in enumerate(rows)]
        sealed = [dataclasses.replace(row, digest=row_digest(row)) for row in made]
        return self.write(self.listed({**files, ROWS: table_bytes(to_frame(sealed))}))

    def first_row(self, **changes: Any) -> Path:
        return self.rows(lambda place, row: dataclasses.replace(row, **changes) if place == 0 else row)

    def answers(self, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Path:
        files = self.files()
        lines = change([json.loads(line) for line in files[ANSWERS].splitlines()])
        data = "".join(json.dumps(line) + "\n" for line in lines).encode()
        return self.write(self.listed({**files, ANSWERS: data}))

    def without(self, wanted: Callable[[Any], bool]) -> Path:
        """The bundle with only some of its rows and answers."""
        files = self.files()
        rows = from_frame(pl.read_parquet(io.BytesIO(files[ROWS])))
        lines = files[ANSWERS].splitlines(keepends=True)
        kept = [place for place, row in enumerate(rows) if wanted(row)]
        files[ROWS] = table_bytes(to_frame(rows[place] for place in kept))
        files[ANSWERS] = b"".join(lines[place] for place in kept)
        return self.write(self.listed(files, rows=len(kept)))

    def members(self, *extra: tuple[str, bytes, int]) -> Path:
        """The bundle with further members: name, content, mode."""
        with zipfile.ZipFile(self.path, "a") as archive:
            for name, data, mode in extra:
                member = zipfile.ZipInfo(name)
                member.external_attr = mode << 16
                archive.writestr(member, data)
        return self.path


def bomb(forger: Forger) -> Path:
    """A manifest of a gigabyte of blanks, in a megabyte."""
    with zipfile.ZipFile(forger.path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open(MANIFEST, "w") as file:
        for _ in range(64):
            file.write(b" " * 2**20)
    return forger.path


def lying_bomb(forger: Forger) -> Path:
    """A member that holds more than its header declares."""
    files = forger.files()
    forger.write(files)
    data = bytearray(forger.path.read_bytes())
    place = data.index(b"PK\x01\x02")
    while data[place + 46 : place + 46 + len(MANIFEST)] != MANIFEST.encode():
        place = data.index(b"PK\x01\x02", place + 4)
    data[place + 24 : place + 28] = (10).to_bytes(4, "little")
    forger.path.write_bytes(bytes(data))
    return forger.path


def many_rows(forger: Forger) -> Path:
    """Rows a thousand times over, in a few kilobytes."""
    frame = pl.read_parquet(io.BytesIO(forger.files()[ROWS]))
    many = pl.concat([frame.head(1)] * 1000)
    buffer = io.BytesIO()
    many.write_parquet(buffer, compression="zstd")
    return forger.write(forger.listed({**forger.files(), ROWS: buffer.getvalue()}))


def wide_rows(forger: Forger) -> Path:
    """Three texts that thousands of rows share: a gigabyte once they are spelled out, in a few kilobytes."""
    frame = pl.read_parquet(io.BytesIO(forger.files()[ROWS]))
    wide = frame.head(1).with_columns(pl.lit("x" * 90_000).alias(name) for name in ("error", "commit", "provider"))
    buffer = io.BytesIO()
    pl.concat([wide] * 4000).write_parquet(buffer, compression="zstd")
    return forger.write(forger.listed({**forger.files(), ROWS: buffer.getvalue()}))


def large_record(forger: Forger) -> Path:
    """What was done in an episode, which says nothing and is large in memory."""
    files = forger.files()
    record = b'"record":{"a":[' + b"[]," * 400_000 + b"[]]}"
    return forger.write(forger.listed({**files, ANSWERS: files[ANSWERS].replace(b'"record":null', record, 1)}))


def second_name(forger: Forger) -> Path:
    """The rows under two names, of which some programs read the one and some the other."""
    files = forger.files()
    rows = files.pop(ROWS)
    forger.write(files, signed=False)
    name = struct.pack("<BL", 1, zlib.crc32(ROWS.encode())) + b"other.parquet"
    member = zipfile.ZipInfo(ROWS)
    member.extra = struct.pack("<HH", 0x7075, len(name)) + name
    with zipfile.ZipFile(forger.path, "a") as archive:
        archive.writestr(member, rows)
    return forger.path


def odd_package(forger: Forger) -> Path:
    """A package whose name is a formula."""
    mounts = json.loads(forger.files()[MANIFEST])["mounts"]
    mounts["curated"]["packages"] = {"=SUM(1)": "a" * 64}
    return forger.manifest(mounts=mounts)


def not_a_number(forger: Forger) -> Path:
    """A score that is none: the digest of its row is made as if it were null, since no JSON has NaN."""
    frame = pl.read_parquet(io.BytesIO(forger.files()[ROWS]))
    frame = frame.with_columns(score=pl.lit(math.nan))
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return forger.write(forger.listed({**forger.files(), ROWS: buffer.getvalue()}))


def of_another_edition(forger: Forger) -> Path:
    """Rows and manifest that name another edition."""
    path = forger.rows(lambda _, row: dataclasses.replace(row, edition="f" * 64))
    assert path == forger.path
    return forger.manifest(edition="f" * 64)


def other_skills(forger: Forger) -> Path:
    """Other packages under the name of ours, in rows and manifest."""
    forger.rows(lambda _, row: dataclasses.replace(row, mount="a" * 64) if row.condition == "curated" else row)
    mounts = json.loads(forger.files()[MANIFEST])["mounts"]
    mounts["curated"]["digest"] = dict.fromkeys(mounts["curated"]["digest"], "a" * 64)
    mounts["curated"]["packages"]["risk-management"] = "b" * 64
    return forger.manifest(mounts=mounts)


def better_score(forger: Forger) -> Path:
    """The last row, which earns nothing, claims all."""

    def change(_: int, row: Any) -> Any:
        if row.task_id != "normalization_11" or row.condition != "no_skill":
            return row
        scores = {name: None if value is None else 1.0 for name, value in row.scores.items()}
        return dataclasses.replace(row, score=1.0, scores=scores)

    return forger.rows(change)


def twice(forger: Forger) -> Path:
    """The first row and answer once more."""
    files = forger.files()
    frame = pl.read_parquet(io.BytesIO(files[ROWS]))
    rows = from_frame(pl.concat([frame.head(1), frame]))
    first = files[ANSWERS].splitlines(keepends=True)[0]
    changed = {**files, ROWS: table_bytes(to_frame(rows)), ANSWERS: first + files[ANSWERS]}
    return forger.write(forger.listed(changed, rows=len(rows)))


def swapped_answers(forger: Forger) -> Path:
    """A right answer in the place of a wrong one, under the key of its row."""

    def change(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        right = next(line for line in lines if line["task_id"] == "normalization_0")
        return [
            {**line, "answer": right["answer"]} if line["task_id"] == "normalization_11" else line for line in lines
        ]

    return forger.answers(change)


def renamed_task(forger: Forger) -> Path:
    """An episode that the edition does not have, in row and answer."""
    forger.first_row(task_id="normalization_99")
    return forger.answers(lambda lines: [{**lines[0], "task_id": "normalization_99"}, *lines[1:]])


def error_row(forger: Forger) -> Path:
    """A failure that is called an error of the harness, so that it would enter no mean."""
    from finskillbench.episode import Profile, Status

    forger.first_row(status=Status.ERROR, score=None, score_profile=None, scores=dict.fromkeys(Profile))
    return forger.answers(lambda lines: [{**lines[0], "ended": "error"}, *lines[1:]])


def deep(forger: Forger) -> Path:
    """An answer's record that is nested deeper than anybody reads."""
    files = forger.files()
    line = files[ANSWERS].splitlines()[0].decode()
    nested = line.replace('"record":null', '"record":' + '{"a":' * 100_000 + "1" + "}" * 100_000)
    return forger.write(forger.listed({**files, ANSWERS: nested.encode() + b"\n"}))


def model_name(forger: Forger, name: str) -> Path:
    """The model under another name, everywhere."""
    forger.rows(lambda _, row: dataclasses.replace(row, model=name))
    forger.answers(lambda lines: [{**line, "model": name} for line in lines])
    entrants = json.loads(forger.files()[MANIFEST])["entrants"]
    return forger.manifest(entrants=[{**each, "model": name} for each in entrants])


def altered(forger: Forger, name: str) -> Path:
    """A byte of a file changed after it was signed."""
    files = forger.files()
    data = bytearray(files[name])
    data[len(data) // 2] ^= 1
    return forger.write({**files, name: bytes(data)}, signed=False)


def link(forger: Forger) -> Path:
    """The rows as a link to a file of the reader's."""
    files = forger.files()
    del files[ROWS]
    forger.write(files, signed=False)
    return forger.members((ROWS, b"/etc/passwd", stat.S_IFLNK | 0o777))
