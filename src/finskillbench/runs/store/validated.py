"""Verdicts of `data validate`, kept in the user's state folder: outside every edition, so that none states its own.

A verdict is on the digest of an edition's files. It holds for a copy with fewer parts and for none with more, since
labels that were withheld were not checked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from platformdirs import user_state_path

from finskillbench.edition import Edition
from finskillbench.runs.store.files import make_folder, write_beside
from finskillbench.runs.store.version import code_version


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """One verdict: the files, their source, the suites and withheld parts that were there, the time, the version."""

    digest: str
    source: str
    suites: tuple[str, ...]
    parts: tuple[str, ...]
    passed: bool
    when: datetime
    version: str

    def covers(self, other: Validation) -> bool:
        """Return True if this verdict checked all that another covers."""
        same = (self.digest, self.source) == (other.digest, other.source)
        return same and {*other.suites} <= {*self.suites} and {*other.parts} <= {*self.parts}

    def __str__(self) -> str:
        state = "passed" if self.passed else "failed"
        return f"{state} here on {self.when:%Y-%m-%d} by version {self.version}, digest {self.digest[:12]}"


def keep_validation(edition: Edition, *, passed: bool) -> Validation:
    """Keep the verdict on an edition.

    Raises
    ------
    InputError : the state folder cannot be written.
    """
    found = _verdict(edition, passed=passed)
    make_folder(_folder())
    what = hashlib.sha256(msgspec.json.encode((found.source, found.suites, found.parts))).hexdigest()
    write_beside(_folder() / f"{found.digest}-{what[:12]}.json", msgspec.json.encode(found))
    return found


def validation_of(edition: Edition) -> Validation | None:
    """The latest verdict of this user on all of an edition; None where there is none."""
    kept = list(_kept(edition.digest))
    covering = [each for each in kept if each.covers(_verdict(edition, passed=False))]
    return max(covering, key=lambda each: each.when, default=None)


def validation_text(edition: Edition) -> str:
    """The latest verdict in words, or the command that makes one."""
    found = validation_of(edition)
    command = f"finskillbench data validate {edition.path}"
    return f"not here, digest {edition.digest[:12]}; {command}" if found is None else str(found)


def _verdict(edition: Edition, *, passed: bool) -> Validation:
    there = {"truth": edition.has_truth, "certificates": edition.has_certificates, "stages": edition.has_stages}
    return Validation(
        digest=edition.digest,
        source=edition.manifest["source"]["kind"],
        suites=edition.suites,
        parts=tuple(name for name, held in there.items() if held),
        passed=passed,
        when=datetime.now(UTC).replace(microsecond=0),
        version=code_version(),
    )


def _folder() -> Path:
    return user_state_path("finskillbench") / "validated"


def _kept(digest: str) -> Iterator[Validation]:
    for path in sorted(_folder().glob(f"{digest}-*.json")):
        try:
            yield msgspec.json.decode(path.read_bytes(), type=Validation)
        except (OSError, ValueError):
            continue  # of another version, or damaged: as if it was not there
