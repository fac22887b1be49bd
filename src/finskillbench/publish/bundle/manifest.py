"""The manifest of a bundle, and one line of its answers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any

import msgspec

from finskillbench.errors import InputError
from finskillbench.harness.conditions import ArmName
from finskillbench.harness.trace import Ended
from finskillbench.runs.plan.items import Item

FORMAT = 1
MANIFEST = "manifest.json"
SIGNATURE = "manifest.json.sig"
ROWS = "rows.parquet"
ANSWERS = "answers.jsonl"
TRAJECTORIES = "trajectories"
LARGEST_MANIFEST = 2**23
"""Bytes of a manifest at most; each trajectory takes 150 of them, and who has more adds none."""

Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
Said = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


_NOTHING_DONE = msgspec.Raw(b"null")


class _Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may stand in a manifest and nothing else."""


class Submitter(_Record, frozen=True, kw_only=True):
    """Who submits, in own words; `url` is an address of the web."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=80)]
    contact: Said | None = None
    url: Said | None = None


class Entrant(_Record, frozen=True, kw_only=True):
    """A model with its arguments, and the day after which it has learnt nothing, where its owner states one."""

    model: Said
    arguments: Annotated[str, msgspec.Meta(max_length=1000)]
    cutoff: date | None = None


class Mounted(_Record, frozen=True, kw_only=True):
    """What was mounted under a condition: the digest of the mount in each domain and of each package."""

    digest: Mapping[str, Digest]
    packages: Mapping[str, Digest]


class File(_Record, frozen=True, kw_only=True):
    """A file of the bundle: SHA-256 and bytes."""

    sha256: Digest
    size: Annotated[int, msgspec.Meta(ge=0, le=2**33)]


class Manifest(_Record, frozen=True, kw_only=True):
    """What a bundle says of itself.

    `edition` is the digest of the edition. `partial` is the reason why episodes are missing, None where none are.
    `prompts_digest`, `scorer_version` and `versions` are those of the run, `sandbox` the guards that scripts ran under.
    """

    format: int
    submitter: Submitter
    edition: Digest
    entrants: tuple[Entrant, ...]
    mounts: Mapping[ArmName, Mounted]
    partial: Said | None
    rows: int
    prompts_digest: Digest
    scorer_version: Said
    versions: Mapping[str, Said]
    sandbox: Mapping[str, bool]
    files: Mapping[str, File]


class Answer(_Record, frozen=True, kw_only=True):
    """What came back for one episode: the key of its row, the text, how the episode ended, and what was done in it.

    `record` stays the text that it is until the episode is judged: a small one can be large in memory.
    """

    model: str
    arguments: str
    condition: ArmName
    task_id: str
    run_idx: int
    ended: Ended
    answer: str | None
    record: msgspec.Raw = _NOTHING_DONE

    @property
    def item(self) -> Item:
        """The piece of work that it belongs to."""
        return Item(self.model, self.arguments, self.condition, self.task_id, self.run_idx)


def done(answer: Answer) -> dict[str, Any] | None:
    """What was done in an episode.

    Raises
    ------
    ValueError : it is no JSON object.
    """
    return msgspec.json.decode(answer.record, type=dict[str, Any] | None)


def encode(record: Manifest) -> bytes:
    """A manifest as it is signed: the same bytes for the same content."""
    return msgspec.json.format(msgspec.json.encode(record, order="sorted"), indent=1) + b"\n"


def decode(data: bytes, where: str) -> Manifest:
    """The manifest of a bundle.

    Raises
    ------
    InputError : it is none, names a field that is missing, unknown or wrong, or is of another format.
    """
    try:
        found = msgspec.json.decode(data, type=Manifest)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: {MANIFEST}: {error}; make the bundle again with finskillbench submit") from None
    if found.format != FORMAT:
        raise InputError(f"{where}: {MANIFEST}: of format {found.format}, this version reads {FORMAT}; update it")
    return found
