"""Verifier of a Harbor task: scores one answer in a container that the agent never enters.

    python -m finskillbench.integrations.task_files.verify TESTS ANSWER REWARD

TESTS is a folder made by `write_case`. REWARD becomes a JSON object of numbers: `reward` is the score under the profile
`certified`, `raw` the same before its limit at 0, and the others are parts of the score.
"""

from __future__ import annotations

import math
import os
import shutil
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from finskillbench.domains.tables import EpisodeTable
from finskillbench.edition import Edition
from finskillbench.edition.references import References
from finskillbench.edition.store import read_records, write_lines
from finskillbench.episode import Episode, Submission, Truth
from finskillbench.errors import InputError
from finskillbench.runs.verdicts import reward_of
from finskillbench.scoring.strict_json import MAX_BYTES

TRUTH, INPUT = "truth.jsonl", "input.json"


def write_case(folder: Path, edition: Edition, episode: Episode) -> None:
    """Write what a score needs: the truth, the input at full precision, and its tables."""
    write_lines(folder / TRUTH, [edition.truth(episode.task_id)])
    full: dict[str, Any] = {}
    for name, value in episode.input.items():
        full[name] = edition.resolved(value)
        if isinstance(full[name], EpisodeTable):
            full[name], table = value, value["table"]
            (folder / table).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(edition.path / table, folder / table)
    (folder / INPUT).write_bytes(orjson.dumps(full, option=orjson.OPT_SERIALIZE_NUMPY))


def rewards(folder: Path, answer: Path) -> Mapping[str, float]:
    """Return reward, raw reward and parts of an answer; one that is missing or malformed has reward 0."""
    (truth,) = read_records(folder / TRUTH, Truth)
    tables = References(folder, (path.relative_to(folder).as_posix() for path in folder.rglob("*.parquet")))
    full = {name: tables.resolved(value) for name, value in orjson.loads((folder / INPUT).read_bytes()).items()}
    text = read_answer(answer)
    found = reward_of(Submission(truth.task_id, text, "no_answer" if text is None else "submitted"), truth, full)
    parts = {name: value for name, value in found.parts.items() if math.isfinite(value)}
    return {**parts, "raw": found.raw, "reward": found.score}


def read_answer(path: Path) -> str | None:
    """Return the text of an answer file, valid or not; None if it is empty or not a regular file."""
    if not path.is_file() or path.is_symlink() or path.parent.is_symlink():
        return None
    return text_of(read_plain(path))


def text_of(data: bytes | None) -> str | None:
    """Return the text of an answer file; None if it is absent or blank."""
    # An invalid byte of UTF-8 becomes a lone surrogate, which the judge refuses.
    return None if data is None or not data.strip() else data.decode("utf-8", "surrogateescape")


def read_plain(path: Path, most: int = MAX_BYTES + 1) -> bytes | None:
    """Read the first bytes of a regular file; None if nothing is there.

    Raises
    ------
    InputError : it is something else, such as a link or a pipe, or cannot be read.
    """
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise InputError(f"{path}: not a regular file; put the answer file itself there")
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(most)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


if __name__ == "__main__":
    tests, submitted, out = map(Path, sys.argv[1:])
    out.write_bytes(orjson.dumps(rewards(tests, submitted)))
